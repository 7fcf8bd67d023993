#include "collectives/request.h"

#include <string.h>

#include "core/clock.h"
#include "core/dtype.h"
#include "core/log.h"
#include "core/mem.h"

static struct gyre_request *request_take(struct gy_context *ctx)
{
    struct gyre_request *r = ctx->idle;
    if (r)
        ctx->idle = r->next;
    else
        r = gy_alloc(sizeof(*r));
    if (r)
        memset(r, 0, sizeof(*r));
    return r;
}

static void active_append(struct gy_context *ctx, struct gyre_request *r)
{
    r->next = NULL;
    r->previous = ctx->active_last;
    if (ctx->active_last)
        ctx->active_last->next = r;
    else
        ctx->active_first = r;
    ctx->active_last = r;
}

static void active_remove(struct gy_context *ctx, struct gyre_request *r)
{
    *(r->previous ? &r->previous->next : &ctx->active_first) = r->next;
    *(r->next ? &r->next->previous : &ctx->active_last) = r->previous;
    r->next = r->previous = NULL;
}

/* Elements per tile: what both sides of every link, or all users of a window, compute alike. */
static size_t tile_elements(const struct gyre_request *r)
{
    if (r->plan->window)
        return gy_window_tile(r);
    const struct gy_context *ctx = r->comm->ctx;
    size_t bytes = ctx->world->hosts == 1 ? ctx->config.shm_slot : ctx->config.tcp_tile;
    bytes = gy_min_size(gy_max_size(bytes, GY_EAGER_BYTES), GY_FRAME_MAX);
    return bytes / r->element;
}

static gyre_status take_buffers(struct gyre_request *r)
{
    struct gy_context *ctx = r->comm->ctx;
    const struct gy_plan *plan = r->plan;
    if (plan->scratch_slots > 0) {
        size_t slot = gy_plan_longest(r->total, plan->blocks, plan->scratch_width) * r->element;
        r->slot_bytes = (slot + 63) & ~(size_t)63;
        r->scratch = gy_context_buffer_take(ctx, r->slot_bytes * (size_t)plan->scratch_slots, &r->scratch_bytes);
        if (!r->scratch)
            return GYRE_NO_MEMORY;
    }
    for (int l = 0; l < plan->lanes; l++)
        for (int s = 0; s < plan->lane[l].count; s++) {
            const struct gy_step *step = &plan->step[plan->lane[l].first + s];
            size_t longest = gy_plan_longest(r->total, plan->blocks, step->range.width) * r->element;
            struct gy_lane_state *lane = &r->lane[l];
            if (step->kind != GY_RECV_REDUCE || longest <= GY_EAGER_BYTES || lane->landing)
                continue;
            lane->landing = gy_context_buffer_take(ctx, r->tile * r->element, &lane->landing_bytes);
            if (!lane->landing)
                return GYRE_NO_MEMORY;
        }
    return GYRE_SUCCESS;
}

static void give_buffers(struct gyre_request *r)
{
    struct gy_context *ctx = r->comm->ctx;
    if (r->scratch)
        gy_context_buffer_give(ctx, r->scratch, r->scratch_bytes);
    r->scratch = NULL;
    for (int l = 0; l < GY_PLAN_LANES; l++) {
        if (r->lane[l].landing)
            gy_context_buffer_give(ctx, r->lane[l].landing, r->lane[l].landing_bytes);
        r->lane[l].landing = NULL;
    }
}

static gyre_status open_links(struct gyre_request *r)
{
    if (r->plan->window)
        return GYRE_SUCCESS;
    for (int s = 0; s < r->plan->steps; s++) {
        const struct gy_step *step = &r->plan->step[s];
        if (step->kind > GY_RECV_REDUCE)
            continue;
        struct gy_link *link;
        int world = gy_group_world(&r->comm->group, step->peer);
        if (gy_context_link(r->comm->ctx, world, &link) != GYRE_SUCCESS) {
            /* The others have entered and wait for this rank: they learn why it does not come. */
            struct gy_context *ctx = r->comm->ctx;
            gy_overlay_report(ctx->overlay, ctx->error.status, ctx->world->rank, ctx->error.text);
            return ctx->error.status;
        }
        if (!gy_comm_channel(r->comm, step->peer))
            return gy_error_set(&r->comm->error, GYRE_NO_MEMORY, -1, "out of memory for a channel to rank %d", world);
    }
    return GYRE_SUCCESS;
}

