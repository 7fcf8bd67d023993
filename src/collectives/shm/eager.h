/* The eager exchange of short vectors over regions: every rank publishes its contribution, waits for all
 * contributions, and reads what the collective gives it. Exchanges are numbered in the order of their launches,
 * which is the same on every rank.
 *
 *   rank 0   line[k mod 2A]:  | k | shape | payload |  (or vector)  ──▶ each rank loads each line until it says k,
 *   rank 1   line[k mod 2A]:  | k | shape | payload |  (or vector)      then reads what it needs, in rank order
 *
 * Up to GY_REGION_INLINE bytes lie beside the flag, up to GY_REGION_VECTOR in a place behind. The result has the
 * bits of the direct schedules: operands are combined in rank order, or in the canonical tree.
 *
 * If ranks share cores, a rank waits only for those whose data it reads, and in a barrier for all ranks. The root of
 * a broadcast continues when it has published its vector, and so do the senders of a reduction to a root. So a rank
 * makes several calls per time slice, instead of one. Ranks with cores of their own wait for all ranks: polling a
 * line that is written now is faster than fetching, before the next call, the line that shows a peer's position.
 * Ranks choose between the two independently.
 *
 * Up to A = GY_REGION_AHEAD exchanges are published before the first of them is complete, so that their lines travel
 * together. They complete in the order of their numbers. So a rank that has published k has completed k - A, and
 * reads nothing up to it any more. There are 2A places. A rank publishes k when it has seen all ranks publish k - A:
 * they have then completed k - 2A, whose place k takes. So a rank is at most A ahead of the slowest. A vector of
 * more than GY_REGION_SHORT bytes is published when all exchanges before it are complete here and published
 * everywhere. No exchange behind it is published before it is complete. This is the same protocol with A = 1, so two
 * places are enough.
 *
 * A line is prefetched for writing by the call that writes it, and no earlier. A peer that is early polls the copy
 * in its own cache, at no cost until the line is written. If it were prefetched earlier, the poll would take it
 * back, and it would be fetched again. So a cache line is transferred at most twice per exchange: invalidated in the
 * reader, then read again. Data on other lines is prefetched at every poll, so that it arrives together with the
 * flag. */
#ifndef GY_COLLECTIVES_SHM_EAGER_H
#define GY_COLLECTIVES_SHM_EAGER_H

#include "collectives/engine/request.h"
#include "core/line.h"

#define GY_EXPECTED_RANKS 8
#define GY_SEQUENCE_SHIFT 48   /* in the shape word: the last 16 bits of the sequence number are above it */
#define GY_EAGER_FIRST_LINE 48 /* bytes of a payload that arrive with the flag */

/* Assigns field by field. A wide load from recent narrow stores cannot be store-forwarded and stalls until those
 * stores retire, behind lines that peers hold. */
static inline void gy_exchange_set(struct gy_exchange *it, struct gyre_comm *comm, const struct gy_exchange_kind *kind,
                                   const struct gy_call_signature *shape, uint64_t number, const void *input,
                                   void *output)
{
    it->comm = comm;
    it->kind = kind;
    it->shape = shape;
    it->mine = comm->control[comm->rank];
    it->number = number;
    it->input = input;
    it->output = output;
    it->nontemporal = it->claims = it->kept = false;
}

static inline struct gy_exchange gy_exchange_of(struct gyre_comm *comm, const struct gy_exchange_kind *kind,
                                                const struct gy_call_signature *shape, uint64_t number,
                                                const void *input, void *output)
{
    return (struct gy_exchange){.comm = comm,
                                .kind = kind,
                                .shape = shape,
                                .mine = comm->control[comm->rank],
                                .number = number,
                                .input = input,
                                .output = output};
}

/* asks: true if the tuner decides how this one is published. Otherwise it may be write-prefetched. The tuner decides
 * for contributions of 4 KiB and more. Between two ranks with cores of their own, write-prefetching gains at every
 * distance of the cores, so the tuner decides for longer ones only: shorter ones are write-prefetched when a rank
 * reads enough that it pays. */
