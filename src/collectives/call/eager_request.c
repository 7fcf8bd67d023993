/* A call becomes a direct exchange, and that a request where it has to wait. */
#include "collectives/call/call_cache.h"
#include "collectives/call/eager_fit.h"
#include "collectives/call/eager_internal.h"
#include "collectives/engine/call_check.h"

#include <string.h>

/* Is the direct path open? Whatever is unusual takes the general one: a first call, which makes plan, region and request, an
 * operation that needs more than kernels, or a choice that is to be shown. */
static bool is_open(struct gyre_comm *comm, const struct gy_call *call)
{
    enum gy_collective collective = call->collective;
    if (!gy_eager_is_plain(comm, call) || collective >= GY_SEND_TO || call->count > GY_REGION_VECTOR)
        return false;
    return gy_eager_limit(comm, collective) >= 0 &&
           (comm->plans[collective][comm->eager[collective].algorithm] ||
            gy_comm_plan(comm, collective, (enum gy_algorithm)comm->eager[collective].algorithm, 0));
}

bool gy_eager_find_kind(struct gyre_comm *comm, const struct gy_call *call, struct gy_call_signature *shape_p,
                        struct gy_exchange_kind *kind_p)
{
    if (!is_open(comm, call) || !gy_recorder_provide(&comm->recorder))
        return false;
    *shape_p = gy_shape_of(call, (enum gy_algorithm)comm->eager[call->collective].algorithm, comm->size);
    *kind_p = gy_exchange_kind_of(comm, shape_p, gy_dtype_bytes(call->dtype));
    if ((int64_t)kind_p->bytes > comm->eager[call->collective].most)
        return false;
    gy_call_cache_keep(comm, call, shape_p, kind_p);
    return true;
}

struct gyre_request *gy_request_adopt(const struct gy_exchange *it, bool begun)
{
    struct gyre_comm *comm = it->comm;
    struct gyre_request *r = gy_request_opened(comm);
    /* In two: of more at once compilers make a string instruction, which takes longer than all the rest of this. */
    memset(&r->eager_next, 0, offsetof(struct gyre_request, offer) - offsetof(struct gyre_request, eager_next));
    r->offer = (struct gy_offer){0};
    r->plan = comm->plans[it->shape->collective][it->shape->algorithm];
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
