/* The reductions under Criterion: the checks of kernel_checks.h, and what only x86 can be asked. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/dtype.h"
#include "kernel_checks.h"

#define AS_TEST(name)                                       \
    Test(reduce, name, .timeout = 50)                       \
    {                                                       \
        const char *wrong = gy_check_##name();              \
        cr_assert(wrong == NULL, "%s", wrong ? wrong : ""); \
    }
GY_KERNEL_CHECKS(AS_TEST)

#if defined(__x86_64__)
Test(reduce, traps_of_the_caller_do_not_fire)
{
    const float infinite = INFINITY, opposite = -INFINITY;
    float sum;
    uint32_t saved, bits;

    __builtin_ia32_ldmxcsr(0); /* every exception would trap */
    saved = gy_fp_enter();
    gy_reduce2(&sum, &infinite, &opposite, 1, GYRE_FLOAT32, GYRE_SUM);
    gy_fp_leave(saved);
    cr_assert_eq(__builtin_ia32_stmxcsr(), 0);
    __builtin_ia32_ldmxcsr(0x1f80);
    memcpy(&bits, &sum, 4);
    cr_assert_eq(bits, 0x7fc00000);
}
#endif