#define GY_ASKED_LEAST 4096 /* bytes of a contribution */
bool gy_exchange_is_known_best(const struct gy_exchange *it);
static inline bool gy_exchange_asks(const struct gy_exchange *it)
{
    return it->kind->bytes >= GY_ASKED_LEAST && !gy_exchange_is_known_best(it);
}
bool gy_exchange_claims(const struct gy_exchange *it);
/* Bytes of a contribution below which neither is done, in any collective. */
#define GY_CLAIMED_LEAST 2048

/* Returns the contribution's size in units of `count` elements. */
size_t gy_exchange_blocks(const struct gyre_comm *comm, unsigned collective);
/* The answer to whether a peer, which has published the exchange or what makes room for it, makes the same call.
 * NOT_YET: it has not published it, or its call differs and is not written yet. NO: the mismatch has been reported. */
enum gy_answer { GY_YES, GY_NO, GY_NOT_YET };
/* Returns whether there is a place for the exchange; *peer_p: the rank that prevents it. Most often that is known
 * already. */
enum gy_answer gy_exchange_make_room(const struct gy_exchange *it, uint64_t ahead, int *peer_p);
static inline enum gy_answer gy_exchange_room(const struct gy_exchange *it, int *peer_p)
{
    uint64_t ahead = it->kind->bytes > GY_REGION_SHORT ? 1 : GY_REGION_AHEAD;
    return it->comm->inline_seen + ahead >= it->number ? GY_YES : gy_exchange_make_room(it, ahead, peer_p);
}
/* True if publishing should also copy this rank's block to the output (out-of-place all_gather). Call after choosing
 * the store kind. */
bool gy_exchange_keeps(const struct gy_exchange *it);
/* True if peers should be polled only after this rank's own vector has been published. They are about as far as this
 * rank, and a poll takes away lines that are being written. */
bool gy_exchange_leaves_first(const struct gy_exchange *it);
/* Publishes the contribution; there is a place. The caller wakes sleeping ranks. */
void gy_exchange_publish(const struct gy_exchange *it);
static inline void gy_exchange_publish_line(const struct gy_exchange *it); /* one beside its flag */
void gy_exchange_publish_plain(const struct gy_exchange *it);              /* a longer one with a single variant */
/* The bytes of a peer's contribution that this rank reads and that, prefetched at every poll, arrive together with
 * the flag. Empty if there is no gain, or if they lie beside the flag. */
struct gy_span {
    const unsigned char *first;
    size_t bytes;
};
struct gy_span gy_exchange_expected_apart(const struct gy_exchange *it, int peer);
static inline struct gy_span gy_exchange_expected(const struct gy_exchange *it, int peer)
{
    return it->kind->bytes <= GY_EAGER_FIRST_LINE ? (struct gy_span){0} : gy_exchange_expected_apart(it, peer);
}
static inline void gy_span_expect(struct gy_span span)
{
    if (span.bytes == 0)
        return;
    for (size_t at = 0; at < span.bytes; at += GY_HARDWARE_LINE)
        gy_line_expect(span.first + at);
    gy_line_expect(span.first + span.bytes - 1);
}
/* If the processor can push: the next exchange is likely to equal this one, so the place of its vector is prefetched
 * for writing while this one's peers are awaited. */
void gy_exchange_prepare(const struct gy_exchange *it);

static inline bool gy_exchange_published(const struct gyre_comm *comm, int peer, uint64_t number)
{
    const struct gy_region_line *line = &comm->control[peer]->line[number % GY_REGION_LINES];
    return atomic_load_explicit(&line->sequence, memory_order_acquire) >= number;
}

static inline struct gy_operation gy_exchange_operation(const struct gy_exchange *it)
{
    return (struct gy_operation){.dtype = (gyre_dtype)it->shape->dtype, .op = (gyre_op)it->shape->op};
}

