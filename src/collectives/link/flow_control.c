/* The steps over links; arriving frames are handled by receive_dispatch.c.
 *
 *   sender                                     receiver
 *   eager:   DATA(value = iteration) ────────▶ lane is there: consume; else stash; credit back with the next DATA the
 *                                             other way, or in batches (CREDIT)
 *   granted:        ◀──────────────────────── GRANT(value = iterations allowed), as soon as their place is ready
 *            DATA ───────────────────────────▶ straight to its place, or to the landing buffer and reduced from there
 *
 *   WANT ───────────────────────────────────▶ asks for a GRANT that this side had no room to keep, or that is late:
 *                                             it carries the shape, so that two waiting ranks find a mismatch
 *
 * Iterations are numbered per peer and tag, so that both sides count alike whatever their other lanes do. */
#include <string.h>

#include "collectives/engine/call_check.h"
#include "collectives/engine/lane.h"
#include "collectives/engine/request.h"
#include "collectives/link/flow_control.h"
#include "core/clock.h"

#define LOCAL_AHEAD ((size_t)512 << 10)
#define WIRE_SPEED 1.25 /* bytes per nanosecond, 10 Gbit/s, for which the data in flight between hosts must suffice */
#define GRANT_TIMEOUT (1 * GY_MILLISECOND)
#define PROMPT 4 /* requests in flight: with more, short frames are sent together at the next progress */

/* The count of a shape between this rank and one peer: if counts differ from pair to pair, theirs. */
static uint64_t count_with(const struct gyre_request *r, int peer, bool sends)
{
    if (r->shape.collective != (GY_ALL_TO_ALL | GY_VARYING))
        return r->shape.count;
    const struct gy_layout *layout = sends ? &r->in : &r->out;
    return gy_layout_start(layout, peer + 1) - gy_layout_start(layout, peer);
}

void gy_frame_fill(const struct gyre_request *r, struct gy_frame *frame, enum gy_frame_kind kind, int tag, int peer)
{
    memset(frame, 0, sizeof(*frame));
    frame->kind = (uint8_t)kind;
    frame->epoch = r->comm->ctx->world->epoch;
    frame->comm = r->comm->id;
    frame->sequence = r->shape.sequence;
    frame->count = count_with(r, peer, kind != GY_FRAME_GRANT);
    frame->root = r->shape.root;
    frame->lane = (uint16_t)tag;
    frame->collective = r->shape.collective;
    frame->dtype = r->shape.dtype;
    frame->op = r->shape.op;
    frame->algorithm = r->shape.algorithm;
}

static bool is_oldest(const struct gyre_request *r)
{
    for (const struct gyre_request *q = r->comm->ctx->active_first; q; q = q->next)
        if (q->comm == r->comm && !q->schedule->shm && !gy_is_point_to_point(q->schedule->shape.collective))
            return q == r;
    return false;
}

/* Both ends of a link compute the same: tags match by pair. Short vectors are eager in tiles, too, which are to
 * be forwarded early. Between hosts a grant costs little compared with a long vector; between sockets of a host it
 * costs as much. */
bool gy_flow_is_eager(const struct gyre_request *r, int l, const struct gy_step *step)
{
    const struct gy_context *ctx = r->comm->ctx;
    int transport = ctx->peers[gy_group_world(&r->comm->group, step->peer)].transport;
    size_t most = transport < 0 ? 0 : ctx->ops[transport]->eager;
    if (most > GY_EAGER_INTER_HOST && !gy_flow_is_loopback(r->comm, step->peer))
        most = GY_EAGER_INTER_HOST;
    return gy_eager_leaves(r->schedule, l, step->peer, gy_step_longest(r, step) * r->element, most);
}

bool gy_flow_control(struct gyre_request *r, int l, int peer, enum gy_frame_kind kind, uint64_t value)
{
    struct gy_lane_state *lane = &r->lane[l];
    if (lane->control.queued)
        return false;
    gy_frame_fill(r, &lane->control.header, kind, r->schedule->lane[l].tag, peer);
    lane->control.header.value = value;
    lane->control.payload = NULL;
    gy_comm_post(r->comm, peer, &lane->control);
    return true;
}

/* Messages to a peer take credit in the order of their tickets. If one overtook, it would take the credit of the one
 * before it, for which the receiver waits. Younger collectives leave half of the credits to the oldest. */
