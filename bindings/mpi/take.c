#include "take.h"

#include "short.h"

int gm_take_counts(struct gm_twin *twin, int root, enum gm_call call)
{
    size_t *counts = gm_twin_list(twin, 0);
    gm_take_begin(twin);
    gyre_status status = gm_short_broadcast(twin, counts, (size_t)twin->size * sizeof(*counts), root);
    gm_progress_leave();
    return status == GYRE_SUCCESS ? MPI_SUCCESS : gm_failure_end(twin, status, call);
}

size_t gm_take_sum(const struct gm_twin *twin)
{
    size_t sum = 0;
    for (int rank = 0; rank < twin->size; rank++)
        sum += gm_twin_list(twin, 0)[rank];
    return sum;
}
