/* The executor: moves the lanes of a request through its schedule.
 *
 *         lane 0   send ──▶ send ──▶ send          each lane is a cursor (step, round, tile);
 *                    ▲        ▲                     an iteration starts when its needs are complete,
 *         lane 1   recv ──▶ recv ──▶ recv          and completes when its data has moved
 *
 * Nothing here blocks: an iteration that cannot start is tried again at the next progress call. A lane moves at most
 * GY_TILES_PER_PROGRESS tiles per call, so that all requests of a context advance together. */
#include "collectives/call/executor.h"

#include "collectives/engine/lane.h"
#include "collectives/link/flow_control.h"
#include "collectives/shm/slots.h"

#define GY_TILES_PER_PROGRESS 4

/* A lane on regions that has only to count does so at once: a peer that waits for its last iteration need not wait
 * for the next progress of this rank. */
static bool counts_only(struct gyre_request *r, int l, const struct gy_step *step)
{
    struct gy_lane_state *lane = &r->lane[l];
    if (step->kind != GY_PUBLISH || !gy_slot_idle(r, step))
        return false;
    lane->iteration += lane->tiles - 1 - lane->tile;
    lane->tile = lane->tiles - 1;
    return true;
}

static void run_local(struct gyre_request *r, int l)
{
    const struct gy_step *step = &r->schedule->step[r->lane[l].step];
    bool copies = step->kind == GY_PACK || step->kind == GY_UNPACK;
    if (copies || !gy_slot_keeps_own(r)) /* the only copy in such a schedule is that of this block */
        gy_lane_local(r, l);
}

/* Runs one iteration of a step that completes at once. */
static bool immediate_step(struct gyre_request *r, int l)
{
    struct gy_lane_state *lane = &r->lane[l];
    const struct gy_step *step = &r->schedule->step[lane->step];
    if (gy_slot_follows(r, step))
        return false;
    if (!counts_only(r, l, step) && !gy_needs_met(r, l, step, lane->lane_round, lane->tile))
        return false;
    if (step->kind < GY_PUBLISH)
        run_local(r, l);
    else if (!gy_slot_step(r, l))
        return false;
    gy_lane_done(lane, lane->lane_round, lane->tile, lane->tiles);
    gy_lane_next(r, l);
    return true;
}

static bool lane_advance(struct gyre_request *r, int l)
{
    struct gy_lane_state *lane = &r->lane[l];
    bool moved = lane->flights > 0 && gy_flow_reap(r, l);
    for (int i = 0; i < GY_TILES_PER_PROGRESS && !lane->exhausted && !r->complete; i++) {
        bool now;
        switch (r->schedule->step[lane->step].kind) {
        case GY_SEND: now = gy_flow_send(r, l); break;
        case GY_RECV:
        case GY_RECV_REDUCE: now = gy_flow_receive(r, l); break;
        default: now = immediate_step(r, l);
        }
        if (!now)
            break;
        moved = true;
    }
    if (lane->flights > 0 && gy_flow_reap(r, l))
        moved = true;
    lane->finished = lane->exhausted && lane->flights == 0 && !lane->control.queued;
    return moved;
}

/* A grant queued behind the tiles that this rank sends to the same peer would leave the peer idle meanwhile: 42 ms
 * for the 1 MiB of one progress call at 200 Mbit/s. So grants of long messages are sent before any tiles. */
static void grant_first(struct gyre_request *r)
{
    for (int l = 0; l < r->schedule->lanes && !r->schedule->shm; l++) {
        const struct gy_lane_state *lane = &r->lane[l];
        if (lane->exhausted || lane->eager)
            continue;
        enum gy_step_kind kind = r->schedule->step[lane->step].kind;
        if (kind == GY_RECV || kind == GY_RECV_REDUCE)
            gy_flow_receive(r, l);
    }
}

/* Progresses every lane. *over_p: this rank's part is complete. */
bool gy_lanes_progress(struct gyre_request *r, bool *over_p)
{
    bool moved = false, finished = true;
    int missed = -1;
    for (int l = 0; l < r->schedule->lanes && !r->complete; l++) {
        r->waiting_for = -1;
        if (!r->lane[l].finished) {
            moved |= lane_advance(r, l);
            finished &= r->lane[l].finished;
        }
        r->lane[l].waiting_for = r->waiting_for;
        missed = missed >= 0 ? missed : r->waiting_for;
    }
    if (!r->complete)
        r->waiting_for = missed;
    *over_p = finished && !r->complete && (!r->schedule->shm || gy_slot_end(r));
    return moved;
}

bool gy_request_advance(struct gyre_request *r)
{
    if (r->schedule->shm) {
        if (!gy_request_is_first(r))
            return false;
        if (!r->begun && gy_slot_begin(r) != GYRE_SUCCESS)
            return true;
    }
    bool over;
    grant_first(r);
    bool moved = gy_lanes_progress(r, &over);
    if (over)
        gy_request_locally_complete(r);
    return moved || over;
}
