/* Reductions of element arrays: the choice of kernels, and the splitting of arguments before the kernels.
 *
 * The tables are in kernels_*.c, one per instruction set. The best one that the CPU supports is chosen at the first use
 * and kept. All tables give the same bits, so the choice affects only speed. */
#include <stdatomic.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "kernels.h"
#include "line.h"

#define TILE_BYTES (4 << 10) /* of repeated scalars: stays in the first-level cache */
#define STREAM_ALIGNMENT 64

#if defined(__x86_64__)
enum { CPUID_1_ECX_F16C = 1 << 29 };

static bool has_f16c(void)
{
    unsigned eax, ebx, ecx, edx;

    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & CPUID_1_ECX_F16C);
}

const struct gy_kernels *gy_kernels_usable(int index)
{
    /* These also ask whether the operating system keeps the wide registers. */
    bool avx2 = __builtin_cpu_supports("avx2") && has_f16c();
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");

    switch (index) {
    case 0: return &gy_kernels_sse2;
    case 1: return avx2 ? &gy_kernels_avx2 : NULL;
    case 2: return avx512 ? &gy_kernels_avx512 : NULL;
    default: return NULL;
    }
}
#else
const struct gy_kernels *gy_kernels_usable(int index)
{
    return index == 0 ? &gy_kernels_neon : NULL;
}
#endif

/* Racing threads find the same table. */
static const struct gy_kernels *kernels(void)
{
    static _Atomic(const struct gy_kernels *) best;
    const struct gy_kernels *found = atomic_load_explicit(&best, memory_order_relaxed);

    if (!found) {
        const struct gy_kernels *next;

        for (int i = 0; (next = gy_kernels_usable(i)) != NULL; i++)
            found = next;
        atomic_store_explicit(&best, found, memory_order_relaxed);
    }
    return found;
}

gy_reduce_kernel gy_reduction(unsigned dtype, unsigned op)
{
    return kernels()->reduce[dtype][op];
}

void gy_reduce2(void *dst, const void *left, const void *right, size_t count, gyre_dtype dtype, gyre_op op)
{
    const void *const src[2] = {left, right};

    kernels()->reduce[dtype][op](dst, NULL, src, 2, count * gyre_dtype_size(dtype), 0);
}

void gy_reduce_many(void *dst, void *dst2, const void *const *src, int nsrc, size_t count, gyre_dtype dtype, gyre_op op)
{
    size_t bytes = count * gy_dtype_bytes(dtype);

    if (bytes == 0)
        return;
    if (nsrc > 1) {
        kernels()->reduce[dtype][op](dst, dst2, src, nsrc, bytes, 0);
        return;
    }
    memmove(dst, src[0], bytes);
    if (dst2)
        memmove(dst2, dst, bytes);
}

/* The bytes before the first aligned byte of dst use ordinary stores. So does everything if the elements do not fit
 * that alignment, or there are more sources than fit the array of advanced pointers. */
void gy_reduce_many_stream(void *dst, void *dst2, const void *const *src, int nsrc, size_t count, gyre_dtype dtype,
                           gyre_op op, unsigned stream)
{
    enum { SOURCES_MOST = 256 };
    size_t size = gyre_dtype_size(dtype), bytes = count * size;
    size_t head = -(uintptr_t)dst % STREAM_ALIGNMENT;
    const void *rest[SOURCES_MOST];

    if (nsrc < 2 || nsrc > SOURCES_MOST || head % size != 0 || head >= bytes) {
        gy_reduce_many(dst, dst2, src, nsrc, count, dtype, op);
        return;
    }
    if (((uintptr_t)dst2 - (uintptr_t)dst) % STREAM_ALIGNMENT != 0)
        stream &= ~(unsigned)GY_STREAM_DST2;
    for (int i = 0; i < nsrc; i++)
        rest[i] = (const char *)src[i] + head;
    if (head > 0)
        kernels()->reduce[dtype][op](dst, dst2, src, nsrc, head, 0);
    kernels()->reduce[dtype][op]((char *)dst + head, dst2 ? (char *)dst2 + head : NULL, rest, nsrc, bytes - head,
                                 stream);
}

