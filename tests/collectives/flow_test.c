/* Which messages need no grant, and how much is granted at once. Grants that come without a send in progress: one
 * for a step that is still to come is kept until then, once. A repeated grant for a step that is over is not kept,
 * since it would stay in one of the channel's few places for ever. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <string.h>

#include "collectives/engine/lane.h"
#include "collectives/engine/request.h"
#include "collectives/events/receive_dispatch.h"
#include "collectives/events/upcalls.h"
#include "collectives/link/flow_control.h"
#include "transport/registry/registry.h"

#define RANKS 5

static struct gy_world world = {.rank = 0, .size = RANKS, .epoch = 1};
static struct gy_peer peers[RANKS];
static struct gy_channel *channels[RANKS];
static struct gyre_request request;
static struct gyre_comm comm = {.id = 3, .rank = 0, .size = RANKS, .channels = channels, .group.size = RANKS};
static struct gy_context ctx = {
    .up = &gy_upcalls, .world = &world, .peers = peers, .comms = &comm, .active_first = &request};

static int kept_of(int peer)
{
    int count = 0;
    for (int i = 0; channels[peer] && i < GY_GRANTS_KEPT; i++)
        count += channels[peer]->grants[i].sequence != 0;
    return count;
}

static bool comes_later(const struct gy_lane *lane, int32_t step, int peer)
{
    for (int32_t s = step + 1; s < lane->first + lane->count; s++)
        if (request.schedule->step[s].peer == peer)
            return true;
    return false;
}

/* The lane is at `step` and `peer` allows the first two iterations, twice. */
static void grant(int l, int32_t step, int peer)
{
    const struct gy_lane *lane = &request.schedule->lane[l];
    struct gy_frame frame = {.kind = GY_FRAME_GRANT,
                             .epoch = world.epoch,
                             .comm = comm.id,
                             .sequence = request.shape.sequence,
                             .collective = request.shape.collective,
                             .algorithm = request.shape.algorithm,
                             .lane = lane->tag,
                             .value = 2};
    bool over = step == lane->first + lane->count, now = !over && request.schedule->step[step].peer == peer;
    request.lane[l] = (struct gy_lane_state){.step = step, .exhausted = over};
    for (int i = 0; i < 2; i++)
        cr_assert_eq(gy_flow_handler.arrived(&ctx, peer, &frame, NULL), GYRE_SUCCESS);
    cr_assert_eq(request.lane[l].granted, now ? 2 : 0);
    cr_assert_eq(kept_of(peer), !now && comes_later(lane, step, peer), "%s: step %d of %d, peer %d",
                 gy_algorithm_name(request.schedule->shape.algorithm), step - lane->first, lane->count, peer);
    gy_channel_free(channels[peer]);
    channels[peer] = NULL;
}

Test(flow, grants_are_kept_for_later_steps_only, .timeout = 20)
{
    static const enum gy_algorithm algorithms[] = {GY_RING, GY_HALVING_DOUBLING, GY_RECURSIVE_DOUBLING, GY_BINARY_TREE};
    comm.ctx = &ctx;
    request.comm = &comm;
    for (size_t a = 0; a < sizeof(algorithms) / sizeof(*algorithms); a++) {
        struct gy_schedule_shape shape = {
            .collective = GY_ALL_REDUCE, .algorithm = algorithms[a], .rank = 0, .size = RANKS};
        request.schedule = gy_schedule_build(&shape);
        request.shape = (struct gy_call_signature){
            .sequence = 7, .collective = GY_ALL_REDUCE, .algorithm = (uint8_t)algorithms[a]};
        for (int l = 0; l < request.schedule->lanes; l++) {
            const struct gy_lane *lane = &request.schedule->lane[l];
            if (request.schedule->step[lane->first].kind != GY_SEND)
                continue;
            for (int32_t step = lane->first; step <= lane->first + lane->count; step++)
                for (int s = lane->first; s < lane->first + lane->count; s++)
                    grant(l, step, request.schedule->step[s].peer);
        }
        gy_schedule_free(request.schedule);
    }
}

/* A step that is no longer than the transport's eager frames needs no grant, whether it is one frame or several
 * tiles. */
Test(flow, short_steps_need_no_grant_in_tiles_either, .timeout = 20)
{
    static const struct gy_transport_ops ops = {.eager = 32768};
    struct gy_schedule_shape shape = {GY_BROADCAST, GY_RING, 0, RANKS, 0, NULL};
    comm.ctx = &ctx;
    ctx.ops[0] = &ops;
    request.comm = &comm;
    request.schedule = gy_schedule_build(&shape);
    request.element = 4;
    cr_assert_not_null(request.schedule);
    for (size_t bytes = 4096; bytes <= 65536; bytes += 4096)
        for (size_t tile = 8192; tile <= 65536; tile *= 2) {
            request.in = request.out = (struct gy_layout){.total = bytes / 4, .blocks = request.schedule->blocks};
            request.tile = tile / 4;
            cr_assert_eq(gy_flow_is_eager(&request, 0, &request.schedule->step[request.schedule->lane[0].first]),
                         bytes <= 32768, "%zu bytes in tiles of %zu", bytes, tile);
        }
    gy_schedule_free(request.schedule);
    request.schedule = NULL;
}

