/* Only the root knows all counts of MPI_Gatherv, and gyre's gatherv wants them on every rank: messages serve instead. Sender and root know whether
 * a message is empty, and it is not sent then. */
#include <string.h>

#include "failure.h"
#include "take.h"

/* The root's views: `out`; and `in`, unless it is in place. The others' view: `in`. */
static int gather(struct gm_twin *twin, struct gm_view *in, struct gm_view *out, size_t bytes, int root)
{
    bool is_root = twin->rank == root, in_place = is_root && in->data.buffer == MPI_IN_PLACE;
    gyre_request *request;
    if ((is_root && !gm_view_open(out, twin->size, in_place)) || (!in_place && !gm_view_open(in, 1, true)))
        return gm_failure_memory(twin, GM_GATHER);
    const char *mine = in_place ? out->bytes + bytes * (size_t)twin->rank : in->bytes;
    return gm_take_end(
        twin, gyre_gather_start(twin->comm, mine, is_root ? out->bytes : NULL, bytes, GYRE_UINT8, root, &request),
        &request, GM_GATHER);
}

int gm_gather(struct gm_data input, struct gm_data output, int root, MPI_Comm comm)
{
    struct gm_view in = {.data = input}, out = {.data = output};
    struct gm_twin *twin = gm_twin_find(comm, GM_GATHER);
    if (!twin || !gm_is_rank(twin, root))
        return GM_PASS;
    bool is_root = twin->rank == root, in_place = is_root && input.buffer == MPI_IN_PLACE;
    if ((is_root && !gm_view_measure(&out, output)) || (!in_place && !gm_view_measure(&in, input)))
        return GM_PASS;
    size_t bytes = is_root ? out.length : in.length;
    if (bytes == 0)
        return MPI_SUCCESS;
    int code = gather(twin, &in, &out, bytes, root);
    gm_view_close(&in, false);
    gm_view_close(&out, code == MPI_SUCCESS);
    return code;
}

static int send_block(struct gm_twin *twin, struct gm_data input, int root)
{
    struct gm_view in;
    gyre_request *request;
    if (!gm_view_measure(&in, input))
        return GM_PASS;
    if (in.length == 0)
        return MPI_SUCCESS;
    int code = gm_view_open(&in, 1, true)
                   ? gm_take_end(twin, gyre_send_start(twin->comm, in.bytes, in.length, GYRE_UINT8, root, &request),
                                 &request, GM_GATHERV)
                   : gm_failure_memory(twin, GM_GATHERV);
    gm_view_close(&in, false);
    return code;
}

static int receive_blocks(struct gm_twin *twin, const struct gm_blocks_view *out)
{
    gyre_status status = GYRE_SUCCESS;
    size_t requests = 0;
    for (int rank = 0; rank < twin->size && status == GYRE_SUCCESS; rank++) {
        if (rank == twin->rank || out->counts[rank] == 0)
            continue;
        status = gyre_recv_start(twin->comm, out->bytes + out->places[rank], out->counts[rank], GYRE_UINT8, rank,
                                 &twin->requests[requests]);
        requests += status == GYRE_SUCCESS;
    }
    return gm_take_end_all(twin, status, requests, GM_GATHERV);
}

static int gather_blocks(struct gm_twin *twin, struct gm_view *in, struct gm_blocks_view *out)
{
    bool in_place = in->data.buffer == MPI_IN_PLACE;
    if (!gm_blocks_open(out, in_place) || (!in_place && !gm_view_open(in, 1, true)))
        return gm_failure_memory(twin, GM_GATHERV);
    if (!in_place && out->counts[twin->rank] > 0)
        memcpy(out->bytes + out->places[twin->rank], in->bytes, out->counts[twin->rank]);
    return receive_blocks(twin, out);
}

int gm_gatherv(struct gm_data input, struct gm_blocks output, int root, MPI_Comm comm)
{
    struct gm_view in = {.data = input};
    struct gm_blocks_view out;
    struct gm_twin *twin = gm_twin_find(comm, GM_GATHERV);
    if (!twin || !gm_is_rank(twin, root))
        return GM_PASS;
    if (twin->rank != root)
        return send_block(twin, input, root);
    if (!gm_blocks_measure(&out, &output, twin, 0) || (input.buffer != MPI_IN_PLACE && !gm_view_measure(&in, input)))
        return GM_PASS;
    int code = gather_blocks(twin, &in, &out);
    gm_view_close(&in, false);
    gm_blocks_close(&out, code == MPI_SUCCESS);
    return code;
}
