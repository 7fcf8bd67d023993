/* The eager exchange: eager.h says why it is right. */
#include "collectives/shm/eager.h"

#include <string.h>

#include "collectives/engine/call_check.h"
#include "collectives/schedule/reduction_order.h"

/* If the processor can push: sizes of a vector that is pushed out of this core's cache, and of one whose successor's
 * place is prefetched for writing. For longer vectors each of the two delays the readers, unless both are done
 * together: for vectors that a root sends or receives, and those that all ranks send, up to these sizes. */
#define GY_PUSHED 1024
#define GY_PREPARED 2048
#define GY_TOGETHER_ROOTED 8192
#define GY_TOGETHER 4096
/* Bytes up to which the lines to be written are prefetched when the call begins; beyond, lines are requested twice
 * as often as they travel. If the processor can push, only the flag's line is prefetched. Otherwise the vector's
 * lines are, and the flag's for a few lines of payload: while more are written, a reader that polls already takes it
 * away again. GY_EXPECTED: bytes that a reader requests together with the flag. */
#define GY_OWNED 2048
#define GY_OWNED_FLAG 256
#define GY_EXPECTED 512
/* Bytes of a contribution up to which it is write-prefetched without measurement, if that is known to be best. It is
 * if a rank reads at least GY_CLAIMED_LEAST bytes of it. */
#define GY_CLAIMED_MOST 4096

_Static_assert(GY_REGION_VECTOR < 1 << 20 && GY_REGION_RANKS < 1 << 12, "counts and roots fit the shape word");
_Static_assert(GY_COLLECTIVES <= 16 && GY_DTYPES <= 16, "and so do collectives and types");

#define SEQUENCE_MASK UINT64_C(0xffff)

/* All that two ranks must agree on but the sequence number: no two shapes of eager exchanges share a word. */
static uint64_t word_of(const struct gy_call_signature *shape)
{
    return (uint64_t)(shape->root & 0xfff) << 36 | (uint64_t)shape->op << 28 | (uint64_t)(shape->dtype & 15) << 24 |
           (uint64_t)(shape->collective & 15) << 20 | (shape->count & 0xfffff);
}

size_t gy_exchange_blocks(const struct gyre_comm *comm, unsigned collective)
{
    switch (collective) {
    case GY_BARRIER: return 0;
    case GY_REDUCE_SCATTER:
    case GY_SCATTER_FROM:
    case GY_ALL_TO_ALL: return (size_t)comm->size;
    default: return 1;
    }
}

/* True if other ranks read a contribution of this rank. Otherwise the buffers may be NULL. */
static bool gives(const struct gyre_comm *comm, const struct gy_call_signature *shape)
{
    if (shape->count == 0)
        return false;
    bool root = (int)shape->root == comm->rank;
    switch (shape->collective) {
    case GY_BARRIER: return false;
    case GY_BROADCAST:
    case GY_SCATTER_FROM: return root;
    case GY_REDUCE_TO:
    case GY_GATHER_TO: return !root;
    default: return true;
    }
}

bool gy_exchange_is_known_best(const struct gy_exchange *it)
{
    return it->kind->bytes <= GY_CLAIMED_MOST && it->comm->size == 2 && !it->comm->ctx->oversubscribed &&
           gy_line_gains_by_claims();
}

bool gy_exchange_claims(const struct gy_exchange *it)
{
    return it->kind->block >= GY_CLAIMED_LEAST && gy_exchange_is_known_best(it);
}

static bool together(const struct gy_exchange *it)
{
    if (gy_has_root(it->shape->collective))
        return it->kind->bytes <= GY_TOGETHER_ROOTED;
    return it->kind->bytes > GY_PREPARED && it->kind->bytes <= GY_TOGETHER;
}

/* True if the vector is pushed, or its successor's place prepared: those up to `most` bytes are. */
static bool worth_pushing(const struct gy_exchange *it, size_t most)
{
    return gy_line_can_hand_over() && it->kind->bytes > GY_REGION_INLINE && !it->nontemporal && it->kind->gives &&
           (it->kind->bytes <= most || together(it));
}

