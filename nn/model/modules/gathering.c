/* Numbers of each sample of a batch, from all ranks: counts are exchanged once in a forward, and serve all modules and
 * the backward. `values` is one array on every rank, in which each rank fills its own part. */
#include "base/error.h"
#include "model/modules/module.h"

#include <stdlib.h>
#include <string.h>

static gyre_status make_counts(struct gy_nn_gathering *gathering, int ranks)
{
    if (ranks == gathering->ranks)
        return GYRE_SUCCESS;
    free(gathering->counts);
    gathering->ranks = 0;
    gathering->counts = calloc(2 * (size_t)ranks, sizeof(*gathering->counts));
    if (!gathering->counts)
        return gy_nn_fail(GYRE_NO_MEMORY, "no memory for the batch of %d ranks", ranks);
    gathering->ranks = ranks;
    return GYRE_SUCCESS;
}

gyre_status gy_nn_gathering_count(struct gy_nn_gathering *gathering, size_t samples)
{
    gathering->first = 0;
    gathering->samples = samples;
    gathering->counted = true;
    if (!gathering->comm)
        return GYRE_SUCCESS;
    int rank = gyre_comm_rank(gathering->comm), ranks = gyre_comm_size(gathering->comm);
    gyre_status status = make_counts(gathering, ranks);
    if (status != GYRE_SUCCESS)
        return status;
    uint64_t mine = samples;
    status = gyre_all_gather(gathering->comm, &mine, gathering->counts, 1, GYRE_UINT64);
    if (status != GYRE_SUCCESS)
        return gy_nn_fail_comm(status, gathering->comm, "counting the samples of a batch");
    gathering->samples = 0;
    for (int r = 0; r < ranks; r++) {
        gathering->first += r < rank ? gathering->counts[r] : 0;
        gathering->samples += gathering->counts[r];
    }
    return GYRE_SUCCESS;
}

gyre_status gy_nn_gathering_reserve(struct gy_nn_gathering *gathering, size_t width, double **mine_p)
{
    size_t needed;
    if (__builtin_mul_overflow(gathering->samples + 1, width, &needed) || needed > SIZE_MAX / sizeof(double))
        return gy_nn_fail(GYRE_NO_MEMORY, "no memory for %zu numbers of %zu samples", width, gathering->samples);
    if (needed > gathering->room) {
        free(gathering->values);
        gathering->room = 0;
        gathering->values = calloc(needed, sizeof(*gathering->values));
        if (!gathering->values)
            return gy_nn_fail(GYRE_NO_MEMORY, "no memory for %zu numbers of %zu samples", width, gathering->samples);
        gathering->room = needed;
    }
    *mine_p = gathering->values + gathering->first * width;
    return GYRE_SUCCESS;
}

gyre_status gy_nn_gathering_run(struct gy_nn_gathering *gathering, size_t width)
{
    if (!gathering->comm || gathering->samples == 0)
        return GYRE_SUCCESS;
    size_t *elements = gathering->counts + gathering->ranks;
    for (int r = 0; r < gathering->ranks; r++)
        elements[r] = gathering->counts[r] * width;
    gyre_status status = gyre_all_gatherv(gathering->comm, gathering->values + gathering->first * width,
                                          gathering->values, elements, NULL, GYRE_FLOAT64);
    return status ? gy_nn_fail_comm(status, gathering->comm, "gathering the statistics of a batch") : status;
}

void gy_nn_gathering_free(struct gy_nn_gathering *gathering)
{
    if (!gathering)
        return;
    free(gathering->counts);
    free(gathering->values);
    free(gathering);
}