/* The place of a rank's contribution to exchange `number`. */
static inline unsigned char *gy_exchange_payload(const struct gy_exchange *it, int rank, uint64_t number)
{
    struct gy_region_control *control = it->comm->control[rank];
    return it->kind->bytes <= GY_REGION_INLINE ? control->line[number % GY_REGION_LINES].payload
                                               : gy_region_vector(control, number, it->kind->bytes);
}

/* The operands of a pair in the order of their ranks. */
struct gy_pair {
    const void *operand[2];
};
static inline struct gy_pair gy_exchange_pair(const struct gy_exchange *it)
{
    int me = it->comm->rank, other = 1 - me;
    struct gy_pair pair;
    pair.operand[me] = it->input;
    pair.operand[other] = gy_exchange_payload(it, other, it->number);
    return pair;
}

/* The shape word that the peer publishes if its call is the same, and that this rank publishes. */
static inline uint64_t gy_exchange_word(const struct gy_exchange *it)
{
    return it->shape->sequence << GY_SEQUENCE_SHIFT | it->kind->word;
}

static inline void gy_exchange_flag(const struct gy_exchange *it)
{
    struct gy_region_line *mine = &it->mine->line[it->number % GY_REGION_LINES];
    mine->shape = gy_exchange_word(it);
    atomic_store_explicit(&mine->sequence, it->number, memory_order_release);
}

static inline void gy_exchange_publish_line(const struct gy_exchange *it)
{
    if (it->kind->gives)
        gy_copy(it->mine->line[it->number % GY_REGION_LINES].payload, it->input, it->kind->bytes);
    gy_exchange_flag(it);
}

enum gy_answer gy_exchange_compare(const struct gy_exchange *it, int peer);
/* Returns whether the peer makes the same call. Most often the shape word shows it, and earlier calls have been
 * compared. */
static inline enum gy_answer gy_exchange_verify(const struct gy_exchange *it, int peer)
{
    const struct gyre_comm *comm = it->comm;
    bool same = comm->control[peer]->line[it->number % GY_REGION_LINES].shape == gy_exchange_word(it);
    return same && comm->compared + 1 == it->shape->sequence ? GY_YES : gy_exchange_compare(it, peer);
}
/* Both checks at once: the peer has published the exchange, and its call is the same. */
static inline enum gy_answer gy_exchange_poll(const struct gy_exchange *it, int peer)
{
    const struct gyre_comm *comm = it->comm;
    const struct gy_region_line *line = &comm->control[peer]->line[it->number % GY_REGION_LINES];
    if (atomic_load_explicit(&line->sequence, memory_order_acquire) < it->number)
        return GY_NOT_YET;
    bool same = line->shape == gy_exchange_word(it) && comm->compared + 1 == it->shape->sequence;
    return same ? GY_YES : gy_exchange_compare(it, peer);
}
/* In eager_call.c: runs an exchange that this rank's call has been found to be. Assigns the numbers, which go into
 * *shape, to which the exchange points. Nothing else is in flight, and there is an idle request. */
gyre_status gy_eager_exchange(struct gy_exchange *it, struct gy_call_signature *shape);
/* The same for a start, beside whatever is in flight, with ranks other than this one. */
struct gyre_request *gy_eager_begin(struct gy_exchange *it, struct gy_call_signature *shape);

/* The ranks whose data or arrival this rank needs; "all" includes this rank. */
static inline struct gy_ranks gy_exchange_needs(const struct gyre_comm *comm, unsigned collective, int root)
{
    const struct gy_ranks all = {0, comm->size}, none = {0, 0}, one = {root, root + 1};
    switch (collective) {
    case GY_BROADCAST:
    case GY_SCATTER_FROM: return root == comm->rank ? none : one;
    case GY_REDUCE_TO:
    case GY_GATHER_TO: return root == comm->rank ? all : none;
    default: return all;
    }
}

/* The ranks for which this rank waits; "all" includes this rank. */
static inline struct gy_ranks gy_exchange_awaits(const struct gyre_comm *comm, unsigned collective, int root)
{
    return comm->ctx->oversubscribed ? gy_exchange_needs(comm, collective, root) : (struct gy_ranks){0, comm->size};
}

