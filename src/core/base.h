/* Common to all internal files: the public types and a few helpers of the language. */
#ifndef GY_CORE_BASE_H
#define GY_CORE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <gyre/gyre.h>

#define GY_CACHE_LINE 128 /* bytes two writers stay apart: adjacent-line prefetch pairs 64-byte lines */
#define GY_ARRAY_LENGTH(a) (sizeof(a) / sizeof((a)[0]))
#define GY_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

static inline size_t gy_min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}
static inline size_t gy_max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* memcpy, of 4 to 16 bytes without a call: two words, which may overlap. */
static inline void gy_copy(void *to, const void *from, size_t bytes)
{
    uint64_t first, last;
    uint32_t first_half, last_half;
    if (bytes < 4 || bytes > 16) {
        memcpy(to, from, bytes);
    } else if (bytes < 8) {
        memcpy(&first_half, from, 4);
        memcpy(&last_half, (const unsigned char *)from + bytes - 4, 4);
        memcpy(to, &first_half, 4);
        memcpy((unsigned char *)to + bytes - 4, &last_half, 4);
    } else {
        memcpy(&first, from, 8);
        memcpy(&last, (const unsigned char *)from + bytes - 8, 8);
        memcpy(to, &first, 8);
        memcpy((unsigned char *)to + bytes - 8, &last, 8);
    }
}

/* The processor's hint that this is a spin loop. */
static inline void gy_cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
