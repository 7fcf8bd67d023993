/* A call becomes an eager exchange, and the exchange a request if it has to wait. */
#include "collectives/call/call_cache.h"
#include "collectives/call/eager_fit.h"
#include "collectives/call/eager_internal.h"
#include "collectives/engine/call_check.h"

#include <string.h>

/* True if the schedule of the choice exists, which peers may use; false without memory for it. */
static bool has_schedule(struct gyre_comm *comm, enum gy_collective collective)
{
    enum gy_algorithm algorithm = (enum gy_algorithm)comm->eager[collective].algorithm;
    return comm->schedules[collective][algorithm] || gy_comm_schedule(comm, collective, algorithm, 0);
}

bool gy_eager_find_kind(struct gyre_comm *comm, const struct gy_call *call, struct gy_call_signature *shape_p,
                        struct gy_exchange_kind *kind_p)
{
    if (!has_schedule(comm, call->collective) || !gy_recorder_provide(&comm->recorder))
        return false;
    *shape_p = gy_shape_of(call, (enum gy_algorithm)comm->eager[call->collective].algorithm, comm->size);
    *kind_p = gy_exchange_kind_of(comm, shape_p, gy_dtype_bytes(call->dtype));
    gy_call_cache_keep(comm, call, shape_p, kind_p);
    return true;
}

struct gyre_request *gy_request_adopt(const struct gy_exchange *it, bool begun)
{
    struct gyre_comm *comm = it->comm;
    struct gyre_request *r = gy_request_opened(comm);
    /* Cleared in two parts: for a larger block compilers emit a string instruction, which takes longer than the rest
     * of this function. */
    memset(&r->eager_next, 0, offsetof(struct gyre_request, offer) - offsetof(struct gyre_request, eager_next));
    r->offer = (struct gy_offer){0};
    r->schedule = comm->schedules[it->shape->collective][it->shape->algorithm];
    gy_signature_copy(&r->shape, it->shape);
    r->input = it->input;
    r->output = it->output;
    r->operation = gy_exchange_operation(it);
    r->element = gy_dtype_bytes(r->operation.dtype);
    r->record = comm->recorder.page->started;
    r->kind = *it->kind;
    gy_exchange_set(&r->exchange, comm, &r->kind, &r->shape, it->number, it->input, it->output);
    r->exchange.claims = it->claims;
    r->exchange.kept = it->kept;
    r->waiting_for = -1;
    r->canonical = gy_comm_canonical(comm);
    gy_request_queue_up(r, begun);
    return r;
}
