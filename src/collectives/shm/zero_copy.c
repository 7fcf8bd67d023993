#include "collectives/shm/zero_copy.h"

#include <errno.h>
#include <string.h>

#include "collectives/shm/autotune.h"
#include "core/fence.h"
#include "core/log.h"

#define GY_OFFER_LEAST 32768u /* bytes of a vector: below, a copy costs less than waiting for all ranks */

/* Bytes up to which a receiver reads a root's vector alone, in place, if it is memory of gyre, without asking the
 * tuner; and so for the root of two ranks. For longer vectors memory gives a single core less bandwidth than two
 * cores that share the work through slots. But data in slots is transferred between cores, slowly if the two share
 * no last-level cache. */
#define GY_ALONE_BROADCAST (32u << 20)
#define GY_ALONE_REDUCED (8u << 20)

#define GY_PAST_LEAST 4096 /* bytes of a vector from which on slots may be better non-temporal or write-prefetched */

#define GY_PEER_MEMORY_ALL_RANKS 2 /* at most: each of them reads all of all operands */
#define GY_PEER_MEMORY_PROVED \
    65536u /* bytes of an input from which on a trial read checks, in half a µs, that the kernel can read it */
#define GY_PEER_MEMORY_LEAST \
    16384u /* bytes that a rank reads of another: below, entering the kernel costs more than a copy */

static uint64_t place_of(const struct gyre_request *r, const void *memory, size_t elements)
{
    uint64_t offset;
    return gy_segment_heap_offset(r->comm->ctx->segment, memory, elements * r->element, &offset) ? offset + 1 : 0;
}

/* True if no two ranks share a process. Ranks of one process share its mapping: one rank could still access what the
 * other has withdrawn. */
static bool alone(const struct gyre_comm *comm)
{
    const struct gy_member *members = comm->ctx->world->members;
    for (int p = 0; p < comm->size; p++)
        if (p != comm->rank &&
            members[gy_group_world(&comm->group, p)].pid == members[gy_group_world(&comm->group, comm->rank)].pid)
            return false;
    return true;
}

static size_t input_elements(const struct gyre_request *r)
{
    const struct gy_schedule *schedule = r->schedule;
    return gy_layout_start(&r->in, schedule->input_lo + schedule->input_blocks) -
           gy_layout_start(&r->in, schedule->input_lo);
}

/* What a schedule publishes for all ranks at once is too short to be exposed, except for what a root sends or
 * receives. */
static bool offers(const struct gy_schedule *schedule)
{
    return schedule->shm && (schedule->side_by_side > 0 || gy_has_root(schedule->shape.collective));
}

/* True if sender and receivers should split the copy (long broadcast, two-rank reduce) instead of the receivers
 * reading the sender's memory. */
static bool is_shared_work(const struct gyre_request *r)
{
    size_t bytes = r->in.total * r->element;
    if (!r->schedule->one_shot)
        return false;
    return r->schedule->shape.collective == GY_BROADCAST ? bytes > GY_ALONE_BROADCAST
                                                         : r->comm->size == 2 && bytes > GY_ALONE_REDUCED;
}

/* Bytes of a vector from which on exposing pays. */
static size_t least_of(const struct gyre_request *r)
{
    return r->schedule->one_shot && !r->comm->ctx->oversubscribed ? GY_ROOTED_LEAST : GY_OFFER_LEAST;
}

/* True if operands of a reduction may better be read through the kernel than copied by their ranks. */
static bool worth_reducing(const struct gyre_request *r, size_t bytes)
{
    return r->comm->size <= GY_PEER_MEMORY_RANKS && bytes >= least_of(r);
}

/* True if every rank may better read all operands. In place, one rank overwrites what another one has still to read. */
static bool worth_reducing_all(const struct gyre_request *r)
{
    return r->comm->size <= GY_PEER_MEMORY_ALL_RANKS && !r->schedule->one_shot && r->input != r->output &&
           !r->staged.memory;
}

