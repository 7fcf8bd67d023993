/* A communicator: the order of operations over the world's ranks, with its plans, its channels to peers and its place
 * in the shared windows. */
#ifndef GY_COLLECTIVES_COMM_H
#define GY_COLLECTIVES_COMM_H

#include "collectives/channel.h"
#include "collectives/context.h"
#include "collectives/plan.h"
#include "collectives/recorder.h"

#define GY_PLANS_OTHER_ROOTS 32
#define GY_WINDOW_RANKS 1024 /* a host with more ranks uses links */

struct gyre_comm {
    struct gy_context *ctx;
    struct gyre_comm *next; /* in ctx->comms */
    uint32_t id;
    int rank, size;
    uint64_t sequence;            /* of the collective started last */
    struct gy_channel **channels; /* [size], NULL until used */

    /* Windows. Collectives that use them run one after the other, in start order. */
    int window; /* index in the segment, −1: none */
    bool window_reserved;
    uint64_t window_base;        /* value of the shared counters after the window collectives that have been
                                      * started */
    uint64_t inline_started;     /* tiny exchanges started: parity and flag value */
    int8_t tiny[GY_COLLECTIVES]; /* is a vector that fits a line exchanged directly? 1 yes, −1 no, 0 not known yet */
    uint64_t known[GY_WINDOW_LANES]; /* every peer's counter is known to be at least this */
    struct gyre_request *window_first, *window_last;
    struct gyre_request *ended; /* complete, not collected by their owner yet */

    /* Plans with root 0 (or none) live as long as the communicator; others are evicted when no request uses them. */
    struct gy_plan *plans[GY_COLLECTIVES][GY_ALGORITHMS];
    struct {
        struct gy_plan *plan;
        unsigned users, used;
    } other[GY_PLANS_OTHER_ROOTS];
    unsigned clock;

    struct gy_recorder recorder;
    struct gy_error error;          /* in this communicator's words */
    bool refused;                   /* the first call after the failure has been named in it */
    uint64_t shown[GY_COLLECTIVES]; /* choices already printed, a bit per log2 of the size */
};

gyre_status gy_comm_create(struct gy_context *ctx, uint32_t id, struct gyre_comm **comm_p, struct gy_error *error);
void gy_comm_free(struct gyre_comm *comm);
struct gyre_comm *gy_comm_find(struct gy_context *ctx, uint32_t id);

/* The cached plan; held until gy_comm_plan_release. NULL when out of memory. */
struct gy_plan *gy_comm_plan(struct gyre_comm *comm, enum gy_collective collective, enum gy_algorithm algorithm,
                             int root);
void gy_comm_plan_release(struct gyre_comm *comm, struct gy_plan *plan);

/* The channel to a peer; NULL when out of memory. */
struct gy_channel *gy_comm_channel(struct gyre_comm *comm, int peer);

/* selector.c: a pure function of what all ranks share. */
gyre_status gy_select(const struct gyre_comm *comm, enum gy_collective collective, size_t bytes,
                      enum gy_algorithm *algorithm_p, struct gy_error *error);

#endif
