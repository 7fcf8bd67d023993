/* The sum of a silent frame (polled_write.c), of the 8 bytes behind it and the payload behind those. It tells whether all of them are
 * there, where any part may be what lay there before.
 *
 *   secret + number --> XXH3 of 128 bytes --> XXH3 of 128 bytes --> ... --> XXH3 of the rest     each the seed of the next
 *
 * XXH3 takes a multiplication per 16 bytes of what is short, and longer ways, which want vectors, from 240 bytes on: so it is given
 * short pieces only. For soft-RoCE under an emulator the instructions count. Of frames that differ one in 2^64 has the same sum, by
 * chance; whoever could choose bytes to deceive it cannot write there.
 */
#ifndef GY_TRANSPORT_RDMA_CHECKSUM_H
#define GY_TRANSPORT_RDMA_CHECKSUM_H

#define XXH_INLINE_ALL /* of a few bytes the way there and back is half of the sum */
#include <stdint.h>
#include <xxhash.h>

#define GY_RDMA_SUM_PIECE ((size_t)128)

/* Of chunk `number`; `bytes` of payload behind 8 others. */
static inline uint64_t gy_rdma_sum(const unsigned char *start, uint32_t bytes, uint64_t secret, uint64_t number)
{
    size_t rest = 8 + (size_t)bytes;
    uint64_t sum = secret + number;

    for (; rest > GY_RDMA_SUM_PIECE; rest -= GY_RDMA_SUM_PIECE, start += GY_RDMA_SUM_PIECE)
        sum = XXH3_64bits_withSeed(start, GY_RDMA_SUM_PIECE, sum);
    return XXH3_64bits_withSeed(start, rest, sum);
}

#endif
