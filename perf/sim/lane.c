/* The time that the steps of a lane take.
 *
 *   send      [grant, once per step of long messages] own thread: overhead, copy ──▶ link: bytes/bandwidth
 *   receive   ──▶ latency ──▶ own thread: overhead, copy or reduction
 *   local     own thread: copy or reduction
 *
 * Sent data wait in the kernel for their turn on the link (wire.c), while the lane goes on. Latency is added where a
 * message arrives, so that it delays and does not block the next. Needs are the schedule's, as the executor reads
 * them. */
#include "lane.h"

#include <math.h>
#include <simgrid/engine.h>
#include <stdio.h>
#include <stdlib.h>

#include "collectives/comm/channel.h"
#include "collectives/schedule/layout.h"
#include "transport/transport.h"

static void until(double when)
{
    if (when > simgrid_get_clock())
        sg_actor_sleep_until(when);
}

/* The rank's thread works for so long, when it has done what was asked before. */
static void work(struct sim_rank *rank, double seconds)
{
    rank->busy_until = fmax(rank->busy_until, simgrid_get_clock()) + seconds;
    until(rank->busy_until);
}

static const struct gy_step *step_of(const struct sim_lane *lane)
{
    return &lane->rank->schedule->step[lane->step];
}

static size_t longest(const struct sim_lane *lane, const struct gy_step *step)
{
    struct gy_layout layout = {.total = lane->rank->world->it->total, .blocks = lane->rank->schedule->blocks};
    return gy_layout_longest(&layout, step->kind >= GY_PUBLISH ? 1 : step->range.width);
}

static double bytes_of_tile(const struct sim_lane *lane, int32_t round)
{
    const struct gy_step *step = step_of(lane);
    struct gy_layout layout = {.total = lane->rank->world->it->total, .blocks = lane->rank->schedule->blocks};
    int32_t lo = gy_range_block(step->range, layout.blocks, round);
    int32_t width = step->kind >= GY_PUBLISH && step->range.width > 1 ? 1 : step->range.width;
    struct gy_piece piece = gy_layout_piece(&layout, lo, width, lane->rank->world->it->tile, lane->tile);
    return (double)piece.count * SIM_ELEMENT * (width < step->range.width ? step->range.width : 1);
}

/* ---- needs ---- */

static bool completed(const struct sim_lane *lane, int64_t round, size_t tile, bool whole)
{
    if (round < 0 || lane->done_round > round)
        return true;
    return !whole && lane->done_round == round && lane->done_tiles > tile;
}

static bool others_reached(const struct sim_lane *lane, const struct gy_need *need)
{
    const struct sim_world *world = lane->rank->world;
    uint64_t target = lane->iteration + 1, lag = (uint64_t)need->lag;
    int only = step_of(lane)->peer;
    for (int r = 0; r < world->it->ranks && target > lag; r++) {
        if (r == lane->rank->number || (only >= 0 && r != only))
            continue;
        if (world->ranks[r].lane[need->lane].iteration < target - lag)
            return false;
    }
    return true;
}

static bool needs_met(const struct sim_lane *lane, int64_t round, size_t tile, bool *remote_p)
{
    const struct gy_step *step = step_of(lane);
    for (int n = 0; n < GY_NEEDS; n++) {
        const struct gy_need *need = &step->needs[n];
        if (need->lane < 0)
            continue;
        *remote_p |= need->everyone;
        if (need->everyone ? !others_reached(lane, need)
                           : !completed(&lane->rank->lane[need->lane], round - need->lag, tile, need->whole))
            return false;
    }
    return true;
}

void sim_lane_wake(struct sim_lane *lane)
{
    if (lane->waiting) {
        lane->waiting = false;
        sg_actor_resume(lane->actor);
    }
}

static void wake_rank(struct sim_rank *rank)
{
    for (int l = 0; l < rank->schedule->lanes; l++)
        sim_lane_wake(&rank->lane[l]);
}

static void wait_needs(struct sim_lane *lane)
{
    bool remote = false;
    while (!needs_met(lane, lane->round, lane->tile, &remote)) {
        lane->waiting = true;
        sg_actor_suspend(lane->actor);
    }
    if (remote)
        sg_actor_sleep_for(sim_cluster(lane->rank)->local_latency);
}

static void done(struct sim_lane *lane)
{
    struct sim_world *world = lane->rank->world;
    bool last = lane->tile + 1 == lane->tiles;
    lane->done_round = last ? lane->round + 1 : lane->round;
    lane->done_tiles = last ? 0 : lane->tile + 1;
    lane->iteration++;
    if (lane->rank->schedule->lane[lane->index].region_lane < 0) {
        wake_rank(lane->rank);
        return;
    }
    for (int r = 0; r < world->it->ranks; r++)
        wake_rank(&world->ranks[r]);
}

