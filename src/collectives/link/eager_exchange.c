/* A collective of a short vector between two ranks joined by a link, start to end without a request.
 *
 *   both   send what the other needs (send_short) ──▶ its frame: stashed? else awaited: eager_message.c ──▶ output
 *
 *                                            sent             received
 *   all_reduce       recursive_doubling      the input        the other operand
 *   reduce_scatter   halving_doubling        the other's      the other operand
 *   all_gather       halving_doubling        the input        the other's block
 *   all_to_all       pairwise                the other's      a block
 *   barrier          halving_doubling        nothing          nothing                both as frames without a payload
 *   reduce, gather, broadcast, scatter       one way only: binomial, linear          to the root, or from it
 *
 * It does what the schedules of these algorithms do for two ranks, in one message each way. The frame, its number, the
 * operands, their sides, the credits and the record are the same, so the other end may use the schedule. If another
 * algorithm would be chosen, or anything is unusual, the call takes the general path with no effect. A rank that is
 * blocked by the other rank or by a full socket becomes a request whose frame has been sent already:
 * comm->sent_ahead tells gy_flow_send so. */
#include <string.h>

#include "collectives/engine/lane.h"
#include "collectives/engine/request.h"
#include "collectives/link/eager_message.h"
#include "collectives/link/flow_control.h"
#include "collectives/schedule/reduction_order.h"
#include "collectives/select/selector.h"
#include "core/dtype.h"

#define RANKS 2

/* The schedule, and the sides of it that are this rank's. Both ways if there is no root. */
struct pattern {
    enum gy_algorithm algorithm;
    bool rooted, to_root;
    bool reduces, gives_blocks, takes_blocks; /* the input, the output, has a block for each rank */
};

static const struct pattern patterns[GY_COLLECTIVES] = {
    [GY_ALL_REDUCE] = {.algorithm = GY_RECURSIVE_DOUBLING, .reduces = true},
    [GY_REDUCE_SCATTER] = {.algorithm = GY_HALVING_DOUBLING, .reduces = true, .gives_blocks = true},
    [GY_ALL_GATHER] = {.algorithm = GY_HALVING_DOUBLING, .takes_blocks = true},
    [GY_ALL_TO_ALL] = {.algorithm = GY_PAIRWISE, .gives_blocks = true, .takes_blocks = true},
    [GY_BARRIER] = {.algorithm = GY_HALVING_DOUBLING},
    [GY_REDUCE_TO] = {.algorithm = GY_BINOMIAL, .rooted = true, .to_root = true, .reduces = true},
    [GY_GATHER_TO] = {.algorithm = GY_LINEAR, .rooted = true, .to_root = true, .takes_blocks = true},
    [GY_BROADCAST] = {.algorithm = GY_BINOMIAL, .rooted = true},
    [GY_SCATTER_FROM] = {.algorithm = GY_LINEAR, .rooted = true, .gives_blocks = true},
};

/* What one rank has to do. */
struct exchange {
    const struct pattern *pattern;
    const struct gy_call *call;
    int peer;
    bool sends, awaits;
    size_t bytes; /* bytes sent, each way */
    struct gy_operation operation;
};

static struct exchange exchange_of(const struct gyre_comm *comm, const struct gy_call *call)
{
    const struct pattern *pattern = &patterns[call->collective];
    bool root = comm->rank == call->root;
    return (struct exchange){.pattern = pattern,
                             .call = call,
                             .peer = 1 - comm->rank,
                             .sends = !pattern->rooted || root != pattern->to_root,
                             .awaits = !pattern->rooted || root == pattern->to_root,
                             .bytes = call->count * gy_dtype_bytes(call->dtype),
                             .operation = {.dtype = call->dtype, .op = call->op}};
}

