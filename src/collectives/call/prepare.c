/* Before a request starts: the choice, the layout of its blocks, its schedule, its buffers, its links. Everything that
 * may fail is here, so that a start fails before a peer has seen it, and a persistent request allocates once. */
#include <string.h>

#include "collectives/call/call_cache.h"
#include "collectives/call/eager_call.h"
#include "collectives/call/eager_fit.h"
#include "collectives/engine/call_check.h"
#include "collectives/engine/lane.h"
#include "collectives/engine/request.h"
#include "collectives/schedule/reduction_order.h"
#include "collectives/schedule/tile.h"
#include "collectives/select/selector.h"
#include "collectives/shm/slots.h"
#include "core/handle.h"
#include "core/log.h"
#include "core/mem.h"

/* Elements per tile. Both ends of every link, or all users of a region, compute the same number. */
static size_t tile_elements(const struct gyre_request *r)
{
    if (r->schedule->shm)
        return gy_slot_tile(r->comm, r->schedule, gy_layout_longest(&r->in, 1) * r->element, r->element);
    const struct gy_context *ctx = r->comm->ctx;
    const struct gy_schedule_shape *shape = &r->schedule->shape;
    size_t bytes = r->in.total * r->element;
    if (r->comm->grouping.hosts > 1) {
        int members = gy_is_hierarchical(shape->algorithm) ? r->comm->grouping.smallest : 1;
        bytes = gy_tile_bytes(shape->collective, shape->size, members, bytes, ctx->config.tcp_tile);
    } else {
        size_t rings = gy_min_size(ctx->config.shm_slot, GY_HOST_TILE);
        bytes = gy_tile_in_host(shape->collective, shape->size, bytes, rings, ctx->sockets);
    }
    bytes = gy_min_size(gy_max_size(bytes, GY_EAGER_BYTES), GY_FRAME_MAX);
    return bytes / r->element;
}

static bool take(struct gy_context *ctx, struct gy_buffer *buffer, size_t bytes)
{
    buffer->memory = gy_context_buffer_take(ctx, bytes, &buffer->bytes);
    return buffer->memory != NULL;
}

static void give(struct gy_context *ctx, struct gy_buffer *buffer)
{
    if (buffer->memory && buffer->bytes > 0)
        gy_context_buffer_give(ctx, buffer->memory, buffer->bytes);
    *buffer = (struct gy_buffer){0};
}

/* True if the input must be staged: the collective overwrites what it has still to read. A block arrives before the
 * block in its place has been sent. */
static bool needs_staging(const struct gyre_request *r)
{
    bool in_place = r->user_input == r->user_output;
    return r->schedule->input_blocks > 0 &&
           (r->widened || gy_operation_begins(&r->operation) ||
            (in_place && r->schedule->shape.collective == GY_ALL_TO_ALL && !r->schedule->shm && r->comm->size > 1));
}

/* Elements of the buffer from the view's first block on, gaps included. */
static size_t input_extent(const struct gyre_request *r)
{
    const struct gy_layout *in = &r->in;
    const struct gy_schedule *schedule = r->schedule;
    size_t extent = 0;
    if (!in->places)
        return gy_layout_start(in, schedule->input_lo + schedule->input_blocks) -
               gy_layout_start(in, schedule->input_lo);
    for (int32_t b = 0; b < in->blocks; b++)
        extent = gy_max_size(extent, in->places[b] + gy_layout_start(in, b + 1) - gy_layout_start(in, b));
    return extent;
}

static size_t output_elements(const struct gyre_request *r)
{
    const struct gy_schedule *schedule = r->schedule;
    return gy_layout_start(&r->out, schedule->output_lo + schedule->output_blocks) -
           gy_layout_start(&r->out, schedule->output_lo);
}

/* Elements of the longest operand that steps of a lane combine. */
static size_t longest_operand(const struct gyre_request *r, int l)
{
    const struct gy_schedule *schedule = r->schedule;
    size_t longest = 0;
    for (int s = 0; s < schedule->lane[l].count; s++) {
        const struct gy_step *step = &schedule->step[schedule->lane[l].first + s];
        if (step->kind == GY_RECV_REDUCE)
            longest = gy_max_size(longest, gy_step_longest(r, step));
    }
    return longest;
}

/* Prepares places for incoming data. A step's length decides whether it waits for a grant, and so whether its
 * tiles are placed there, however short they are. */
