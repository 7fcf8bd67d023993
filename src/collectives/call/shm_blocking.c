/* Blocking calls over regions with nothing else in flight. The call does its own work. It becomes a visible request
 * only if a peer blocks it, or if it turns out to take another path.
 *
 * Any schedule (gy_shm_blocking_run): its lanes are progressed right here.
 *
 * A long all_reduce whose operands lie in memory of gyre_mem_alloc on every rank (gy_shm_mapped_call): one
 * function without a schedule, which reads two lines of each peer. Broadcasts and reductions to a root are in
 * shm_rooted_mapped.c.
 *
 *   rank i    entry: shape, addresses of input and output ──▶ all ranks
 *             entries of all ranks ──▶ slice i of all inputs, reduced into all outputs     counter 1 of i ──▶ all ranks
 *             counter 1 of all ranks ──▶ complete: no peer reads or writes my buffers any more
 *
 * This is the schedule of direct_two_shot if every rank exposes both operands (zero_copy.h), without the parts that
 * have no use there. No rank waits for slots, so only the reduction's counter is polled. The other counters are written
 * for ranks that run the schedule: those with other operands, those that have not found this path open, and those that
 * a peer blocks. Their filled request then continues where this function stands. */
#include <string.h>

#include "collectives/call/call_cache.h"
#include "collectives/call/eager_call.h"
#include "collectives/call/eager_fit.h"
#include "collectives/call/executor.h"
#include "collectives/call/launch.h"
#include "collectives/call/prepare.h"
#include "collectives/call/shm_blocking.h"
#include "collectives/engine/call_check.h"
#include "collectives/engine/progress.h"
#include "collectives/schedule/reduction_order.h"
#include "collectives/select/selector.h"
#include "collectives/shm/autotune.h"
#include "collectives/shm/eager.h"
#include "collectives/shm/slots.h"
#include "collectives/shm/zero_copy.h"
#include "core/clock.h"

#define EARLY 2       /* calls ahead whose entries, each a line of its own, are prefetched for writing */
#define REDUCE_LANE 1 /* of the schedule, and its counter */

/* Out of line: the check clears room for an error message, which takes longer than a call whose choice is known. */
static __attribute__((noinline)) bool would_be_chosen(const struct gyre_comm *comm, enum gy_collective collective,
                                                      size_t bytes, enum gy_algorithm algorithm)
{
    struct gy_error error = {.quiet = true};
    enum gy_algorithm choice;
    return gy_select(comm, collective, false, bytes, &choice, &error) == GYRE_SUCCESS && choice == algorithm;
}

bool gy_shm_blocking_is_chosen(struct gyre_comm *comm, enum gy_collective collective, size_t bytes,
                               enum gy_algorithm algorithm)
{
    if (comm->eager[collective].chosen == bytes + 1)
        return true;
    if (!would_be_chosen(comm, collective, bytes, algorithm))
        return false;
    comm->eager[collective].chosen = bytes + 1;
    return true;
}

bool gy_shm_mapped_is_open(struct gyre_comm *comm, const struct gy_call *call)
{
    if (call->count > GY_SHM_BLOCKING_MOST)
        return false;
    size_t bytes = call->count * gy_dtype_bytes(call->dtype);
    return bytes <= GY_SHM_BLOCKING_MOST && comm->schedules[GY_ALL_REDUCE][GY_SHM_TWO_SHOT] &&
           gy_shm_blocking_is_chosen(comm, GY_ALL_REDUCE, bytes, GY_SHM_TWO_SHOT);
}

struct gyre_request *gy_shm_blocking_fill(struct gyre_comm *comm, const struct gy_call *call,
                                          struct gy_schedule *schedule)
{
    const struct gy_call_signature shape = gy_shape_of(call, schedule->shape.algorithm, comm->size);
    struct gyre_request *r = comm->ctx->idle;
    comm->ctx->idle = r->next;
    memset(r, 0, offsetof(struct gyre_request, lane));
    gy_prepare_fill(r, comm, call, &shape);
    r->schedule = schedule;
    r->in.blocks = r->out.blocks = schedule->blocks;
    r->tile = gy_slot_tile(r->comm, r->schedule, gy_layout_longest(&r->in, 1) * r->element, r->element);
    return r;
}

void gy_shm_blocking_drop(struct gyre_request *r)
{
    struct gy_context *ctx = r->comm->ctx;
    if (r->schedule)
        gy_comm_schedule_release(r->comm, r->schedule);
    gy_request_rest(ctx, r);
}

struct gy_entry *gy_shm_blocking_entry(const struct gyre_comm *comm, int rank, uint64_t sequence)
{
    return &comm->control[rank]->entry[sequence % GY_CALL_SIGNATURES];
}