static bool is_chosen(struct gyre_comm *comm, const struct exchange *it)
{
    enum gy_collective collective = it->call->collective;
    enum gy_operand_order order = gy_comm_canonical(comm) ? GY_ORDER_CANONICAL : GY_ORDER_ANY;
    enum gy_algorithm algorithm;
    struct gy_error error = {.quiet = true};
    if (gy_select_ordered(comm, collective, false, it->bytes, order, &algorithm, &error) != GYRE_SUCCESS ||
        algorithm != it->pattern->algorithm)
        return false;
    comm->eager[collective].chosen = it->bytes + 1;
    return true;
}

/* The longest frame: all schedules of these algorithms send it in one piece and without a grant, and the link accepts
 * it. Between hosts long vectors come in pieces, for which a request has a place when the first arrives. */
static size_t longest(const struct gyre_comm *comm, int peer)
{
    const struct gy_context *ctx = comm->ctx;
    int transport = ctx->peers[gy_group_world(&comm->group, peer)].transport;
    if (transport < 0 || !gy_flow_is_loopback(comm, peer))
        return GY_EAGER_BYTES;
    size_t tile = gy_min_size(ctx->config.shm_slot, ctx->config.tcp_tile);
    size_t most = gy_min_size(ctx->ops[transport]->eager, gy_eager_most(GY_FOR_COLLECTIVES) * GY_EAGER_BYTES);
    return gy_max_size(gy_min_size(tile, most), GY_EAGER_BYTES);
}

/* True if the call could become a request without allocating: once a frame has been sent there is no way back, and
 * the second call of a shape never allocates. In place, some collectives copy their input aside, and a long operand
 * of a reduction needs a landing buffer. */
static bool has_reserve(const struct gyre_comm *comm, const struct exchange *it)
{
    const struct gy_call *call = it->call;
    bool lands = it->pattern->reduces && it->awaits && it->bytes > GY_EAGER_BYTES;
    size_t aside = lands ? it->bytes : 0;
    int buffers = 1;
    if (!gy_comm_has_schedule(comm, call->collective, it->pattern->algorithm, call->root))
        return false;
    if (!it->sends)
        return true;
    if (call->input == call->output && call->collective == GY_ALL_REDUCE)
        aside = gy_scratch_slot(it->bytes), buffers += lands;
    else if (call->input == call->output && call->collective == GY_ALL_TO_ALL)
        aside = RANKS * it->bytes;
    return comm->ctx->idle && (aside == 0 || gy_context_buffers_wait(comm->ctx, aside, buffers));
}

/* True if the path is open. The schedule exists from the second call on, and with it the link and the channel. */
static bool is_open(struct gyre_comm *comm, const struct exchange *it)
{
    const struct gy_call *call = it->call;
    bool widens = it->pattern->reduces && gy_comm_canonical(comm) && gy_operation_widens(&it->operation);
    return !call->varying && !call->unforced && call->op < GYRE_PREMUL_SUM &&
           (it->bytes <= GY_EAGER_BYTES || it->bytes <= longest(comm, it->peer)) &&
           (call->count > 0) == (call->collective != GY_BARRIER) && !widens && !comm->attributes.uniform &&
           gy_message_open(comm, it->peer) && has_reserve(comm, it) &&
           (comm->eager[call->collective].chosen == it->bytes + 1 || is_chosen(comm, it));
}

/* A rank's block in a buffer of blocks. A buffer without blocks may be NULL. */
static unsigned char *block(const void *buffer, bool blocks, int rank, size_t bytes)
{
    unsigned char *first = (unsigned char *)(uintptr_t)buffer;
    return blocks ? first + (size_t)rank * bytes : first;
}

static struct gy_frame header_of(const struct gyre_comm *comm, const struct exchange *it)
{
    struct gy_frame frame = gy_message_header(comm, it->call, comm->sequence + 1);
    frame.algorithm = (uint8_t)it->pattern->algorithm;
    return frame;
}

