/* MPI_Scatterv goes by messages, as MPI_Gatherv does: gather.c. */
#include <string.h>

#include "failure.h"
#include "take.h"

/* The root's views: `in`; and `out`, unless it is in place. The others' view: `out`. */
static int scatter(struct gm_twin *twin, struct gm_view *in, struct gm_view *out, size_t bytes, int root)
{
    bool is_root = twin->rank == root, in_place = is_root && out->data.buffer == MPI_IN_PLACE;
    gyre_request *request;
    if ((is_root && !gm_view_open(in, twin->size, true)) || (!in_place && !gm_view_open(out, 1, false)))
        return gm_failure_memory(twin, GM_SCATTER);
    char *mine = in_place ? in->bytes + bytes * (size_t)twin->rank : out->bytes;
    return gm_take_end(
        twin, gyre_scatter_start(twin->comm, is_root ? in->bytes : NULL, mine, bytes, GYRE_UINT8, root, &request),
        &request, GM_SCATTER);
}

int gm_scatter(struct gm_data input, struct gm_data output, int root, MPI_Comm comm)
{
    struct gm_view in = {.data = input}, out = {.data = output};
    struct gm_twin *twin = gm_twin_find(comm, GM_SCATTER);
    if (!twin || !gm_is_rank(twin, root))
        return GM_PASS;
    bool is_root = twin->rank == root, in_place = is_root && output.buffer == MPI_IN_PLACE;
    if ((is_root && !gm_view_measure(&in, input)) || (!in_place && !gm_view_measure(&out, output)))
        return GM_PASS;
    size_t bytes = is_root ? in.length : out.length;
    if (bytes == 0)
        return MPI_SUCCESS;
    int code = scatter(twin, &in, &out, bytes, root);
    gm_view_close(&in, false);
    gm_view_close(&out, code == MPI_SUCCESS);
    return code;
}

static int receive_block(struct gm_twin *twin, struct gm_data output, int root)
{
    struct gm_view out;
    gyre_request *request;
    if (!gm_view_measure(&out, output))
        return GM_PASS;
    if (out.length == 0)
        return MPI_SUCCESS;
    int code = gm_view_open(&out, 1, false)
                   ? gm_take_end(twin, gyre_recv_start(twin->comm, out.bytes, out.length, GYRE_UINT8, root, &request),
                                 &request, GM_SCATTERV)
                   : gm_failure_memory(twin, GM_SCATTERV);
    gm_view_close(&out, code == MPI_SUCCESS);
    return code;
}

static int send_blocks(struct gm_twin *twin, const struct gm_blocks_view *in)
{
    gyre_status status = GYRE_SUCCESS;
    size_t requests = 0;
    for (int rank = 0; rank < twin->size && status == GYRE_SUCCESS; rank++) {
        if (rank == twin->rank || in->counts[rank] == 0)
            continue;
        status = gyre_send_start(twin->comm, in->bytes + in->places[rank], in->counts[rank], GYRE_UINT8, rank,
                                 &twin->requests[requests]);
        requests += status == GYRE_SUCCESS;
    }
    return gm_take_end_all(twin, status, requests, GM_SCATTERV);
}

static int scatter_blocks(struct gm_twin *twin, struct gm_blocks_view *in, struct gm_view *out)
{
    bool in_place = out->data.buffer == MPI_IN_PLACE;
    if (!gm_blocks_open(in, true) || (!in_place && !gm_view_open(out, 1, false)))
        return gm_failure_memory(twin, GM_SCATTERV);
    if (!in_place && in->counts[twin->rank] > 0)
        memcpy(out->bytes, in->bytes + in->places[twin->rank], in->counts[twin->rank]);
    return send_blocks(twin, in);
}

int gm_scatterv(struct gm_blocks input, struct gm_data output, int root, MPI_Comm comm)
{
    struct gm_view out = {.data = output};
    struct gm_blocks_view in;
    struct gm_twin *twin = gm_twin_find(comm, GM_SCATTERV);
    if (!twin || !gm_is_rank(twin, root))
        return GM_PASS;
    if (twin->rank != root)
        return receive_block(twin, output, root);
    if (!gm_blocks_measure(&in, &input, twin, 0) || (output.buffer != MPI_IN_PLACE && !gm_view_measure(&out, output)))
        return GM_PASS;
    int code = scatter_blocks(twin, &in, &out);
    gm_blocks_close(&in, false);
    gm_view_close(&out, code == MPI_SUCCESS);
    return code;
}
