/* The way from a lane that sends to one that receives: a queue in the kernel, the shapers' bursts, the link.
 *
 * A lane's parcels leave one after the other; lanes of one host share its link fairly, which is the network's business
 * (SimGrid). The queue is as long as a socket's buffer: beyond that the sender waits. */
#include <math.h>
#include <simgrid/engine.h>
#include <stdlib.h>

#include "lane.h"

#define SOCKET_BUFFER (4.0 * 1024 * 1024)

struct sim_parcel {
    struct sim_lane *to;
    double bytes;
    struct sim_parcel *next;
};

static double tokens(struct sim_bucket *bucket, const struct gy_cluster *cluster)
{
    double now = simgrid_get_clock();
    bucket->tokens = fmin(cluster->burst, bucket->tokens + (now - bucket->refilled) * cluster->bandwidth);
    bucket->refilled = now;
    return bucket->tokens;
}

/* What of these bytes the shapers on the way let pass at once: the one of the link out and the one of the link in. */
static double unshaped(struct sim_host *from, struct sim_host *to, const struct gy_cluster *cluster, double bytes)
{
    double at_once = fmin(bytes, fmin(tokens(&from->out, cluster), tokens(&to->in, cluster)));
    from->out.tokens -= at_once;
    to->in.tokens -= at_once;
    return at_once;
}

static void carry(const struct sim_lane *lane, const struct sim_parcel *parcel)
{
    struct sim_rank *rank = lane->rank;
    int here = sim_host(rank), there = sim_host(parcel->to->rank);
    if (here != there) {
        struct sim_host *from = &rank->world->hosts[here], *to = &rank->world->hosts[there];
        double slowed = parcel->bytes - unshaped(from, to, sim_cluster(rank), parcel->bytes);
        if (slowed >= 1) {
            sg_host_sendto(from->host, to->host, slowed);
            from->out.refilled = to->in.refilled = simgrid_get_clock(); /* what came in was used up on the way */
        }
    }
    sim_lane_arrive(parcel->to, rank->number, 0, simgrid_get_clock() + sim_latency(rank, parcel->to->rank));
}

void sim_wire_run(struct sim_lane *lane)
{
    struct sim_wire *wire = &lane->wire;
    for (;;) {
        while (wire->first) {
            struct sim_parcel *parcel = wire->first;
            carry(lane, parcel);
            wire->first = parcel->next;
            if (!wire->first)
                wire->last = &wire->first;
            wire->queued -= parcel->bytes;
            free(parcel);
            sim_lane_wake(lane);
        }
        if (wire->closed)
            return;
        wire->waiting = true;
        sg_actor_suspend(wire->actor);
    }
}

static void wake(struct sim_wire *wire)
{
    if (wire->waiting) {
        wire->waiting = false;
        sg_actor_resume(wire->actor);
    }
}

void sim_wire_post(struct sim_lane *lane, struct sim_lane *to, double bytes)
{
    struct sim_wire *wire = &lane->wire;
    while (wire->queued + bytes > SOCKET_BUFFER && wire->first) {
        lane->waiting = true;
        sg_actor_suspend(lane->actor);
    }
    struct sim_parcel *parcel = malloc(sizeof(*parcel));
    if (!parcel)
        abort();
    *parcel = (struct sim_parcel){to, bytes, NULL};
    *wire->last = parcel;
    wire->last = &parcel->next;
    wire->queued += bytes;
    wake(wire);
}

void sim_wire_close(struct sim_lane *lane)
{
    lane->wire.closed = true;
    if (lane->wire.actor)
        wake(&lane->wire);
}