/* Sets all counters of this rank but the reduction's, or only that one. */
static void count(struct gyre_comm *comm, bool reduced)
{
    struct gy_region_control *mine = comm->control[comm->rank];
    for (int w = 0; w < GY_REGION_LANES; w++)
        if (reduced == (w == REDUCE_LANE))
            atomic_store_explicit(&mine->lane[w].progress, comm->region_base, memory_order_release);
    gy_slot_wake(comm);
}

/* The addresses of the ranks' operands. */
struct operands {
    const unsigned char *input[GY_REGION_RANKS];
    unsigned char *output[GY_REGION_RANKS];
};

/* Waits until every rank has entered this operation. Returns true if all of them expose both operands. */
static bool all_offer(const struct gyre_request *r, struct gy_spin *spinning, struct operands *operands_p)
{
    struct gyre_comm *comm = r->comm;
    for (int p = 0; p < comm->size; p++) {
        const struct gy_entry *entry = gy_shm_blocking_entry(comm, p, r->shape.sequence);
        operands_p->input[p] = r->input;
        operands_p->output[p] = r->output;
        if (p == comm->rank)
            continue;
        while (atomic_load_explicit(&entry->offered, memory_order_acquire) != r->shape.sequence)
            if (!gy_spin_policy(spinning))
                return false;
        operands_p->input[p] = gy_mapped_input(r, p);
        operands_p->output[p] = gy_mapped_output(r, p);
        if (!gy_signature_compare(comm, r->shape.sequence, p) || !operands_p->input[p] || !operands_p->output[p])
            return false;
    }
    comm->compared = r->shape.sequence;
    return true;
}

/* Reduces my slice of all inputs into all outputs, my own first, which is cached here. */
static void reduce(const struct gyre_request *r, const struct operands *operands)
{
    const void *sources[GY_REGION_RANKS];
    unsigned char *targets[GY_REGION_RANKS];
    int rank = r->comm->rank;
    size_t start = gy_layout_start(&r->in, rank), elements = gy_layout_start(&r->in, rank + 1) - start;
    struct gy_targets to = {.at = targets};
    targets[to.count++] = operands->output[rank] + start * r->element;
    for (int p = 0; p < r->comm->size; p++) {
        sources[p] = operands->input[p] + start * r->element;
        if (p != rank)
            targets[to.count++] = operands->output[p] + start * r->element;
    }
    to.streamed = r->stream ? to.count : 0;
    gy_combine_into(&r->operation, r->canonical, to, sources, r->comm->size, elements);
    if (r->stream)
        gy_stream_fence();
}

static bool all_reduced(const struct gyre_request *r, uint64_t after, struct gy_spin *spinning)
{
    for (int p = 0; p < r->comm->size; p++)
        while (p != r->comm->rank &&
               atomic_load_explicit(&r->comm->control[p]->lane[REDUCE_LANE].progress, memory_order_acquire) < after)
            if (!gy_spin_policy(spinning))
                return false;
    return true;
}

gyre_status gy_shm_blocking_go_on(struct gyre_request *r)
{
    r->record = r->comm->recorder.page->started;
    gy_recorder_note(gy_recorder_at(&r->comm->recorder, r->record), gy_now());
    gy_request_enlist(r);
    gy_wait(r);
    gyre_status status = r->status;
    gy_request_recycle(r);
    return status;
}

gyre_status gy_shm_blocking_go_on_from(struct gyre_request *r, int lane)
{
    gy_request_rewind(r);
    for (int l = 0; l < lane; l++)
        r->lane[l].exhausted = r->lane[l].finished = true;
    return gy_shm_blocking_go_on(r);
}

/* Not every rank exposes both operands. Only the schedule's reduction is left: this rank exposes its operands, so that
 * it neither publishes nor collects, which the counters of those lanes say already. At the end it waits for the
 * counters of all ranks. */
static gyre_status go_on_reducing(struct gyre_request *r)
{
    gy_request_rewind(r);
    for (int l = 0; l < r->schedule->lanes; l++)
        r->lane[l].exhausted = r->lane[l].finished = l != REDUCE_LANE;
    return gy_shm_blocking_go_on(r);
}

struct gyre_page_record *gy_shm_blocking_note(struct gyre_comm *comm, const struct gy_call_signature *shape,
                                              size_t bytes)
{
    comm->recorder.page->bytes += bytes;
    comm->recorder.page->window_bytes += bytes;
    return gy_recorder_begin(&comm->recorder, shape);
}

