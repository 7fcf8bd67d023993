/* Passes over a tile, with one or two destinations. How a slot is written and read is a variant of the yardsticks for
 * private buffers.
 *
 *   plain    as memcpy does
 *   claimed  the reader of a slot writes back one byte of each line unchanged. On some processors a line that another
 *            core has only read takes several times as long to be written again
 *   past     slots are written with non-temporal stores. Lines that a core of another cache has just written come
 *            sooner from memory */
#ifndef GYRE_LIMITS_PASS_H
#define GYRE_LIMITS_PASS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define GY_PASS_LINE 16 /* floats */

enum gy_pass_variant { GY_PLAIN, GY_CLAIMED, GY_PAST };

/* When it has been read: a load of what has just been stored in part waits for that store. */
static inline void gy_pass_claim(const float *line)
{
    volatile unsigned char *at = (volatile unsigned char *)(uintptr_t)line;
    *at = *at;
}

/* Slots begin at a line, and so do tiles; the last line of the last one may be short. */
static inline void gy_pass_take(float *restrict to, const float *restrict slot, size_t count, enum gy_pass_variant way)
{
    for (; way == GY_CLAIMED && count >= GY_PASS_LINE;
         count -= GY_PASS_LINE, to += GY_PASS_LINE, slot += GY_PASS_LINE) {
        memcpy(to, slot, GY_PASS_LINE * sizeof *to);
        gy_pass_claim(slot);
    }
    memcpy(to, slot, count * sizeof *to);
}

static inline void gy_pass_add(float *restrict to, const float *restrict a, const float *restrict slot, size_t count,
                               enum gy_pass_variant way)
{
    for (; way == GY_CLAIMED && count >= GY_PASS_LINE;
         count -= GY_PASS_LINE, to += GY_PASS_LINE, a += GY_PASS_LINE, slot += GY_PASS_LINE) {
        for (size_t i = 0; i < GY_PASS_LINE; i++)
            to[i] = a[i] + slot[i];
        gy_pass_claim(slot);
    }
    for (size_t i = 0; i < count; i++)
        to[i] = a[i] + slot[i];
}

/* Four floats of a slot. */
static inline void gy_pass_store_past(float *slot, const float *from)
{
#if defined(__x86_64__)
    _mm_stream_ps(slot, _mm_loadu_ps(from));
#else
    memcpy(slot, from, 4 * sizeof *slot);
#endif
}

/* Into the slot, and, unless that is NULL, to another place as well. */
static inline void gy_pass_give(float *restrict slot, float *restrict too, const float *restrict from, size_t count,
                                enum gy_pass_variant way)
{
    size_t i = 0;
    for (; way == GY_PAST && i + 4 <= count; i += 4) {
        gy_pass_store_past(slot + i, from + i);
        if (too)
            memcpy(too + i, from + i, 4 * sizeof *too);
    }
    if (!too)
        memcpy(slot + i, from + i, (count - i) * sizeof *slot);
    for (; too && i < count; i++)
        slot[i] = too[i] = from[i];
}

/* What has been given is there before it is announced. */
static inline void gy_pass_fence(enum gy_pass_variant way)
{
#if defined(__x86_64__)
    if (way == GY_PAST)
        _mm_sfence();
#else
    (void)way;
#endif
}

#endif