/* Handles `bytes` bytes of the contribution, from offset `from`, in its place as exchange `number`. */
typedef void (*part_func)(const struct gy_exchange *it, uint64_t number, size_t from, size_t bytes);

/* Applies func to what others read of a contribution: all blocks but this rank's own, which it reads from its input. */
static inline void each_part(const struct gy_exchange *it, uint64_t number, part_func func)
{
    size_t mine = (size_t)it->comm->rank * it->kind->block;
    if (it->kind->bytes == it->kind->block) {
        func(it, number, 0, it->kind->bytes);
        return;
    }
    func(it, number, 0, mine);
    func(it, number, mine + it->kind->block, it->kind->bytes - mine - it->kind->block);
}

/* This rank's block of an all_gather's output. */
static unsigned char *own_block(const struct gy_exchange *it)
{
    return it->output + (size_t)it->comm->rank * it->kind->block;
}

/* If lines of a slot are waited for, because they are neither write-prefetched nor non-temporal, two passes are
 * faster than one. */
bool gy_exchange_keeps(const struct gy_exchange *it)
{
    return it->shape->collective == GY_ALL_GATHER && (it->nontemporal || it->claims) && it->input != own_block(it);
}

static void put(const struct gy_exchange *it, uint64_t number, size_t from, size_t bytes)
{
    unsigned char *place = gy_exchange_payload(it, it->comm->rank, number) + from;
    if (it->kept)
        gy_copy_both(place, it->input + from, own_block(it) + from, it->input + from, bytes,
                     it->nontemporal ? GY_STREAM_DST : 0);
    else if (it->nontemporal)
        gy_copy_stream(place, it->input + from, bytes);
    else
        gy_copy(place, it->input + from, bytes);
}

static void put_plain(const struct gy_exchange *it, uint64_t number, size_t from, size_t bytes)
{
    gy_copy(gy_exchange_payload(it, it->comm->rank, number) + from, it->input + from, bytes);
}

static void put_vector(const struct gy_exchange *it)
{
    each_part(it, it->number, put);
    if (it->nontemporal)
        gy_stream_fence();
}

static void push(const struct gy_exchange *it, uint64_t number, size_t from, size_t bytes)
{
    const unsigned char *place = gy_exchange_payload(it, it->comm->rank, number) + from;
    for (size_t at = 0; at < bytes; at += GY_HARDWARE_LINE)
        gy_line_hand_over(place + at);
}

static void push_vector(const struct gy_exchange *it)
{
    each_part(it, it->number, push);
}

static void fetch_back(const struct gy_exchange *it, uint64_t number, size_t from, size_t bytes)
{
    const unsigned char *place = gy_exchange_payload(it, it->comm->rank, number) + from;
    for (size_t at = 0; at < bytes; at += GY_HARDWARE_LINE)
        gy_line_own(place + at);
}

void gy_exchange_publish_plain(const struct gy_exchange *it)
{
    if (it->kind->gives)
        each_part(it, it->number, put_plain);
    gy_exchange_flag(it);
    if (worth_pushing(it, GY_PUSHED))
        push_vector(it);
}

void gy_exchange_publish(const struct gy_exchange *it)
{
    if (it->kind->bytes <= GY_REGION_INLINE) {
        gy_exchange_publish_line(it);
        return;
    }
    if (it->kind->gives)
        put_vector(it);
    gy_exchange_flag(it);
    if (worth_pushing(it, GY_PUSHED))
        push_vector(it);
}

void gy_exchange_prepare(const struct gy_exchange *it)
{
    if (worth_pushing(it, GY_PREPARED))
        each_part(it, it->number + 1, fetch_back);
}

