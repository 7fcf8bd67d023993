/* Short point-to-point messages, straight to the link and from it.
 *
 *   send   checks ──▶ header ──▶ the transport's send_short ──▶ complete   payload sent or copied at its return
 *   recv   stashed? ──▶ copy it, complete
 *          else   awaited = header ──▶ progress of this one link … ──▶ receive handler sees this header ──▶ complete
 *
 * As in the eager exchange over regions (eager_call.c), there is no request, no list, no schedule, no allocation, no
 * lock and no clock, and no other link is polled. A call that completes this way has done what a request would have
 * done. The numbers, credits, counters, record and frame on the wire are the same, so the other end may use a
 * request. Until it completes it has no effect. Unusual and blocked calls take the general path from the beginning,
 * with its clocks, failure reports and comparison of shapes. So a frame of another shape under the awaited number is
 * stashed like any early frame, and the request finds it there. Only a send that found the socket nearly full
 * continues where it is: comm->sent_ahead says that its frame has been sent, and the request waits for the part that
 * the link has kept. */
#include <string.h>

#include "collectives/engine/progress.h"
#include "collectives/engine/request.h"
#include "collectives/link/flow_control.h"
#include "core/dtype.h"

#define SPINS 2000             /* polls of the link before the call becomes a request */
#define SPINS_SOCKET 40        /* if each is a system call */
#define SPINS_OVERSUBSCRIBED 4 /* if the peer may need this core */

_Static_assert(GY_EAGER_BYTES <= GY_FRAME_SHORT, "an eager frame is a short one");

/* True if this path is open. Tracing, comparing and showing use the general path. */
bool gy_message_open(const struct gyre_comm *comm, int rank)
{
    const struct gy_context *ctx = comm->ctx;
    if (rank == comm->rank || !comm->channels[rank] || ctx->active_first || comm->verify || comm->recorder.trace ||
        comm->sent_ahead.sequence != 0 || ctx->config.show_choice)
        return false;
    const struct gy_peer *peer = &ctx->peers[gy_group_world(&comm->group, rank)];
    return peer->link && peer->broken == 0;
}

struct gy_frame gy_message_header(const struct gyre_comm *comm, const struct gy_call *call, uint64_t sequence)
{
    return (struct gy_frame){.magic = GY_FRAME_MAGIC,
                             .version = GY_WIRE_VERSION,
                             .kind = GY_FRAME_DATA,
                             .epoch = comm->ctx->world->epoch,
                             .comm = comm->id,
                             .bytes = (uint32_t)(call->count * gy_dtype_bytes(call->dtype)),
                             .sequence = sequence,
                             .count = call->count,
                             .root = (uint32_t)call->root,
                             .collective = (uint8_t)call->collective,
                             .dtype = (uint8_t)call->dtype,
                             .op = (uint8_t)call->op,
                             .flags = GY_FRAME_EAGER};
}

/* Both ends use the sender's shape. */
static struct gy_frame header_of(const struct gyre_comm *comm, const struct gy_call *call, uint64_t number)
{
    struct gy_frame frame = gy_message_header(comm, call, GY_POINT_TO_POINT | number);
    frame.root = (uint32_t)(call->collective == GY_SEND_TO ? comm->rank : call->root);
    frame.collective = GY_SEND_TO;
    frame.algorithm = GY_LINEAR;
    return frame;
}

/* Counts and records a completed message as a request would. */
void gy_message_note(struct gyre_comm *comm, const struct gy_frame *frame, size_t blocks)
{
    const struct gy_call_signature shape = {.sequence = frame->sequence,
                                            .count = frame->count,
                                            .root = frame->root,
                                            .collective = frame->collective,
                                            .dtype = frame->dtype,
                                            .op = frame->op,
                                            .algorithm = frame->algorithm};
    comm->recorder.page->bytes += frame->bytes * blocks;
    gy_recorder_done(&comm->recorder, gy_recorder_begin(&comm->recorder, &shape));
    if ((frame->sequence & (GY_POLL_EVERY - 1)) == 0)
        gy_progress_occasional(comm->ctx);
}

/* True if a request that waits for a part of the frame would allocate nothing. */
static bool has_reserve(const struct gyre_comm *comm, int peer)
{
    return !gy_comm_posts_quickly(comm, peer) ||
           (comm->ctx->idle && gy_comm_has_schedule(comm, GY_SEND_TO, GY_LINEAR, peer));
}