static bool take_credit(const struct gyre_request *r, struct gy_channel *channel, uint32_t bytes)
{
    bool message = gy_is_point_to_point(r->schedule->shape.collective);
    struct gy_credit *credit = &channel->credit[message ? GY_FOR_MESSAGES : GY_FOR_COLLECTIVES];
    unsigned reserve = message || is_oldest(r) ? 0 : GY_OLDEST_CREDITS, units = gy_eager_units(bytes);
    if (credit->left < reserve + units || (message && r->ticket != channel->left))
        return false;
    credit->left -= units;
    channel->left += message;
    return true;
}

/* True if it is time to ask for a grant. Normally the peer sends it unasked when it is ready. */
static bool is_overdue(const struct gyre_request *r, struct gy_lane_state *lane, const struct gy_channel *channel)
{
    if (channel->grants_lost)
        return true;
    if (lane->wanted == 0)
        lane->wanted = gy_now();
    return r->comm->ctx->progressed_at - lane->wanted > GRANT_TIMEOUT;
}

/* Returns true if the frame may be sent now, and takes its credit. */
static bool allowed(struct gyre_request *r, int l, int peer, uint64_t number, uint32_t bytes)
{
    struct gy_lane_state *lane = &r->lane[l];
    struct gy_channel *channel = r->comm->channels[peer];
    if (lane->eager)
        return take_credit(r, channel, bytes);
    if (lane->want) {
        uint64_t kept = gy_channel_take_grant(channel, r->shape.sequence, r->schedule->lane[l].tag);
        if (kept > lane->granted)
            lane->granted = kept;
        if (lane->granted > number ||
            (is_overdue(r, lane, channel) && gy_flow_control(r, l, peer, GY_FRAME_WANT, number)))
            lane->want = false;
    }
    return number < lane->granted;
}

/* The frame was sent before the request was made, except for a part, if the socket had no room. */
static bool take_sent_ahead(struct gyre_request *r, int l)
{
    struct gyre_comm *comm = r->comm;
    struct gy_lane_state *lane = &r->lane[l];
    if (gy_comm_keeps(comm, comm->sent_ahead.rank)) {
        r->waiting_for = comm->sent_ahead.rank;
        return false;
    }
    comm->channels[comm->sent_ahead.rank]->left += gy_is_point_to_point(r->schedule->shape.collective);
    comm->sent_ahead.sequence = 0;
    gy_lane_done(lane, lane->lane_round, lane->tile, lane->tiles);
    gy_lane_next(r, l);
    return true;
}

bool gy_flow_send(struct gyre_request *r, int l)
{
    struct gy_lane_state *lane = &r->lane[l];
    const struct gy_step *step = &r->schedule->step[lane->step];
    if (lane->flights == GY_SENDS_IN_FLIGHT || !gy_needs_met(r, l, step, lane->lane_round, lane->tile))
        return false;
    if (r->comm->sent_ahead.sequence == r->shape.sequence && r->comm->sent_ahead.rank == step->peer)
        return take_sent_ahead(r, l);
    uint64_t number = lane->pair_base + (uint64_t)lane->round * lane->tiles + lane->tile;
    struct gy_piece piece = gy_lane_piece(r, l);
    uint32_t bytes = (uint32_t)(piece.count * r->element);
    if (!allowed(r, l, step->peer, number, bytes)) {
        r->waiting_for = step->peer;
        return false;
    }
    struct gy_in_flight *flight = &lane->flight[(lane->first_flight + lane->flights) % GY_SENDS_IN_FLIGHT];
    flight->round = lane->lane_round;
    flight->tile = lane->tile;
    flight->tiles = lane->tiles;
    flight->peer = step->peer;
    gy_frame_fill(r, &flight->out.header, GY_FRAME_DATA, r->schedule->lane[l].tag, step->peer);
    flight->out.header.value = number;
    flight->out.header.bytes = bytes;
    flight->out.header.flags = lane->eager ? GY_FRAME_EAGER : 0;
    flight->out.header.credit = gy_flow_owed(r->comm, step->peer, r->shape.sequence);
    bool together = r->comm->ctx->together && !gy_comm_posts_quickly(r->comm, step->peer);
    flight->out.coalesce = lane->eager && (together || r->comm->ctx->active > PROMPT);
    r->comm->ctx->gathered |= together;
    flight->out.payload = piece.count ? gy_operand(r, l, step->src, piece.start) : NULL;
    gy_flow_returned(r->comm, step->peer, &flight->out.header);
    if (lane->eager && lane->flights == 0 && bytes <= GY_FRAME_SHORT && !together &&
        !gy_comm_posts_quickly(r->comm, step->peer) &&
        gy_comm_send_short(r->comm, step->peer, &flight->out.header, flight->out.payload)) {
        gy_lane_done(lane, lane->lane_round, lane->tile, lane->tiles);
        gy_lane_next(r, l);
        return true;
    }
    lane->flights++;
    gy_lane_next(r, l);
    gy_comm_post(r->comm, step->peer, &flight->out);
    return true;
}

