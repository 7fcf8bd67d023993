/* The eager queue: direct exchanges (eager.h) that starts have shown and nobody has completed yet. A start that waits for its peers leaves
 * a note in it, with all that its completion takes, and its owner's request holds nothing but what the owner asks for.
 *
 *   starts ──▶ | note k | note k + 1 | ... |     one request in the lists stands for all of them: it has the shape of the oldest,
 *                  │                             knows whom that waits for, and since when
 *                  └──▶ completed in order, by whoever has a turn: another start, a wait, progress
 *
 * So clocks, verdicts, pages and the ends of worlds and communicators find a request like others, while a start writes one line of its
 * owner's request instead of six, and several are completed in one turn without a step through lists. There are as many notes as
 * exchanges may be shown at once. A note is added only where nothing else is under way in the world: behind anything else a start has
 * a request of its own in the queue. So at any time the notes are of one communicator, and the context has one eager queue for all. */
#ifndef GY_COLLECTIVES_CALL_EAGER_QUEUE_H
#define GY_COLLECTIVES_CALL_EAGER_QUEUE_H

#include "collectives/engine/request.h"

struct gy_note {
    struct gyre_request *request; /* its owner's */
    uint64_t serial;              /* in the flight recorder */
    bool canonical;
    struct gy_call_signature shape;
    struct gy_exchange exchange;
    struct gy_exchange_kind kind; /* where it has to be the note's own: see gy_eager_queue_keep */
};

struct gy_eager_queue {
    struct gyre_request request; /* in the lists as long as there are notes; its communicator is theirs */
    unsigned first, count;
    struct gy_note note[GY_REGION_AHEAD];
};

/* Makes the context's, if it has none yet; without memory starts do without. */
void gy_eager_queue_provide(struct gy_context *ctx);

static inline struct gy_note *gy_eager_queue_at(struct gy_eager_queue *eager_queue, unsigned i)
{
    return &eager_queue->note[(eager_queue->first + i) % GY_REGION_AHEAD];
}

/* May the exchange that has just been shown leave a note? Nothing is under way but those in the bundle. */
static inline bool gy_eager_queue_takes(const struct gyre_comm *comm)
{
    const struct gy_context *ctx = comm->ctx;
    const struct gy_eager_queue *eager_queue = ctx->eager_queue;
    return eager_queue && eager_queue->count < GY_REGION_AHEAD && comm->arrived == comm->sequence &&
           (!ctx->active_first ||
            (ctx->active == 1 && ctx->active_first == &eager_queue->request && eager_queue->request.comm == comm));
}

/* `request` is its owner's, open. */
void gy_eager_queue_add(const struct gy_exchange *it, struct gyre_request *request, bool canonical);
/* What the oldest takes is in its output. */
void gy_eager_queue_complete(struct gy_eager_queue *eager_queue);
/* The oldest waits for `rank`. */
void gy_eager_queue_miss(struct gy_eager_queue *eager_queue, int rank);
/* Its request has just left the lists, with `status`: so do all that are in it. */
void gy_eager_queue_end(struct gy_eager_queue *eager_queue, gyre_status status);
/* What is kept there for calls alike (call_cache.h) is about to be replaced: notes that use it take it along. */
void gy_eager_queue_keep(struct gy_eager_queue *eager_queue, const struct gy_exchange_kind *kind);

#endif