struct gy_owned gy_exchange_owned_longer(const struct gy_exchange *it)
{
    if (it->kind->bytes <= GY_REGION_INLINE)
        return (struct gy_owned){.flag = true, .beside = true};
    size_t shown = it->kind->bytes -
                   (it->kind->bytes == it->kind->block ? 0 : it->kind->block); /* my own block is not published */
    bool pushed = gy_line_can_hand_over();
    return (struct gy_owned){.flag = shown <= (pushed ? GY_OWNED : GY_OWNED_FLAG),
                             .vector = shown <= GY_OWNED && !pushed};
}

bool gy_exchange_leaves_first(const struct gy_exchange *it)
{
    return it->kind->bytes > GY_EXPECTED && it->kind->bytes <= GY_OWNED && it->kind->gives;
}

void gy_exchange_fetch_place(const struct gy_exchange *it)
{
    each_part(it, it->number, fetch_back);
}

void gy_exchange_own_vector(struct gyre_comm *comm, const struct gy_call *call)
{
    const struct gy_call_signature shape = {
        .count = call->count, .root = (uint32_t)call->root, .collective = (uint8_t)call->collective};
    const struct gy_exchange_kind kind = gy_exchange_kind_of(comm, &shape, gy_dtype_bytes(call->dtype));
    const struct gy_exchange it = gy_exchange_of(comm, &kind, &shape, comm->inline_started + 1, NULL, NULL);
    gy_exchange_fetch_owned(&it, gy_exchange_owned(&it));
}

/* True if this rank reads anything of a peer's contribution. */
static bool reads(const struct gy_exchange *it, int peer)
{
    const struct gy_ranks needed = gy_exchange_needs(it->comm, it->shape->collective, (int)it->shape->root);
    return it->shape->collective != GY_BARRIER && peer >= needed.first && peer < needed.end;
}

struct gy_span gy_exchange_expected_apart(const struct gy_exchange *it, int peer)
{
    const struct gy_span nothing = {0};
    if (it->kind->block > GY_EXPECTED || !reads(it, peer))
        return nothing;
    const unsigned char *place = gy_exchange_payload(it, peer, it->number);
    if (it->kind->bytes <= GY_REGION_INLINE)
        return (struct gy_span){place + GY_EAGER_FIRST_LINE, it->kind->bytes - GY_EAGER_FIRST_LINE};
    if (gy_line_can_hand_over())
        return nothing;
    size_t skip = it->kind->bytes == it->kind->block ? 0 : (size_t)it->comm->rank * it->kind->block;
    return (struct gy_span){place + skip, it->kind->block};
}

/* False if earlier calls are still to be compared: an operation with a root may have waited for no rank here. */
static bool all_compared(const struct gyre_comm *comm, uint64_t sequence)
{
    const struct gy_call_signature *before =
        &comm->control[comm->rank]->entry[(sequence - 1) % GY_CALL_SIGNATURES].signature;
    return comm->compared + 1 == sequence || sequence == 1 || !gy_has_root(before->collective);
}

enum gy_answer gy_exchange_compare(const struct gy_exchange *it, int peer)
{
    struct gyre_comm *comm = it->comm;
    bool same = comm->control[peer]->line[it->number % GY_REGION_LINES].shape == gy_exchange_word(it);
    if (same && all_compared(comm, it->shape->sequence))
        return GY_YES;
    if (!gy_signature_compare(comm, it->shape->sequence, peer))
        return GY_NO;
    return same ? GY_YES : GY_NOT_YET;
}

/* The peer has published exchange `number`, of which this rank may have read nothing: compares the signatures. */
static enum gy_answer compare(struct gyre_comm *comm, int peer, uint64_t number)
{
    struct gy_region_control *theirs = comm->control[peer];
    uint64_t mine = comm->control[comm->rank]->line[number % GY_REGION_LINES].shape;
    if (theirs->line[number % GY_REGION_LINES].shape == mine)
        return GY_YES;
    uint64_t sequence = comm->sequence - ((comm->sequence - (mine >> GY_SEQUENCE_SHIFT)) & SEQUENCE_MASK);
    bool entered = atomic_load_explicit(&theirs->entered, memory_order_acquire) >= sequence;
    if (!gy_signature_compare(comm, sequence, peer))
        return GY_NO;
    return entered ? GY_YES : GY_NOT_YET; /* entered, but the signature has been overwritten since */
}