gyre_status gy_shm_blocking_end(struct gyre_request *r, struct gyre_page_record *record)
{
    struct gy_context *ctx = r->comm->ctx;
    gy_recorder_done(&r->comm->recorder, record);
    gy_shm_blocking_drop(r);
    if ((r->shape.sequence & (GY_POLL_EVERY - 1)) == 0)
        gy_progress_occasional(ctx);
    return GYRE_SUCCESS;
}

/* Runs the call from its entry on. */
static gyre_status run(struct gyre_request *r)
{
    struct gyre_comm *comm = r->comm;
    gy_slot_begin(r);
    count(comm, false); /* my slots have no reader, and I read no slots */
    struct gyre_page_record *record = gy_shm_blocking_note(r->comm, &r->shape, r->in.total * r->element);
    struct gy_spin spinning = gy_spin_of(comm->ctx), again = spinning;
    struct operands operands;
    if (!all_offer(r, &spinning, &operands))
        return go_on_reducing(r);
    reduce(r, &operands);
    count(comm, true);
    gy_line_own(gy_shm_blocking_entry(comm, comm->rank, r->shape.sequence + EARLY));
    if (!all_reduced(r, comm->region_base, &again))
        return gy_shm_blocking_go_on_from(r, r->schedule->lanes);
    gy_operation_end(&r->operation, r->output, r->out.total, comm->size);
    return gy_shm_blocking_end(r, record);
}

bool gy_shm_mapped_call(struct gyre_comm *comm, const struct gy_call *call, gyre_status *status_p)
{
    struct gy_offer offer;
    if (!gy_mapped_offers_both(comm, call, call->count * gy_dtype_bytes(call->dtype), &offer))
        return false;
    struct gy_call_signature shape = gy_shape_of(call, GY_SHM_TWO_SHOT, comm->size);
    shape.sequence = ++comm->sequence;
    gy_signature_publish(comm, &shape, &offer);
    for (int p = 0; p < comm->size && p < GY_EXPECTED_RANKS; p++) /* prefetch the other lines while the first travel */
        __builtin_prefetch(gy_shm_blocking_entry(comm, p, shape.sequence));
    struct gyre_request *r = gy_shm_blocking_fill(comm, call, comm->schedules[GY_ALL_REDUCE][GY_SHM_TWO_SHOT]);
    r->shape = shape;
    r->offer = offer;
    gy_tuner_begin(comm);
    *status_p = run(r);
    gy_tuner_end(comm, *status_p == GYRE_SUCCESS);
    return true;
}

/* True if the request may run here. Unusual ones are launched, and so are those long enough for peers to check this
 * rank for progress. A broadcast of ranks with cores of their own is launched, too: measured, a root that waits here
 * for its readers slows them down by a tenth at 64 to 256 KiB. */
static bool runs_itself(const struct gyre_request *r)
{
    const struct gyre_comm *comm = r->comm;
    return r->schedule->shm && (r->schedule->shape.collective != GY_BROADCAST || comm->ctx->oversubscribed) &&
           !comm->verify && !comm->attributes.uniform && r->in.total * r->element <= GY_SHM_BLOCKING_MOST &&
           !gy_eager_fits(r->comm, &r->shape, r->element);
}

/* Returns the only rank from which this rank reads; -1: there is none, or more than one. */
static int source_of(const struct gyre_request *r)
{
    const struct gy_schedule_shape *shape = &r->schedule->shape;
    const struct gy_ranks needed = gy_exchange_needs(r->comm, shape->collective, shape->root);
    return needed.end - needed.first == 1 ? needed.first : -1;
}

gyre_status gy_shm_blocking_lanes(struct gyre_request *r, struct gyre_page_record *record)
{
    const int only = source_of(r);
    struct gy_spin spinning = gy_spin_for(r->comm, only);
    gy_request_rewind(r);
    for (bool over = false; !over;) {
        if (gy_lanes_progress(r, &over))
            spinning = gy_spin_for(r->comm, only);
        else if (!over && !gy_spin_policy(&spinning))
            return gy_shm_blocking_go_on(r);
    }
    if (r->schedule->output_blocks > 0)
        gy_prepare_end(r);
    gy_prepare_undo(r);
    return gy_shm_blocking_end(r, record);
}

bool gy_shm_blocking_run(struct gyre_request *r, gyre_status *status_p)
{
    if (!runs_itself(r))
        return false;
    if (r->staged.memory)
        gy_prepare_stage(r);
    gy_mapped_offer(r);
    r->shape.sequence = ++r->comm->sequence;
    gy_signature_publish(r->comm, &r->shape, &r->offer);
    gy_slot_begin(r);
    *status_p = gy_shm_blocking_lanes(r, gy_shm_blocking_note(r->comm, &r->shape, r->in.total * r->element));
    return true;
}
