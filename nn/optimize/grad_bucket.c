/* Synchronous data parallelism: every rank has the whole model and a part of each batch, and gradients are summed while
 * backward runs.
 *
 *     gradient arena  | layer 0      | layer 1            | layer 2    |
 *     buckets                |  2            |     1           |   0    |     contiguous ranges, numbered from the end
 *     backward        <───────────────────────────────────────────────       passes lower edges in this order
 *
 * A bucket leaves, by an in-place all-reduce, as soon as backward has passed its lower edge and the buckets before it
 * in `order` have left. The order is a function of the number of buckets alone, so ranks always agree on the sequence
 * of collectives. No order changes a bit of the sums. Between layers gyre makes progress. Then, one of two:
 *
 *   at once   order is by index; `finish` waits for bucket 0, moves its parameters, waits for bucket 1, …
 *   ahead     `finish` does not wait. The next forward, before each module, waits for the buckets with the module's
 *             parameters, and moves these. So the rest of the communication hides behind forward as well. Forward needs
 *             first what backward made last, and that must not queue. So every third bucket is held back until backward
 *             is over, which leaves the links a third of slack until then. Held buckets leave in forward's order.
 *
 *     order, 9 buckets    1 2 4 5 7 8 │ 6 3 0           8, made last, is needed first; 3 when forward has come half-way
 *
 * Invariant: the slice of a bucket belongs to gyre from its start until it has arrived, and its parameters and the
 * optimiser's state to `sync` until they have moved; model->settle is set as long as some have not. */
#include "base/error.h"
#include "base/require.h"
#include "optimize/optimizer.h"

#include <math.h>
#include <stdlib.h>

struct bucket {
    size_t first, count;
    gyre_request *request;
    int64_t start; /* when it left, for the trace */
    bool arrived, moved;
};

struct gyre_nn_sync {
    gyre_nn_model *model;
    gyre_nn_optimizer *optimizer;
    gyre_comm *comm; /* NULL: one rank, nothing to communicate */
    void *grads;     /* memory that the ranks of a host share, or NULL */
    struct bucket *buckets;
    size_t nbuckets;
    size_t *order;               /* in which buckets leave */
    size_t started, seen, swept; /* places of the order: have left; have arrived, without a gap; have moved, likewise */
    bool ahead;
    bool joined;        /* counted in the model's syncs */
    size_t waiting;     /* buckets that are still to move after a finish that has not waited */
    double rate, scale; /* for these */
    gyre_status status; /* first failure since begin: the backward callback cannot return one */
};

/* Ahead: every HOLD_EVERY-th bucket is held back. None is in the first quarter of the arena, for which forward would
 * have to wait: forward takes half as long for a bucket as links that are as slow as backward. */
enum { HOLD_EVERY = 3 };

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

static bool held_back(const gyre_nn_sync *sync, size_t index)
{
    size_t above = sync->nbuckets - 1 - index, from = sync->nbuckets / 4;
    return sync->ahead && above >= from && (above - from) % HOLD_EVERY == 0 && above > 0;
}

static void make_order(gyre_nn_sync *sync)
{
    size_t n = 0;
    for (size_t i = 0; i < sync->nbuckets; i++)
        if (!held_back(sync, i))
            sync->order[n++] = i;
    for (size_t i = sync->nbuckets; i-- > 0;)
        if (held_back(sync, i))
            sync->order[n++] = i;
}

static gyre_status make_buckets(gyre_nn_sync *sync, size_t bucket_bytes)
{
    size_t count = sync->model->count, size = bucket_bytes / sync->model->backend->element;
    size = size == 0 || size > count ? count : size;
    sync->nbuckets = (count + size - 1) / size;
    sync->buckets = calloc(sync->nbuckets, sizeof(*sync->buckets));
    sync->order = calloc(sync->nbuckets, sizeof(*sync->order));
    if (!sync->buckets || !sync->order)
        return gy_nn_fail(GYRE_NO_MEMORY, "no memory for %zu buckets", sync->nbuckets);
    for (size_t i = 0, last = count; i < sync->nbuckets; i++) {
        sync->buckets[i].count = size < last ? size : last;
        last -= sync->buckets[i].count;
        sync->buckets[i].first = last;
    }
    make_order(sync);
    return GYRE_SUCCESS;
}

gyre_status gyre_nn_sync_attach(gyre_nn_model *model, gyre_nn_optimizer *optimizer, gyre_comm *comm,
                                size_t bucket_bytes, gyre_nn_sync **sync_p)
{
    GY_NN_REQUIRE(model, sync_p);
    if (optimizer && optimizer->model != model)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "gyre_nn_sync_attach: the optimiser is of another model");
    if (gy_nn_optimizer_check_whole(optimizer, model, "gyre_nn_sync_attach") != GYRE_SUCCESS)
        return GYRE_INVALID_ARGUMENT;
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
    if (status == GYRE_SUCCESS && sync->comm) {
        sync->joined = true;
        model->comm = sync->comm;
        model->syncs++;
    }
    if (status != GYRE_SUCCESS) {
        gyre_nn_sync_detach(sync);
        return status;
    }
    *sync_p = sync;
    return GYRE_SUCCESS;
}

