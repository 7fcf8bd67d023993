/* Only the root knows all counts of MPI_Gatherv, but gyre's gatherv needs them on every rank. The root therefore
 * broadcasts them first. */
#include <string.h>

#include "failure.h"
#include "short.h"
#include "take.h"

/* The root uses the view `out`, and `in` unless it is in place. The other ranks use `in`. */
static int gather(struct gm_shadow *shadow, struct gm_view *in, struct gm_view *out, size_t bytes, int root)
{
    bool is_root = shadow->rank == root, in_place = is_root && in->data.buffer == MPI_IN_PLACE;
    if ((is_root && !gm_view_open(out, shadow->size, in_place)) || (!in_place && !gm_view_open(in, 1, true)))
        return gm_failure_no_memory(shadow, GM_GATHER);
    const char *mine = in_place ? out->bytes + bytes * (size_t)shadow->rank : in->bytes;
    gm_take_begin(shadow);
    return gm_take_end(shadow, gm_short_gather(shadow, mine, is_root ? out->bytes : NULL, bytes, root), GM_GATHER);
}

int gm_gather(struct gm_data input, struct gm_data output, int root, MPI_Comm comm)
{
    struct gm_view in = {.data = input}, out = {.data = output};
    struct gm_shadow *shadow = gm_shadow_find(comm, GM_GATHER);
    if (!shadow || !gm_is_rank(shadow, root))
        return GM_PASS;
    bool is_root = shadow->rank == root, in_place = is_root && input.buffer == MPI_IN_PLACE;
    if ((is_root && !gm_view_measure(&out, output)) || (!in_place && !gm_view_measure(&in, input)))
        return GM_PASS;
    size_t bytes = is_root ? out.length : in.length;
    if (bytes == 0)
        return MPI_SUCCESS;
    int code = gather(shadow, &in, &out, bytes, root);
    gm_view_close(&in, false);
    gm_view_close(&out, code == MPI_SUCCESS);
    return code;
}

/* The root uses the view `out`, and `in` unless it is in place. The other ranks use `in`. */
static int gather_blocks(struct gm_shadow *shadow, struct gm_view *in, struct gm_blocks_view *out, int root)
{
    const size_t *counts = gm_shadow_list(shadow, 0);
    bool is_root = shadow->rank == root, in_place = is_root && in->data.buffer == MPI_IN_PLACE;
    bool equal = gm_are_equal(counts, shadow->size);
    if ((is_root && !gm_blocks_open(out, in_place, equal)) || (!in_place && !gm_view_open(in, 1, true)))
        return gm_failure_no_memory(shadow, GM_GATHERV);
    const char *mine = in_place ? out->bytes + out->displs[shadow->rank] : in->bytes;
    gm_take_begin(shadow);
    gyre_status status = equal ? gm_short_gather(shadow, mine, out->bytes, counts[0], root)
                               : gyre_gatherv(shadow->comm, mine, out->bytes, counts, out->displs, GYRE_UINT8, root);
    return gm_take_end(shadow, status, GM_GATHERV);
}

static int gather_pair(struct gm_shadow *shadow, struct gm_view *in, struct gm_blocks_view *out, int root)
{
    bool is_root = shadow->rank == root, in_place = is_root && in->data.buffer == MPI_IN_PLACE;
    size_t bytes = is_root ? out->counts[1 - root] : in->length;
    if ((is_root && !gm_blocks_open(out, in_place, false)) || (!in_place && !gm_view_open(in, 1, true)))
        return gm_failure_no_memory(shadow, GM_GATHERV);
    if (is_root && !in_place && out->counts[root] > 0)
        memcpy(out->bytes + out->displs[root], in->bytes, out->counts[root]);
    char *passed = is_root ? out->bytes + out->displs[1 - root] : in->bytes;
    gm_take_begin(shadow);
    return gm_take_end(shadow, bytes > 0 ? gm_short_broadcast(shadow, passed, bytes, 1 - root) : GYRE_SUCCESS,
                       GM_GATHERV);
}

static int gather_counted(struct gm_shadow *shadow, struct gm_view *in, struct gm_blocks_view *out, int root)
{
    int code = gm_take_counts(shadow, root, GM_GATHERV);
    return code != MPI_SUCCESS || gm_take_sum(shadow) == 0 ? code : gather_blocks(shadow, in, out, root);
}

int gm_gatherv(struct gm_data input, struct gm_blocks output, int root, MPI_Comm comm)
{
    struct gm_view in = {.data = input};
    struct gm_blocks_view out = {.blocks = output};
    struct gm_shadow *shadow = gm_shadow_find(comm, GM_GATHERV);
    if (!shadow || !gm_is_rank(shadow, root))
        return GM_PASS;
    bool is_root = shadow->rank == root, in_place = is_root && input.buffer == MPI_IN_PLACE;
    if ((is_root && !gm_blocks_measure(&out, &output, shadow, 0)) || (!in_place && !gm_view_measure(&in, input)))
        return GM_PASS;
    int code = gm_is_short_pair(shadow, is_root ? out.counts[root ^ 1] : in.length)
                   ? gather_pair(shadow, &in, &out, root)
                   : gather_counted(shadow, &in, &out, root);
    gm_view_close(&in, false);
    gm_blocks_close(&out, code == MPI_SUCCESS);
    return code;
}
