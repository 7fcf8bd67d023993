/* Progress of the waiting eager exchanges at the head of the queue of requests. */
#include "collectives/call/eager_progress.h"

#include "collectives/call/eager_internal.h"
#include "collectives/shm/slots.h"

void gy_eager_show(struct gyre_comm *comm)
{
    bool any = false;
    for (struct gyre_request *r; (r = comm->region_next) && r->eager; comm->region_next = r->region_after) {
        if (!may_be_shown(&r->exchange))
            break;
        show(&r->exchange);
        r->begun = any = true;
    }
    if (any)
        gy_slot_wake(comm);
}

/* The floating-point mode of exchanges completed one after the other. Reading the mode takes as long as the sum of a
 * line. */
struct mode {
    bool entered;
    uint32_t saved;
};

static inline void leave_once(struct mode *mode)
{
    if (mode->entered)
        gy_fp_leave(mode->saved);
    mode->entered = false;
}

/* Enters the mode of this exchange, unless it is in force. */
static inline void enter_once(struct mode *mode, const struct gy_exchange *it)
{
    if (!it->kind->kernel) {
        leave_once(mode);
    } else if (!mode->entered) {
        mode->saved = gy_fp_enter();
        mode->entered = true;
    }
}

/* Rank p is late, or makes another call: then the request is over. */
static bool miss(struct gyre_request *r, int p, enum gy_answer answer)
{
    gy_request_note_beginning(r);
    r->eager_next = r->waiting_for = p;
    return answer == GY_NO;
}

/* Polls the awaited ranks from *peer_p on. Unless the answer is YES, *peer_p is the rank that is missing or differs. */
static inline enum gy_answer poll_from(const struct gy_exchange *it, int *peer_p)
{
    enum gy_answer answer = GY_YES;
    for (; *peer_p < it->kind->awaited.end; ++*peer_p)
        if (*peer_p != it->comm->rank && (answer = gy_exchange_poll(it, *peer_p)) != GY_YES)
            break;
    return answer;
}

/* Returns true if the exchange is complete, or differs from a peer's. */
static bool advance(struct gyre_request *r, struct mode *mode)
{
    const struct gy_exchange *it = &r->exchange;
    if (!r->begun)
        return gy_exchange_room(it, &r->waiting_for) == GY_NO;
    int peer = r->eager_next;
    enum gy_answer answer = poll_from(it, &peer);
    if (answer != GY_YES)
        return miss(r, peer, answer);
    enter_once(mode, it);
    finish(it, &r->operation, r->canonical);
    if (r->light) {
        gy_request_finish_light(r);
    } else {
        leave_once(mode);
        gy_request_locally_complete(r);
    }
    return true;
}

bool gy_eager_advance(struct gyre_request *r)
{
    struct gyre_comm *comm = r->comm;
    struct mode mode = {0};
    bool moved = false;
    do {
        if (comm->region_next)
            gy_eager_show(comm);
        moved |= advance(r, &mode);
        if (!r->complete)
            break;
        r = comm->region_first;
    } while (r && r->eager && r->shape.sequence <= comm->arrived && !comm->ctx->closed);
    leave_once(&mode);
    return moved;
}
