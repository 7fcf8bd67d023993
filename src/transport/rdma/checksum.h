/* The checksum of a silent frame (polled_write.c), over the 8 bytes behind it and the payload. It proves that all of
 * them have arrived; any part may still hold the previous contents.
 *
 *   secret + number --> XXH3 of 128 bytes --> XXH3 of 128 bytes --> ... --> XXH3 of the rest   each the next seed
 *
 * XXH3 takes a multiplication per 16 bytes of a short input. From 240 bytes on it uses longer code paths that need
 * vector instructions, so only short pieces are hashed. For soft-RoCE under an emulator the number of instructions
 * matters. Two different frames have the same sum with probability 2^−64. A party that could choose bytes to forge a
 * sum cannot write there. */
#ifndef GY_TRANSPORT_RDMA_CHECKSUM_H
#define GY_TRANSPORT_RDMA_CHECKSUM_H

#define XXH_INLINE_ALL /* for a few bytes the call is half of the cost */
#include <stdint.h>
#include <xxhash.h>

#define GY_RDMA_SUM_PIECE ((size_t)128)

/* Returns the sum of chunk `number`; `bytes` of payload behind 8 others. */
static inline uint64_t gy_rdma_sum(const unsigned char *start, uint32_t bytes, uint64_t secret, uint64_t number)
{
    size_t rest = 8 + (size_t)bytes;
    uint64_t sum = secret + number;

    for (; rest > GY_RDMA_SUM_PIECE; rest -= GY_RDMA_SUM_PIECE, start += GY_RDMA_SUM_PIECE)
        sum = XXH3_64bits_withSeed(start, GY_RDMA_SUM_PIECE, sum);
    return XXH3_64bits_withSeed(start, rest, sum);
}

#endif
