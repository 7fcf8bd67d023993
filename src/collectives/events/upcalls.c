/* What lower layers call of higher ones: the one place that knows both. */
#include "collectives/events/upcalls.h"

#include "collectives/call/eager_progress.h"
#include "collectives/call/executor.h"
#include "collectives/call/prepare.h"
#include "collectives/engine/progress.h"
#include "collectives/events/failure.h"
#include "collectives/events/receive_dispatch.h"
#include "collectives/events/stall_detector.h"
#include "collectives/lifecycle/comm_teardown.h"
#include "collectives/lifecycle/result_check.h"
#include "collectives/lifecycle/uniform_completion.h"
#include "collectives/link/flow_control.h"
#include "collectives/rma/window.h"
#include "collectives/shm/slots.h"
#include "collectives/shm/zero_copy.h"

static bool advance(struct gyre_request *r)
{
    switch (r->phase) {
    case GY_CONFIRMS: return gy_uniform_advance(r);
    case GY_DETACHES: return gy_comm_end_advance(r);
    default: return r->eager ? gy_request_is_first(r) && gy_eager_advance(r) : gy_request_advance(r);
    }
}

static void ending(struct gyre_request *r, gyre_status status)
{
    if (status != GYRE_SUCCESS) {
        gy_mapped_withdraw(r);
        return;
    }
    if (r->schedule->output_blocks > 0 && !r->eager)
        gy_prepare_end(r);
    if (r->comm->verify)
        gy_verify_finish(r);
}

static void ended(struct gyre_request *r)
{
    if (!r->persistent && !r->light)
        gy_prepare_undo(r);
}

static void launched(struct gyre_request *r)
{
    if (r->comm->verify)
        gy_verify_launch(r);
    if (r->comm->attributes.uniform)
        gy_uniform_launch(r);
}

static gyre_status refuse(struct gyre_comm *comm)
{
    if (!comm->ctx->closed)
        return gy_comm_end_refuse(comm);
    gy_uniform_refuse(comm, true);
    return comm->ctx->error.status;
}

const struct gy_upcalls gy_upcalls = {
    .handler = &gy_flow_handler,
    .failed = gy_failure_spread,
    .drive = gy_drive,
    .returned = gy_uniform_return,
    .agree = gy_uniform_wait,
    .answer = gy_rma_answer,
    .compare = gy_verify_progress,
    .watch = gy_liveness_check,
    .advance = advance,
    .step_begins = gy_flow_begin,
    .everyone = gy_slot_everyone,
    .needs_nobody = gy_slot_idle,
    .ending = ending,
    .ended = ended,
    .launched = launched,
    .confirm = gy_uniform_confirm,
    .prepare = gy_uniform_prepare,
    .settle = gy_verify_settle,
    .refuse = refuse,
};