struct gy_arrival gy_shape_of(const struct gyre_comm *comm, const struct gy_call *call, enum gy_algorithm algorithm)
{
    return (struct gy_arrival){.sequence = comm->sequence + 1,
                               .count = call->count,
                               .root = (uint32_t)call->root,
                               .collective = (uint8_t)call->collective,
                               .dtype = (uint8_t)call->dtype,
                               .op = (uint8_t)call->op,
                               .algorithm = (uint8_t)algorithm};
}

static void fill(struct gyre_request *r, struct gyre_comm *comm, const struct gy_call *call,
                 const struct gy_arrival *shape)
{
    r->comm = comm;
    r->input = call->input;
    r->output = call->output;
    r->dtype = call->dtype;
    r->op = call->op;
    r->element = gyre_dtype_size(call->dtype);
    r->total = call->collective == GY_REDUCE_SCATTER || call->collective == GY_ALL_GATHER
                   ? call->count * (size_t)comm->size
                   : call->count;
    r->shape = *shape;
    r->status = GYRE_IN_PROGRESS;
    r->waiting_for = -1;
}

static void window_enqueue(struct gyre_request *r)
{
    struct gyre_comm *comm = r->comm;
    if (comm->window_last)
        comm->window_last->next_window = r;
    else
        comm->window_first = r;
    comm->window_last = r;
}

/* What the peers that came first have called: their early frames carry the shape. */
static void check_early(struct gyre_request *r)
{
    for (int peer = 0; peer < r->comm->size; peer++) {
        struct gy_channel *channel = r->comm->channels[peer];
        struct gy_stashed *early = channel ? gy_channel_any(channel, r->shape.sequence) : NULL;
        if (!early)
            continue;
        struct gy_arrival theirs = {early->frame.sequence,   early->frame.count, early->frame.root,
                                    early->frame.collective, early->frame.dtype, early->frame.op,
                                    early->frame.algorithm};
        if (!gy_shape_equal(&theirs, &r->shape)) {
            gy_mismatch(r->comm, peer, &theirs, &r->shape);
            return;
        }
    }
}

/* GYRE_SHOW_CHOICE: one line per collective and power of two of its size. */
static void show_choice(struct gyre_comm *comm, enum gy_collective collective, size_t bytes,
                        enum gy_algorithm algorithm)
{
    unsigned power = bytes ? 64 - (unsigned)__builtin_clzll(bytes) : 0;
    uint64_t bit = UINT64_C(1) << (power < 63 ? power : 63);
    if (!comm->ctx->config.show_choice || (comm->shown[collective] & bit))
        return;
    comm->shown[collective] |= bit;
    gy_log(GY_LOG_WARN, "choice: %s of %zu bytes on %d ranks: %s", gy_collective_name(collective), bytes, comm->size,
           gy_algorithm_name(algorithm));
}

