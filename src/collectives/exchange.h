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
 * The line of an exchange to come is fetched for writing when one is published, since the peers' caches share it. */
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
};

struct gy_exchange gy_exchange_of(struct gyre_comm *comm, const struct gy_arrival *shape, uint64_t number,
                                  size_t element, const void *input, void *output);
/* How many times `count` elements a contribution has. */
size_t gy_exchange_blocks(const struct gyre_comm *comm, unsigned collective);
/* There is a place for it. Who may sleep is woken by the caller. */
void gy_exchange_publish(const struct gy_exchange *it);
/* The next one is likely to be like this one: the place of its vector is fetched for writing while this one's peers are
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