bool gy_flow_reap(struct gyre_request *r, int l)
{
    struct gy_lane_state *lane = &r->lane[l];
    bool moved = false;
    while (lane->flights > 0 && lane->flight[lane->first_flight].out.done) {
        struct gy_in_flight *flight = &lane->flight[lane->first_flight];
        gy_lane_done(lane, flight->round, flight->tile, flight->tiles);
        lane->first_flight = (lane->first_flight + 1) % GY_SENDS_IN_FLIGHT;
        lane->flights--;
        moved = true;
    }
    if (lane->flights > 0)
        r->waiting_for = lane->flight[lane->first_flight].peer;
    return moved;
}

/* Uses the payload of the lane's current iteration. */
void gy_flow_consume(struct gyre_request *r, int l, const void *payload)
{
    struct gy_lane_state *lane = &r->lane[l];
    const struct gy_step *step = &r->schedule->step[lane->step];
    struct gy_piece piece = gy_lane_piece(r, l);
    if (piece.count > 0) {
        unsigned char *dst = gy_operand(r, l, step->dst, piece.start);
        if (step->kind == GY_RECV_REDUCE) {
            const void *own = gy_operand(r, l, step->src, piece.start);
            gy_combine(&r->operation, dst, step->flip ? payload : own, step->flip ? own : payload, piece.count);
        } else if (dst != payload) {
            memcpy(dst, payload, piece.count * r->element);
        }
    }
    gy_lane_done(lane, lane->lane_round, lane->tile, lane->tiles);
    gy_lane_next(r, l);
}

bool gy_flow_is_loopback(const struct gyre_comm *comm, int peer)
{
    const struct gy_context *ctx = comm->ctx;
    const struct gy_world *world = ctx->world;
    int rank = gy_group_world(&comm->group, peer);
    return world->members[rank].host == world->members[world->rank].host &&
           ctx->ops[ctx->peers[rank].transport]->has_descriptor;
}

/* True if more of the same can be consumed at once and the peer still has credit to send meanwhile. Then one frame
 * returns all. */
static bool waits_for_more(const struct gyre_comm *comm, int peer, enum gy_credit_use use)
{
    const struct gy_link *link = comm->ctx->peers[gy_group_world(&comm->group, peer)].link;
    return link && link->more && comm->channels[peer]->credit[use].owed + gy_eager_most(use) <= gy_credit_most(use);
}

/* Returns credit by a frame of its own. */
static void give_back(struct gyre_comm *comm, int peer, enum gy_credit_use use)
{
    struct gy_credit *credit = &comm->channels[peer]->credit[use];
    struct gy_frame *frame = &credit->out.header;
    memset(frame, 0, sizeof(*frame));
    frame->kind = GY_FRAME_CREDIT;
    frame->epoch = comm->ctx->world->epoch;
    frame->comm = comm->id;
    frame->lane = (uint16_t)use;
    frame->value = credit->owed;
    credit->owed = 0;
    credit->out.payload = NULL;
    gy_comm_post(comm, peer, &credit->out);
}

/* Returns the consumed credit in batches; retried at every progress call while the frame before is in flight. */
static void return_credit(struct gyre_comm *comm, int peer, enum gy_credit_use use)
{
    const struct gy_credit *credit = &comm->channels[peer]->credit[use];
    if (credit->owed >= gy_credit_batch(use) && !credit->out.queued && !waits_for_more(comm, peer, use))
        give_back(comm, peer, use);
}

/* While a process sends on a socket, the kernel leaves arriving data to the socket's owner, which processes it in
 * its own cache, and whose sends acknowledge it. Otherwise the sender's core does all that, on cache lines that it
 * has to fetch: between two cores of a host one way took a third longer than an exchange. */