static void forget_all(gyre_nn_sync *sync)
{
    sync->started = sync->seen = sync->swept = sync->waiting = 0;
    sync->status = GYRE_SUCCESS;
    for (size_t i = 0; i < sync->nbuckets; i++)
        sync->buckets[i].arrived = sync->buckets[i].moved = false;
}

/* What a finish has left for later is done by the next forward, which comes after this. */
void gyre_nn_sync_begin(gyre_nn_sync *sync)
{
    GY_NN_REQUIRE_VOID(sync);
    if (sync->waiting == 0)
        forget_all(sync);
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

static void arrive(gyre_nn_sync *sync, size_t index, gyre_status status)
{
    struct bucket *bucket = &sync->buckets[index];
    keep_status(sync, status, "the all-reduce of gradients");
    gy_nn_trace_add(sync->model->trace, GY_NN_SPAN_REDUCE, (int32_t)index, bucket->start);
    bucket->arrived = true;
}

/* Advances over the buckets that have arrived, in the order in which they left, up to the first that has not. */
static void look(gyre_nn_sync *sync)
{
    while (sync->status == GYRE_SUCCESS && sync->seen < sync->started) {
        size_t index = sync->order[sync->seen];
        if (!sync->buckets[index].arrived) {
            gyre_status status = gyre_test(&sync->buckets[index].request);
            if (status == GYRE_IN_PROGRESS)
                return;
            arrive(sync, index, status);
        }
        sync->seen++;
    }
}

void gyre_nn_sync_passed(void *user, size_t lower)
{
    GY_NN_REQUIRE_VOID(user);
    gyre_nn_sync *sync = user;
    if (!sync->comm)
        return;
    if (sync->waiting > 0) /* no forward has come between */
        gyre_nn_settle(sync->model);
    while (sync->status == GYRE_SUCCESS && sync->started < sync->nbuckets &&
           sync->buckets[sync->order[sync->started]].first >= lower)
        start_bucket(sync, &sync->buckets[sync->order[sync->started++]]);
    if (sync->status != GYRE_SUCCESS || sync->seen == sync->started)
        return;
    keep_status(sync, gyre_progress(sync->comm), "progress during backward");
    look(sync);
}

static void wait_bucket(gyre_nn_sync *sync, size_t index)
{
    if (sync->buckets[index].arrived || sync->status != GYRE_SUCCESS)
        return;
    int64_t start = gy_nn_trace_now(sync->model->trace);
    gyre_status status = gyre_wait(&sync->buckets[index].request);
    gy_nn_trace_add(sync->model->trace, GY_NN_SPAN_WAIT, (int32_t)index, start);
    arrive(sync, index, status);
}

static void wait_all(gyre_nn_sync *sync)
{
    for (size_t i = 0; sync->comm && i < sync->nbuckets; i++)
        wait_bucket(sync, sync->order[i]);
}

gyre_status gyre_nn_sync_reduce(gyre_nn_sync *sync)
{
    GY_NN_REQUIRE(sync);
    gyre_nn_sync_passed(sync, 0);
    wait_all(sync);
    return sync->status;
}

/* Σ g² of all parameters; not of statistics, which are no gradients of the cost. */
static double sum_squares(const gyre_nn_model *model)
{
    size_t from = 0, at = 0, low, high;
    double sum = 0;
    while (gy_nn_next_statistic(model, model->count, &at, &low, &high)) {
        sum += model->backend->sum_squares(low - from, gy_nn_at(model, model->grads, from));
        from = high;
    }
    return sum + model->backend->sum_squares(model->count - from, gy_nn_at(model, model->grads, from));
}

/* The norm of the mean gradient; every rank has the same bits, so every rank clips alike. The gradients of statistics
 * grow by what the factor takes away. */
static double clipped(const gyre_nn_sync *sync, double scale, double clip_norm)
{
    const gyre_nn_model *model = sync->model;
    double norm = sqrt(sum_squares(model)) * scale;
    size_t at = 0, low, high;
    if (!(norm > clip_norm))
        return scale;
    while (gy_nn_next_statistic(model, model->count, &at, &low, &high))
        model->backend->scale(high - low, norm / clip_norm, gy_nn_at(model, model->grads, low));
    return scale * (clip_norm / norm);
}

/* The parameters of a bucket that has arrived. */
static void move(gyre_nn_sync *sync, size_t index)
{
    struct bucket *bucket = &sync->buckets[index];
    int64_t start = gy_nn_trace_now(sync->model->trace);
    gyre_nn_optimizer_update(sync->optimizer, bucket->first, bucket->count, sync->rate, sync->scale);
    gy_nn_trace_add(sync->model->trace, GY_NN_SPAN_UPDATE, (int32_t)index, start);
    bucket->moved = true;
}

/* Moves one of those that have arrived, whichever it is: better than to wait. */
static bool move_another(gyre_nn_sync *sync)
{
    look(sync);
    while (sync->swept < sync->seen && sync->status == GYRE_SUCCESS) {
        size_t index = sync->order[sync->swept++];
        if (!sync->buckets[index].moved) {
            move(sync, index);
            sync->waiting--;
            return true;
        }
    }
    return false;
}

/* The model's settle, ahead: parameters [first, first + count) have moved when it returns. A failure is kept for
 * every later call until detach. */
static gyre_status settle(void *user, size_t first, size_t count)
{
    gyre_nn_sync *sync = user;
    size_t end = sync->model->count, size = sync->buckets[0].count;
    size_t high = (end - 1 - first) / size, low = (end - first - count) / size;
    keep_status(sync, gyre_progress(sync->comm), "progress during forward");
    look(sync);
    for (size_t i = high + 1; i-- > low && sync->status == GYRE_SUCCESS;) {
        struct bucket *bucket = &sync->buckets[i];
        while (!bucket->arrived && sync->status == GYRE_SUCCESS)
            if (!move_another(sync))
                wait_bucket(sync, i);
        if (!bucket->moved && sync->status == GYRE_SUCCESS) {
            move(sync, i);
            sync->waiting--;
        }
    }
    gyre_status status = sync->status;
    if (status == GYRE_SUCCESS && sync->waiting == 0) {
        sync->model->settle = NULL;
        forget_all(sync);
    }
    return status;
}

gyre_status gyre_nn_sync_finish(gyre_nn_sync *sync, double rate, size_t global_rows, double clip_norm)
{
    GY_NN_REQUIRE(sync);
    if (!sync->optimizer)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "gyre_nn_sync_finish: this sync was attached without an optimiser");
    if (!isfinite(rate) || !(clip_norm >= 0))
        return gy_nn_fail(GYRE_INVALID_ARGUMENT,
                          "gyre_nn_sync_finish: rate %g and clip_norm %g: the rate has to be "
                          "finite, the norm at least 0",
                          rate, clip_norm);
    gyre_nn_sync_passed(sync, 0); /* a backward without the callback: everything leaves now */
    sync->rate = rate;
    sync->scale = 1 / (double)(global_rows ? global_rows : 1);
    if (clip_norm > 0) {
        wait_all(sync);
        sync->scale = clipped(sync, sync->scale, clip_norm);
    }
    if (sync->status == GYRE_SUCCESS)
        gyre_nn_optimizer_begin(sync->optimizer);
    if (sync->status == GYRE_SUCCESS && sync->ahead && sync->comm && !(clip_norm > 0)) {
        sync->waiting = sync->nbuckets;
        sync->model->settle = settle;
        sync->model->settle_user = sync;
        return GYRE_SUCCESS;
    }
    for (size_t i = 0; i < sync->nbuckets && sync->status == GYRE_SUCCESS; i++) {
        if (sync->comm)
            wait_bucket(sync, i);
        if (sync->status == GYRE_SUCCESS)
            move(sync, i);
    }
    return sync->status;
}

