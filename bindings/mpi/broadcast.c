#include "failure.h"
#include "short.h"
#include "take.h"

static int broadcast(struct gm_shadow *shadow, struct gm_view *view, int root)
{
    if (!gm_view_open(view, 1, shadow->rank == root))
        return gm_failure_no_memory(shadow, GM_BCAST);
    gm_take_begin(shadow);
    return gm_take_end(shadow, gm_short_broadcast(shadow, view->bytes, view->length, root), GM_BCAST);
}

int gm_bcast(struct gm_data data, int root, MPI_Comm comm)
{
    struct gm_view view;
    struct gm_shadow *shadow = gm_shadow_find(comm, GM_BCAST);
    if (!shadow || !gm_is_rank(shadow, root) || !gm_view_measure(&view, data))
        return GM_PASS;
    if (view.length == 0)
        return MPI_SUCCESS;
    int code = broadcast(shadow, &view, root);
    gm_view_close(&view, code == MPI_SUCCESS && shadow->rank != root);
    return code;
}
