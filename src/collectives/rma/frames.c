/* One-sided access by frames. In a frame's header `sequence` is the window, `value` the byte in the target's memory,
 * `count` elements or bytes, `lane` the signal or the place in flight. */
#include <string.h>

#include "collectives/engine/request.h"
#include "collectives/rma/window.h"
#include "core/log.h"
#include "core/mem.h"

static void fill(const struct gyre_window *window, struct gy_frame_out *out, enum gy_frame_kind kind, size_t offset)
{
    struct gy_frame *frame = &out->header;
    memset(frame, 0, sizeof(*frame));
    frame->kind = (uint8_t)kind;
    frame->epoch = window->comm->ctx->world->epoch;
    frame->comm = window->comm->id;
    frame->sequence = window->id;
    frame->value = offset;
    out->payload = NULL;
}

static gyre_status failure(const struct gyre_window *window, int target)
{
    if (window->comm->ctx->closed)
        return window->comm->ctx->error.status;
    return gy_window_has_lost(window, target) ? gy_window_tell_lost(window, target) : GYRE_SUCCESS;
}

/* True if one of the window's frames is free, or the world has failed. */
static bool has_free_frame(const void *what)
{
    const struct gyre_window *window = what;
    for (int i = 0; i < GY_ONE_SIDED_FLIGHT; i++)
        if (!window->out[i].queued)
            return true;
    return window->comm->ctx->closed;
}

static bool is_quiet(const void *what)
{
    const struct gyre_window *window = what;
    for (int i = 0; i < GY_ONE_SIDED_FLIGHT; i++)
        if (window->out[i].queued || window->get[i].waiting)
            return window->comm->ctx->closed;
    return true;
}

static struct gy_frame_out *free_frame(struct gyre_window *window, int target)
{
    (void)gy_window_until(window, has_free_frame, window, target, "a put, an accumulation or a signal");
    for (int i = 0; i < GY_ONE_SIDED_FLIGHT; i++)
        if (!window->out[i].queued)
            return &window->out[i];
    return &window->out[0]; /* the world has failed: no link sends it */
}

/* Waits until the caller's memory is free again, whatever the call's result: links release frames also if no rank
 * reads them. */
static gyre_status settle(struct gyre_window *window, int target, gyre_status status)
{
    gyre_status settled = gy_window_until(window, is_quiet, window, target, "an access");
    if (settled != GYRE_SUCCESS)
        return settled;
    return status == GYRE_SUCCESS ? failure(window, target) : status;
}

gyre_status gy_rma_put(struct gyre_window *window, const unsigned char *source, size_t bytes, int target, size_t offset)
{
    gyre_status status = GYRE_SUCCESS;
    size_t tile = gy_min_size(window->comm->ctx->config.tcp_tile, GY_FRAME_MAX);
    window->targets[target].asked = true;
    for (size_t at = 0; status == GYRE_SUCCESS && at < bytes; at += tile) {
        struct gy_frame_out *out = free_frame(window, target);
        status = failure(window, target);
        if (status != GYRE_SUCCESS)
            break;
        fill(window, out, GY_FRAME_PUT, offset + at);
        out->header.bytes = (uint32_t)gy_min_size(tile, bytes - at);
        out->payload = source + at;
        gy_comm_post(window->comm, target, out);
    }
    return settle(window, target, status);
}

gyre_status gy_rma_accumulate(struct gyre_window *window, const unsigned char *source, size_t count,
                              const struct gy_operation *operation, int target, size_t offset)
{
    gyre_status status = gy_window_settle_between(window, target);
    size_t element = gyre_dtype_size(operation->dtype), tile = GY_ACCUMULATE_BYTES / element;
    window->targets[target].asked = window->targets[target].reduced = true;
    for (size_t at = 0; status == GYRE_SUCCESS && at < count; at += tile) {
        struct gy_frame_out *out = free_frame(window, target);
        status = failure(window, target);
        if (status != GYRE_SUCCESS)
            break;
        fill(window, out, GY_FRAME_ACCUMULATE, offset + at * element);
        out->header.count = gy_min_size(tile, count - at);
        out->header.bytes = (uint32_t)(out->header.count * element);
        out->header.dtype = (uint8_t)operation->dtype;
        out->header.op = (uint8_t)operation->op;
        out->payload = source + at * element;
        gy_comm_post(window->comm, target, out);
    }
    return settle(window, target, status);
}

gyre_status gy_rma_signal(struct gyre_window *window, int target, unsigned index)
{
    gyre_status status = gy_window_settle_between(window, target);
    if (status != GYRE_SUCCESS)
        return status;
    struct gy_frame_out *out = free_frame(window, target);
    status = failure(window, target);
    if (status != GYRE_SUCCESS)
        return status;
    window->targets[target].asked = true;
    fill(window, out, GY_FRAME_SIGNAL, 0);
    out->header.lane = (uint16_t)index;
    gy_comm_post(window->comm, target, out);
    return settle(window, target, GYRE_SUCCESS);
}