void gyre_nn_sync_ahead(gyre_nn_sync *sync, bool ahead)
{
    GY_NN_REQUIRE_VOID(sync);
    gyre_nn_settle(sync->model);
    sync->ahead = ahead;
    make_order(sync);
}

void gyre_nn_sync_detach(gyre_nn_sync *sync)
{
    if (!sync)
        return;
    if (sync->waiting > 0) {
        settle(sync, 0, sync->model->count);
        sync->model->settle = NULL;
    }
    for (size_t i = 0; i < sync->nbuckets && sync->buckets; i++)
        gyre_wait(
            &sync->buckets[i].request); /* complete already, in success or failure, unless a step was left half-way */
    if (sync->joined && --sync->model->syncs == 0)
        sync->model->comm = NULL;
    if (sync->grads) {
        gyre_nn_place_grads(sync->model, NULL);
        gyre_mem_free(sync->comm, sync->grads);
    }
    free(sync->buckets);
    free(sync->order);
    free(sync);
}

size_t gyre_nn_sync_bucket_count(const gyre_nn_sync *sync)
{
    GY_NN_REQUIRE_OR(0, sync);
    return sync->nbuckets;
}

void gyre_nn_sync_bucket(const gyre_nn_sync *sync, size_t index, size_t *first_p, size_t *count_p)
{
    GY_NN_REQUIRE_VOID(sync, first_p, count_p);
    if (index >= sync->nbuckets) {
        (void)gy_nn_fail(GYRE_INVALID_ARGUMENT, "gyre_nn_sync_bucket: there is no bucket %zu of %zu", index,
                         sync->nbuckets);
        *first_p = *count_p = 0;
        return;
    }
    *first_p = sync->buckets[index].first;
    *count_p = sync->buckets[index].count;
}
