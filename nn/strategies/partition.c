/* Dynamic programming over the places at which the model may be cut. best[s][i] belongs to s stages that hold the
 * modules below place i, each within its memory: it is the smallest possible time of the slowest stage. INFINITY: no
 * such division. */
#include "strategies/partition.h"

#include <math.h>
#include <stdlib.h>

#define STATE_ARRAYS 4 /* of the size of the parameters: these, gradients, two of the optimiser */

double gy_nn_stage_memory(const gyre_nn_model *model, size_t first, size_t last, double samples)
{
    double params = (double)(gyre_nn_cut_offset(model, last) - gyre_nn_cut_offset(model, first));
    double activations = gyre_nn_cut_memory(model, last) - gyre_nn_cut_memory(model, first);
    return (double)gyre_dtype_size(gyre_nn_dtype(model)) * (STATE_ARRAYS * params + samples * activations);
}

/* Of stage s of `stages`, or INFINITY. */
static double time_of(const gyre_nn_model *model, const struct gy_nn_balance *balance, size_t s, size_t stages,
                      size_t first, size_t last)
{
    size_t depth = stages - s < balance->in_flight ? stages - s : balance->in_flight;
    double samples = (double)(depth * balance->samples);
    if (balance->memory > 0 && gy_nn_stage_memory(model, first, last, samples) > balance->memory)
        return INFINITY;
    return balance->times ? balance->times[last] - balance->times[first]
                          : gyre_nn_cut_work(model, last) - gyre_nn_cut_work(model, first);
}

gyre_status gy_nn_partition(const gyre_nn_model *model, size_t stages, const struct gy_nn_balance *balance,
                            size_t *places)
{
    size_t n = gyre_nn_module_count(model), width = n + 1;
    double *best = calloc((stages + 1) * width, sizeof(*best));
    size_t *from = calloc((stages + 1) * width, sizeof(*from));
    bool ok = best && from;
    for (size_t i = 0; ok && i < (stages + 1) * width; i++)
        best[i] = i == 0 ? 0 : INFINITY;
    for (size_t s = 1; ok && s <= stages; s++)
        for (size_t i = 1; i <= n; i++)
            for (size_t j = 0; j < i && gyre_nn_cut_values(model, i) > 0; j++) {
                if (!isfinite(best[(s - 1) * width + j]))
                    continue;
                double time = fmax(best[(s - 1) * width + j], time_of(model, balance, s - 1, stages, j, i));
                if (time < best[s * width + i]) {
                    best[s * width + i] = time;
                    from[s * width + i] = j;
                }
            }
    gyre_status status = !ok                                  ? GYRE_NO_MEMORY
                         : isfinite(best[stages * width + n]) ? GYRE_SUCCESS
                                                              : GYRE_INVALID_ARGUMENT;
    for (size_t s = stages, i = n; status == GYRE_SUCCESS && s > 0; s--) {
        places[s] = i;
        i = from[s * width + i];
        places[s - 1] = i;
    }
    free(best);
    free(from);
    return status;
}
