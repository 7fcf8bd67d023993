/* Which samples a rank works on. The order of an epoch is a permutation that every rank computes for itself from (seed,
 * epoch); a global batch is the next piece of it, and rank r takes the r-th part of the piece. So the samples of a step
 * do not depend on the number of ranks, and every sample is used exactly once in an epoch. */
#include "base/error.h"
#include "base/random.h"
#include "base/require.h"

#include <gyre/nn.h>

void gyre_nn_shuffle(uint64_t seed, uint64_t epoch, uint32_t *order, size_t count)
{
    if (count == 0)
        return;
    GY_NN_REQUIRE_VOID(order);
    if (count > UINT32_MAX) {
        (void)gy_nn_fail(GYRE_INVALID_ARGUMENT, "gyre_nn_shuffle: %zu samples; at most %u are allowed", count,
                         UINT32_MAX);
        return;
    }
    uint64_t state = seed;
    state = gy_nn_random(&state) ^ epoch; /* mixed before the epoch joins: neighbouring seeds share no epochs */
    for (size_t i = 0; i < count; i++)
        order[i] = (uint32_t)i;
    for (size_t i = count; i > 1; i--) {
        size_t j = (size_t)gy_nn_random_below(&state, i);
        uint32_t held = order[i - 1];
        order[i - 1] = order[j];
        order[j] = held;
    }
}

void gyre_nn_shard(size_t rows, int rank, int ranks, size_t *first_p, size_t *count_p)
{
    GY_NN_REQUIRE_VOID(first_p, count_p);
    if (ranks < 1 || rank < 0 || rank >= ranks) {
        (void)gy_nn_fail(GYRE_INVALID_ARGUMENT, "gyre_nn_shard: there is no rank %d of %d", rank, ranks);
        *first_p = *count_p = 0;
        return;
    }
    size_t share = rows / (size_t)ranks, rest = rows % (size_t)ranks, r = (size_t)rank;
    *first_p = r * share + (r < rest ? r : rest);
    *count_p = share + (r < rest);
}
