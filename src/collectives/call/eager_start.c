/* Starts of short vectors by the eager exchange: eager_call.c describes them. */
#include "collectives/call/eager_start.h"

#include "collectives/call/eager_fit.h"
#include "collectives/call/eager_internal.h"
#include "collectives/engine/call_check.h"
#include "collectives/engine/progress.h"
#include "collectives/engine/spin.h"
#include "collectives/shm/slots.h"

#define GY_EAGER_EXPECTED 3

/* True if the peer's contribution has arrived. A mismatch is left to the request's progress. */
static inline bool has_come_from(const struct gy_exchange *it, int peer)
{
    gy_span_expect(gy_exchange_expected(it, peer));
    return gy_exchange_poll(it, peer) == GY_YES;
}

static __attribute__((noinline)) bool has_come_from_all(const struct gy_exchange *it)
{
    for (int p = it->kind->awaited.first; p < it->kind->awaited.end; p++)
        if (p != it->comm->rank && !has_come_from(it, p))
            return false;
    return true;
}

/* True if all that a start waits for has arrived. The start has just published its own part. */
static inline bool has_come(const struct gy_exchange *it)
{
    const struct gy_ranks awaited = it->kind->awaited;
    return gy_ranks_is_one(awaited) ? has_come_from(it, awaited.first) : has_come_from_all(it);
}

/* Completes a start that has nothing before it and nothing to wait for. Returns false if it has to wait. */
static inline __attribute__((always_inline)) bool end_at_once(const struct gy_exchange *it, bool canonical,
                                                              struct gyre_page_record *record)
{
    struct gyre_comm *comm = it->comm;
    if (comm->ctx->active_first)
        return false;
    const uint32_t saved = enter_mode(it); /* before the flags are read: reading the mode waits for loads in flight */
    if (!has_come(it)) {
        if (it->kind->kernel)
            gy_fp_leave_unused(saved);
        return false;
    }
    const struct gy_operation operation = gy_exchange_operation(it);
    finish(it, &operation, canonical);
    leave_mode(it, saved);
    gy_recorder_done(&comm->recorder, record);
    return true;
}

/* A start without its request. Returns true if it is complete. Compiled once per form, as exchange() is. */
static inline __attribute__((always_inline)) bool begin_as(struct gy_exchange *it, struct gy_call_signature *shape,
                                                           bool canonical, bool *shown_p, const enum form form)
{
    struct gyre_comm *comm = it->comm;
    /* The exchanges before this one may be complete by now, which makes room for it. */
    if (comm->inline_started - comm->inline_done >= GY_REGION_AHEAD && comm->region_first && comm->region_first->eager)
        comm->ctx->up->advance(comm->region_first);
    it->number = ++comm->inline_started;
    shape->sequence = ++comm->sequence;
    bool now = !comm->region_next && may_be_shown(it);
    if (now) {
        show_as(it, form);
        gy_exchange_expect_next(comm, it->kind->awaited, GY_EAGER_EXPECTED);
        gy_slot_wake(comm);
    }
    struct gyre_page_record *record = gy_recorder_begin_full(&comm->recorder, shape);
    count_bytes(it);
    gy_cores_show(comm);
    if (gy_request_stands_behind(comm))
        gy_signature_publish(comm, shape, NULL);
    *shown_p = now;
    return now && end_at_once(it, canonical, record);
}

static __attribute__((noinline)) bool begin_longer(struct gy_exchange *it, struct gy_call_signature *shape,
                                                   bool canonical, bool *shown_p)
{
    return form_of(it) == PLAIN ? begin_as(it, shape, canonical, shown_p, PLAIN)
                                : begin_as(it, shape, canonical, shown_p, ASKED);
}

static inline __attribute__((always_inline)) bool begin(struct gy_exchange *it, struct gy_call_signature *shape,
                                                        bool canonical, bool *shown_p)
{
    return form_of(it) == LINE ? begin_as(it, shape, canonical, shown_p, LINE)
                               : begin_longer(it, shape, canonical, shown_p);
}

/* Queues a request that a start has published, or could not publish yet. */
static void wait_in_queue(struct gyre_request *r)
{
    if (r->comm->arrived < r->shape.sequence)
        gy_request_publish_signature(r->comm);
    if (!r->previous)
        gy_request_note_beginning(r); /* the requests behind it do so when they become the first */
}

static void end_start(const struct gy_exchange *it)
{
    if ((it->number & (GY_POLL_EVERY - 1)) == 0)
        gy_progress_occasional(it->comm->ctx);
    gy_progress_wake(it->comm->ctx);
}

struct gyre_request *gy_eager_begin(struct gy_exchange *it, struct gy_call_signature *shape)
{
    struct gyre_comm *comm = it->comm;
    struct gyre_request *r;
    bool shown;
    if (begin(it, shape, gy_comm_canonical(comm), &shown)) {
        r = gy_request_ended(comm);
    } else {
        r = gy_request_adopt(it, shown);
        wait_in_queue(r);
    }
    end_start(it);
    return r;
}

bool gy_eager_restart(struct gyre_request *r)
{
    const struct gyre_comm *comm = r->comm;
    struct gy_exchange *it = &r->exchange;
    bool shown;
    bool plain = r->operation.op < GYRE_PREMUL_SUM && !comm->verify && !comm->attributes.uniform &&
                 gy_recorder_is_full(&comm->recorder);
    if (!r->eager || !plain) /* what was eager at the last start is eager now */
        return false;
    it->number = comm->inline_started + 1;
    gy_exchange_fetch_owned(it, gy_exchange_owned(it));
    bool over = begin(it, &r->shape, r->canonical, &shown);
    r->record = comm->recorder.page->started;
    if (!over) {
        gy_request_queue(r, shown);
        wait_in_queue(r);
    }
    end_start(it);
    return true;
}

bool gy_eager_start(struct gyre_comm *comm, const struct gy_call *call, struct gyre_request **request_p)
{
    struct gy_call_signature shape;
    struct gy_exchange_kind kind;
    if (comm->size < 2) /* a rank alone has no queue and waits for no peer */
        return false;
    if (!gy_eager_is_plain(comm, call) || !gy_eager_is_open(comm, call) ||
        !gy_eager_find_kind(comm, call, &shape, &kind))
        return false;
    struct gy_exchange it = gy_exchange_of(comm, &kind, &shape, 0, call->input, call->output);
    *request_p = gy_eager_begin(&it, &shape);
    return true;
}