static bool has_free_get(const void *what)
{
    const struct gyre_window *window = what;
    for (int i = 0; i < GY_ONE_SIDED_FLIGHT; i++)
        if (!window->get[i].waiting && !window->out[i].queued)
            return true;
    return window->comm->ctx->closed;
}

gyre_status gy_rma_get(struct gyre_window *window, unsigned char *destination, size_t bytes, int target, size_t offset)
{
    gyre_status status = GYRE_SUCCESS;
    size_t tile = gy_min_size(window->comm->ctx->config.tcp_tile, GY_FRAME_MAX);
    for (size_t at = 0; status == GYRE_SUCCESS && at < bytes; at += tile) {
        status = gy_window_until(window, has_free_get, window, target, "a get");
        if (status == GYRE_SUCCESS)
            status = failure(window, target);
        int i = 0;
        while (i < GY_ONE_SIDED_FLIGHT - 1 && (window->get[i].waiting || window->out[i].queued))
            i++;
        if (status != GYRE_SUCCESS)
            break;
        window->get[i].place = destination + at;
        window->get[i].bytes = gy_min_size(tile, bytes - at);
        window->get[i].from = target;
        window->get[i].waiting = true;
        fill(window, &window->out[i], GY_FRAME_GET, offset + at);
        window->out[i].header.count = window->get[i].bytes;
        window->out[i].header.lane = (uint16_t)i;
        gy_comm_post(window->comm, target, &window->out[i]);
    }
    return settle(window, target, status);
}

struct flushing {
    const struct gyre_window *window;
    int target;
};

static bool is_flushed(const void *what)
{
    const struct flushing *it = what;
    const struct gy_target *t = &it->window->targets[it->target];
    return t->flushed >= t->flushes || it->window->comm->ctx->closed;
}

/* Reports the refusals of a target once: the first of them. */
static gyre_status tell_refused(struct gyre_window *window, int target)
{
    struct gyre_comm *comm = window->comm;
    gyre_status status = GYRE_SUCCESS;
    for (int r = 0; r < comm->size; r++) {
        struct gy_target *t = &window->targets[r];
        if (!t->refused || (target >= 0 && r != target))
            continue;
        int world = gy_group_world(&comm->group, r), number = t->refused - GY_OP_MADE + 1;
        if (status == GYRE_SUCCESS) {
            comm->error.status = GYRE_SUCCESS; /* an earlier call's */
            status = gy_error_set(
                &comm->error, GYRE_INVALID_ARGUMENT, world,
                "rank %d has no operation to accumulate with as its number %d of gyre_op_create: what this rank has "
                "accumulated into its window %u with that, and with any of one's own after it, has not been added",
                world, number, window->id);
        }
        t->refused = 0;
    }
    return status;
}

static void ask(struct gyre_window *window, int target)
{
    for (int r = 0; r < window->comm->size; r++) {
        struct gy_target *t = &window->targets[r];
        bool silent = t->rma_key.rails > 0 && !t->asked; /* all by devices: no answer is needed */
        if ((target >= 0 && r != target) || t->memory || t->ask.queued || silent || gy_window_has_lost(window, r))
            continue;
        fill(window, &t->ask, GY_FRAME_FLUSH, 0);
        t->ask.header.value = ++t->flushes;
        gy_comm_post(window->comm, r, &t->ask);
    }
}

gyre_status gy_rma_flush(struct gyre_window *window, int target)
{
    struct gyre_comm *comm = window->comm;
    int lost = -1; /* a member that does not answer any more; accesses to the others have to complete all the same */
    ask(window, target);
    gyre_status status = comm->ctx->closed ? comm->ctx->error.status : GYRE_SUCCESS;
    for (int r = 0; r < comm->size && status == GYRE_SUCCESS; r++) { /* one by one: the late one is named */
        struct flushing it = {window, r};
        if (target >= 0 && r != target)
            continue;
        status = gy_window_until(window, is_flushed, &it, r, "a flush");
        if (status == GYRE_SUCCESS && gy_window_has_lost(window, r)) {
            lost = lost < 0 ? r : lost;
            continue;
        }
        if (status == GYRE_SUCCESS)
            status = gy_window_settle(window, r);
        if (status == GYRE_SUCCESS)
            window->targets[r].asked = window->targets[r].reduced = false;
    }
    if (status == GYRE_SUCCESS && lost >= 0)
        return gy_window_tell_lost(window, lost);
    return status == GYRE_SUCCESS ? tell_refused(window, target) : status;
}