/* A rank that only sends polls the link only when it needs credit. */
static bool has_credit(struct gyre_comm *comm, int rank, unsigned units)
{
    const struct gy_credit *credit = &comm->channels[rank]->credit[GY_FOR_COLLECTIVES];
    const struct gy_peer *peer = &comm->ctx->peers[gy_group_world(&comm->group, rank)];
    if (credit->left < units)
        comm->ctx->ops[peer->transport]->progress(peer->link);
    return credit->left >= units && peer->broken == 0 && !comm->ctx->closed;
}

/* Sends the payload, which is not read any more afterwards. What a full socket leaves of it is sent by the request.
 * An unexpected frame of the peer is left to the general path, which refuses it. */
static bool send_now(struct gyre_comm *comm, const struct exchange *it, const struct gy_frame *frame)
{
    struct gy_channel *channel = comm->channels[it->peer];
    struct gy_credit *credit = &channel->credit[GY_FOR_COLLECTIVES];
    unsigned units = gy_eager_units(frame->bytes);
    struct gy_frame header = *frame;
    if (!has_credit(comm, it->peer, units))
        return false;
    header.credit = gy_flow_owed(comm, it->peer, frame->sequence);
    if ((!it->awaits && gy_channel_any(channel, frame->sequence)) ||
        !gy_comm_send_short(comm, it->peer, &header,
                            block(it->call->input, it->pattern->gives_blocks, it->peer, it->bytes)))
        return false;
    gy_flow_returned(comm, it->peer, &header);
    credit->left -= units;
    return true;
}

static bool comes(struct gyre_comm *comm, const struct exchange *it, const struct gy_frame *frame)
{
    const struct gy_call *call = it->call;
    struct gy_awaited awaited = {.frame = *frame,
                                 .comm = comm,
                                 .rank = it->peer,
                                 .peer = gy_group_world(&comm->group, it->peer),
                                 .memory = block(call->output, it->pattern->takes_blocks, it->peer, it->bytes)};
    if (it->pattern->reduces) { /* else there may be no input */
        awaited.operation = &it->operation;
        awaited.own = block(call->input, it->pattern->gives_blocks, comm->rank, it->bytes);
    }
    return gy_message_comes(&awaited);
}

/* Ends the operation. If nothing is reduced, copies this rank's own block. */
static void finish(const struct gyre_comm *comm, const struct exchange *it)
{
    const struct gy_call *call = it->call;
    bool has_output = it->awaits || call->collective == GY_BROADCAST || call->collective == GY_SCATTER_FROM;
    bool has_input = it->sends || call->collective == GY_GATHER_TO;
    if (it->pattern->reduces && it->awaits) {
        gy_operation_end(&it->operation, call->output, call->count, RANKS);
    } else if (!it->pattern->reduces && has_input && has_output && it->bytes > 0) {
        unsigned char *own = block(call->output, it->pattern->takes_blocks, comm->rank, it->bytes);
        const unsigned char *from = block(call->input, it->pattern->gives_blocks, comm->rank, it->bytes);
        if (own != from)
            memcpy(own, from, it->bytes);
    }
}

bool gy_eager_exchange_call(struct gyre_comm *comm, const struct gy_call *call, gyre_status *status_p)
{
    if (comm->size != RANKS || comm->region >= 0)
        return false;
    const struct exchange it = exchange_of(comm, call);
    if (!is_open(comm, &it))
        return false;
    const struct gy_frame frame = header_of(comm, &it);
    if (it.sends && !send_now(comm, &it, &frame))
        return false;
    if ((it.sends && gy_comm_keeps(comm, it.peer)) || (it.awaits && !comes(comm, &it, &frame))) {
        if (it.sends)
            comm->sent_ahead = (struct gy_sent_ahead){frame.sequence, it.peer};
        return false;
    }
    comm->sequence++;
    finish(comm, &it);
    gy_message_note(comm, &frame, it.pattern->gives_blocks || it.pattern->takes_blocks ? RANKS : 1);
    *status_p = GYRE_SUCCESS;
    return true;
}
