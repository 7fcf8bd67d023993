/* The language of kernels (src/cuda/kernels/language.h) on fibres; included by it. */
#ifndef GY_TESTS_GPU_EMU_LANGUAGE_H
#define GY_TESTS_GPU_EMU_LANGUAGE_H

#include <string.h>

#include "emu_fibre.h"

#define GY_DEVICE static inline
#define GY_DEVICE_MEMBER inline
#define GY_KERNEL(name, arguments)                    \
    static inline void name##_on(const arguments &a); \
    static inline void name(const void *a)            \
    {                                                 \
        name##_on(*(const arguments *)a);             \
    }                                                 \
    static inline void name##_on(const arguments &a)
#define GY_SHARED(type, name) type &name = *(type *)emu_shared(__FILE__, __LINE__, sizeof(type))
#define GY_UNROLL
#define GY_ROLLED

GY_DEVICE unsigned gy_thread()
{
    return emu_self->thread;
}
GY_DEVICE unsigned gy_threads()
{
    return emu_self->threads;
}
GY_DEVICE unsigned gy_block()
{
    return emu_self->block_index;
}
GY_DEVICE unsigned gy_blocks()
{
    return emu_self->blocks;
}

/* An access that is not aligned is a fault on a GPU. */
template <typename bits> GY_DEVICE bits gy_load(const void *p)
{
    bits value;
    emu_check_aligned(p, sizeof(bits));
    p = emu_at(p, sizeof(bits));
    if (!emu_delays)
        return *(const bits *)p;
    emu_load(p, sizeof(bits), &value);
    return value;
}
template <typename bits> GY_DEVICE void gy_store(void *p, bits value)
{
    emu_check_aligned(p, sizeof(bits));
    p = emu_at(p, sizeof(bits));
    emu_touch();
    if (emu_delays)
        emu_store(p, sizeof(bits), &value);
    else
        *(bits *)p = value;
    emu_self->fenced = false;
    emu_changed();
}

/* The halves of a line arrive one by one, in any order. */
GY_DEVICE gy_line gy_line_load(const gy_line *p)
{
    gy_line l;
    uint64_t half[2];
    bool second_first = emu_random() & 1;
    emu_check_aligned(p, sizeof(*p));
    p = (const gy_line *)emu_at(p, sizeof(*p));
    for (int k = 0; k < 2; k++) {
        emu_touch();
        int at = k ^ (int)second_first;
        half[at] = __atomic_load_n((const uint64_t *)p + at, __ATOMIC_ACQUIRE);
    }
    memcpy(&l, half, sizeof(l));
    return l;
}
GY_DEVICE void gy_line_store(gy_line *p, gy_line l)
{
    uint64_t half[2];
    bool second_first = emu_random() & 1;
    emu_check_aligned(p, sizeof(*p));
    p = (gy_line *)emu_at(p, sizeof(*p));
    memcpy(half, &l, sizeof(l));
    for (int k = 0; k < 2; k++) {
        emu_touch();
        int at = k ^ (int)second_first;
        __atomic_store_n((uint64_t *)p + at, half[at], __ATOMIC_RELEASE);
    }
    emu_changed();
}
GY_DEVICE uint32_t gy_word_acquire(const uint32_t *p)
{
    p = (const uint32_t *)emu_at(p, sizeof(*p));
    emu_touch();
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}
GY_DEVICE uint32_t gy_word_relaxed(const uint32_t *p)
{
    p = (const uint32_t *)emu_at(p, sizeof(*p));
    emu_touch();
    return __atomic_load_n(p, __ATOMIC_RELAXED);
}
GY_DEVICE void gy_word_store(uint32_t *p, uint32_t v)
{
    p = (uint32_t *)emu_at(p, sizeof(*p));
    emu_touch();
    /* ThreadSanitizer knows no fences: a store after one releases instead. */
    if (!emu_delays && emu_self->fenced)
        __atomic_store_n(p, v, __ATOMIC_RELEASE);
    else
        __atomic_store_n(p, v, __ATOMIC_RELAXED);
    emu_changed();
}
GY_DEVICE uint32_t gy_word_add(uint32_t *p, uint32_t v)
{
    p = (uint32_t *)emu_at(p, sizeof(*p));
    emu_touch();
    emu_flush();
    emu_changed();
    return __atomic_fetch_add(p, v, __ATOMIC_ACQ_REL);
}
GY_DEVICE void gy_fence()
{
    emu_flush();
    emu_self->fenced = true;
}
#define gy_sync() emu_sync(__FILE__, __LINE__, false)
#define gy_sync_or(any) emu_sync(__FILE__, __LINE__, any)
GY_DEVICE void gy_pause(const uint32_t *p, uint32_t wanted, const char *what)
{
    emu_pause(p, wanted, what);
}

#endif