/* ---- messages ---- */

/* The other end of a lane's messages to or from `peer`. */
static struct sim_lane *opposite(const struct sim_lane *lane, int peer)
{
    struct sim_rank *rank = &lane->rank->world->ranks[peer];
    bool sends = step_of(lane)->kind == GY_SEND;
    for (int l = 0; l < rank->schedule->lanes; l++) {
        bool matches = sends ? gy_schedule_receives(rank->schedule, l) : gy_schedule_sends(rank->schedule, l);
        if (matches && gy_schedule_meets(rank->schedule, l, lane->rank->number) &&
            rank->schedule->lane[l].tag == lane->rank->schedule->lane[lane->index].tag)
            return &rank->lane[l];
    }
    fprintf(stderr, "gyre-sim: rank %d has no lane for what rank %d sends\n", peer, lane->rank->number);
    abort();
}

void sim_lane_arrive(struct sim_lane *at, int from, uint64_t value, double when)
{
    struct sim_arrival *arrival = malloc(sizeof(*arrival));
    if (!arrival)
        abort();
    *arrival = (struct sim_arrival){from, value, when, NULL};
    *at->last = arrival;
    at->last = &arrival->next;
    sim_lane_wake(at);
}

/* The next from there; its value. */
static uint64_t await(struct sim_lane *lane, int from)
{
    for (;;) {
        for (struct sim_arrival **place = &lane->first; *place; place = &(*place)->next) {
            struct sim_arrival *arrival = *place;
            if (arrival->from != from)
                continue;
            *place = arrival->next;
            if (lane->last == &arrival->next)
                lane->last = place;
            double at = arrival->at;
            uint64_t value = arrival->value;
            free(arrival);
            until(at);
            return value;
        }
        lane->waiting = true;
        sg_actor_suspend(lane->actor);
    }
}

static uint64_t number_of(const struct sim_lane *lane, int32_t round)
{
    return lane->before + (uint64_t)round * lane->tiles + lane->tile;
}

static void send_tile(struct sim_lane *lane, int32_t round)
{
    struct sim_rank *rank = lane->rank;
    const struct gy_cluster *cluster = sim_cluster(rank);
    int peer = step_of(lane)->peer;
    double bytes = bytes_of_tile(lane, round);
    while (lane->granted && number_of(lane, round) >= lane->allowed) {
        lane->allowed = await(lane, peer);
        work(rank, cluster->receive_overhead);
    }
    work(rank, cluster->send_overhead + bytes / cluster->copy);
    sim_wire_post(lane, opposite(lane, peer), bytes);
}

/* Of the step's messages, those whose place is ready by now. */
static void grant(struct sim_lane *lane, int32_t round)
{
    struct sim_rank *rank = lane->rank;
    const struct gy_step *step = step_of(lane);
    uint64_t next = lane->allowed > lane->before ? lane->allowed - lane->before : 0, tiles = lane->tiles;
    uint64_t end = (uint64_t)step->rounds * tiles, here = (uint64_t)round * tiles + lane->tile;
    bool remote = false;
    next = next > here ? next : here;
    while (next < end && needs_met(lane, lane->round - round + (int64_t)(next / tiles), next % tiles, &remote))
        next++;
    if (lane->before + next <= lane->allowed)
        return;
    lane->allowed = lane->before + next;
    work(rank, sim_cluster(rank)->send_overhead);
    sim_lane_arrive(opposite(lane, step->peer), rank->number, lane->allowed,
                    simgrid_get_clock() + sim_latency(rank, &rank->world->ranks[step->peer]));
}

static void receive_tile(struct sim_lane *lane, int32_t round)
{
    struct sim_rank *rank = lane->rank;
    const struct gy_cluster *cluster = sim_cluster(rank);
    const struct gy_step *step = step_of(lane);
    double bytes = bytes_of_tile(lane, round);
    if (lane->granted)
        grant(lane, round);
    await(lane, step->peer);
    double reduction = step->kind == GY_RECV_REDUCE ? bytes / cluster->reduce : 0;
    work(rank, cluster->receive_overhead + bytes / cluster->copy + reduction);
}

/* ---- the whole ---- */

