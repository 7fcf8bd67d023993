/* A grouping: the division of a communicator's ranks by locality, as GYRE_HIERARCHY says. It is derived from the member
 * table and the setting, which all ranks share, so all ranks compute the same one. Hierarchical schedules use it. */
#ifndef GY_COLLECTIVES_COMM_LOCALITY_H
#define GY_COLLECTIVES_COMM_LOCALITY_H

#include "bootstrap/world.h"
#include "collectives/comm/group.h"

struct gy_grouping {
    int *of;    /* [size] the group of each rank, numbered in the order of their lowest ranks; NULL: disabled */
    int groups; /* number of groups */
    int smallest, largest; /* number of members */
    bool paired;           /* ranks 2k and 2k + 1 are in one group, for all k */
    int hosts;             /* number of the ranks' hosts, for any setting */
    int cores;             /* usable cores of the host if all ranks share one; 0: several hosts */
    bool oversubscribed;   /* all ranks are on one host with fewer cores: they share cores */
};

/* Returns false if out of memory. */
bool gy_grouping_make(struct gy_grouping *grouping_p, const struct gy_world *world, const struct gy_group *group,
                      const char *setting);
void gy_grouping_free(struct gy_grouping *grouping);

/* True if a hierarchy can help: several groups, and at least one with two ranks or more. */
static inline bool gy_grouping_nested(const struct gy_grouping *grouping)
{
    return grouping->of && grouping->groups > 1 && grouping->largest > 1;
}

#endif