void gy_flow_kept_waiting(struct gyre_comm *comm, int peer, uint64_t sequence)
{
    enum gy_credit_use use = gy_credit_use_of(sequence);
    const struct gy_credit *credit = &comm->channels[peer]->credit[use];
    const struct gy_context *ctx = comm->ctx;
    bool socket = ctx->ops[ctx->peers[gy_group_world(&comm->group, peer)].transport]->socket;
    if (credit->owed > 0 && !credit->out.queued && socket && gy_flow_is_loopback(comm, peer))
        give_back(comm, peer, use);
}

uint8_t gy_flow_owed(const struct gyre_comm *comm, int peer, uint64_t sequence)
{
    return (uint8_t)comm->channels[peer]->credit[gy_credit_use_of(sequence)].owed; /* never more than there are */
}

void gy_flow_returned(struct gyre_comm *comm, int peer, const struct gy_frame *frame)
{
    comm->channels[peer]->credit[gy_credit_use_of(frame->sequence)].owed -= frame->credit;
}

void gy_flow_give_credit(struct gyre_comm *comm, int peer, const struct gy_frame *frame)
{
    comm->channels[peer]->credit[gy_credit_use_of(frame->sequence)].owed += gy_eager_units(frame->bytes);
    return_credit(comm, peer, gy_credit_use_of(frame->sequence));
}

/* Returns the limit of messages in flight from the peer.
 *
 * Between sockets of one host the kernel's queue holds them. While it stays short, it stays in the caches and never
 * fills the socket: bytes take two thirds of the time. It does so if tiles are short. Two messages are always
 * allowed, however long; otherwise the sender would stop at every grant.
 *
 * Between hosts it is two and the bandwidth-delay product, if two peers share a wire. The wire takes what its queue
 * is given. If a socket held a whole vector, one peer got two bytes for each of the other's, which then waited for
 * its children's wires: two trees took 1.3 times as long.
 *
 * Elsewhere there is no limit, also while this rank computes and rarely makes progress. Links over RDMA are bounded
 * by their ring, of 256 KiB unless GYRE_RDMA_RING says otherwise: inside a host the limit for sockets matters for
 * longer rings only. Other transports bound the data in flight themselves, too. */
uint64_t gy_flow_ahead(const struct gyre_request *r, int peer)
{
    const struct gy_context *ctx = r->comm->ctx;
    const struct gy_peer *at = &ctx->peers[gy_group_world(&r->comm->group, peer)];
    size_t tile = gy_max_size(r->tile * r->element, 1);
    if (gy_flow_is_loopback(r->comm, peer))
        return gy_max_size(LOCAL_AHEAD / tile, 2);
    int64_t trip = at->link && gy_algorithm_has(r->schedule->shape.algorithm, GY_SHARES_WIRES)
                       ? ctx->ops[at->transport]->round_trip(at->link)
                       : 0;
    return trip > 0 ? 2 + (uint64_t)((double)trip * WIRE_SPEED / (double)tile) : UINT64_MAX / 2;
}

/* The number of messages that must arrive before the next grant. On a host one grant covers two messages or more.
 * Between hosts it is sent while most of the data in flight is still to come. */
static uint64_t worth_a_grant(const struct gyre_request *r, const struct gy_lane_state *lane, int peer)
{
    return gy_flow_is_loopback(r->comm, peer) ? lane->ahead - lane->ahead / 2 : (lane->ahead + 7) / 8;
}

/* Iterations whose place is ready, in pair numbers: of the current step, and of the next ones that receive from the
 * same peer, so that the peer need not stop between two steps and wait for a grant. */
static uint64_t horizon(struct gyre_request *r, int l, uint64_t most)
{
    const struct gy_lane_state *lane = &r->lane[l];
    const struct gy_lane *steps = &r->schedule->lane[l];
    int peer = r->schedule->step[lane->step].peer;
    int64_t first_round = lane->lane_round - lane->round;
    uint64_t base = lane->pair_base, here = base + (uint64_t)lane->round * lane->tiles + lane->tile;
    uint64_t next = lane->granted > here ? lane->granted : here;
    for (int32_t s = lane->step; s < steps->first + steps->count; s++) {
        const struct gy_step *step = &r->schedule->step[s];
        size_t longest = gy_step_longest(r, step);
        if (step->peer != peer || gy_flow_is_eager(r, l, step))
            break;
        uint64_t tiles = gy_layout_tiles(longest, r->tile), end = base + (uint64_t)step->rounds * tiles;
        while (
            next < end && next - here < most &&
            gy_needs_met(r, l, step, first_round + (int64_t)((next - base) / tiles), (size_t)((next - base) % tiles)))
            next++;
        if (next < end)
            break;
        base = end;
        first_round += step->rounds;
    }
    return next;
}

