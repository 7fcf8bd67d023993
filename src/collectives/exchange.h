/* A direct exchange of short vectors over windows: everyone shows its contribution, waits for everyone's, and takes what the
 * collective gives it. Exchanges have numbers, in the order of their launches, which is the same on every rank.
 *
 *   rank 0   line[k mod 2A]:  | k | shape | payload |  (or vector)  ──▶ everyone loads everyone's line until it says k,
 *   rank 1   line[k mod 2A]:  | k | shape | payload |  (or vector)      then takes what it needs, in rank order
 *
 * Up to GY_WINDOW_INLINE bytes lie beside the flag, up to GY_WINDOW_VECTOR in a place behind. It gives the bits of the
 * direct plans: operands are combined in rank order, or in the canonical tree.
 *
 * Up to A = GY_WINDOW_AHEAD exchanges are shown at once, so that their lines travel together, and they are completed in the
 * order of their numbers. Who publishes k + 2A has completed k + A: everyone has published that, and whoever has published
 * k + A has completed k. So 2A places are enough, because everyone waits for everyone, whatever the collective. A vector of
 * more than GY_WINDOW_SHORT bytes is shown when all before it is complete, and nothing behind it before it is complete
 * itself: that is the same with A = 1, so that two places are enough.
 *
 * A line is fetched for writing by the call that writes it, and no earlier: a peer that is there before looks at the copy that it
 * has still in its own cache, which costs nobody anything until the line is written. Fetched ahead, it would have to be given back
 * to who looks, and be fetched again. So an exchange takes a line's way twice at most: away from who has read it, and to it again;
 * what lies on other lines is asked for at every look, so that it comes together with the flag. */
#ifndef GY_COLLECTIVES_EXCHANGE_H
#define GY_COLLECTIVES_EXCHANGE_H

#include "collectives/request.h"

/* One under way, from a call or from its request. */
struct gy_exchange {
    struct gyre_comm *comm;
    const struct gy_arrival *shape;
    uint64_t number;
    size_t block, bytes; /* of `count` elements; of a contribution */
    const unsigned char *input;
    unsigned char *output;
    bool past; /* its vector is written past the caches */
};

/* Bytes of a contribution from which on it is asked whether that had better be so (ways.h). */
#define GY_EXCHANGE_PAST_LEAST 4096

struct gy_exchange gy_exchange_of(struct gyre_comm *comm, const struct gy_arrival *shape, uint64_t number,
                                  size_t element, const void *input, void *output);
/* How many times `count` elements a contribution has. */
size_t gy_exchange_blocks(const struct gyre_comm *comm, unsigned collective);
/* There is a place for it. Who may sleep is woken by the caller. */
void gy_exchange_publish(const struct gy_exchange *it);
/* What this rank reads of a peer's contribution, where asking for it at every look lets it come together with the flag; no bytes
 * where it does not, or where it lies beside the flag. */
struct gy_span {
    const unsigned char *first;
    size_t bytes;
};
struct gy_span gy_exchange_expected(const struct gy_exchange *it, int peer);
static inline void gy_span_expect(struct gy_span span)
{
    if (span.bytes == 0)
        return;
    for (size_t at = 0; at < span.bytes; at += 64)
        gy_line_expect(span.first + at);
    gy_line_expect(span.first + span.bytes - 1);
}
/* Where the processor can push: the next one is likely to be like this one: the place of its vector is fetched for writing while this one's peers are
 * waited for. */
void gy_exchange_prepare(const struct gy_exchange *it);

static inline bool gy_exchange_published(const struct gyre_comm *comm, int peer, uint64_t number)
{
    const struct gy_window_line *line = &comm->control[peer]->line[number % GY_WINDOW_LINES];
    return atomic_load_explicit(&line->sequence, memory_order_acquire) >= number;
}

/* The peer has published: does it mean the same? NOT_YET: something else, and it has not written yet what. NO: the world has
 * been told. */
enum gy_answer { GY_YES, GY_NO, GY_NOT_YET };
enum gy_answer gy_exchange_verify(const struct gy_exchange *it, int peer);
/* Everyone has published: out of the lines into the output. */
void gy_exchange_take(const struct gy_exchange *it, const struct gy_operation *operation, bool canonical);

#endif
