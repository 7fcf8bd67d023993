#include "core/line.h"

#include <stdatomic.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

static bool can_hand_over(void)
{
#if defined(__x86_64__)
    enum { CPUID_7_ECX_CLDEMOTE = 1 << 25 };
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (ecx & CPUID_7_ECX_CLDEMOTE);
#else
    return false;
#endif
}

/* AMD's do; others have not been measured. */
static bool gains_by_claims(void)
{
#if defined(__x86_64__)
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid(0, &eax, &ebx, &ecx, &edx) && ebx == signature_AMD_ebx && ecx == signature_AMD_ecx &&
           edx == signature_AMD_edx;
#else
    return false;
#endif
}

/* Racing threads find the same. */
static bool is_known(_Atomic int *known, bool (*ask)(void))
{
    enum { UNKNOWN, YES, NO };
    int found = atomic_load_explicit(known, memory_order_relaxed);
    if (found == UNKNOWN) {
        found = ask() ? YES : NO;
        atomic_store_explicit(known, found, memory_order_relaxed);
    }
    return found == YES;
}

bool gy_line_can_hand_over(void)
{
    static _Atomic int known;
    return is_known(&known, can_hand_over);
}

bool gy_line_gains_by_claims(void)
{
    static _Atomic int known;
    return is_known(&known, gains_by_claims);
}
