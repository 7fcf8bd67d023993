/* The eager queue: eager exchanges (eager.h) that starts have published and that are not complete. A start that
 * waits for its peers leaves an entry, with all that its completion needs. Its owner's request holds only what the
 * owner asks for.
 *
 *   starts ──▶ | entry k | entry k + 1 | ... |   one request in the lists represents all of them: it has the shape
 *                  │                             of the oldest, the rank for which that waits, and since when
 *                  └──▶ completed in order, by any progress call: of another start, a wait, a test
 *
 * So clocks, failure reports, status pages, and the ends of worlds and communicators find an ordinary request. A
 * start writes one line of its owner's request instead of six, and one progress call completes several entries
 * without walking lists. There are as many entries as exchanges may be published at once. An entry is added only if
 * nothing else is in flight in the world. Behind anything else a start has a request of its own in the queue. So at
 * any time all entries belong to one communicator, and the context has one eager queue for all. */
#ifndef GY_COLLECTIVES_CALL_EAGER_QUEUE_H
#define GY_COLLECTIVES_CALL_EAGER_QUEUE_H

#include "collectives/engine/request.h"

struct gy_note {
    struct gyre_request *request; /* its owner's */
    uint64_t serial;              /* in the flight recorder */
    bool canonical;
    struct gy_call_signature shape;
    struct gy_exchange exchange;
    struct gy_exchange_kind kind; /* used if the entry needs a copy of its own: gy_eager_queue_keep */
};

struct gy_eager_queue {
    struct gyre_request request; /* in the lists while there are entries; its communicator is theirs */
    unsigned first, count;
    struct gy_note note[GY_REGION_AHEAD];
};

/* Makes the context's queue, if it has none yet. Without memory starts do without. */
void gy_eager_queue_provide(struct gy_context *ctx);

static inline struct gy_note *gy_eager_queue_at(struct gy_eager_queue *eager_queue, unsigned i)
{
    return &eager_queue->note[(eager_queue->first + i) % GY_REGION_AHEAD];
}

/* True if the exchange that has just been published may leave an entry: only entries of the queue are in flight. */
static inline bool gy_eager_queue_takes(const struct gyre_comm *comm)
{
    const struct gy_context *ctx = comm->ctx;
    const struct gy_eager_queue *eager_queue = ctx->eager_queue;
    return eager_queue && eager_queue->count < GY_REGION_AHEAD && comm->arrived == comm->sequence &&
           (!ctx->active_first ||
            (ctx->active == 1 && ctx->active_first == &eager_queue->request && eager_queue->request.comm == comm));
}

/* Adds an entry. `request` is its owner's and open. */
void gy_eager_queue_add(const struct gy_exchange *it, struct gyre_request *request, bool canonical);
/* Completes the oldest entry, whose output is written. */
void gy_eager_queue_complete(struct gy_eager_queue *eager_queue);
/* The oldest entry waits for `rank`. */
void gy_eager_queue_miss(struct gy_eager_queue *eager_queue, int rank);
/* Completes all entries with `status`: the queue's request has just left the lists. */
void gy_eager_queue_end(struct gy_eager_queue *eager_queue, gyre_status status);
/* The cache entry that holds `kind` (call_cache.h) is about to be replaced: queue entries that use it copy it. */
void gy_eager_queue_keep(struct gy_eager_queue *eager_queue, const struct gy_exchange_kind *kind);

#endif
