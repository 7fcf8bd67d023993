/* Notes of exchanges that starts have shown: eager_queue.h. */
#include "collectives/call/eager_queue.h"

#include "collectives/call/call_cache_inline.h"
#include "core/mem.h"

void gy_bundle_provide(struct gy_context *ctx)
{
    if (!ctx->bundle)
        ctx->bundle = gy_alloc_zero(1, sizeof(*ctx->bundle));
    if (ctx->bundle)
        ctx->bundle->request.bundle = ctx->bundle;
}

/* What the lists see of it is its oldest, whose clocks begin. */
static void show_oldest(struct gy_bundle *bundle)
{
    struct gyre_request *r = &bundle->request;
    const struct gy_note *note = gy_bundle_note(bundle, 0);
    if (r->record == note->serial)
        return;
    gy_arrival_copy(&r->shape, &note->shape);
    r->plan = note->request->persistent ? note->request->plan
                                        : r->comm->plans[note->shape.collective][note->shape.algorithm];
    r->record = note->serial;
    r->waiting_for = -1;
    r->idle_since = r->asked = r->told = 0;
}

void gy_bundle_add(const struct gy_exchange *it, struct gyre_request *request, bool canonical)
{
    struct gyre_comm *comm = it->comm;
    struct gy_bundle *bundle = comm->ctx->bundle;
    struct gy_note *note = gy_bundle_note(bundle, bundle->count);
    const struct gy_exchange_kind *kind = it->kind;
    if (kind != &comm->repeats[it->shape->collective].kind && kind != &request->kind) { /* the call's own */
        note->kind = *kind;
        kind = &note->kind;
    }
    note->request = request;
    note->serial = comm->recorder.page->started;
    note->canonical = canonical;
    gy_arrival_copy(&note->shape, it->shape);
    gy_exchange_set(&note->exchange, comm, kind, &note->shape, it->number, it->input, it->output);
    note->exchange.claims = it->claims;
    note->exchange.kept = it->kept;
    if (bundle->count++ > 0)
        return;
    bundle->request.comm = comm;
    bundle->request.record = 0; /* of another communicator's */
    gy_request_stand(&bundle->request);
    show_oldest(bundle);
    gy_request_note_beginning(&bundle->request);
}

static void drop_oldest(struct gy_bundle *bundle, gyre_status status)
{
    gy_request_set_complete(gy_bundle_note(bundle, 0)->request, status);
    bundle->first = (bundle->first + 1) % GY_WINDOW_AHEAD;
    bundle->count--;
}

void gy_bundle_complete(struct gy_bundle *bundle)
{
    struct gy_recorder *recorder = &bundle->request.comm->recorder;
    struct gyre_page_record *record = gy_recorder_at(recorder, gy_bundle_note(bundle, 0)->serial);
    if (record) {
        record->waited_for = -1;
        gy_recorder_done(recorder, record);
    } else {
        show_oldest(bundle);
        bundle->request.status = GYRE_SUCCESS;
        gy_request_record_end(&bundle->request);
    }
    drop_oldest(bundle, GYRE_SUCCESS);
    gy_driver_wake(bundle->request.comm->ctx);
}

void gy_bundle_miss(struct gy_bundle *bundle, int rank)
{
    show_oldest(bundle);
    gy_request_note_beginning(&bundle->request);
    bundle->request.waiting_for = rank;
}

void gy_bundle_end(struct gy_bundle *bundle, gyre_status status)
{
    for (; bundle->count > 0; drop_oldest(bundle, status)) {
        show_oldest(bundle);
        gy_request_record_end(&bundle->request);
    }
}

void gy_bundle_keep(struct gy_bundle *bundle, const struct gy_exchange_kind *kind)
{
    for (unsigned i = 0; i < bundle->count; i++) {
        struct gy_note *note = gy_bundle_note(bundle, i);
        if (note->exchange.kind != kind)
            continue;
        note->kind = *kind;
        note->exchange.kind = &note->kind;
    }
}
