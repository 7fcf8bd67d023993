/* A direct exchange of short vectors over regions: everyone shows its contribution, waits for everyone's, and takes what the
 * collective gives it. Exchanges have numbers, in the order of their launches, which is the same on every rank.
 *
 *   rank 0   line[k mod 2A]:  | k | shape | payload |  (or vector)  ──▶ everyone loads everyone's line until it says k,
 *   rank 1   line[k mod 2A]:  | k | shape | payload |  (or vector)      then takes what it needs, in rank order
 *
 * Up to GY_REGION_INLINE bytes lie beside the flag, up to GY_REGION_VECTOR in a place behind. It gives the bits of the
 * direct plans: operands are combined in rank order, or in the canonical tree.
 *
 * Where ranks share cores, a rank waits for those alone of whom it takes something, in a barrier for everyone: the root of a
 * broadcast goes on when it has shown its vector, and so do the others in a reduction to a root. So it makes several calls before
 * it makes room for the next one, instead of changing places in each. Ranks with cores of their own wait for everyone, since it is
 * sooner to look at a line that is written now than to fetch, before the next call, the one by which a peer said that it had come
 * so far. It is nothing to a rank which way the others go.
 *
 * Up to A = GY_REGION_AHEAD exchanges are shown before the first of them is complete, so that their lines travel together, and they
 * are completed in the order of their numbers. So who has shown k has completed k - A, and reads nothing up to it any more. There
 * are 2A places, and k is shown when everyone has been seen to have shown k - A, who all have then completed k - 2A, whose place
 * it gets: a rank is A ahead of the slowest at most. A vector of more than GY_REGION_SHORT bytes is shown when all before it is
 * complete here and shown everywhere, and nothing behind it before it is complete itself: that is the same with A = 1, so that
 * two places are enough.
 *
 * A line is fetched for writing by the call that writes it, and no earlier: a peer that is there before looks at the copy that it
 * has still in its own cache, which costs nobody anything until the line is written. Fetched ahead, it would have to be given back
 * to who looks, and be fetched again. So an exchange takes a line's way twice at most: away from who has read it, and to it again;
 * what lies on other lines is asked for at every look, so that it comes together with the flag. */
#ifndef GY_COLLECTIVES_SHM_EAGER_H
#define GY_COLLECTIVES_SHM_EAGER_H

#include "collectives/engine/request.h"
#include "core/line.h"

#define GY_EXPECTED_RANKS 8
#define GY_SEQUENCE_SHIFT 48   /* in the word that tells shapes apart: its last 16 bits are above */
#define GY_EAGER_FIRST_LINE 48 /* bytes of a payload that are there when the flag is */

/* Field by field, as its places were written: what is read together that was written apart waits until that has left the core,
 * behind lines that peers hold. */
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

/* Is it asked how this one is given best, and if not, is it claimed? Of contributions of 4 KiB and more the clock is asked, but between
 * two ranks with cores of their own, where claims gain at every distance of the cores, of longer ones only: shorter ones are claimed
 * when a rank reads so much that it pays. */
#define GY_ASKED_LEAST 4096 /* bytes of a contribution */
bool gy_exchange_is_known_best(const struct gy_exchange *it);
static inline bool gy_exchange_asks(const struct gy_exchange *it)
{
    return it->kind->bytes >= GY_ASKED_LEAST && !gy_exchange_is_known_best(it);
}
bool gy_exchange_claims(const struct gy_exchange *it);
/* Bytes of a contribution below which neither is, in whatever collective. */
#define GY_CLAIMED_LEAST 2048

/* How many times `count` elements a contribution has. */
size_t gy_exchange_blocks(const struct gyre_comm *comm, unsigned collective);
/* The peer has shown it, or has shown what makes room for it: does it mean the same? NOT_YET: it has not, or something else, and it
 * has not written yet what. NO: the world has been told. */
enum gy_answer { GY_YES, GY_NO, GY_NOT_YET };
/* Is there a place for it? Who does not let it have one comes out in *peer_p. Most often that is known already. */
enum gy_answer gy_exchange_make_room(const struct gy_exchange *it, uint64_t ahead, int *peer_p);
static inline enum gy_answer gy_exchange_room(const struct gy_exchange *it, int *peer_p)
{
    uint64_t ahead = it->kind->bytes > GY_REGION_SHORT ? 1 : GY_REGION_AHEAD;
    return it->comm->inline_seen + ahead >= it->number ? GY_YES : gy_exchange_make_room(it, ahead, peer_p);
}
/* Does its own block of the output, which is not there yet, go there in the pass that shows it? To be asked when it is known how
 * that is written. */