bool gy_flow_receive(struct gyre_request *r, int l)
{
    struct gy_lane_state *lane = &r->lane[l];
    const struct gy_step *step = &r->schedule->step[lane->step];
    struct gy_channel *channel = r->comm->channels[step->peer];
    r->waiting_for = step->peer;
    return_credit(r->comm, step->peer, gy_credit_use_of(r->shape.sequence));
    if (!lane->eager) {
        uint64_t number = lane->pair_base + (uint64_t)lane->round * lane->tiles + lane->tile;
        if (lane->granted > number + lane->ahead - worth_a_grant(r, lane, step->peer))
            return false;
        uint64_t ready = horizon(r, l, lane->ahead);
        if (ready > lane->granted && gy_flow_control(r, l, step->peer, GY_FRAME_GRANT, ready))
            lane->granted = ready;
        return false; /* data comes through the receive handler */
    }
    uint64_t number = lane->pair_base + (uint64_t)lane->round * lane->tiles + lane->tile;
    struct gy_stashed *stashed = gy_channel_find(channel, r->shape.sequence, r->schedule->lane[l].tag, number);
    if (!stashed || !stashed->whole || !gy_needs_met(r, l, step, lane->lane_round, lane->tile))
        return false;
    int peer = step->peer;
    gy_flow_consume(r, l, gy_channel_stash_memory(channel, stashed));
    gy_channel_unstash(channel, stashed);
    gy_flow_give_credit(r->comm, peer, &stashed->frame);
    return true;
}

bool gy_flow_fits(struct gyre_request *r, int peer, const struct gy_frame *frame)
{
    struct gy_call_signature theirs = {frame->sequence, frame->count, frame->root,     frame->collective,
                                       frame->dtype,    frame->op,    frame->algorithm};
    struct gy_call_signature mine = r->shape;
    mine.count = count_with(r, peer, frame->kind == GY_FRAME_GRANT);
    if (gy_shape_equal(&theirs, &mine))
        return true;
    gy_mismatch(r->comm, peer, &theirs, &mine);
    return false;
}

int gy_flow_lane(const struct gyre_request *r, unsigned tag, int peer, bool sends)
{
    for (int l = 0; l < r->schedule->lanes; l++) {
        bool matches = sends ? gy_schedule_sends(r->schedule, l) : gy_schedule_receives(r->schedule, l);
        if (matches && r->schedule->lane[l].tag == tag && gy_schedule_meets(r->schedule, l, peer))
            return l;
    }
    return -1;
}

static uint64_t messages_of(const struct gyre_request *r, const struct gy_step *step)
{
    return (uint64_t)step->rounds * gy_layout_tiles(gy_step_longest(r, step), r->tile);
}

/* Grants of the step before remain valid if the peer is the same. For another peer, grants beyond that step belong
 * to a later one of this lane, and are kept until then: the peer does not send them again unless it is asked. */
static void carry_grants(struct gyre_request *r, int l, const struct gy_step *step)
{
    struct gy_lane_state *lane = &r->lane[l];
    const struct gy_step *before = lane->step > r->schedule->lane[l].first ? step - 1 : NULL;
    if (before && before->peer == step->peer)
        return;
    if (before && before->kind == GY_SEND && !lane->eager && lane->granted > lane->pair_base + messages_of(r, before))
        gy_channel_keep_grant(r->comm->channels[before->peer], r->shape.sequence, r->schedule->lane[l].tag,
                              lane->granted);
    lane->granted = 0;
}

void gy_flow_begin(struct gyre_request *r, int l, const struct gy_step *step)
{
    const struct gy_schedule *schedule = r->schedule;
    struct gy_lane_state *lane = &r->lane[l];
    carry_grants(r, l, step);
    lane->eager = gy_flow_is_eager(r, l, step);
    lane->pair_base = 0;
    for (int32_t s = schedule->lane[l].first; s < lane->step; s++) {
        const struct gy_step *earlier = &schedule->step[s];
        if (earlier->peer == step->peer)
            lane->pair_base += messages_of(r, earlier);
    }
    if (step->kind != GY_SEND && !lane->eager)
        lane->ahead = gy_flow_ahead(r, step->peer);
    lane->want = step->kind == GY_SEND && !lane->eager;
    lane->wanted = 0;
}
