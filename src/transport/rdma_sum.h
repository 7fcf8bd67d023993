/* The sum of a silent frame (rdma_silent.c), of the 8 bytes behind it and the payload behind those. It tells whether all of them are
 * there, where any part may be what lay there before; nobody who could choose bytes to deceive it can write there.
 *
 *   step(s, a, b) = low − high half of the 128 bits of (a ^ s) · (b ^ key)          a, b: the next two words
 *
 * Two lanes of steps, of 16 bytes each in turn, so that one multiplication does not wait for the one before; the last 16 bytes once
 * more where no whole step is left, and a step of both lanes' ends. Up to 8 bytes of payload it is one step.
 *
 * What it holds. Low − high is the product modulo 2^64 + 1, but for a carry. Be a or s different by D as a number, b the same: the
 * results are equal only if D · (b ^ key) is 0, 1 or −1 modulo that, hence for 3 keys of 2^64, unless D is a multiple of one of the
 * two primes of 2^64 + 1, 274177 and 67280421310721. By chance one D in 274177 is, and then for 274177 keys more; what differs by the
 * same in every byte, or 16 bits, never is (of 2^64 − 1, by which low + high goes, that is a divisor). A different b is the same
 * case, for a ^ s is as unknown as the key; who differs in both, or has in the next words just what makes different lanes equal
 * again, has it for a few keys of 2^64 as well. That is 66 steps at most: about one key in 2^56 lets a given frame pass for another.
 * Keys come from a secret that the receiver has drawn for the link, and from the chunk's whole number: an old frame's sum is no
 * better than chance.
 */
#ifndef GY_TRANSPORT_RDMA_SUM_H
#define GY_TRANSPORT_RDMA_SUM_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t gy_rdma_sum_word(const unsigned char *place)
{
    uint64_t word;

    memcpy(&word, place, sizeof(word));
    return le64toh(word);
}

static inline uint64_t gy_rdma_sum_step(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;

    return (uint64_t)product - (uint64_t)(product >> 64);
}

/* Of chunk `number`; `bytes` of payload, from 1, behind 8 others. Up to 7 bytes behind it are read if it is shorter than 8, and
 * do not matter. */
static inline uint64_t gy_rdma_sum(const unsigned char *start, uint32_t bytes, uint64_t secret, uint64_t number)
{
    const unsigned char *end = start + 8 + bytes;
    uint64_t key = secret * UINT64_C(0x9e3779b97f4a7c15) + number, other = ~secret;

    if (bytes <= 8)
        return gy_rdma_sum_step(gy_rdma_sum_word(start) ^ secret,
                                gy_rdma_sum_word(start + 8) << (64 - 8 * bytes) ^ key);
    for (; end - start > 32; start += 32) {
        secret = gy_rdma_sum_step(gy_rdma_sum_word(start) ^ secret, gy_rdma_sum_word(start + 8) ^ key);
        other = gy_rdma_sum_step(gy_rdma_sum_word(start + 16) ^ other, gy_rdma_sum_word(start + 24) ^ key);
    }
    if (end - start > 16)
        secret = gy_rdma_sum_step(gy_rdma_sum_word(start) ^ secret, gy_rdma_sum_word(start + 8) ^ key);
    other = gy_rdma_sum_step(gy_rdma_sum_word(end - 16) ^ other, gy_rdma_sum_word(end - 8) ^ key);
    return gy_rdma_sum_step(secret ^ key, other ^ ~key);
}

#endif