static bool send_now(struct gyre_comm *comm, const struct gy_call *call)
{
    int peer = call->root;
    struct gy_channel *channel = comm->channels[peer];
    struct gy_credit *credit = &channel->credit[GY_FOR_MESSAGES];
    if (credit->left == 0 || channel->tickets != channel->left || !has_reserve(comm, peer))
        return false;
    struct gy_frame header = header_of(comm, call, channel->sent + 1);
    header.credit = gy_flow_owed(comm, peer, header.sequence);
    if (!gy_comm_send_short(comm, peer, &header, header.bytes ? call->input : NULL))
        return false;
    gy_flow_returned(comm, peer, &header);
    credit->left--;
    if (gy_comm_keeps(comm, peer)) { /* the socket was full: a request waits for the rest to be sent */
        comm->sent_ahead = (struct gy_sent_ahead){header.sequence, peer};
        return false;
    }
    channel->sent++;
    channel->tickets++;
    channel->left++;
    gy_message_note(comm, &header, 1);
    return true;
}

/* The lower rank's operand is the left one. */
void gy_awaited_take(const struct gy_awaited *awaited, const void *payload)
{
    if (awaited->frame.bytes == 0)
        return;
    if (!awaited->operation) {
        gy_copy(awaited->memory, payload, awaited->frame.bytes);
        return;
    }
    bool flip = awaited->rank < awaited->comm->rank;
    gy_combine(awaited->operation, awaited->memory, flip ? payload : awaited->own, flip ? awaited->own : payload,
               awaited->frame.count);
}

static bool is_stashed(struct gy_awaited *it)
{
    struct gy_channel *channel = it->comm->channels[it->rank];
    const struct gy_frame *frame = &it->frame;
    struct gy_stashed *stashed = gy_channel_find(channel, frame->sequence, frame->lane, frame->value);
    if (!stashed || !stashed->whole || memcmp(&stashed->frame, frame, offsetof(struct gy_frame, credit)) != 0)
        return false;
    gy_awaited_take(it, gy_channel_stash_memory(channel, stashed));
    gy_channel_unstash(channel, stashed);
    gy_flow_give_credit(it->comm, it->rank, frame);
    return true;
}

bool gy_message_comes(struct gy_awaited *it)
{
    struct gy_context *ctx = it->comm->ctx;
    const struct gy_peer *peer = &ctx->peers[it->peer];
    const struct gy_transport_ops *ops = ctx->ops[peer->transport];
    bool gives_way = ctx->oversubscribed || ctx->config.spin_ns == 0;
    int spins = gives_way ? SPINS_OVERSUBSCRIBED : ops->socket ? SPINS_SOCKET : SPINS;
    if (is_stashed(it))
        return true;
    ctx->awaited = it;
    /* A thread that waits for the lock gets it in a request's progress. There is no pause between two polls: where a
     * pause takes long at all, it takes longer than a poll, and an emulated processor leaves its loop for it. */
    for (int polls = 0; !it->arrived && polls < spins && peer->broken == 0 && !ctx->closed &&
                        atomic_load_explicit(&ctx->progress_lock.knockers, memory_order_relaxed) == 0;
         polls++) {
        if (polls == 1 && !gives_way)
            gy_flow_kept_waiting(it->comm, it->rank, it->frame.sequence);
        ops->progress(peer->link);
    }
    ctx->awaited = NULL;
    return it->arrived;
}

static bool receive_now(struct gyre_comm *comm, const struct gy_call *call)
{
    struct gy_channel *channel = comm->channels[call->root];
    struct gy_awaited it = {.frame = header_of(comm, call, channel->received + 1),
                            .comm = comm,
                            .rank = call->root,
                            .peer = gy_group_world(&comm->group, call->root),
                            .memory = call->output};
    if (!gy_message_comes(&it))
        return false;
    channel->received++;
    gy_message_note(comm, &it.frame, 1);
    return true;
}

bool gy_message_call(struct gyre_comm *comm, const struct gy_call *call, gyre_status *status_p)
{
    size_t bytes = call->count * gy_dtype_bytes(call->dtype);
    if (bytes > GY_EAGER_BYTES || !gy_message_open(comm, call->root))
        return false;
    if (!(call->collective == GY_SEND_TO ? send_now : receive_now)(comm, call))
        return false;
    *status_p = GYRE_SUCCESS;
    return true;
}
