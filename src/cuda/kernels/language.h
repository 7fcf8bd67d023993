/* The functions and macros that kernels are written with. nvcc and the tests compile the same source; the tests compile
 * it as C++ and run it on fibres (tests/support/gpu/emu.h). Memory that is shared between threads is accessed only by:
 *
 *   gy_load, gy_store             plain accesses of 1, 2, 4, 8 or 16 bytes, aligned to their size; ordered by gy_sync
 *                                 within a block, and by gy_fence for all other observers
 *   gy_line_load, gy_line_store   16 bytes that carry their own flags; each 8-byte half is accessed atomically
 *   gy_word_*                     atomic accesses to the 32-bit words that ranks wait for
 *   gy_wait                       spins until a counter has reached a value, modulo 2^32, or the abort word is set
 *
 * GY_SHARED declares shared memory at the top of a function. Kernels use no dynamic shared memory. */
#ifndef GY_CUDA_KERNELS_LANGUAGE_H
#define GY_CUDA_KERNELS_LANGUAGE_H

#include <stddef.h>
#include <stdint.h>

#include "cuda/kernels/arguments.h"

struct alignas(16) gy_vector {
    uint32_t word[4];
};

enum { GY_SPINS = 64 }; /* polls between two reads of the abort word, which lies in host memory */

#if defined(__CUDACC__)

#define GY_DEVICE static __device__ __forceinline__
#define GY_DEVICE_MEMBER __device__ __forceinline__
#define GY_KERNEL(name, arguments) \
    extern "C" __global__ void __launch_bounds__(GY_BLOCK_THREADS, 1) name(const __grid_constant__ arguments a)
#define GY_SHARED(type, name) __shared__ type name
#define GY_UNROLL _Pragma("unroll")
#define GY_ROLLED _Pragma("unroll 1")

GY_DEVICE unsigned gy_thread()
{
    return threadIdx.x;
}
GY_DEVICE unsigned gy_threads()
{
    return blockDim.x;
}
GY_DEVICE unsigned gy_block()
{
    return blockIdx.x;
}
GY_DEVICE unsigned gy_blocks()
{
    return gridDim.x;
}
template <typename bits> GY_DEVICE bits gy_load(const void *p)
{
    return *(const bits *)p;
}
template <typename bits> GY_DEVICE void gy_store(void *p, bits value)
{
    *(bits *)p = value;
}
GY_DEVICE gy_line gy_line_load(const gy_line *p)
{
    gy_line l;
    asm volatile("ld.volatile.global.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(l.data1), "=r"(l.flag1), "=r"(l.data2), "=r"(l.flag2)
                 : "l"(p)
                 : "memory");
    return l;
}
GY_DEVICE void gy_line_store(gy_line *p, gy_line l)
{
    asm volatile("st.volatile.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(p), "r"(l.data1), "r"(l.flag1), "r"(l.data2),
                 "r"(l.flag2)
                 : "memory");
}
GY_DEVICE uint32_t gy_word_acquire(const uint32_t *p)
{
    uint32_t v;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}
GY_DEVICE uint32_t gy_word_relaxed(const uint32_t *p)
{
    uint32_t v;
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}
GY_DEVICE void gy_word_store(uint32_t *p, uint32_t v)
{
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
/* Orders accesses of the blocks of one launch (scope gpu); both acquire and release. */
GY_DEVICE uint32_t gy_word_add(uint32_t *p, uint32_t v)
{
    uint32_t old;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(v) : "memory");
    return old;
}
GY_DEVICE void gy_fence()
{
    asm volatile("fence.acq_rel.sys;" ::: "memory");
}
GY_DEVICE void gy_sync()
{
    __syncthreads();
}
GY_DEVICE bool gy_sync_or(bool any)
{
    return __syncthreads_or(any);
}
GY_DEVICE void gy_pause(const uint32_t *, uint32_t, const char *)
{
    __nanosleep(32);
}

#else
#include "emu_language.h"
#endif

/* True if a counter has reached `wanted`, modulo 2^32. */
GY_DEVICE bool gy_reached(uint32_t value, uint32_t wanted)
{
    return (int32_t)(value - wanted) >= 0;
}
GY_DEVICE bool gy_aborted(const uint32_t *abort)
{
    return gy_word_relaxed(abort) != 0;
}
/* Returns false if the abort word was set first. */
GY_DEVICE bool gy_wait(const uint32_t *p, uint32_t wanted, const uint32_t *abort, const char *what)
{
    for (unsigned n = 0; !gy_reached(gy_word_acquire(p), wanted); n++) {
        if (n % GY_SPINS == GY_SPINS - 1 && gy_aborted(abort))
            return false;
        gy_pause(p, wanted, what);
    }
    return true;
}

/* An element at an address of any alignment. */
template <typename bits> GY_DEVICE bits gy_load_any(const void *p)
{
    if ((uintptr_t)p % sizeof(bits) == 0)
        return gy_load<bits>(p);
    uint64_t value = 0;
    GY_ROLLED
    for (unsigned k = 0; k < sizeof(bits); k++)
        value |= (uint64_t)gy_load<uint8_t>((const char *)p + k) << (8 * k);
    return (bits)value;
}
template <typename bits> GY_DEVICE void gy_store_any(void *p, bits value)
{
    if ((uintptr_t)p % sizeof(bits) == 0) {
        gy_store<bits>(p, value);
        return;
    }
    GY_ROLLED
    for (unsigned k = 0; k < sizeof(bits); k++)
        gy_store<uint8_t>((char *)p + k, (uint8_t)((uint64_t)value >> (8 * k)));
}

#endif