bool gy_prepare_landings(struct gyre_request *r)
{
    for (int l = 0; l < r->schedule->lanes; l++) {
        size_t longest = longest_operand(r, l);
        if (longest * r->element > GY_EAGER_BYTES &&
            !take(r->comm->ctx, &r->landing[l], gy_min_size(longest, r->tile) * r->element))
            return false;
    }
    return true;
}

/* Two ranks that swap vectors need scratch, because the input is still being sent while the result is made and may
 * be the output. If it is not, the result is made in the output. */
static bool makes_result_in_place(const struct gyre_request *r)
{
    return gy_algorithm_has(r->schedule->shape.algorithm, GY_SCRATCH_IS_OUTPUT) && r->comm->size == 2 &&
           r->input != r->output;
}

static bool take_scratch(struct gyre_request *r)
{
    const struct gy_schedule *schedule = r->schedule;
    int32_t lo = schedule->scratch_lo, width = schedule->scratch_width;
    if (schedule->scratch_slots == 0)
        return true;
    size_t slot = lo < 0 ? gy_layout_longest(&r->in, width)
                         : gy_layout_start(&r->in, lo + width) - gy_layout_start(&r->in, lo);
    r->slot_bytes = gy_scratch_slot(slot * r->element);
    if (!makes_result_in_place(r))
        return take(r->comm->ctx, &r->scratch, r->slot_bytes * (size_t)schedule->scratch_slots);
    r->scratch = (struct gy_buffer){.memory = r->output}; /* no bytes: not to be returned to the buffer cache */
    return true;
}

static bool take_buffers(struct gyre_request *r)
{
    struct gy_context *ctx = r->comm->ctx;
    const struct gy_schedule *schedule = r->schedule;
    if (r->widened && schedule->output_blocks > 0) {
        if (!take(ctx, &r->wide, output_elements(r) * r->element))
            return false;
        r->output = r->wide.memory;
    }
    if (needs_staging(r)) {
        size_t beside = r->widened && gy_operation_begins(&r->operation) ? gyre_dtype_size(r->dtype) : 0;
        if (!take(ctx, &r->staged, input_extent(r) * (r->element + beside)))
            return false;
        r->input = r->staged.memory;
    }
    return take_scratch(r) && gy_prepare_landings(r);
}

static gyre_status open_links(struct gyre_request *r)
{
    if (r->schedule->shm)
        return GYRE_SUCCESS;
    for (int s = 0; s < r->schedule->steps; s++) {
        const struct gy_step *step = &r->schedule->step[s];
        if (step->kind > GY_RECV_REDUCE)
            continue;
        struct gy_link *link;
        int world = gy_group_world(&r->comm->group, step->peer);
        if (gy_context_link(r->comm->ctx, world, &link) != GYRE_SUCCESS) {
            /* The peers have entered and wait for this rank: they learn why it does not enter. */
            struct gy_context *ctx = r->comm->ctx;
            gy_overlay_report(ctx->overlay, ctx->error.status, ctx->world->rank, ctx->error.text);
            return ctx->error.status;
        }
        if (!gy_comm_channel(r->comm, step->peer))
            return gy_error_set(&r->comm->error, GYRE_NO_MEMORY, -1, "out of memory for a channel to rank %d", world);
    }
    return GYRE_SUCCESS;
}

static bool by_rank(enum gy_collective collective)
{
    return collective == GY_REDUCE_SCATTER || collective == GY_ALL_GATHER || collective == GY_GATHER_TO ||
           collective == GY_SCATTER_FROM || collective == GY_ALL_TO_ALL;
}

void gy_prepare_fill(struct gyre_request *r, struct gyre_comm *comm, const struct gy_call *call,
                     const struct gy_call_signature *shape)
{
    r->comm = comm;
    r->user_input = r->input = call->input;
    r->user_output = r->output = call->output;
    r->dtype = call->dtype;
    r->canonical = gy_comm_canonical(comm);
    r->element = gyre_dtype_size(call->dtype);
    r->operation = (struct gy_operation){call->dtype, call->op, gy_operations_find(&comm->ctx->operations, call->op)};
    r->in = (struct gy_layout){.total = by_rank(call->collective) ? call->count * (size_t)comm->size : call->count,
                               .blocks = 1};
    r->out = r->in;
    r->shape = *shape;
    r->status = GYRE_IN_PROGRESS;
    r->waiting_for = -1;
}

