/* The floating-point mode of a reduction: round to nearest, denormals kept, exceptions masked. What the caller had set,
 * the sticky exception flags included, comes back afterwards. */
#include "dtype.h"

#if defined(__x86_64__)

#define MXCSR_DEFAULT 0x1f80u /* all exceptions masked, round to nearest, no FTZ, no DAZ */
#define MXCSR_FLAGS 0x003fu   /* the sticky exception flags, which change no result */

static inline uint32_t mode_get(void)
{
    uint32_t mode;

    __asm__ volatile("stmxcsr %0" : "=m"(mode) : : "memory");
    return mode;
}

static inline void mode_set(uint32_t mode)
{
    __asm__ volatile("ldmxcsr %0" : : "m"(mode) : "memory");
}

/* Writing the mode is slow beside a small reduction, reading is not: it is written only where it differs. */
uint32_t gy_fp_enter(void)
{
    uint32_t saved = mode_get();

    if ((saved & ~MXCSR_FLAGS) != MXCSR_DEFAULT)
        mode_set(MXCSR_DEFAULT | (saved & MXCSR_FLAGS));
    return saved;
}

void gy_fp_leave(uint32_t saved)
{
    if (mode_get() != saved)
        mode_set(saved);
}

void gy_fp_leave_unused(uint32_t saved)
{
    if ((saved & ~MXCSR_FLAGS) != MXCSR_DEFAULT)
        mode_set(saved);
}

#elif defined(__aarch64__)

uint32_t gy_fp_enter(void)
{
    uint64_t saved, wanted = 0;

    __asm__ volatile("mrs %0, fpcr" : "=r"(saved) : : "memory");
    __asm__ volatile("msr fpcr, %0" : : "r"(wanted) : "memory");
    return (uint32_t)saved;
}

void gy_fp_leave(uint32_t saved)
{
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)saved) : "memory");
}

void gy_fp_leave_unused(uint32_t saved)
{
    gy_fp_leave(saved);
}

#else
#error "gyre does not know how to set the floating-point mode of this processor"
#endif