static void iterate(struct sim_lane *lane, int32_t round)
{
    const struct gy_step *step = step_of(lane);
    const struct gy_cluster *cluster = sim_cluster(lane->rank);
    double bytes = bytes_of_tile(lane, round);
    switch (step->kind) {
    case GY_SEND: send_tile(lane, round); break;
    case GY_RECV:
    case GY_RECV_REDUCE: receive_tile(lane, round); break;
    case GY_REDUCE: work(lane->rank, bytes / cluster->reduce); break;
    case GY_REDUCE_PUBLISHED: work(lane->rank, bytes * (lane->rank->world->it->ranks - 1) / cluster->reduce); break;
    default: work(lane->rank, bytes / cluster->copy); /* copies of all kinds */
    }
}

static void begin_step(struct sim_lane *lane)
{
    const struct gy_schedule *schedule = lane->rank->schedule;
    size_t tile = lane->rank->world->it->tile;
    const struct gy_step *last = lane->step > schedule->lane[lane->index].first ? &schedule->step[lane->step - 1]
                                                                                : NULL;
    if (last && last->peer != step_of(lane)->peer) {
        uint64_t sent = lane->before + (uint64_t)last->rounds * lane->tiles;
        if (last->kind == GY_SEND && lane->allowed > sent) /* for a later step */
            sim_lane_arrive(lane, last->peer, lane->allowed, simgrid_get_clock());
        lane->allowed = 0;
    }
    lane->tiles = gy_layout_tiles(longest(lane, step_of(lane)), tile);
    lane->granted = !gy_eager_leaves(schedule, lane->index, step_of(lane)->peer,
                                     longest(lane, step_of(lane)) * SIM_ELEMENT, SIZE_MAX);
    lane->before = 0;
    for (int s = schedule->lane[lane->index].first; s < lane->step; s++)
        if (schedule->step[s].peer == step_of(lane)->peer)
            lane->before += (uint64_t)schedule->step[s].rounds *
                            gy_layout_tiles(longest(lane, &schedule->step[s]), tile);
}

static void run_once(struct sim_lane *lane)
{
    const struct gy_lane *schedule = &lane->rank->schedule->lane[lane->index];
    for (int s = 0; s < schedule->count; s++) {
        lane->step = schedule->first + s;
        begin_step(lane);
        for (int32_t round = 0; round < step_of(lane)->rounds; round++, lane->round++)
            for (lane->tile = 0; lane->tile < lane->tiles; lane->tile++) {
                wait_needs(lane);
                iterate(lane, round);
                done(lane);
            }
    }
}

static void reset(struct sim_lane *lane)
{
    lane->step = 0;
    lane->round = lane->done_round = 0;
    lane->tile = lane->tiles = lane->done_tiles = 0;
    lane->iteration = lane->before = lane->allowed = 0;
    while (lane->first) { /* grants for which no lane had to wait */
        struct sim_arrival *next = lane->first->next;
        free(lane->first);
        lane->first = next;
    }
    lane->last = &lane->first;
}

/* A barrier of small messages lies between two calls. */
static double pause_between(const struct sim_world *world)
{
    const struct gy_cluster *c = world->it->cluster;
    double hops = 0;
    for (int reached = 1; reached < world->it->ranks; reached *= 2)
        hops++;
    return hops * (c->send_overhead + c->latency + c->receive_overhead);
}

/* The last of all lanes begins the next call; the others wait for it. */
static void meet(struct sim_lane *lane)
{
    struct sim_world *world = lane->rank->world;
    world->end = simgrid_get_clock();
    if (--world->unfinished > 0) {
        lane->through = true;
        while (lane->through)
            sg_actor_suspend(lane->actor);
        return;
    }
    sg_actor_sleep_for(pause_between(world));
    world->start = simgrid_get_clock();
    world->unfinished = world->lanes;
    world->calls--;
    for (int r = 0; r < world->it->ranks; r++)
        for (int l = 0; l < world->ranks[r].schedule->lanes; l++)
            reset(&world->ranks[r].lane[l]);
    for (int r = 0; r < world->it->ranks; r++)
        for (int l = 0; l < world->ranks[r].schedule->lanes; l++) {
            struct sim_lane *other = &world->ranks[r].lane[l];
            if (!other->through)
                continue;
            other->through = false; /* first: it looks as soon as it is resumed */
            sg_actor_resume(other->actor);
        }
}

void sim_lane_run(struct sim_lane *lane)
{
    struct sim_world *world = lane->rank->world;
    for (run_once(lane); world->calls > 1; run_once(lane))
        meet(lane);
    sim_wire_close(lane);
    world->end = fmax(world->end, simgrid_get_clock());
    world->unfinished--;
}