void gy_copy_stream(void *dst, const void *src, size_t bytes)
{
    size_t head = gy_min_size(-(uintptr_t)dst % STREAM_ALIGNMENT, bytes);
    size_t lines = (bytes - head) / STREAM_ALIGNMENT * STREAM_ALIGNMENT;

    memcpy(dst, src, head);
    kernels()->copy((char *)dst + head, (const char *)src + head, NULL, NULL, lines, GY_STREAM_DST);
    memcpy((char *)dst + head + lines, (const char *)src + head + lines, bytes - head - lines);
}

void gy_copy_both(void *dst, const void *src, void *dst2, const void *src2, size_t bytes, unsigned stream)
{
    size_t head = gy_min_size(-(uintptr_t)dst % STREAM_ALIGNMENT, bytes);
    size_t lines = (bytes - head) / STREAM_ALIGNMENT * STREAM_ALIGNMENT, end = head + lines;

    if (((uintptr_t)dst2 - (uintptr_t)dst) % STREAM_ALIGNMENT != 0)
        stream &= ~(unsigned)GY_STREAM_DST2;
    memcpy(dst, src, head);
    memcpy(dst2, src2, head);
    kernels()->copy((char *)dst + head, (const char *)src + head, (char *)dst2 + head, (const char *)src2 + head, lines,
                    stream);
    memcpy((char *)dst + end, (const char *)src + end, bytes - end);
    memcpy((char *)dst2 + end, (const char *)src2 + end, bytes - end);
}

static void claim_part(char *dst, const char *src, size_t bytes)
{
    memcpy(dst, src, bytes);
    gy_line_claim(src, bytes);
}

void gy_copy_claim(void *dst, const void *src, size_t bytes)
{
    size_t head = gy_min_size(-(uintptr_t)src % GY_HARDWARE_LINE, bytes);
    size_t lines = (bytes - head) / GY_HARDWARE_LINE * GY_HARDWARE_LINE, end = head + lines;

    claim_part(dst, src, head);
    kernels()->claim((char *)dst + head, (char *)(uintptr_t)src + head, lines);
    claim_part((char *)dst + end, (const char *)src + end, bytes - end);
}

void gy_stream_fence(void)
{
#if defined(__x86_64__)
    __builtin_ia32_sfence(); /* such stores are not ordered with any other */
#endif
}

void gy_reduce_divide(void *dst, const void *src, size_t count, gyre_dtype dtype, int divisor)
{
    kernels()->divide[dtype](dst, src, count * gyre_dtype_size(dtype), divisor);
}

/* A product whose second operand is a tile full of the scalar. */
void gy_reduce_multiply(void *dst, const void *src, const void *scalar, size_t count, gyre_dtype dtype)
{
    size_t size = gyre_dtype_size(dtype), bytes = count * size;
    size_t filled = bytes < TILE_BYTES ? bytes : TILE_BYTES;
    char tile[TILE_BYTES] __attribute__((aligned(64)));

    for (size_t at = 0; at < filled; at += size)
        memcpy(tile + at, scalar, size);
    for (size_t at = 0; at < bytes; at += TILE_BYTES) {
        const void *const operand[2] = {(const char *)src + at, tile};

        kernels()->reduce[dtype][GYRE_PRODUCT]((char *)dst + at, NULL, operand, 2, gy_min_size(bytes - at, TILE_BYTES),
                                               0);
    }
}

void gy_widen(float *dst, const void *src, size_t count, gyre_dtype dtype)
{
    kernels()->widen[dtype]((char *)dst, src, count);
}

void gy_narrow(void *dst, const float *src, size_t count, gyre_dtype dtype)
{
    kernels()->narrow[dtype](dst, (const char *)src, count);
}