static void lay_out(struct gy_layout *layout, size_t **table, const size_t *counts, const size_t *places, int size)
{
    size_t *starts = *table;
    starts[0] = 0;
    layout->largest = 0;
    for (int b = 0; b < size; b++) {
        starts[b + 1] = starts[b] + counts[b];
        layout->largest = gy_max_size(layout->largest, counts[b]);
    }
    *table += size + 1;
    layout->starts = starts;
    layout->total = starts[size];
    layout->places = NULL;
    if (places) {
        memcpy(*table, places, (size_t)size * sizeof(*places));
        layout->places = *table;
        *table += size;
    }
}

/* Copies the user's lists, which belong to the user again when the call returns. */
static bool lay_out_counts(struct gyre_request *r, const struct gy_call *call)
{
    int size = r->comm->size;
    if (!take(r->comm->ctx, &r->table, (size_t)(4 * size + 2) * sizeof(size_t)))
        return false;
    size_t *table = r->table.memory;
    lay_out(&r->in, &table, call->in_counts, call->in_places, size);
    lay_out(&r->out, &table, call->out_counts, call->out_places, size);
    return true;
}

/* The bytes by which the choice is made. For lists of counts it is the mean: they are the same everywhere, except
 * for all_to_all. */
static size_t bytes_of(const struct gyre_comm *comm, const struct gy_call *call)
{
    size_t count = call->count;
    if (call->varying && call->collective != GY_ALL_TO_ALL) {
        count = 0;
        for (int b = 0; b < comm->size; b++)
            count += call->in_counts[b];
        count /= (size_t)comm->size;
    }
    return count * gyre_dtype_size(call->dtype);
}

/* GYRE_SHOW_CHOICE: one line of rank 0 per collective and power of two of its size. */
static void show_choice(struct gyre_comm *comm, enum gy_collective collective, size_t bytes,
                        enum gy_algorithm algorithm)
{
    unsigned power = bytes ? 64 - (unsigned)__builtin_clzll(bytes) : 0;
    uint64_t bit = UINT64_C(1) << (power < 63 ? power : 63);
    if (!comm->ctx->config.show_choice || comm->rank != 0 || (comm->shown[collective] & bit))
        return;
    comm->shown[collective] |= bit;
    gy_log_asked("choice: %s of %zu bytes on %d ranks: %s", gy_collective_name(collective), bytes, comm->size,
                 gy_algorithm_name(algorithm));
}

static gyre_status reserve_region(struct gyre_comm *comm)
{
    if (comm->region < 0 || comm->region_reserved)
        return GYRE_SUCCESS;
    gyre_status status = gy_segment_region_reserve(comm->ctx->segment, comm->region, &comm->error);
    comm->region_reserved = status == GYRE_SUCCESS;
    if (comm->region_reserved)
        gy_call_cache_provide(comm); /* without memory for it, calls take longer paths */
    return status;
}

void gy_prepare_stage(struct gyre_request *r)
{
    size_t elements = input_extent(r);
    const unsigned char *input = r->user_input;
    struct gy_operation operation = r->operation;
    operation.dtype = r->dtype;
    if (gy_operation_begins(&operation)) {
        void *product = (unsigned char *)r->staged.memory + (r->widened ? elements * r->element : 0);
        gy_operation_begin(&operation, product, input, elements);
        input = product;
    }
    if (r->widened)
        gy_widen(r->staged.memory, input, elements, r->dtype);
    else if (input != r->staged.memory)
        memcpy(r->staged.memory, input, elements * r->element);
}

static bool reduces(const struct gyre_request *r)
{
    enum gy_collective collective = r->schedule->shape.collective;
    return collective == GY_ALL_REDUCE || collective == GY_REDUCE_SCATTER || collective == GY_REDUCE_TO;
}

void gy_prepare_end(struct gyre_request *r)
{
    struct gy_operation operation = r->operation;
    operation.dtype = r->dtype;
    size_t elements = output_elements(r);
    if (r->widened) {
        uint32_t saved = gy_fp_enter();
        gy_narrow(r->user_output, (const float *)(const void *)r->output, elements, r->dtype);
        gy_fp_leave(saved);
    }
    gy_operation_end(&operation, r->user_output, elements, r->comm->size);
    if (r->dtype == GYRE_BOOL && r->comm->size == 1 && reduces(r) && !operation.made) /* no kernel has normalised it */
        gy_bool_normalize(r->user_output, elements);
}

/* In canonical order narrow floats travel between ranks as float32. The contents of a region are not yet combined. */
static void widen(struct gyre_request *r)
{
    r->widened = r->canonical && reduces(r) && !r->schedule->shm && r->comm->size > 1 &&
                 gy_operation_widens(&r->operation);
    if (!r->widened)
        return;
    r->operation.dtype = GYRE_FLOAT32;
    r->element = sizeof(float);
}