/* True if what this rank sends or receives is long enough for the kernel. If ranks share cores, nothing is. The
 * kernel finds each page once per reader, on a core that another rank needs, and two copies take less of it. Nor do
 * the copies of other ranks fill idle time. */
static bool worth_fetching(const struct gyre_request *r)
{
    const struct gy_schedule *schedule = r->schedule;
    size_t bytes = r->in.total * r->element, block = bytes / (size_t)r->comm->size;
    if (r->comm->ctx->oversubscribed)
        return false;
    switch (schedule->shape.collective) {
    case GY_BROADCAST: return bytes >= least_of(r);
    case GY_ALL_GATHER:
    case GY_GATHER_TO:
    case GY_SCATTER_FROM:
    case GY_ALL_TO_ALL: return block >= GY_PEER_MEMORY_LEAST;
    case GY_REDUCE_SCATTER: return worth_reducing(r, block);
    case GY_REDUCE_TO: return worth_reducing(r, schedule->one_shot ? bytes : block);
    case GY_ALL_REDUCE: return worth_reducing_all(r);
    default: return false;
    }
}

/* True if the kernel can read the input. A program whose long vectors it cannot read, such as vectors on a device,
 * always uses slots. */
static bool readable(const struct gyre_request *r)
{
    size_t bytes = input_elements(r) * r->element;
    return bytes < GY_PEER_MEMORY_PROVED || gy_segment_readable(r->input, bytes);
}

bool gy_mapped_offers_both(const struct gyre_comm *comm, const struct gy_call *call, size_t bytes,
                           struct gy_offer *offer_p)
{
    uint64_t input, output;
    if (bytes < GY_OFFER_LEAST || !gy_segment_heap_offset(comm->ctx->segment, call->input, bytes, &input) ||
        !gy_segment_heap_offset(comm->ctx->segment, call->output, bytes, &output) || !alone(comm))
        return false;
    *offer_p = (struct gy_offer){.input = input + 1, .output = output + 1};
    return true;
}

enum gy_shm_variant gy_mapped_giving(struct gyre_comm *comm, const struct gy_call *call)
{
    size_t bytes = call->count * gy_dtype_bytes(call->dtype);
    bool gives = (comm->rank == call->root) == (call->collective == GY_BROADCAST);
    uint64_t place;
    if (!alone(comm))
        return gy_tuner_rooted(comm, call, bytes, false);
    if (gives ? gy_segment_heap_offset(comm->ctx->segment, call->input, bytes, &place)
              : comm->eager[call->collective].offered)
        return GY_SHM_MAP;
    bool worth = call->collective == GY_BROADCAST || comm->size <= GY_PEER_MEMORY_RANKS;
    return gy_tuner_rooted(comm, call, bytes, worth && gy_segment_reads_all(comm->ctx->segment));
}

static void give_by_slots(struct gyre_request *r, enum gy_shm_variant variant)
{
    r->offer.nontemporal = variant == GY_SHM_SLOT_NT;
    r->offer.claimed = r->claims = variant == GY_SHM_SLOT_PREFETCHW;
}

/* Sets what this rank exposes. Returns false if no rank exposes anything, whatever the memory. */
static bool offer(struct gyre_request *r)
{
    const struct gy_schedule *schedule = r->schedule;
    bool unread = schedule->one_shot && schedule->shape.collective == GY_REDUCE_TO &&
                  r->comm->rank == schedule->shape.root;
    bool shared = is_shared_work(r);
    if (!offers(schedule) || (shared && r->comm->ctx->oversubscribed) || r->in.total * r->element < least_of(r))
        return false;
    if (r->in.places || !alone(r->comm))
        return false;
    /* in place, another rank's data would overwrite what is still to be read */
    bool exposed = unread || (schedule->shape.collective == GY_ALL_TO_ALL && r->input == r->output);
    bool gives = schedule->input_blocks > 0 && !exposed && !r->staged.memory;
    uint64_t place = gives ? place_of(r, r->input, input_elements(r)) : 0;
    /* a rank without input asks as well: whether all ranks can read is known only after every rank has tried */
    bool reached = worth_fetching(r) && gy_segment_reads_all(r->comm->ctx->segment);
    bool open = shared || (reached && !place);
    enum gy_shm_variant variant = open ? gy_tuner_input(r, shared) : GY_SHM_SLOT;
    if (!shared || variant == GY_SHM_MAP)
        r->offer.input = place;
    if (!place && gives && reached && variant == GY_SHM_MAP && readable(r))
        r->offer.peer_input = (uint64_t)(uintptr_t)r->input;
    if (schedule->shape.collective == GY_ALL_REDUCE && !r->offer.peer_input)
        r->offer.output = place_of(r, r->output, r->out.total);
    give_by_slots(r, variant);
    return open;
}

