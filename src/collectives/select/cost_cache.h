/* The choice by cost, where GYRE_TUNING describes the cluster: one per communicator, filled as sizes are asked for. */
#ifndef GY_COLLECTIVES_SELECT_COST_CACHE_H
#define GY_COLLECTIVES_SELECT_COST_CACHE_H

#include "collectives/schedule/schedule.h"
#include "core/cluster.h"

struct gy_context;
struct gy_group;

#define GY_TUNED_CLASSES 96 /* of sizes: two to an octave */

struct gy_tuned {
    const struct gy_cluster *cluster;
    int ranks, ranks_per_host;
    bool by_host;          /* GYRE_HIERARCHY makes groups of hosts: what hierarchical algorithms cost is known */
    bool between, sockets; /* there are several hosts; or one, in which there is nothing but sockets */
    size_t tile;           /* bytes, from which tile.h makes those of a vector */
    struct gy_tuned_class {
        bool known;
        uint8_t cheapest; /* GY_ALGORITHMS: the cost of none is known */
        uint32_t dearer;  /* a bit each: what takes so much more than it that the figures leave no doubt */
    } classes[GY_COLLECTIVES][GY_TUNED_CLASSES];
};

#define GY_TUNED_DOUBT 1.15 /* times the least cost: up to here the formula does not know better */

/* For a communicator of so many ranks on so many hosts; *tuned_p is NULL where the settings name no file. False: no memory. */
bool gy_tuned_make(const struct gy_context *ctx, int ranks, int hosts, struct gy_tuned **tuned_p);

/* `otherwise`, what would be taken without costs, unless another one of the algorithms that `usable` allows (one bit each)
 * certainly takes less for a vector of so many bytes: count times the element, times the ranks for collectives by rank. Then the
 * cheapest. What has no closed form stays, for nothing is known to take less. The same on every rank. */
enum gy_algorithm gy_tuned_choose(struct gy_tuned *tuned, enum gy_collective collective, size_t bytes, unsigned usable,
                                  enum gy_algorithm otherwise);

#endif
