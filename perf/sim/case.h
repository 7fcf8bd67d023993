/* What is predicted: one collective of `bytes`, float32, by one algorithm, over all ranks of a cluster. */
#ifndef GYRE_SIM_CASE_H
#define GYRE_SIM_CASE_H

#include "collectives/schedule/schedule.h"
#include "core/cluster.h"

struct sim_case {
    const struct gy_cluster *cluster;
    enum gy_collective collective;
    enum gy_algorithm algorithm;
    int ranks, root;
    size_t total; /* elements of the schedule's vector */
    size_t tile;  /* elements */
};

#define SIM_ELEMENT 4u /* bytes */

/* simulate.c: all ranks' schedules on SimGrid, in a process of its own. Seconds from the common start to the last end;
 * NaN: out of memory, time or luck, after a line on stderr. */
double simulate(const struct sim_case *it);
/* About how many messages that would be. */
double simulate_messages(const struct sim_case *it);

#endif