void gy_mapped_offer(struct gyre_request *r)
{
    r->offer = (struct gy_offer){0};
    r->prefers_slots = r->claims = false;
    if (!r->schedule->shm || r->eager)
        return;
    if (!offer(r) && !r->offer.input && r->in.total * r->element >= GY_PAST_LEAST)
        give_by_slots(r, gy_tuner_publish(r));
}

/* Returns what a rank exposes in this very operation. A rank that exposes a buffer cannot continue before its
 * readers, so an entry that is being replaced was empty. A withdrawn buffer counts as gone: its rank has put nothing
 * in its slots instead. */
struct gy_offer gy_mapped_offer_of(const struct gyre_comm *comm, uint64_t sequence, int rank)
{
    const struct gy_entry *entry = &comm->control[rank]->entry[sequence % GY_CALL_SIGNATURES];
    for (;;) {
        uint64_t whose = atomic_load_explicit(&entry->offered, memory_order_acquire);
        if (whose == GY_WITHDRAWN(sequence))
            return (struct gy_offer){.peer_input = GY_PEER_MEMORY_GONE};
        if (whose != sequence)
            return (struct gy_offer){0};
        struct gy_offer offer = entry->offer;
        gy_fence(memory_order_acquire);
        if (atomic_load_explicit(&entry->offered, memory_order_relaxed) == whose)
            return offer;
    }
}

static struct gy_offer offer_of(const struct gyre_request *r, int rank)
{
    return gy_mapped_offer_of(r->comm, r->shape.sequence, rank);
}

/* Entries are written by other processes: an address outside of the heap counts as none. */
static unsigned char *at(const struct gyre_request *r, int rank, uint64_t place, size_t elements)
{
    const struct gy_world *world = r->comm->ctx->world;
    int local = world->members[gy_group_world(&r->comm->group, rank)].local;
    if (place == 0 || !gy_segment_heap_spans(r->comm->ctx->segment, place - 1, elements * r->element))
        return NULL;
    return gy_segment_heap_at(r->comm->ctx->segment, local, place - 1);
}

const unsigned char *gy_mapped_input(const struct gyre_request *r, int rank)
{
    enum gy_collective collective = r->schedule->shape.collective;
    bool own = collective == GY_ALL_GATHER || collective == GY_GATHER_TO; /* block */
    size_t elements = own ? gy_layout_start(&r->in, rank + 1) - gy_layout_start(&r->in, rank) : r->in.total;
    return offers(r->schedule) ? at(r, rank, offer_of(r, rank).input, elements) : NULL;
}

uint64_t gy_mapped_peer_input(const struct gyre_request *r, int rank)
{
    return offers(r->schedule) ? offer_of(r, rank).peer_input : 0;
}

/* Reports a failed read only if it is final: the buffer is still exposed, its rank lives, and the kernel does not
 * read it. */
static void fail_fetch(struct gyre_request *r, int rank, int errnum)
{
    struct gy_context *ctx = r->comm->ctx;
    int world = gy_group_world(&r->comm->group, rank);
    if (ctx->error.status != GYRE_SUCCESS) /* reported already; the read is retried until the world has ended */
        return;
    gy_error_set(
        &ctx->error, GYRE_SYSTEM, ctx->world->rank,
        "rank %d cannot read the input of rank %d through the kernel: %s; memory of a device, or a process that has "
        "closed itself to others, wants GYRE_SHM_READ=0",
        ctx->world->rank, world, strerror(errnum));
    gy_overlay_report(ctx->overlay, ctx->error.status, ctx->world->rank, ctx->error.text);
}