/* An operation that does not commute is combined in rank order, whatever the communicator promises. */
static enum gy_operand_order order_of(const struct gyre_comm *comm, const struct gy_call *call)
{
    const struct gy_op_made *made = gy_operations_find(&comm->ctx->operations, call->op);
    if (gy_comm_canonical(comm))
        return GY_ORDER_CANONICAL;
    return made && made->func && !made->commutative ? GY_ORDER_RANKS : GY_ORDER_ANY;
}

void gy_prepare_undo(struct gyre_request *r)
{
    struct gy_context *ctx = r->comm->ctx;
    give(ctx, &r->scratch);
    give(ctx, &r->staged);
    give(ctx, &r->table);
    give(ctx, &r->wide);
    for (int l = 0; l < GY_SCHEDULE_LANES; l++)
        give(ctx, &r->landing[l]);
    if (r->schedule)
        gy_comm_schedule_release(r->comm, r->schedule);
    r->schedule = NULL;
}

/* Chooses the algorithm. Only choices of the user's calls are remembered. */
static gyre_status choose(struct gyre_comm *comm, const struct gy_call *call, size_t bytes,
                          enum gy_algorithm *algorithm_p)
{
    if (call->unforced)
        return gy_select_unforced(comm, call->collective, bytes, algorithm_p, &comm->error);
    gyre_status status = GYRE_SUCCESS;
    if (!gy_eager_algorithm(comm, call, algorithm_p))
        status = gy_select_ordered(comm, call->collective, call->varying, bytes, order_of(comm, call), algorithm_p,
                                   &comm->error);
    if (status == GYRE_SUCCESS)
        show_choice(comm, call->collective, bytes, *algorithm_p);
    return status;
}

gyre_status gy_prepare(struct gyre_request *r, struct gyre_comm *comm, const struct gy_call *call)
{
    enum gy_algorithm algorithm;
    size_t whole = bytes_of(comm, call);
    comm->error.status = GYRE_SUCCESS; /* failures of an earlier call do not count for this one */
    gyre_status status = choose(comm, call, whole, &algorithm);
    if (status != GYRE_SUCCESS)
        return status;
    struct gy_call_signature shape = gy_shape_of(call, algorithm, comm->size);
    if (gy_is_point_to_point(call->collective)) { /* both ends publish the same shape: the sender, and that it sends */
        shape.collective = GY_SEND_TO;
        shape.root = (uint32_t)(call->collective == GY_SEND_TO ? comm->rank : call->root);
    }
    gy_prepare_fill(r, comm, call, &shape);
    r->schedule = gy_comm_schedule(comm, call->collective, algorithm, call->root);
    if (!r->schedule) {
        status = gy_error_set(&comm->error, GYRE_NO_MEMORY, -1, "out of memory for a schedule");
        goto undo;
    }
    r->in.blocks = r->out.blocks = r->schedule->blocks;
    if (call->varying && !lay_out_counts(r, call)) {
        status = gy_error_set(&comm->error, GYRE_NO_MEMORY, -1, "out of memory for the counts of %d ranks", comm->size);
        goto undo;
    }
    widen(r);
    r->tile = tile_elements(r);
    if (!take_buffers(r)) {
        status = gy_error_set(&comm->error, GYRE_NO_MEMORY, -1,
                              "out of memory for the scratch buffers of a collective of %zu bytes", whole);
        goto undo;
    }
    status = open_links(r);
    if (status == GYRE_SUCCESS && !gy_is_point_to_point(call->collective))
        status = reserve_region(comm);
    if (status == GYRE_SUCCESS && comm->attributes.uniform && !gy_is_point_to_point(call->collective))
        status = comm->ctx->up->prepare(comm);
    if (status == GYRE_SUCCESS)
        return GYRE_SUCCESS;

undo:
    gy_prepare_undo(r);
    return status;
}

void gy_request_recycle(struct gyre_request *r)
{
    if (r->orphaned) {
        if (r->persistent && r->comm)
            gy_prepare_undo(r);
        r->given_up = r->collected = true;
        return;
    }
    if (!r->comm) { /* its communicator was freed before it was collected */
        gy_handle_remove(r, GY_HANDLE_REQUEST);
        gy_free(r);
        return;
    }
    struct gy_context *ctx = r->comm->ctx;
    if (r->persistent)
        gy_prepare_undo(r);
    gy_request_rest(ctx, r);
}