gyre_status gy_request_start(struct gyre_comm *comm, const struct gy_call *call, struct gyre_request **request_p)
{
    struct gy_context *ctx = comm->ctx;
    enum gy_algorithm algorithm;
    size_t whole = call->count * gyre_dtype_size(call->dtype);
    comm->error.status = GYRE_SUCCESS; /* what an earlier call could not do is no failure of this one */
    gyre_status status = gy_select(comm, call->collective, whole, &algorithm, &comm->error);
    if (status != GYRE_SUCCESS)
        return status;
    show_choice(comm, call->collective, whole, algorithm);
    struct gyre_request *r = request_take(ctx);
    if (!r)
        return gy_error_set(&comm->error, GYRE_NO_MEMORY, -1, "out of memory for a request");
    struct gy_arrival shape = gy_shape_of(comm, call, algorithm);
    fill(r, comm, call, &shape);
    r->plan = gy_comm_plan(comm, call->collective, algorithm, call->root);
    if (!r->plan) {
        status = gy_error_set(&comm->error, GYRE_NO_MEMORY, -1, "out of memory for a plan");
        goto give_request;
    }
    r->tile = tile_elements(r);
    status = take_buffers(r);
    if (status != GYRE_SUCCESS) {
        gy_error_set(&comm->error, status, -1, "out of memory for the scratch buffers of a collective of %zu bytes",
                     whole);
        goto give_buffers;
    }
    status = open_links(r);
    if (status != GYRE_SUCCESS)
        goto give_buffers;
    if (comm->window >= 0 && !comm->window_reserved) {
        status = gy_segment_window_reserve(ctx->segment, comm->window, &comm->error);
        if (status != GYRE_SUCCESS)
            goto give_buffers;
        comm->window_reserved = true;
    }
    comm->sequence++;
    gy_recorder_begin(&comm->recorder, &r->shape)->began = gy_now();
    comm->recorder.bytes += r->total * r->element;
    for (int l = 0; l < r->plan->lanes; l++) {
        r->lane[l].step = r->plan->lane[l].first;
        gy_lane_begin(r, l);
    }
    active_append(ctx, r);
    if (r->plan->window)
        window_enqueue(r);
    if (comm->window_reserved)
        gy_window_arrive(comm, &r->shape);
    check_early(r);
    if (!r->complete)
        gy_request_advance(r);
    if (!r->complete) /* a thread that sleeps has not armed itself for this one */
        gy_driver_wake(ctx);
    *request_p = r;
    return GYRE_SUCCESS;

give_buffers:
    give_buffers(r);
    gy_comm_plan_release(comm, r->plan);
give_request:
    r->next = ctx->idle;
    ctx->idle = r;
    return status;
}

struct gyre_request *gy_request_adopt(struct gyre_comm *comm, const struct gy_call *call,
                                      const struct gy_arrival *shape)
{
    struct gyre_request *r = request_take(comm->ctx);
    fill(r, comm, call, shape);
    r->plan = gy_comm_plan(comm, call->collective, (enum gy_algorithm)shape->algorithm, 0);
    gy_recorder_find(&comm->recorder, shape->sequence)->began = gy_now();
    active_append(comm->ctx, r);
    window_enqueue(r);
    return r;
}

static void window_dequeue(struct gyre_request *r)
{
    struct gyre_comm *comm = r->comm;
    struct gyre_request *before = NULL;
    for (struct gyre_request *q = comm->window_first; q && q != r; q = q->next_window)
        before = q;
    *(before ? &before->next_window : &comm->window_first) = r->next_window;
    if (comm->window_last == r)
        comm->window_last = before;
    r->next_window = NULL;
}

void gy_request_finish(struct gyre_request *r, gyre_status status)
{
    if (r->complete)
        return;
    r->complete = true;
    r->status = status;
    active_remove(r->comm->ctx, r);
    r->next = r->comm->ended;
    if (r->next)
        r->next->previous = r;
    r->comm->ended = r;
    gy_driver_wake(r->comm->ctx);
    if (r->plan->window)
        window_dequeue(r);
    struct gy_record *record = gy_recorder_find(&r->comm->recorder, r->shape.sequence);
    if (record) {
        record->ended = gy_now();
        record->state = status == GYRE_SUCCESS ? GY_RECORD_DONE : GY_RECORD_FAILED;
        record->waiting_for = status == GYRE_SUCCESS ? -1 : r->waiting_for;
    }
    if (status == GYRE_SUCCESS)
        r->comm->recorder.done++;
    else
        r->comm->recorder.failed++;
    give_buffers(r);
    gy_comm_plan_release(r->comm, r->plan);
}

void gy_request_recycle(struct gyre_request *r)
{
    if (!r->comm) { /* its communicator has gone before it was collected */
        gy_free(r);
        return;
    }
    struct gy_context *ctx = r->comm->ctx;
    *(r->previous ? &r->previous->next : &r->comm->ended) = r->next;
    if (r->next)
        r->next->previous = r->previous;
    r->next = ctx->idle;
    ctx->idle = r;
}

struct gyre_request *gy_request_find(struct gyre_comm *comm, uint64_t sequence)
{
    for (struct gyre_request *r = comm->ctx->active_first; r; r = r->next)
        if (r->comm == comm && r->shape.sequence == sequence)
            return r;
    return NULL;
}
