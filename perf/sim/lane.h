/* A simulated lane: the cursor of an executor (step, round, tile) whose moves take simulated time. */
#ifndef GYRE_SIM_LANE_H
#define GYRE_SIM_LANE_H

#include <simgrid/actor.h>
#include <simgrid/host.h>

#include "case.h"

/* A message, or a grant, that has come or will at a known time. */
struct sim_arrival {
    int from;
    uint64_t value; /* of a grant: messages between the two that may leave */
    double at;
    struct sim_arrival *next;
};

/* What a sending lane has given to the kernel: it leaves in this order, while the lane goes on. */
struct sim_wire {
    sg_actor_t actor;
    struct sim_parcel *first, **last;
    double queued; /* bytes */
    bool waiting, closed;
};

struct sim_lane {
    struct sim_rank *rank;
    int index, step;
    int64_t round; /* of the lane; what is done is all before (done_round, done_tiles) */
    int64_t done_round;
    size_t tile, tiles, done_tiles;
    uint64_t iteration;
    sg_actor_t actor;
    bool waiting; /* suspended until the progress of another lane may let it go on */
    bool through; /* suspended until all are through with this call */
    struct sim_arrival *first, **last;
    struct sim_wire wire;
    uint64_t before;  /* messages between the step's two ranks before the step */
    uint64_t allowed; /* by grants, given or taken */
    bool granted; /* the step's messages are long: they leave when the receiver has said that their place is ready */
};

struct sim_rank {
    struct sim_world *world;
    int number;
    struct gy_schedule *schedule;
    double busy_until; /* its one thread */
    struct sim_lane lane[GY_SCHEDULE_LANES];
};

/* What a shaper lets pass at once: bytes, and when that was. */
struct sim_bucket {
    double tokens, refilled;
};

struct sim_host {
    sg_host_t host;
    struct sim_bucket out, in; /* a shaper at each end of its link */
};

struct sim_world {
    const struct sim_case *it;
    struct sim_rank *ranks;
    struct sim_host *hosts;
    double start, end; /* of the call under way, or of the last */
    int unfinished;    /* lanes, of this call */
    int lanes, calls;  /* calls: still to come, this one included */
};

/* Runs through the lane, once per call; the body of its actor. */
void sim_lane_run(struct sim_lane *lane);
/* Something has come, or has changed: the lane looks again. */
void sim_lane_wake(struct sim_lane *lane);
/* For the lane that receives it: a message, or a grant of so many, from rank `from`, at that time. */
void sim_lane_arrive(struct sim_lane *at, int from, uint64_t value, double when);

/* wire.c: carries what lane after lane gives to it. */
void sim_wire_run(struct sim_lane *lane);
void sim_wire_post(struct sim_lane *lane, struct sim_lane *to, double bytes);
void sim_wire_close(struct sim_lane *lane);

static inline const struct gy_cluster *sim_cluster(const struct sim_rank *rank)
{
    return rank->world->it->cluster;
}

static inline int sim_host(const struct sim_rank *rank)
{
    return rank->number / (int)sim_cluster(rank)->ranks_per_host;
}

static inline double sim_latency(const struct sim_rank *a, const struct sim_rank *b)
{
    return sim_host(a) == sim_host(b) ? sim_cluster(a)->local_latency : sim_cluster(a)->latency;
}

#endif
