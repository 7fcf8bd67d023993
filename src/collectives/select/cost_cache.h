/* Selection by cost if GYRE_TUNING describes the cluster: one cache per communicator, filled on demand. */
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
    bool by_host;          /* GYRE_HIERARCHY groups by host: costs of hierarchical algorithms are known */
    bool between, sockets; /* there are several hosts; or one host with sockets only */
    size_t tile;           /* bytes, the base for tile.h */
    struct gy_tuned_class {
        bool known;
        uint8_t cheapest; /* GY_ALGORITHMS: no cost is known */
        uint32_t dearer;  /* a bit for each algorithm that is certainly slower */
    } classes[GY_COLLECTIVES][GY_TUNED_CLASSES];
};

#define GY_TUNED_DOUBT 1.15 /* factor on the least cost below which the model is no better than the thresholds */

/* For a communicator of `ranks` ranks on `hosts` hosts; *tuned_p is NULL if the settings name no file. Returns false
 * if out of memory. */
bool gy_tuned_make(const struct gy_context *ctx, int ranks, int hosts, struct gy_tuned **tuned_p);

/* Returns the cheapest of the algorithms that `usable` allows (one bit each) if it is certainly faster than
 * `otherwise`, the choice without costs. Else returns `otherwise`. `bytes` is the vector: count times the element,
 * times the ranks for collectives by rank. An `otherwise` without a closed form stays, as none is known to be
 * faster. The same result on every rank. */
enum gy_algorithm gy_tuned_choose(struct gy_tuned *tuned, enum gy_collective collective, size_t bytes, unsigned usable,
                                  enum gy_algorithm otherwise);

#endif