bool gy_mapped_fetch(struct gyre_request *r, int rank, uint64_t address, size_t place, size_t bytes, void *to)
{
    const struct gy_world *world = r->comm->ctx->world;
    int local = world->members[gy_group_world(&r->comm->group, rank)].local;
    struct gy_segment *segment = r->comm->ctx->segment;
    int errnum = address == GY_PEER_MEMORY_GONE ? ESRCH
                                                : gy_segment_read_private(segment, local, address + place, bytes, to);
    /* Pairs with the fence of gy_mapped_withdraw: what its caller writes after that is not taken for the input. */
    gy_fence(memory_order_seq_cst);
    bool stands = offer_of(r, rank).peer_input == address;
    if (stands && errnum == 0)
        return true;
    if (stands && errnum != ESRCH)
        fail_fetch(r, rank, errnum);
    r->waiting_for = rank;
    return false;
}

unsigned char *gy_mapped_output(const struct gyre_request *r, int rank)
{
    return at(r, rank, offer_of(r, rank).output, r->out.total);
}

bool gy_mapped_takes_all(const struct gyre_request *r)
{
    bool all = r->schedule->shape.collective == GY_ALL_REDUCE && r->offer.peer_input;
    for (int p = 0; p < r->comm->size && all; p++)
        all = p == r->comm->rank || gy_mapped_peer_input(r, p);
    return all;
}

bool gy_mapped_keeps(const struct gyre_request *r, const struct gy_step *reduce)
{
    if (reduce->dst == GY_RESULT)
        return true;
    if (!reduce->keep || r->offer.output || gy_mapped_takes_all(r))
        return false;
    for (int p = 0; p < r->comm->size; p++)
        if (p != r->comm->rank && !gy_mapped_output(r, p))
            return true;
    return false;
}

void gy_mapped_withdraw(struct gyre_request *r)
{
    struct gy_segment *segment = r->comm->ctx->segment;
    bool done = true;
    if (r->offer.output)
        done = gy_segment_heap_withdraw(segment, r->output, r->out.total * r->element);
    if (r->offer.input)
        done &= gy_segment_heap_withdraw(segment, r->input, input_elements(r) * r->element);
    if (!done)
        gy_log(GY_LOG_ERROR, "rank %d: no memory to part its buffer of gyre_mem_alloc from ranks that may still use it",
               r->comm->rank);
    if (r->offer.peer_input) {
        struct gy_region_control *mine = r->comm->control[r->comm->rank];
        _Atomic uint64_t *offered = &mine->entry[r->shape.sequence % GY_CALL_SIGNATURES].offered;
        if (atomic_load_explicit(offered, memory_order_relaxed) == r->shape.sequence) /* it has been published */
            atomic_store_explicit(offered, GY_WITHDRAWN(r->shape.sequence), memory_order_release);
        gy_fence(memory_order_seq_cst);
    }
    r->offer = (struct gy_offer){0};
}

bool gy_mapped_has_done(const struct gyre_request *r, int rank, uint64_t after)
{
    for (int w = 0; w < GY_REGION_LANES; w++)
        if (atomic_load_explicit(&r->comm->control[rank]->lane[w].progress, memory_order_acquire) < after)
            return false;
    return true;
}

bool gy_mapped_quiet(struct gyre_request *r, uint64_t after)
{
    if (!r->offer.input && !r->offer.output && !r->offer.peer_input)
        return true;
    for (int p = 0; p < r->comm->size; p++)
        if (!gy_mapped_has_done(r, p, after)) {
            r->waiting_for = r->lane[0].waiting_for = p;
            return false;
        }
    return true;
}
