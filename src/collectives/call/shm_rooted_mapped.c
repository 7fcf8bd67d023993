/* Blocking broadcasts and reductions to a root over regions in which inputs are read in place (zero_copy.h): one
 * function without a schedule.
 *
 *   sender     entry: shape, address of the input ──▶ receivers  (senders: broadcast: root; reduction: all others)
 *   receiver   entries of the senders ──▶ copies, or reduces, all of it into its output     its counters ──▶ senders
 *   sender     the counters of the receivers ──▶ complete: no peer reads my input any more
 *
 * This is the schedule of direct_one_shot if every sender exposes its input, without the parts that have no use there.
 * No rank waits for slots, so a sender counts at once, and only the counter of the receiving step is polled. A rank
 * with nothing to expose goes through slots (shm_rooted_slots.c). So does a receiver, unless it found exposed inputs
 * the last time. Ranks choose independently of each other. A receiver that finds no exposed input here runs the
 * schedule from where it stands. A rank that a peer blocks continues as the request filled on the way. */
#include "collectives/call/call_cache.h"
#include "collectives/call/eager_call.h"
#include "collectives/call/eager_fit.h"
#include "collectives/call/prepare.h"
#include "collectives/call/shm_blocking.h"
#include "collectives/engine/call_check.h"
#include "collectives/engine/lane.h"
#include "collectives/shm/eager.h"
#include "collectives/shm/slots.h"
#include "collectives/shm/zero_copy.h"

#define REDUCE_LANE 1 /* of the schedule */

bool gy_shm_rooted_is_open(struct gyre_comm *comm, const struct gy_call *call)
{
    enum gy_collective collective = call->collective;
    if (call->count > GY_SHM_BLOCKING_MOST || comm->ctx->oversubscribed || comm->size < 2)
        return false;
    size_t bytes = call->count * gy_dtype_bytes(call->dtype);
    return bytes >= GY_ROOTED_LEAST && bytes <= GY_SHM_BLOCKING_MOST && comm->eager[collective].known &&
           (int64_t)bytes > comm->eager[collective].most &&
           gy_shm_blocking_is_chosen(comm, collective, bytes, GY_SHM_ONE_SHOT);
}

static bool is_root(const struct gyre_request *r)
{
    return r->comm->rank == r->schedule->shape.root;
}

static bool gives(const struct gyre_request *r)
{
    return is_root(r) == (r->schedule->shape.collective == GY_BROADCAST);
}

/* True if the other rank is on the opposite side: a receiver for a sender, a sender for a receiver. */
static bool is_partner(const struct gyre_request *r, int rank)
{
    return rank != r->comm->rank && (is_root(r) || rank == r->schedule->shape.root);
}

static void count(const struct gyre_request *r)
{
    struct gy_region_control *mine = r->comm->control[r->comm->rank];
    for (int w = 0; w < GY_REGION_LANES; w++)
        atomic_store_explicit(&mine->lane[w].progress, r->comm->region_base, memory_order_release);
    gy_slot_wake(r->comm);
}

static gyre_status give(struct gyre_request *r, struct gyre_page_record *record)
{
    struct gyre_comm *comm = r->comm;
    int lane = r->schedule->shape.collective == GY_BROADCAST ? GY_COLLECT_COUNTER : GY_GATHER_COUNTER;
    struct gy_spin spinning = gy_spin_of(comm->ctx);
    count(r);
    if (r->schedule->output_blocks > 0 && is_root(r) && r->output != r->input)
        gy_put(r, r->output, r->input, r->in.total * r->element);
    for (int p = 0; p < comm->size; p++)
        while (is_partner(r, p) &&
               atomic_load_explicit(&comm->control[p]->lane[lane].progress, memory_order_acquire) < comm->region_base)
            if (!gy_spin_policy(&spinning))
                return gy_shm_blocking_go_on_from(r, r->schedule->lanes);
    return gy_shm_blocking_end(r, record);
}

/* The state of the senders: all have entered this operation and expose their inputs; not all expose them, so that
 * slots are used; one is late. */
