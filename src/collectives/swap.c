/* all_reduce of a short vector between two ranks that a link joins, start to end without a request.
 *
 *   both   the input leaves (send_short) ──▶ the peer's is stashed? else awaited, as in message.c ──▶ output = left + right
 *
 * It does what the plan of recursive doubling does for two ranks, in one message each way: the same frame under the same
 * number, the same operands on the same sides, the same credits and record; so the other end need not go the same way. Where that
 * is not what would be chosen, or anything is unusual, the call takes the general path with nothing done. A peer that keeps it
 * waiting makes it a request, whose input has left already: comm->swapped says so to gy_flow_send. */
#include <string.h>

#include "collectives/order.h"
#include "collectives/request.h"
#include "core/dtype.h"

static bool is_chosen(const struct gyre_comm *comm, size_t bytes)
{
    enum gy_operand_order order = gy_comm_canonical(comm) ? GY_ORDER_CANONICAL : GY_ORDER_ANY;
    enum gy_algorithm algorithm;
    struct gy_error error = {.quiet = true};
    return gy_select_ordered(comm, GY_ALL_REDUCE, false, bytes, order, &algorithm, &error) == GYRE_SUCCESS &&
           algorithm == GY_RECURSIVE_DOUBLING;
}

/* The plan is there from the second call on, and with it the link and the channel. */
static bool is_open(const struct gyre_comm *comm, const struct gy_call *call, size_t bytes)
{
    const struct gy_operation operation = {.dtype = call->dtype, .op = call->op};
    return comm->size == 2 && call->collective == GY_ALL_REDUCE && comm->window < 0 && !call->varying &&
           call->op < GYRE_PREMUL_SUM && call->count > 0 && bytes <= GY_EAGER_BYTES && comm->swapped == 0 &&
           comm->plans[GY_ALL_REDUCE][GY_RECURSIVE_DOUBLING] && !comm->attributes.uniform &&
           gy_message_open(comm, 1 - comm->rank) && is_chosen(comm, bytes) &&
           !(gy_comm_canonical(comm) && gy_operation_widens(&operation));
}

static struct gy_frame header_of(const struct gyre_comm *comm, const struct gy_call *call)
{
    struct gy_frame frame = gy_message_header(comm, call, comm->sequence + 1);
    frame.lane = comm->plans[GY_ALL_REDUCE][GY_RECURSIVE_DOUBLING]->lane[0].channel;
    frame.algorithm = GY_RECURSIVE_DOUBLING;
    return frame;
}

static bool send_now(struct gyre_comm *comm, const struct gy_call *call, const struct gy_frame *frame)
{
    int peer = 1 - comm->rank;
    struct gy_credit *credit = &comm->channels[peer]->credit[GY_FOR_COLLECTIVES];
    struct gy_frame header = *frame;
    header.credit = gy_flow_owed(comm, peer, frame->sequence);
    if (credit->left == 0 || !gy_comm_send_short(comm, peer, &header, call->input))
        return false;
    gy_flow_returned(comm, peer, &header);
    credit->left--;
    return true;
}

bool gy_swap_call(struct gyre_comm *comm, const struct gy_call *call, gyre_status *status_p)
{
    size_t bytes = call->count * gy_dtype_bytes(call->dtype);
    if (!is_open(comm, call, bytes))
        return false;
    const struct gy_frame frame = header_of(comm, call);
    if (!send_now(comm, call, &frame))
        return false;
    const struct gy_operation operation = {.dtype = call->dtype, .op = call->op};
    struct gy_awaited it = {.frame = frame,
                            .comm = comm,
                            .rank = 1 - comm->rank,
                            .peer = gy_group_world(&comm->group, 1 - comm->rank),
                            .memory = call->output,
                            .operation = &operation,
                            .own = call->input};
    if (!gy_message_comes(&it)) {
        comm->swapped = frame.sequence;
        return false;
    }
    comm->sequence++;
    gy_operation_end(&operation, call->output, call->count, 2);
    gy_message_note(comm, &frame);
    *status_p = GYRE_SUCCESS;
    return true;
}
