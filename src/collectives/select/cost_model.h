/* The time of a collective on a described cluster, in closed form. The selector compares it under GYRE_TUNING;
 * gyre-sim uses it where it cannot run all ranks' schedules. */
#ifndef GY_COLLECTIVES_SELECT_COST_MODEL_H
#define GY_COLLECTIVES_SELECT_COST_MODEL_H

#include "collectives/schedule/schedule.h"
#include "core/cluster.h"

struct gy_cost_case {
    const struct gy_cluster *cluster;
    enum gy_collective collective;
    enum gy_algorithm algorithm;
    int ranks, root;
    double ranks_per_host; /* ranks that share a host's link; the groups of hierarchical algorithms */
    size_t total;          /* elements of the schedule's vector */
    size_t tile;           /* elements */
    size_t element;        /* bytes */
};

/* Returns seconds from the common start to the last end; negative: no closed form, or no memory. A pure function:
 * every rank gets the same bits. */
double gy_cost(const struct gy_cost_case *it);

#endif
