/* The entries of exchanges that starts have published: eager_queue.h. */
#include "collectives/call/eager_queue.h"

#include "collectives/call/call_cache_inline.h"
#include "core/mem.h"

void gy_eager_queue_provide(struct gy_context *ctx)
{
    if (!ctx->eager_queue)
        ctx->eager_queue = gy_alloc_zero(1, sizeof(*ctx->eager_queue));
    if (ctx->eager_queue)
        ctx->eager_queue->request.eager_queue = ctx->eager_queue;
}

/* The request in the lists represents the oldest entry, whose clocks begin. */
static void show_oldest(struct gy_eager_queue *eager_queue)
{
    struct gyre_request *r = &eager_queue->request;
    const struct gy_note *note = gy_eager_queue_at(eager_queue, 0);
    if (r->record == note->serial)
        return;
    gy_signature_copy(&r->shape, &note->shape);
    r->schedule = note->request->persistent ? note->request->schedule
                                            : r->comm->schedules[note->shape.collective][note->shape.algorithm];
    r->record = note->serial;
    r->waiting_for = -1;
    r->idle_since = r->asked = r->told = 0;
}

void gy_eager_queue_add(const struct gy_exchange *it, struct gyre_request *request, bool canonical)
{
    struct gyre_comm *comm = it->comm;
    struct gy_eager_queue *eager_queue = comm->ctx->eager_queue;
    struct gy_note *note = gy_eager_queue_at(eager_queue, eager_queue->count);
    const struct gy_exchange_kind *kind = it->kind;
    if (kind != &comm->call_cache[it->shape->collective].kind && kind != &request->kind) { /* the call's own */
        note->kind = *kind;
        kind = &note->kind;
    }
    note->request = request;
    note->serial = comm->recorder.page->started;
    note->canonical = canonical;
    gy_signature_copy(&note->shape, it->shape);
    gy_exchange_set(&note->exchange, comm, kind, &note->shape, it->number, it->input, it->output);
    note->exchange.claims = it->claims;
    note->exchange.kept = it->kept;
    if (eager_queue->count++ > 0)
        return;
    eager_queue->request.comm = comm;
    eager_queue->request.record = 0; /* left from another communicator */
    gy_request_stand(&eager_queue->request);
    show_oldest(eager_queue);
    gy_request_note_beginning(&eager_queue->request);
}

static void drop_oldest(struct gy_eager_queue *eager_queue, gyre_status status)
{
    gy_request_set_complete(gy_eager_queue_at(eager_queue, 0)->request, status);
    eager_queue->first = (eager_queue->first + 1) % GY_REGION_AHEAD;
    eager_queue->count--;
}

void gy_eager_queue_complete(struct gy_eager_queue *eager_queue)
{
    struct gy_recorder *recorder = &eager_queue->request.comm->recorder;
    struct gyre_page_record *record = gy_recorder_at(recorder, gy_eager_queue_at(eager_queue, 0)->serial);
    if (record) {
        record->waited_for = -1;
        gy_recorder_done(recorder, record);
    } else {
        show_oldest(eager_queue);
        eager_queue->request.status = GYRE_SUCCESS;
        gy_request_record_end(&eager_queue->request);
    }
    drop_oldest(eager_queue, GYRE_SUCCESS);
    gy_progress_wake(eager_queue->request.comm->ctx);
}

void gy_eager_queue_miss(struct gy_eager_queue *eager_queue, int rank)
{
    show_oldest(eager_queue);
    gy_request_note_beginning(&eager_queue->request);
    eager_queue->request.waiting_for = rank;
}

void gy_eager_queue_end(struct gy_eager_queue *eager_queue, gyre_status status)
{
    for (; eager_queue->count > 0; drop_oldest(eager_queue, status)) {
        show_oldest(eager_queue);
        gy_request_record_end(&eager_queue->request);
    }
}

void gy_eager_queue_keep(struct gy_eager_queue *eager_queue, const struct gy_exchange_kind *kind)
{
    for (unsigned i = 0; i < eager_queue->count; i++) {
        struct gy_note *note = gy_eager_queue_at(eager_queue, i);
        if (note->exchange.kind != kind)
            continue;
        note->kind = *kind;
        note->exchange.kind = &note->kind;
    }
}
