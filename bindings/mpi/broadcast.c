#include "failure.h"
#include "short.h"
#include "take.h"

static int broadcast(struct gm_twin *twin, struct gm_view *view, int root)
{
    if (!gm_view_open(view, 1, twin->rank == root))
        return gm_failure_memory(twin, GM_BCAST);
    gm_take_begin(twin);
    return gm_take_end(twin, gm_short_broadcast(twin, view->bytes, view->length, root), GM_BCAST);
}

int gm_bcast(struct gm_data data, int root, MPI_Comm comm)
{
    struct gm_view view;
    struct gm_twin *twin = gm_twin_find(comm, GM_BCAST);
    if (!twin || !gm_is_rank(twin, root) || !gm_view_measure(&view, data))
        return GM_PASS;
    if (view.length == 0)
        return MPI_SUCCESS;
    int code = broadcast(twin, &view, root);
    gm_view_close(&view, code == MPI_SUCCESS && twin->rank != root);
    return code;
}
