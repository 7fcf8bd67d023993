/* Shared by blocking calls (eager_call.c), starts (eager_start.c), progress (eager_progress.c) of eager calls. */
#ifndef GY_COLLECTIVES_CALL_EAGER_INTERNAL_H
#define GY_COLLECTIVES_CALL_EAGER_INTERNAL_H

#include "collectives/engine/request.h"
#include "collectives/shm/autotune.h"
#include "collectives/shm/eager.h"

_Static_assert(GY_CLAIMED_LEAST <= GY_ASKED_LEAST && GY_CLAIMED_LEAST <= GY_REGION_SHORT, "below it there is one way");

/* True if the exchange is among those that may be published before the first of them is complete; see eager.h. */
static inline bool is_next(const struct gy_exchange *it)
{
    const struct gyre_comm *comm = it->comm;
    if (it->kind->bytes > GY_REGION_SHORT)
        return it->number == comm->inline_done + 1;
    return it->number <= comm->inline_done + GY_REGION_AHEAD && comm->inline_alone <= comm->inline_done;
}

static inline __attribute__((always_inline)) bool may_be_shown(const struct gy_exchange *it)
{
    int peer;
    return is_next(it) && gy_exchange_room(it, &peer) == GY_YES;
}

/* Decides how a vector in its own place is published; a payload beside its flag has one way only. */
static inline void decide(struct gy_exchange *it)
{
    enum gy_shm_variant variant = gy_exchange_asks(it)     ? gy_tuner_exchange(it->comm, it->shape, it->kind->bytes)
                                  : gy_exchange_claims(it) ? GY_SHM_SLOT_PREFETCHW
                                                           : GY_SHM_SLOT;
    it->nontemporal = variant == GY_SHM_SLOT_NT;
    it->claims = variant == GY_SHM_SLOT_PREFETCHW;
    it->kept = gy_exchange_keeps(it);
}

static inline void show(struct gy_exchange *it)
{
    if (it->kind->bytes > GY_REGION_INLINE)
        decide(it);
    gy_exchange_publish(it);
    if (it->kind->bytes > GY_REGION_SHORT)
        it->comm->inline_alone = it->number;
}

/* Enters the floating-point mode of the exchange's reduction. */
static inline uint32_t enter_mode(const struct gy_exchange *it)
{
    return it->kind->kernel ? gy_fp_enter() : 0;
}

static inline void leave_mode(const struct gy_exchange *it, uint32_t saved)
{
    if (it->kind->kernel)
        gy_fp_leave(saved);
}

/* Notes what the arrival of all awaited contributions says of the peers. */
static inline void learn(const struct gy_exchange *it)
{
    struct gyre_comm *comm = it->comm;
    if (it->kind->awaited.end > it->kind->awaited.first)
        comm->compared = it->shape->sequence;
    if (it->kind->awaits_all)
        comm->inline_seen = it->number;
}

/* Writes the output and notes what has been learnt of the peers. All awaited contributions are there; the mode has
 * been entered. */
static inline void complete(const struct gy_exchange *it, const struct gy_operation *operation, bool canonical)
{
    learn(it);
    it->kind->take(it, operation, canonical);
    it->comm->inline_done = it->number;
}

/* The same for a pair, whose operands have been looked up before. */
static inline void complete_pair(const struct gy_exchange *it, struct gy_pair pair)
{
    const struct gy_operation operation = gy_exchange_operation(it);
    learn(it);
    it->kind->kernel((char *)it->output, NULL, pair.operand, 2, it->kind->block, 0);
    gy_operation_end(&operation, it->output, it->shape->count, 2);
    it->comm->inline_done = it->number;
}

/* Completes an exchange whose awaited contributions are there, of a request or of a start. The mode has been
 * entered. */
static inline void finish(const struct gy_exchange *it, const struct gy_operation *operation, bool canonical)
{
    if (it->kind->pair && !canonical)
        complete_pair(it, gy_exchange_pair(it));
    else
        complete(it, operation, canonical);
}

static inline void count_bytes(const struct gy_exchange *it)
{
    it->comm->recorder.page->bytes += it->kind->counted;
    it->comm->recorder.page->window_bytes += it->kind->counted;
}

/* How a contribution is published: in its flag's lines; in a place of its own, by the one way for that length; or as
 * the tuner says. */
enum form { LINE, PLAIN, ASKED };

static inline enum form form_of(const struct gy_exchange *it)
{
    return it->kind->bytes <= GY_REGION_INLINE ? LINE : it->kind->bytes < GY_CLAIMED_LEAST ? PLAIN : ASKED;
}

static inline void show_as(struct gy_exchange *it, const enum form form)
{
    if (form == LINE)
        gy_exchange_publish_line(it);
    else if (form == PLAIN)
        gy_exchange_publish_plain(it);
    else
        show(it);
}

/* Fills in the kind, and the shape but for its number, of a call that is open (gy_eager_is_open). Stores both in the
 * call cache. Returns false if out of memory. */
bool gy_eager_find_kind(struct gyre_comm *comm, const struct gy_call *call, struct gy_call_signature *shape_p,
                        struct gy_exchange_kind *kind_p);
/* Makes an active request of an exchange that has its numbers and its record. An idle request and a schedule exist.
 * begun: it has been published. */
struct gyre_request *gy_request_adopt(const struct gy_exchange *it, bool begun);

#endif
