/* A line of the processor's caches, asked for before it is needed. Nothing depends on any of this but the time, and all but
 * gy_line_claim are hints: that one stores. */
#ifndef GY_CORE_LINE_H
#define GY_CORE_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GY_HARDWARE_LINE 64

/* To be read. Not by the compiler's own function alone: gcc takes one that does nothing else for pure, and leaves out its calls. */
static inline void gy_line_expect(const void *line)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetcht0 %0" : : "m"(*(const char *)line));
#else
    __builtin_prefetch(line);
    __asm__ volatile("" : : "r"(line));
#endif
}

/* To be written: the others have a line that they have read, and who writes it waits until they have given it up. */
static inline void gy_line_own(const void *line)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
    __builtin_prefetch(line, 1);
    __asm__ volatile("" : : "r"(line));
#endif
}

/* Lines that another core has written and will write again, when this one has read them: stores a byte of each as it is. A line that
 * was only read stays tied to both cores on some processors, and takes several times as long to be written the next time as one
 * that has been written here. Nobody else writes these bytes meanwhile. */
static inline void gy_line_claim(const void *first, size_t bytes)
{
    volatile unsigned char *at = (volatile unsigned char *)(uintptr_t)first, *end = at + bytes;
    for (; at < end; at += GY_HARDWARE_LINE - (uintptr_t)at % GY_HARDWARE_LINE)
        *at = *at;
}

/* Is the processor one of which it is known that a line that it has claimed is sooner written again by the other core, wherever that
 * lies? */
bool gy_line_gains_by_claims(void);

/* It is wanted elsewhere soon, and leaves this core's caches for one that the cores share; no operation where the processor does not
 * know it. */
static inline void gy_line_hand_over(const void *line)
{
#if defined(__x86_64__)
    __asm__ volatile("cldemote %0" : : "m"(*(const char *)line));
#else
    (void)line;
#endif
}

/* Does it know? */
bool gy_line_can_hand_over(void);

#endif