bool gy_exchange_keeps(const struct gy_exchange *it);
/* Does it pay to look at peers when its own vector has left, and no sooner? They are about as far as this rank, and a look takes away
 * lines that are being written. */
bool gy_exchange_leaves_first(const struct gy_exchange *it);
/* There is. Who may sleep is woken by the caller. */
void gy_exchange_publish(const struct gy_exchange *it);
static inline void gy_exchange_publish_line(const struct gy_exchange *it); /* of one that lies beside its flag */
void gy_exchange_publish_plain(
    const struct gy_exchange *it); /* of a longer one, of whose ways of being given there is one */
/* What this rank reads of a peer's contribution, where asking for it at every look lets it come together with the flag; no bytes
 * where it does not, or where it lies beside the flag. */
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
/* Where the processor can push: the next one is likely to be like this one, and the place of its vector is fetched for writing
 * while this one's peers are waited for. */
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

/* Where a rank shows its contribution to exchange `number`. */
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

/* What the peer has shown of it, as a word, and so what this rank shows. */
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
/* Does the peer mean the same? Most often one word says so, and those before it have been compared. */
static inline enum gy_answer gy_exchange_verify(const struct gy_exchange *it, int peer)
{
    const struct gyre_comm *comm = it->comm;
    bool same = comm->control[peer]->line[it->number % GY_REGION_LINES].shape == gy_exchange_word(it);
    return same && comm->compared + 1 == it->shape->sequence ? GY_YES : gy_exchange_compare(it, peer);
}
/* Both at once: has the peer shown it, and does it mean the same? */
static inline enum gy_answer gy_exchange_look(const struct gy_exchange *it, int peer)
{
    const struct gyre_comm *comm = it->comm;
    const struct gy_region_line *line = &comm->control[peer]->line[it->number % GY_REGION_LINES];
    if (atomic_load_explicit(&line->sequence, memory_order_acquire) < it->number)
        return GY_NOT_YET;
    bool same = line->shape == gy_exchange_word(it) && comm->compared + 1 == it->shape->sequence;
    return same ? GY_YES : gy_exchange_compare(it, peer);
}
/* eager_call.c: the whole of one that this rank has found its call to be, from the numbers on, which go into *shape, that the exchange points
 * to. Nothing else is under way, and there is an idle request. */
gyre_status gy_eager_exchange(struct gy_exchange *it, struct gy_call_signature *shape);
/* The same of a start, beside whatever is under way, with other ranks than this one. */
struct gyre_request *gy_eager_begin(struct gy_exchange *it, struct gy_call_signature *shape);

/* Those of whom this rank takes something, or learns that they have come; of all, itself is one. */
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

/* Those for whom this rank waits, likewise. */
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

/* One, and so it is not this rank. */
static inline bool gy_ranks_is_one(struct gy_ranks ranks)
{
    return ranks.end - ranks.first == 1;
}

/* The lines of those that are awaited in the next exchanges: where peers have been faster, what they have published comes meanwhile. */
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

/* A call begins, and may well be a direct exchange; nothing of it has been checked yet. */
static inline bool gy_exchange_may_begin(const struct gyre_comm *comm, const struct gy_call *call)
{
    return comm->region_reserved && call->root >= 0 && call->root < comm->size;
}

/* Lines that the call does not look at are left to those who write them. */
static inline void gy_exchange_expect(const struct gyre_comm *comm, const struct gy_call *call)
{
    if (gy_exchange_may_begin(comm, call))
        gy_exchange_expect_of(comm, gy_exchange_awaits(comm, call->collective, call->root));
}

/* What a call fetches for writing when it begins: the flag's line, the one beside it that has the rest of the payload, the vector's
 * place. */
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
    if (owned.flag) /* the first to be written of two, the last of more */
        gy_line_own(line);
    if (owned.beside)
        gy_line_own(line->payload + GY_EAGER_FIRST_LINE);
}

/* What the call will write there, at its very beginning: a peer that is there already looks at it, and having it back takes as long
 * as looking at the call. Out of line what lies elsewhere than the flag. */
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