enum offers { ALL, NOT_ALL, LATE };

static enum offers find_offers(const struct gyre_request *r)
{
    struct gy_spin spinning = gy_spin_of(r->comm->ctx);
    for (int p = 0; p < r->comm->size; p++) {
        if (!is_partner(r, p))
            continue;
        const struct gy_entry *entry = gy_shm_blocking_entry(r->comm, p, r->shape.sequence);
        while (atomic_load_explicit(&entry->offered, memory_order_acquire) != r->shape.sequence)
            if (!gy_spin_policy(&spinning))
                return LATE;
        if (!gy_signature_compare(r->comm, r->shape.sequence, p))
            return LATE;
        if (!gy_mapped_input(r, p) && !gy_mapped_peer_input(r, p))
            return NOT_ALL;
    }
    return ALL;
}

static bool fetch(struct gyre_request *r)
{
    int root = r->schedule->shape.root;
    size_t bytes = r->out.total * r->element;
    uint64_t private_input = gy_mapped_peer_input(r, root);
    if (private_input)
        return gy_mapped_fetch(r, root, private_input, 0, bytes, r->output);
    gy_put(r, r->output, gy_mapped_input(r, root), bytes);
    return true;
}

static gyre_status take(struct gyre_request *r, struct gyre_page_record *record)
{
    bool broadcast = r->schedule->shape.collective == GY_BROADCAST;
    enum offers offers = find_offers(r);
    if (offers == NOT_ALL) {
        r->comm->eager[r->schedule->shape.collective].offered = false;
        return gy_shm_blocking_lanes(r, record);
    }
    if (offers == LATE || !(broadcast ? fetch(r) : gy_slot_reduce_whole(r, REDUCE_LANE)))
        return gy_shm_blocking_go_on_from(r, 0);
    if (r->stream)
        gy_stream_fence();
    count(r);
    if (!broadcast)
        gy_prepare_end(r);
    return gy_shm_blocking_end(r, record);
}

/* Prefetches for writing the lines that are written next, which peers have read. */
static void own_lines(const struct gyre_request *r)
{
    const struct gyre_comm *comm = r->comm;
    gy_line_own(gy_shm_blocking_entry(comm, comm->rank, comm->sequence + 1));
    if (gives(r))
        gy_line_own(&comm->control[comm->rank]->lane[GY_PUBLISH_COUNTER].progress);
}

/* Runs the schedule's protocol with a request that is filled first, whichever ranks expose their inputs. */
static gyre_status by_offers(struct gyre_comm *comm, const struct gy_call *call, struct gy_schedule *schedule)
{
    struct gyre_request *r = gy_shm_blocking_fill(comm, call, schedule);
    own_lines(r);
    gy_mapped_offer(r);
    r->shape.sequence = ++comm->sequence;
    gy_signature_publish(comm, &r->shape, &r->offer);
    gy_slot_begin(r);
    struct gyre_page_record *record = gy_shm_blocking_note(comm, &r->shape, r->in.total * r->element);
    bool offers = r->offer.input || r->offer.peer_input;
    return !gives(r) ? take(r, record) : offers ? give(r, record) : gy_shm_blocking_lanes(r, record);
}

bool gy_shm_rooted_call(struct gyre_comm *comm, const struct gy_call *call, gyre_status *status_p)
{
    struct gy_schedule *schedule = gy_comm_schedule(comm, call->collective, GY_SHM_ONE_SHOT, call->root);
    if (!schedule)
        return false;
    gy_tuner_begin(comm);
    bool may_stream = call->count * gy_dtype_bytes(call->dtype) >=
                      GY_SHM_BLOCKING_MOST; /* non-temporal stores: decided by the schedule */
    enum gy_shm_variant variant = may_stream ? GY_SHM_MAP : gy_mapped_giving(comm, call);
    *status_p = variant == GY_SHM_MAP ? by_offers(comm, call, schedule)
                                      : gy_shm_blocking_slots(comm, call, schedule, variant);
    gy_tuner_end(comm, *status_p == GYRE_SUCCESS);
    return true;
}