static int posted;
static uint64_t allowed; /* by the last grant */

void __wrap_gy_context_post(struct gy_context *context, int peer,
                            struct gy_frame_out *frame); /* the linker puts it in front */

void __wrap_gy_context_post(struct gy_context *context, int peer, struct gy_frame_out *frame)
{
    (void)context, (void)peer;
    posted++;
    allowed = frame->header.kind == GY_FRAME_GRANT ? frame->header.value : 0;
}

/* Over RDMA it would be a message more, which brings nothing sooner. */
Test(flow, credit_returns_early_over_sockets_of_a_host_only, .timeout = 20)
{
    static struct gy_member members[RANKS];
    static const struct gy_transport_ops *const ways[] = {&gy_transport_tcp, &gy_transport_rdma, &gy_transport_shm};
    comm.ctx = &ctx;
    world.members = members;
    channels[1] = gy_channel_create();
    cr_assert_not_null(channels[1]);
    for (int way = 0; way < 3; way++)
        for (int host = 0; host < 2; host++) {
            bool gives = way == 0 && host == 0;
            ctx.ops[0] = ways[way];
            members[1].host = host;
            channels[1]->credit[GY_FOR_MESSAGES].owed = 3;
            posted = 0;
            gy_flow_kept_waiting(&comm, 1, GY_POINT_TO_POINT | 7);
            cr_expect_eq(posted, gives, "%s, host %d", ways[way]->name, host);
            cr_expect_eq(channels[1]->credit[GY_FOR_MESSAGES].owed, gives ? 0 : 3);
        }
    gy_channel_free(channels[1]);
    channels[1] = NULL;
}

static int64_t trip;

static int64_t round_trip(const struct gy_link *link)
{
    (void)link;
    return trip;
}

/* A vector of 64 tiles of 32 KiB, from a peer that the way takes so long to: what is granted at once, and again after
 * `came`. */
static void expect_grants(int l, int64_t way, uint64_t first, uint64_t came, uint64_t then)
{
    struct gy_lane_state *lane = &request.lane[l];
    trip = way;
    posted = 0;
    *lane = (struct gy_lane_state){.step = request.schedule->lane[l].first};
    gy_lane_begin(&request, l);
    cr_assert_eq(lane->tiles, 64);
    gy_flow_receive(&request, l);
    cr_expect_eq(allowed, first, "%" PRId64 " ns: %" PRIu64 " at first", way, allowed);
    for (uint64_t t = 0; t < came; t++) {
        gy_flow_receive(&request, l);
        cr_expect_eq(posted, 1, "%" PRId64 " ns: another grant after %" PRIu64, way, t);
        lane->tile++;
    }
    lane->control.queued = false;
    gy_flow_receive(&request, l);
    cr_expect_eq(allowed, then, "%" PRId64 " ns: then %" PRIu64, way, allowed);
}

/* A sender to two peers over one wire cannot share it evenly if all of a vector is in one socket. So over a wire two
 * messages are granted, and the bytes in flight at 10 Gbit/s. */
Test(flow, no_more_is_granted_over_a_wire_than_fills_it, .timeout = 20)
{
    static struct gy_member members[RANKS];
    static const struct gy_transport_ops ops = {.eager = 32768, .round_trip = round_trip};
    static struct gy_link link;
    static const enum gy_algorithm algorithms[] = {GY_DOUBLE_TREE, GY_RING};
    comm.ctx = &ctx;
    world.members = members;
    for (int r = 0; r < RANKS; r++) {
        members[r].host = r;
        peers[r].link = &link;
        channels[r] = gy_channel_create();
        cr_assert_not_null(channels[r]);
    }
    ctx.ops[0] = &ops;
    request.comm = &comm;
    request.element = 4;
    request.tile = 8192;
    for (size_t a = 0; a < sizeof(algorithms) / sizeof(*algorithms); a++) {
        struct gy_schedule_shape shape = {GY_BROADCAST, algorithms[a], 0, RANKS, 1, NULL};
        bool chain = algorithms[a] == GY_RING; /* has a wire to itself */
        request.schedule = gy_schedule_build(&shape);
        cr_assert_not_null(request.schedule);
        request.in = request.out = (struct gy_layout){.total = (size_t)request.schedule->blocks * 64 * request.tile,
                                                      .blocks = request.schedule->blocks};
        for (int l = 0; l < request.schedule->lanes; l++) {
            if (!gy_schedule_receives(request.schedule, l))
                continue;
            expect_grants(l, 10000, chain ? 64 : 2, 1, chain ? 64 : 3);
            expect_grants(l, 100000, chain ? 64 : 5, 1, chain ? 64 : 6);
            expect_grants(l, 420000, chain ? 64 : 18, 3, chain ? 64 : 21);
            expect_grants(l, 50000000, 64, 63, 64);
            expect_grants(l, 0, 64, 63, 64); /* not known */
        }
        gy_schedule_free(request.schedule);
    }
    for (int r = 0; r < RANKS; r++)
        gy_channel_free(channels[r]);
    memset(channels, 0, sizeof(channels));
    request.schedule = NULL;
}