enum gy_answer gy_exchange_make_room(const struct gy_exchange *it, uint64_t ahead, int *peer_p)
{
    struct gyre_comm *comm = it->comm;
    while (comm->inline_seen + ahead < it->number) {
        uint64_t number = comm->inline_seen + 1;
        for (int p = 0; p < comm->size; p++) {
            *peer_p = p;
            enum gy_answer answer = p == comm->rank                           ? GY_YES
                                    : !gy_exchange_published(comm, p, number) ? GY_NOT_YET
                                                                              : compare(comm, p, number);
            if (answer != GY_YES)
                return answer;
        }
        comm->inline_seen = number;
    }
    return GY_YES;
}

/* True if no other rank reads what this one reads of a peer's vector. */
static bool reads_alone(const struct gy_exchange *it)
{
    unsigned collective = it->shape->collective;
    return it->comm->size == 2 ||
           (collective != GY_ALL_REDUCE && collective != GY_ALL_GATHER && collective != GY_BROADCAST);
}

/* Bytes of rank p's contribution, from offset `from`. */
static const unsigned char *shown(const struct gy_exchange *it, int p, size_t from, size_t bytes)
{
    const unsigned char *place = gy_exchange_payload(it, p, it->number) + from;
    if (it->claims && reads_alone(it))
        gy_line_claim(place, bytes);
    return place;
}

/* Reduces all operands by one kernel call. */
static void reduce_at_once(const struct gy_exchange *it, const void *const *sources)
{
    it->kind->kernel((char *)it->output, NULL, sources, it->comm->size, it->kind->block, 0);
}

/* Reduces the ranks' operands, from byte `skip` of the vector on. */
static void reduce(const struct gy_exchange *it, const struct gy_operation *operation, bool canonical, size_t skip)
{
    const void *sources[GY_REGION_RANKS];
    for (int p = 0; p < it->comm->size; p++)
        sources[p] = p == it->comm->rank ? it->input + skip : shown(it, p, skip, it->kind->block);
    if (it->kind->kernel && !canonical)
        reduce_at_once(it, sources);
    else
        (canonical ? gy_combine_tree : gy_combine_many)(operation, it->output, NULL, sources, it->comm->size,
                                                        it->shape->count);
    gy_operation_end(operation, it->output, it->shape->count, it->comm->size);
}

static void copy_plain(void *dst, const void *src, size_t bytes)
{
    gy_copy(dst, src, bytes);
}

/* Copies block `from` of rank p's contribution to block `to` of the output; this rank's own may be in place. */
static void copy(const struct gy_exchange *it, int p, int from, int to)
{
    size_t place = (size_t)from * it->kind->block;
    unsigned char *target = it->output + (size_t)to * it->kind->block;
    if (p != it->comm->rank)
        (it->claims && reads_alone(it) ? gy_copy_claim : copy_plain)(
            target, gy_exchange_payload(it, p, it->number) + place, it->kind->block);
    else if (it->input + place != target && !it->kept)
        memcpy(target, it->input + place, it->kind->block);
}

static void take_nothing(const struct gy_exchange *it, const struct gy_operation *operation, bool canonical)
{
    (void)it, (void)operation, (void)canonical;
}

static void take_vector(const struct gy_exchange *it, const struct gy_operation *operation, bool canonical)
{
    reduce(it, operation, canonical, 0);
}

static void take_block(const struct gy_exchange *it, const struct gy_operation *operation, bool canonical)
{
    reduce(it, operation, canonical, (size_t)it->comm->rank * it->kind->block);
}

/* Reduces a vector of two ranks, without the general case's extra work. */
static void take_pair(const struct gy_exchange *it, const struct gy_operation *operation, bool canonical)
{
    int me = it->comm->rank, other = 1 - me;
    const void *sources[2];
    if (canonical) {
        take_vector(it, operation, canonical);
        return;
    }
    sources[me] = it->input;
    sources[other] = shown(it, other, 0, it->kind->block);
    reduce_at_once(it, sources);
    gy_operation_end(operation, it->output, it->shape->count, 2);
}

