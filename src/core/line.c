#include "core/line.h"

#include <stdatomic.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

static bool ask_processor(void)
{
#if defined(__x86_64__)
    enum { CPUID_7_ECX_CLDEMOTE = 1 << 25 };
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (ecx & CPUID_7_ECX_CLDEMOTE);
#else
    return false;
#endif
}

/* Racing threads find the same. */
bool gy_line_can_hand_over(void)
{
    enum { UNKNOWN, YES, NO };
    static _Atomic int known;
    int found = atomic_load_explicit(&known, memory_order_relaxed);
    if (found == UNKNOWN) {
        found = ask_processor() ? YES : NO;
        atomic_store_explicit(&known, found, memory_order_relaxed);
    }
    return found == YES;
}
