/* splitmix64 (Steele, Lea and Flood, 2014): a 64-bit counter and a mixing function. Its state is one word, so a
 * generator is saved by saving where it was seeded and what was drawn. */
#ifndef GY_NN_RANDOM_H
#define GY_NN_RANDOM_H

#include <stdint.h>

#define GY_NN_RANDOM_STRIDE UINT64_C(0x9e3779b97f4a7c15) /* what the state moves by with each number */

static inline uint64_t gy_nn_random(uint64_t *state)
{
    uint64_t z = (*state += GY_NN_RANDOM_STRIDE);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Uniform in 0 … bound−1, without bias: values of the incomplete last block are drawn again. bound > 0. */
static inline uint64_t gy_nn_random_below(uint64_t *state, uint64_t bound)
{
    uint64_t refuse = (0 - bound) % bound;
    uint64_t value;
    do
        value = gy_nn_random(state);
    while (value < refuse);
    return value % bound;
}

/* Uniform in [0, 1), a multiple of 2^-53. */
static inline double gy_nn_random_unit(uint64_t *state)
{
    return (double)(gy_nn_random(state) >> 11) * 0x1p-53;
}

#endif
