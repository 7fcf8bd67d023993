#include "take.h"

#include <stdint.h>

_Static_assert(sizeof(size_t) == sizeof(uint64_t), "counts travel as uint64");

int gm_take_counts(struct gm_twin *twin, int root, enum gm_call call)
{
    size_t *counts = gm_twin_list(twin, 0);
    gm_take_begin(twin);
    gyre_status status = gyre_broadcast(twin->comm, counts, counts, (size_t)twin->size, GYRE_UINT64, root);
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
