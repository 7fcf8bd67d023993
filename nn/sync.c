/* Synchronous data parallelism: every rank has the whole model and a part of each batch, and gradients are summed while
 * backward runs.
 *
 *     gradient arena  | layer 0      | layer 1            | layer 2    |
 *     buckets                |  2            |     1           |   0    |     contiguous ranges, numbered from the end
 *     backward        <───────────────────────────────────────────────       passes lower edges in this order
 *
 * A bucket leaves, by an in-place all-reduce, as soon as backward has passed its lower edge; since the buckets lie in
 * the order in which backward passes, they leave in index order on every rank, and ranks always agree on the sequence
 * of collectives. Between layers gyre makes progress. `finish` waits for bucket 0, updates its slice, waits for bucket
 * 1, …
 * Invariant: the slice of a bucket belongs to gyre from its start to its wait. */
#include "error.h"
#include "model.h"

#include <math.h>
#include <stdlib.h>

struct bucket {
    size_t first, count;
    gyre_request *request;
    int64_t start; /* when it left, for the trace */
};

struct gyre_nn_sync {
    gyre_nn_model *model;
    gyre_nn_optimizer *optimizer;
    gyre_comm *comm; /* NULL: one rank, nothing to communicate */
    void *grads;     /* memory that the ranks of a host share, or NULL */
    struct bucket *buckets;
    size_t nbuckets, started, completed;
    gyre_status status; /* first failure since begin: the backward callback cannot return one */
};

/* 64-bit words travel as pairs of int32, bit for bit. */
static gyre_status broadcast_state(gyre_nn_sync *sync)
{
    const gyre_nn_model *model = sync->model;
    const gyre_nn_optimizer *optimizer = sync->optimizer;
    uint64_t steps = optimizer ? gyre_nn_optimizer_steps(optimizer) : 0;
    void *arrays[3] = {model->params, optimizer ? gyre_nn_optimizer_state(optimizer, 0) : NULL,
                       optimizer ? gyre_nn_optimizer_state(optimizer, 1) : NULL};
    gyre_status status = gyre_broadcast(sync->comm, &steps, &steps, 2, GYRE_INT32, 0);
    for (int i = 0; i < 3 && status == GYRE_SUCCESS; i++)
        if (arrays[i])
            status = gyre_broadcast(sync->comm, arrays[i], arrays[i], model->count, model->backend->dtype, 0);
    if (status != GYRE_SUCCESS)
        return gy_nn_fail_comm(status, sync->comm, "the broadcast of the initial state");
    if (optimizer)
        gyre_nn_optimizer_set_steps(sync->optimizer, steps);
    return GYRE_SUCCESS;
}

static gyre_status make_buckets(gyre_nn_sync *sync, size_t bucket_bytes)
{
    size_t count = sync->model->count, size = bucket_bytes / sync->model->backend->element;
    size = size == 0 || size > count ? count : size;
    sync->nbuckets = (count + size - 1) / size;
    sync->buckets = calloc(sync->nbuckets, sizeof(*sync->buckets));
    if (!sync->buckets)
        return gy_nn_fail(GYRE_NO_MEMORY, "no memory for %zu buckets", sync->nbuckets);
    for (size_t i = 0, last = count; i < sync->nbuckets; i++) {
        sync->buckets[i].count = size < last ? size : last;
        last -= sync->buckets[i].count;
        sync->buckets[i].first = last;
    }
    return GYRE_SUCCESS;
}

gyre_status gyre_nn_sync_attach(gyre_nn_model *model, gyre_nn_optimizer *optimizer, gyre_comm *comm,
                                size_t bucket_bytes, gyre_nn_sync **sync_p)
{
    gyre_nn_sync *sync = calloc(1, sizeof(*sync));
    if (!sync)
        return gy_nn_fail(GYRE_NO_MEMORY, "no memory to attach a communicator");
    sync->model = model;
    sync->optimizer = optimizer;
    sync->comm = comm && gyre_comm_size(comm) > 1 ? comm : NULL;
    gyre_status status = make_buckets(sync, bucket_bytes);
    if (status == GYRE_SUCCESS && sync->comm) {
        gyre_nn_share_cores(comm);
        status = broadcast_state(sync);
        /* Memory that peers can read saves two copies; private memory works as well, so a refusal is no failure. */
        if (status == GYRE_SUCCESS &&
            gyre_mem_alloc(comm, model->count * model->backend->element, &sync->grads) == GYRE_SUCCESS)
            gyre_nn_place_grads(model, sync->grads);
    }
    if (status != GYRE_SUCCESS) {
        gyre_nn_sync_detach(sync);
        return status;
    }
    *sync_p = sync;
    return GYRE_SUCCESS;
}

void gyre_nn_sync_detach(gyre_nn_sync *sync)
{
    if (!sync)
        return;
    for (size_t i = 0; i < sync->nbuckets && sync->buckets; i++)
        gyre_wait(
            &sync->buckets[i].request); /* complete already, in success or failure, unless a step was left half-way */
    if (sync->grads) {
        gyre_nn_place_grads(sync->model, NULL);
        gyre_mem_free(sync->comm, sync->grads);
    }
    free(sync->buckets);
    free(sync);
}