/* ---- incoming frames ---- */

static bool fits(const struct gyre_window *window, const struct gy_frame *frame, uint64_t bytes)
{
    return frame->value <= window->bytes && bytes <= window->bytes - frame->value;
}

static struct gy_operation operation_of(const struct gyre_window *window, const struct gy_frame *frame)
{
    gyre_op op = (gyre_op)frame->op;
    return (struct gy_operation){(gyre_dtype)frame->dtype, op, gy_operations_find(&window->comm->ctx->operations, op)};
}

/* True if the peer's program has made an operation that this rank's has not, or not yet. That is no protocol error. */
static bool is_unmade(const struct gyre_window *window, const struct gy_frame *frame)
{
    struct gy_operation operation = operation_of(window, frame);
    return gy_op_is_own(frame->op) && !gy_operation_accumulates(&operation);
}

/* Checks what gyre_window_accumulate checks, and that elements are whole; a peer may send anything. */
static bool is_good_accumulate(const struct gyre_window *window, const struct gy_frame *frame)
{
    struct gy_operation operation = operation_of(window, frame);
    if (!gy_dtype_valid(frame->dtype) || frame->count == 0 ||
        !(gy_op_is_own(frame->op) || gy_operation_accumulates(&operation)))
        return false;
    size_t element = gyre_dtype_size(operation.dtype);
    return frame->bytes <= GY_ACCUMULATE_BYTES && frame->bytes % element == 0 &&
           frame->count == frame->bytes / element && fits(window, frame, frame->bytes);
}

gyre_status gy_rma_place(struct gyre_comm *comm, int peer, const struct gy_frame *frame, void **place_p)
{
    struct gyre_window *window = gy_window_find(comm, frame->sequence);
    struct gy_target *from = window ? &window->targets[peer] : NULL;
    unsigned i = frame->lane;
    if (window && frame->kind == GY_FRAME_PUT && fits(window, frame, frame->bytes)) {
        *place_p = window->memory + frame->value;
    } else if (window && frame->kind == GY_FRAME_ACCUMULATE && is_good_accumulate(window, frame)) {
        if (!from->landing)
            from->landing = gy_alloc_aligned(64, GY_ACCUMULATE_BYTES);
        if (!from->landing)
            return GYRE_NO_MEMORY;
        *place_p = from->landing;
    } else if (window && frame->kind == GY_FRAME_GOT && i < GY_ONE_SIDED_FLIGHT && window->get[i].waiting &&
               window->get[i].from == peer && window->get[i].bytes == frame->bytes) {
        *place_p = window->get[i].place;
    } else {
        return GYRE_PROTOCOL;
    }
    return GYRE_SUCCESS;
}

/* Refuses an unknown operation; the peer is told when it flushes. Until then all of the program's own operations are
 * refused: this rank may make the operation between two pieces of one vector. */
static bool refuses(struct gyre_window *window, int peer, const struct gy_frame *frame)
{
    struct gy_target *from = &window->targets[peer];
    if (from->unmade || !is_unmade(window, frame))
        return from->unmade && gy_op_is_own(frame->op);
    from->unmade = frame->op;
    gy_log(GY_LOG_WARN, "rank %d accumulates into window %u with operation %d of gyre_op_create, which is none here",
           gy_group_world(&window->comm->group, peer), window->id, frame->op - GY_OP_MADE + 1);
    return true;
}

static bool accumulate(struct gyre_window *window, int peer, const struct gy_frame *frame, const void *payload)
{
    if (!is_good_accumulate(window, frame))
        return false;
    if (refuses(window, peer, frame))
        return true;
    struct gy_operation operation = operation_of(window, frame);
    struct gy_context *ctx = window->comm->ctx;
    gyre_status status = gy_window_lock(window, window->control, true);
    if (status != GYRE_SUCCESS && ctx->error.status == GYRE_SUCCESS) { /* the peer believes it done: this rank is at
                                                                        * fault */
        ctx->error = window->comm->error;
        ctx->error.rank = ctx->world->rank;
        gy_overlay_report(ctx->overlay, status, ctx->error.rank, ctx->error.text);
    }
    if (status != GYRE_SUCCESS)
        return true; /* the world has failed and reports it */
    gy_combine(&operation, window->memory + frame->value, window->memory + frame->value, payload, frame->count);
    gy_window_unlock(window->control);
    return true;
}

/* Answers a GET. A link releases a frame when it knows that its payload and those before have arrived: over RDMA the
 * peer may have used the answer long before. The peer's next GET waits until the frame is released. */
