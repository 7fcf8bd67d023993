/* The examples of the manual pages of gyre/cuda.h: see gyre.c. The test manual.examples.cuda runs this file on ranks that
 * are attached to no device, with host memory. */
#include <gyre/cuda.h>
#include <stdio.h>

/* ---- examples ---- */

/* gyre_cuda_available, gyre_cuda_attach: */
static gyre_status attach(gyre_comm *comm, int local_rank)
{
    int devices = 0;
    if (gyre_cuda_available(&devices) != GYRE_SUCCESS)
        fprintf(stderr, "no GPU here: %s\n", gyre_last_error(NULL));
    return gyre_cuda_attach(comm, devices > 0 ? local_rank % devices : GYRE_CUDA_NONE); /* collective */
}

/* gyre_all_reduce_on, gyre_cuda_status: The gradient and the stream are the GPU's; the host does not wait. */
static gyre_status average(gyre_comm *comm, float *gradient, size_t count, gyre_stream stream)
{
    gyre_status status = gyre_all_reduce_on(comm, gradient, gradient, count, GYRE_FLOAT32, GYRE_AVERAGE, stream);
    /* kernels that are launched on the stream from here on read the average */
    if (status == GYRE_SUCCESS)
        status = gyre_cuda_status(comm); /* has an earlier call failed? */
    if (status != GYRE_SUCCESS)
        fprintf(stderr, "%s: %s\n", gyre_status_text(status), gyre_last_error(comm));
    return status;
}

/* Send and receive wait for each other, so they stand in a group. */
static gyre_status shift(gyre_comm *comm, const float *mine, float *left, size_t count, gyre_stream stream)
{
    int rank = gyre_comm_rank(comm), size = gyre_comm_size(comm);
    gyre_group_begin();
    gyre_status sent = gyre_send_on(comm, mine, count, GYRE_FLOAT32, (rank + 1) % size, stream);
    gyre_status received = gyre_recv_on(comm, left, count, GYRE_FLOAT32, (rank + size - 1) % size, stream);
    gyre_status ended = gyre_group_end();
    return sent != GYRE_SUCCESS ? sent : received != GYRE_SUCCESS ? received : ended;
}

/* One element for each rank in `all`, one in `one`. */
static gyre_status collectives(gyre_comm *comm, float *one, float *all, gyre_stream stream)
{
    const int root = 0;
    gyre_status status[] = {
        gyre_broadcast_on(comm, one, one, 1, GYRE_FLOAT32, root, stream),
        gyre_all_gather_on(comm, one, all, 1, GYRE_FLOAT32, stream),
        gyre_reduce_scatter_on(comm, all, one, 1, GYRE_FLOAT32, GYRE_SUM, stream),
        gyre_reduce_on(comm, one, one, 1, GYRE_FLOAT32, GYRE_MAX, root, stream),
        gyre_gather_on(comm, one, all, 1, GYRE_FLOAT32, root, stream),
        gyre_scatter_on(comm, all, one, 1, GYRE_FLOAT32, root, stream),
        gyre_all_to_all_on(comm, all, all, 1, GYRE_FLOAT32, stream),
        gyre_barrier_on(comm, stream),
    };
    for (size_t i = 0; i < sizeof status / sizeof *status; i++)
        if (status[i] != GYRE_SUCCESS)
            return status[i];
    return GYRE_SUCCESS;
}

/* Counts of the ranks: the same lists on each rank. */
static gyre_status lists(gyre_comm *comm, const size_t *counts, float *mine, float *all, gyre_stream stream)
{
    gyre_status status[] = {
        gyre_all_gatherv_on(comm, mine, all, counts, NULL, GYRE_FLOAT32, stream),
        gyre_gatherv_on(comm, mine, all, counts, NULL, GYRE_FLOAT32, 0, stream),
        gyre_scatterv_on(comm, all, counts, NULL, mine, GYRE_FLOAT32, 0, stream),
        gyre_reduce_scatterv_on(comm, all, mine, counts, GYRE_FLOAT32, GYRE_SUM, stream),
    };
    for (size_t i = 0; i < sizeof status / sizeof *status; i++)
        if (status[i] != GYRE_SUCCESS)
            return status[i];
    return GYRE_SUCCESS;
}

/* This rank sends sends[r] elements to rank r, and expects receives[r] from it. */
static gyre_status exchange(gyre_comm *comm, const float *in, const size_t *sends, float *out, const size_t *receives,
                            gyre_stream stream)
{
    return gyre_all_to_allv_on(comm, in, sends, NULL, out, receives, NULL, GYRE_FLOAT32, stream);
}

/* ---- the test ---- */

#define RUN(call)                                                                         \
    do {                                                                                  \
        if ((call) != GYRE_SUCCESS) {                                                     \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #call, gyre_last_error(comm)); \
            return 1;                                                                     \
        }                                                                                 \
    } while (0)

int main(void)
{
    gyre_comm *comm;
    if (gyre_comm_create(NULL, &comm) != GYRE_SUCCESS)
        return 1;
    float one = (float)gyre_comm_rank(comm), other = -1, all[4] = {0}, out[4];
    const size_t counts[2] = {1, 1};
    RUN(gyre_comm_size(comm) == 2 ? GYRE_SUCCESS : GYRE_INTERNAL);
    RUN(attach(comm, 0));
    int device;
    if (gyre_cuda_available(&device) != GYRE_SUCCESS) { /* with a GPU there, its memory is not at hand here */
        RUN(shift(comm, &one, &other, 1, NULL));
        if (other != 1 - one)
            return 1;
        RUN(average(comm, &one, 1, NULL));
        if (one != 0.5f)
            return 1;
        RUN(collectives(comm, &one, all, NULL));
        RUN(lists(comm, counts, &one, all, NULL));
        RUN(exchange(comm, all, counts, out, counts, NULL));
    }
    RUN(gyre_comm_destroy(comm));
    return 0;
}
