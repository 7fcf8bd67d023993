/* Prefetch and ownership of cache lines. These functions affect only timing. All but gy_line_claim are hints: that one
 * stores. */
#ifndef GY_CORE_LINE_H
#define GY_CORE_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GY_HARDWARE_LINE 64

/* Prefetches a line for reading. The compiler's builtin alone is not enough: gcc treats a function that does nothing
 * else as pure, and removes its calls. */
static inline void gy_line_expect(const void *line)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetcht0 %0" : : "m"(*(const char *)line));
#else
    __builtin_prefetch(line);
    __asm__ volatile("" : : "r"(line));
#endif
}

/* Prefetches a line for writing. Other cores hold a line that they have read, and a store waits until they are
 * invalidated. */
static inline void gy_line_own(const void *line)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
    __builtin_prefetch(line, 1);
    __asm__ volatile("" : : "r"(line));
#endif
}

/* For lines that another core has written and will write again, after this core has read them: stores a byte of each
 * unchanged. On some processors a line that was only read stays shared, and its next write takes several times as long
 * as that of a line written here. No other core writes these bytes meanwhile. */
static inline void gy_line_claim(const void *first, size_t bytes)
{
    volatile unsigned char *at = (volatile unsigned char *)(uintptr_t)first, *end = at + bytes;
    for (; at < end; at += GY_HARDWARE_LINE - (uintptr_t)at % GY_HARDWARE_LINE)
        *at = *at;
}

/* True if on this processor a line whose ownership was taken is known to be rewritten sooner by the other core, at any
 * distance of the two cores. */
bool gy_line_gains_by_claims(void);

/* Demotes a line that another core needs soon from this core's caches to a shared one; no operation if the processor
 * lacks the instruction. */
static inline void gy_line_hand_over(const void *line)
{
#if defined(__x86_64__)
    __asm__ volatile("cldemote %0" : : "m"(*(const char *)line));
#else
    (void)line;
#endif
}

/* True if the processor has that instruction. */
bool gy_line_can_hand_over(void);

#endif
