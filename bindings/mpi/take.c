#include "take.h"

#include "short.h"

int gm_take_counts(struct gm_shadow *shadow, int root, enum gm_call call)
{
    size_t *counts = gm_shadow_list(shadow, 0);
    gm_take_begin(shadow);
    gyre_status status = gm_short_broadcast(shadow, counts, (size_t)shadow->size * sizeof(*counts), root);
    gm_progress_leave();
    return status == GYRE_SUCCESS ? MPI_SUCCESS : gm_failure_end(shadow, status, call);
}

size_t gm_take_sum(const struct gm_shadow *shadow)
{
    size_t sum = 0;
    for (int rank = 0; rank < shadow->size; rank++)
        sum += gm_shadow_list(shadow, 0)[rank];
    return sum;
}
