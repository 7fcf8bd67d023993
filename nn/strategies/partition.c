/* Dynamic programming over the places at which the model may be cut: best[s][i] is the smallest possible largest work of
 * s stages that hold the modules below place i. The work is an estimate that every rank makes alike, not a measurement. */
#include "strategies/partition.h"

#include <math.h>
#include <stdlib.h>

gyre_status gy_nn_partition(const gyre_nn_model *model, size_t stages, size_t *places)
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
                double work = fmax(best[(s - 1) * width + j], gyre_nn_cut_work(model, i) - gyre_nn_cut_work(model, j));
                if (work < best[s * width + i]) {
                    best[s * width + i] = work;
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
