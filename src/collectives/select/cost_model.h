/* How long a collective takes on a described cluster, in closed form: what the selector compares under GYRE_TUNING, and
 * what gyre-sim says where it cannot run all ranks' plans. */
#ifndef GY_COLLECTIVES_SELECT_COST_MODEL_H
#define GY_COLLECTIVES_SELECT_COST_MODEL_H

#include "collectives/schedule/schedule.h"
#include "core/cluster.h"

struct gy_cost_case {
    const struct gy_cluster *cluster;
    enum gy_collective collective;
    enum gy_algorithm algorithm;
    int ranks, root;
    double ranks_per_host; /* that share a host's link; the groups of hierarchical algorithms */
    size_t total;          /* elements of the plan's vector */
    size_t tile;           /* elements */
    size_t element;        /* bytes */
};

/* Seconds from the common start to the last end; negative: there is no closed form, or no memory. A pure function of the
 * case: every rank gets the same bits. */
double gy_cost(const struct gy_cost_case *it);

#endif
