/* Short vectors use the eager exchange (eager.h) instead of a schedule, blocking or not.
 *
 * A blocking call goes from the argument checks straight to the flag's line and back. It makes no request, allocates
 * nothing, takes no lock and makes no system call. It needs no fence if the flag's pair of lines holds the payload.
 * The payload is published first. The rest of a request (sequence, call signature, flight recorder) is done while it
 * travels. If a peer blocks the call, it becomes a request in the middle of its exchange, so that its clocks and
 * failure reports are those of any request.
 *
 * A start publishes its contribution likewise. If nothing else is in flight and all peers were faster, its request
 * is complete before the caller has it. Otherwise it leaves a request in the queue, with all that its completion
 * needs. Each progress call completes as much of the queue as has arrived. A start does so itself when it needs a
 * place, so that of many in flight the first are complete before the last are started. A wait does
 * so at once. */
#include "collectives/call/call_cache.h"
#include "collectives/call/eager_internal.h"
#include "collectives/call/launch.h"
#include "collectives/call/prepare.h"
#include "collectives/engine/call_check.h"
#include "collectives/engine/progress.h"
#include "collectives/engine/spin.h"
#include "collectives/schedule/reduction_order.h"
#include "collectives/select/selector.h"
#include "collectives/shm/autotune.h"
#include "collectives/shm/eager.h"
#include "collectives/shm/slots.h"
#include "core/clock.h"
#include "core/fence.h"

/* A peer blocks the call: the exchange continues as a request. */
static gyre_status go_on(const struct gy_exchange *it, bool shown, int next)
{
    struct gyre_request *r = gy_request_adopt(it, shown);
    gy_recorder_note(gy_recorder_at(&it->comm->recorder, r->record), gy_now());
    r->eager_next = next;
    gy_wait(r);
    gyre_status status = r->status;
    gy_request_recycle(r);
    if (gy_exchange_asks(it))
        gy_tuner_end(it->comm, status == GYRE_SUCCESS);
    return status;
}

static bool wait_for_room(const struct gy_exchange *it)
{
    int peer;
    enum gy_answer answer = gy_exchange_room(it, &peer);
    struct gy_spin spinning = gy_spin_of(it->comm->ctx);
    for (; answer == GY_NOT_YET; answer = gy_exchange_room(it, &peer))
        if (!gy_spin_policy(&spinning))
            return false;
    return answer == GY_YES;
}

/* True if ranks share cores, and the peer and all missing ranks behind it run on other cores. Yielding would then
 * help no awaited rank. The ranks before the peer have arrived. */
static bool may_stay(const struct gy_exchange *it, int peer)
{
    const struct gyre_comm *comm = it->comm;
    if (!gy_spin_is_apart(comm, peer))
        return false;
    for (int p = peer + 1; p < it->kind->awaited.end; p++)
        if (p != comm->rank && !gy_cores_apart(comm, p) && !gy_exchange_published(comm, p, it->number))
            return false;
    return true;
}

static bool wait_for(const struct gy_exchange *it, int peer, struct gy_spin *spinning)
{
    const struct gyre_comm *comm = it->comm;
    if (gy_exchange_published(comm, peer, it->number))
        return true;
    if (may_stay(it, peer))
        spinning->spins = GY_SPINS_APART;
    else if (comm->ctx->oversubscribed && spinning->spins > GY_SPINS_OVERSUBSCRIBED)
        spinning->spins = GY_SPINS_OVERSUBSCRIBED;
    const struct gy_span expected = gy_exchange_expected(it, peer);
    while (!gy_exchange_published(comm, peer, it->number)) {
        gy_span_expect(expected);
        if (!gy_spin_policy(spinning))
            return false;
    }
    return true;
}

/* Waits for the awaited ranks from `*next_p` on. Returns false if one of them is late or its call differs. */
static inline bool wait_for_all(const struct gy_exchange *it, int *next_p)
{
    struct gy_spin spinning = gy_spin_of(it->comm->ctx);
    for (; *next_p < it->kind->awaited.end; ++*next_p) {
        if (*next_p == it->comm->rank)
            continue;
        if (!wait_for(it, *next_p, &spinning) || gy_exchange_verify(it, *next_p) != GY_YES)
            return false;
    }
    return true;
}

/* Compiled once per form. Between cores with the same last-level cache, a line's transfer takes no longer than the
 * extra work of the longer forms. */
static inline __attribute__((always_inline)) gyre_status exchange(struct gy_exchange *it,
                                                                  struct gy_call_signature *shape, const enum form form)
{
    struct gyre_comm *comm = it->comm;
    const bool asks = form == ASKED && gy_exchange_asks(it);
    it->number = ++comm->inline_started;
    shape->sequence = ++comm->sequence;
    if (asks)
        gy_tuner_begin(comm);
    bool room = (form != ASKED && comm->inline_seen + GY_REGION_AHEAD >= it->number) || wait_for_room(it);
    if (room) {
        show_as(it, form);
        if (form == LINE)
            gy_exchange_expect_of(comm, it->kind->awaited); /* what is published travels meanwhile */
        gy_slot_wake(comm);
    }
    struct gyre_page_record *record = gy_recorder_begin_full(&comm->recorder, shape);
    count_bytes(it);
    gy_signature_publish(comm, shape, NULL);
    gy_cores_show(comm);
    int next = it->kind->awaited.first;
    if (!room)
        return go_on(it, false, next);
    if (form != LINE)
        gy_exchange_prepare(it);
    if (form != LINE && gy_exchange_leaves_first(it))
        gy_store_load_fence();
    /* The following is done while no peer waits for it. */
    const uint32_t saved = enter_mode(it);
    const bool is_pair = form != ASKED && it->kind->pair, canonical = gy_comm_canonical(comm);
    const struct gy_pair pair = is_pair ? gy_exchange_pair(it) : (struct gy_pair){{0}};
    if (!wait_for_all(it, &next)) {
        leave_mode(it, saved);
        return go_on(it, true, next);
    }
    const struct gy_operation operation = gy_exchange_operation(it);
    if (is_pair && !canonical)
        complete_pair(it, pair);
    else
        complete(it, &operation, canonical);
    leave_mode(it, saved);
    if (asks)
        gy_tuner_end(comm, true);
    gy_recorder_done(&comm->recorder, record);
    if ((it->number & (GY_POLL_EVERY - 1)) == 0)
        gy_progress_occasional(comm->ctx);
    return GYRE_SUCCESS;
}

gyre_status gy_eager_exchange(struct gy_exchange *it, struct gy_call_signature *shape)
{
    switch (form_of(it)) {
    case LINE: return exchange(it, shape, LINE);
    case PLAIN: return exchange(it, shape, PLAIN);
    default: return exchange(it, shape, ASKED);
    }
}

bool gy_eager_call(struct gyre_comm *comm, const struct gy_call *call, gyre_status *status_p)
{
    struct gy_call_signature shape;
    struct gy_exchange_kind kind;
    if (!gy_eager_find_kind(comm, call, &shape, &kind))
        return false;
    struct gy_exchange it = gy_exchange_of(comm, &kind, &shape, 0, call->input, call->output);
    *status_p = gy_eager_exchange(&it, &shape);
    return true;
}