static void take_from_root(const struct gy_exchange *it, const struct gy_operation *operation, bool canonical)
{
    (void)operation, (void)canonical;
    copy(it, (int)it->shape->root, 0, 0);
}

static void take_part(const struct gy_exchange *it, const struct gy_operation *operation, bool canonical)
{
    (void)operation, (void)canonical;
    copy(it, (int)it->shape->root, it->comm->rank, 0);
}

static void take_all(const struct gy_exchange *it, const struct gy_operation *operation, bool canonical)
{
    (void)operation, (void)canonical;
    for (int p = 0; p < it->comm->size; p++)
        copy(it, p, 0, p);
}

static void take_parts(const struct gy_exchange *it, const struct gy_operation *operation, bool canonical)
{
    (void)operation, (void)canonical;
    for (int p = 0; p < it->comm->size; p++)
        copy(it, p, it->comm->rank, p);
}

static gy_take_func take_of(const struct gyre_comm *comm, const struct gy_call_signature *shape, bool plain)
{
    bool root = (int)shape->root == comm->rank;
    gy_take_func takes_vector = plain && comm->size == 2 ? take_pair : take_vector;
    if (shape->count == 0) /* the buffers may be NULL */
        return take_nothing;
    switch (shape->collective) {
    case GY_ALL_REDUCE: return takes_vector;
    case GY_REDUCE_SCATTER: return take_block;
    case GY_REDUCE_TO: return root ? takes_vector : take_nothing;
    case GY_BROADCAST: return take_from_root;
    case GY_SCATTER_FROM: return take_part;
    case GY_GATHER_TO: return root ? take_all : take_nothing;
    case GY_ALL_GATHER: return take_all;
    case GY_ALL_TO_ALL: return take_parts;
    default: return take_nothing;
    }
}

/* A rank alone has one operand, which no kernel accepts. */
static gy_reduce_kernel kernel_of(const struct gyre_comm *comm, const struct gy_call_signature *shape)
{
    bool reduces = shape->collective == GY_ALL_REDUCE || shape->collective == GY_REDUCE_SCATTER ||
                   (shape->collective == GY_REDUCE_TO && (int)shape->root == comm->rank);
    return reduces && comm->size > 1 && shape->op < GY_OPS ? gy_reduction(shape->dtype, shape->op) : NULL;
}

/* Removes a rank that is the first or last of them: of two ranks, one is left. */
static struct gy_ranks without_end(struct gy_ranks ranks, int rank)
{
    if (ranks.first == rank && ranks.end > rank)
        ranks.first++;
    else if (ranks.end == rank + 1 && ranks.first <= rank)
        ranks.end--;
    return ranks;
}

struct gy_exchange_kind gy_exchange_kind_of(const struct gyre_comm *comm, const struct gy_call_signature *shape,
                                            size_t element)
{
    size_t block = shape->count * element, bytes = block * gy_exchange_blocks(comm, shape->collective);
    bool gathers = shape->collective == GY_ALL_GATHER || shape->collective == GY_GATHER_TO;
    const struct gy_ranks awaited = gy_exchange_awaits(comm, shape->collective, (int)shape->root);
    gy_reduce_kernel kernel = kernel_of(comm, shape);
    gy_take_func take = take_of(comm, shape, kernel != NULL);
    return (struct gy_exchange_kind){.block = block,
                                     .bytes = bytes,
                                     .counted = gathers ? block * (size_t)comm->size : bytes,
                                     .word = word_of(shape),
                                     .kernel = kernel,
                                     .take = take,
                                     .awaited = without_end(awaited, comm->rank),
                                     .awaits_all = awaited.end - awaited.first == comm->size,
                                     .gives = gives(comm, shape),
                                     .pair = take == take_pair && bytes < GY_CLAIMED_LEAST};
}