static void answer_get(struct gyre_window *window, int peer, struct gy_reply *reply)
{
    struct gy_frame_out *out = &reply->out;
    reply->due = out->queued;
    window->comm->ctx->answers_due |= reply->due;
    if (reply->due)
        return;
    fill(window, out, GY_FRAME_GOT, reply->asked.value);
    out->header.lane = reply->asked.lane;
    out->header.bytes = (uint32_t)reply->asked.count;
    out->payload = window->memory + reply->asked.value;
    gy_comm_post(window->comm, peer, out);
}

static void answer_flush(struct gyre_window *window, int peer)
{
    struct gy_target *to = &window->targets[peer];
    window->comm->ctx->answers_due |= to->answer.queued;
    if (to->answer.queued)
        return;
    fill(window, &to->answer, GY_FRAME_FLUSHED, 0);
    to->answer.header.value = to->due;
    to->answer.header.op = to->unmade;
    to->due = 0;
    to->unmade = 0;
    gy_comm_post(window->comm, peer, &to->answer);
}

static void answer_all(struct gyre_window *window)
{
    for (int peer = 0; peer < window->size; peer++) {
        struct gy_target *to = &window->targets[peer];
        for (int i = 0; to->replies && i < GY_ONE_SIDED_FLIGHT; i++)
            if (to->replies[i].due)
                answer_get(window, peer, &to->replies[i]);
        if (to->due)
            answer_flush(window, peer);
    }
}

void gy_rma_answer(struct gy_context *ctx)
{
    ctx->answers_due = false;
    for (struct gyre_comm *comm = ctx->comms; comm; comm = comm->next)
        for (struct gyre_window *window = comm->windows; window; window = window->next)
            answer_all(window);
}

bool gy_rma_holds(const struct gyre_window *window)
{
    bool any = false;
    for (int i = 0; i < GY_ONE_SIDED_FLIGHT; i++)
        any |= window->out[i].queued;
    for (int peer = 0; peer < window->size; peer++) {
        const struct gy_target *target = &window->targets[peer];
        any |= target->ask.queued || target->answer.queued;
        for (int i = 0; target->replies && i < GY_ONE_SIDED_FLIGHT; i++)
            any |= target->replies[i].out.queued;
    }
    return any;
}

static bool reply(struct gyre_window *window, int peer, const struct gy_frame *frame)
{
    struct gy_target *to = &window->targets[peer];
    if (frame->lane >= GY_ONE_SIDED_FLIGHT || frame->count > GY_FRAME_MAX || !fits(window, frame, frame->count))
        return false;
    if (!to->replies)
        to->replies = gy_alloc_zero(GY_ONE_SIDED_FLIGHT, sizeof(*to->replies));
    if (!to->replies || to->replies[frame->lane].due) /* a peer that waits for an answer sends no second GET under
                                                       * its number */
        return false;
    to->replies[frame->lane].asked = *frame;
    answer_get(window, peer, &to->replies[frame->lane]);
    return true;
}

static bool flushed(struct gyre_window *window, int peer, const struct gy_frame *frame)
{
    struct gy_target *to = &window->targets[peer];
    if (frame->value > to->flushes || (frame->op && !gy_op_is_own(frame->op)))
        return false;
    to->flushed = frame->value;
    if (frame->op)
        to->refused = frame->op;
    return true;
}

static bool answer(struct gyre_window *window, int peer, const struct gy_frame *frame)
{
    struct gy_target *to = &window->targets[peer];
    if (to->due || frame->value == 0)
        return false;
    to->due = frame->value;
    answer_flush(window, peer);
    return true;
}

bool gy_rma_arrived(struct gyre_comm *comm, int peer, const struct gy_frame *frame, const void *payload)
{
    struct gyre_window *window = gy_window_find(comm, frame->sequence);
    if (!window)
        return false;
    switch (frame->kind) {
    case GY_FRAME_PUT:
        if (!fits(window, frame, frame->bytes))
            return false;
        if (frame->bytes > 0 && payload != window->memory + frame->value)
            memcpy(window->memory + frame->value, payload, frame->bytes);
        return true;
    case GY_FRAME_ACCUMULATE: return accumulate(window, peer, frame, payload);
    case GY_FRAME_GET: return reply(window, peer, frame);
    case GY_FRAME_GOT: {
        void *place;
        if (gy_rma_place(comm, peer, frame, &place) != GYRE_SUCCESS)
            return false;
        if (payload != place)
            memcpy(place, payload, frame->bytes);
        window->get[frame->lane].waiting = false;
        return true;
    }
    case GY_FRAME_SIGNAL:
        if (frame->lane >= GY_SIGNALS)
            return false;
        atomic_fetch_add_explicit(&window->control->signal[frame->lane].count, 1, memory_order_release);
        return true;
    case GY_FRAME_FLUSH: return answer(window, peer, frame);
    default: return flushed(window, peer, frame);
    }
}