void gyre_nn_sync_begin(gyre_nn_sync *sync)
{
    sync->started = sync->completed = 0;
    sync->status = GYRE_SUCCESS;
}

static void keep_status(gyre_nn_sync *sync, gyre_status status, const char *what)
{
    if (status != GYRE_SUCCESS && sync->status == GYRE_SUCCESS)
        sync->status = gy_nn_fail_comm(status, sync->comm, what);
}

static void start_bucket(gyre_nn_sync *sync, struct bucket *bucket)
{
    void *slice = gy_nn_at(sync->model, sync->model->grads, bucket->first);
    bucket->start = gy_nn_trace_now(sync->model->trace);
    keep_status(sync,
                gyre_all_reduce_start(sync->comm, slice, slice, bucket->count, sync->model->backend->dtype, GYRE_SUM,
                                      &bucket->request),
                "starting the all-reduce of gradients");
}

/* Bucket `completed` is done: only for the trace does it matter to see that before the wait. */
static void complete_bucket(gyre_nn_sync *sync, gyre_status status)
{
    struct bucket *bucket = &sync->buckets[sync->completed];
    keep_status(sync, status, "the all-reduce of gradients");
    gy_nn_trace_add(sync->model->trace, GY_NN_SPAN_REDUCE, (int32_t)sync->completed, bucket->start);
    sync->completed++;
}

void gyre_nn_sync_passed(void *user, size_t lower)
{
    gyre_nn_sync *sync = user;
    if (!sync->comm)
        return;
    while (sync->status == GYRE_SUCCESS && sync->started < sync->nbuckets &&
           sync->buckets[sync->started].first >= lower)
        start_bucket(sync, &sync->buckets[sync->started++]);
    if (sync->status != GYRE_SUCCESS || sync->completed == sync->started)
        return;
    keep_status(sync, gyre_progress(sync->comm), "progress during backward");
    while (sync->status == GYRE_SUCCESS && sync->completed < sync->started) {
        gyre_status status = gyre_test(&sync->buckets[sync->completed].request);
        if (status == GYRE_IN_PROGRESS)
            break;
        complete_bucket(sync, status);
    }
}

static void wait_bucket(gyre_nn_sync *sync, size_t index)
{
    while (sync->completed <= index && sync->status == GYRE_SUCCESS) {
        int64_t start = gy_nn_trace_now(sync->model->trace);
        gyre_status status = gyre_wait(&sync->buckets[sync->completed].request);
        gy_nn_trace_add(sync->model->trace, GY_NN_SPAN_WAIT, (int32_t)sync->completed, start);
        complete_bucket(sync, status);
    }
}

gyre_status gyre_nn_sync_reduce(gyre_nn_sync *sync)
{
    gyre_nn_sync_passed(sync, 0);
    if (sync->comm)
        wait_bucket(sync, sync->nbuckets - 1);
    return sync->status;
}

/* The norm of the mean gradient; every rank has the same bits, so every rank clips alike. */
static double clipped(const gyre_nn_sync *sync, double scale, double clip_norm)
{
    const gyre_nn_model *model = sync->model;
    double norm = sqrt(model->backend->sum_squares(model->count, model->grads)) * scale;
    return norm > clip_norm ? scale * (clip_norm / norm) : scale;
}

gyre_status gyre_nn_sync_finish(gyre_nn_sync *sync, double rate, size_t global_rows, double clip_norm)
{
    double scale = 1 / (double)(global_rows ? global_rows : 1);
    gyre_nn_sync_passed(sync, 0); /* a backward without the callback: everything leaves now */
    if (clip_norm > 0) {
        if (sync->comm)
            wait_bucket(sync, sync->nbuckets - 1);
        scale = clipped(sync, scale, clip_norm);
    }
    if (sync->status == GYRE_SUCCESS)
        gyre_nn_optimizer_begin(sync->optimizer);
    for (size_t i = 0; i < sync->nbuckets && sync->status == GYRE_SUCCESS; i++) {
        const struct bucket *bucket = &sync->buckets[i];
        if (sync->comm)
            wait_bucket(sync, i);
        if (sync->status != GYRE_SUCCESS)
            break;
        int64_t start = gy_nn_trace_now(sync->model->trace);
        gyre_nn_optimizer_update(sync->optimizer, bucket->first, bucket->count, rate, scale);
        gy_nn_trace_add(sync->model->trace, GY_NN_SPAN_UPDATE, (int32_t)i, start);
    }
    return sync->status;
}

size_t gyre_nn_sync_bucket_count(const gyre_nn_sync *sync)
{
    return sync->nbuckets;
}

void gyre_nn_sync_bucket(const gyre_nn_sync *sync, size_t index, size_t *first_p, size_t *count_p)
{
    *first_p = sync->buckets[index].first;
    *count_p = sync->buckets[index].count;
}