static inline void gy_exchange_expect_from(const struct gyre_comm *comm, int peer, uint64_t exchanges)
{
    const struct gy_region_line *lines = comm->control[peer]->line;
    for (uint64_t next = 1; next <= exchanges; next++)
        gy_line_expect(&lines[(comm->inline_done + next) % GY_REGION_LINES]);
}

/* True for a single rank, which is not this one. */
static inline bool gy_ranks_is_one(struct gy_ranks ranks)
{
    return ranks.end - ranks.first == 1;
}

/* Prefetches the lines of the ranks awaited in the next exchanges: if peers were faster, their data travels
 * meanwhile. */
static inline void gy_exchange_expect_next(const struct gyre_comm *comm, struct gy_ranks awaited, uint64_t exchanges)
{
    if (gy_ranks_is_one(awaited)) {
        gy_exchange_expect_from(comm, awaited.first, exchanges);
        return;
    }
    for (int p = awaited.first; p < awaited.end && p < GY_EXPECTED_RANKS; p++)
        if (p != comm->rank)
            gy_exchange_expect_from(comm, p, exchanges);
}

static inline void gy_exchange_expect_of(const struct gyre_comm *comm, struct gy_ranks awaited)
{
    gy_exchange_expect_next(comm, awaited, 1);
}

/* A call begins that may well be an eager exchange; nothing of it has been checked yet. */
static inline bool gy_exchange_may_begin(const struct gyre_comm *comm, const struct gy_call *call)
{
    return comm->region_reserved && call->root >= 0 && call->root < comm->size;
}

/* Lines that the call does not read are left to their writers. */
static inline void gy_exchange_expect(const struct gyre_comm *comm, const struct gy_call *call)
{
    if (gy_exchange_may_begin(comm, call))
        gy_exchange_expect_of(comm, gy_exchange_awaits(comm, call->collective, call->root));
}

/* What a call prefetches for writing when it begins: the flag's line, the one beside it with the rest of the
 * payload, the vector's place. */
struct gy_owned {
    bool flag, beside, vector;
};
struct gy_owned gy_exchange_owned_longer(const struct gy_exchange *it);
static inline struct gy_owned gy_exchange_owned(const struct gy_exchange *it)
{
    if (it->kind->bytes <= GY_EAGER_FIRST_LINE || !it->kind->gives)
        return (struct gy_owned){.flag = true};
    return gy_exchange_owned_longer(it);
}
void gy_exchange_fetch_place(const struct gy_exchange *it); /* the vector's, for the exchange's number */
static inline void gy_exchange_fetch_owned(const struct gy_exchange *it, struct gy_owned owned)
{
    const struct gy_region_line *line = &it->mine->line[it->number % GY_REGION_LINES];
    if (owned.vector)
        gy_exchange_fetch_place(it);
    if (owned.flag) /* the first line written of two, the last of more */
        gy_line_own(line);
    if (owned.beside)
        gy_line_own(line->payload + GY_EAGER_FIRST_LINE);
}

/* Prefetches the lines that the call will write, at its very beginning. An early peer polls them, and getting a line
 * back takes as long as the checks of the call. Lines other than the flag's are handled out of line. */
void gy_exchange_own_vector(struct gyre_comm *comm, const struct gy_call *call);
static inline void gy_exchange_own(struct gyre_comm *comm, const struct gy_call *call)
{
    if (!gy_exchange_may_begin(comm, call) || call->collective >= GY_SEND_TO || call->count > GY_REGION_SHORT ||
        (unsigned)call->dtype >= GY_DTYPES)
        return;
    size_t bytes = call->count * gy_dtype_bytes(call->dtype);
    if (bytes * (size_t)comm->size <= GY_EAGER_FIRST_LINE)
        gy_line_own(&comm->control[comm->rank]->line[(comm->inline_started + 1) % GY_REGION_LINES]);
    else if (bytes < GY_REGION_VECTOR)
        gy_exchange_own_vector(comm, call);
}

#endif
