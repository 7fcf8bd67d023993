/* A grouping: which ranks of a communicator are near each other, as GYRE_HIERARCHY says. It is made of what all ranks share,
 * the table of members and the setting, so that it is the same on all of them; hierarchical plans work on it. */
#ifndef GY_COLLECTIVES_COMM_LOCALITY_H
#define GY_COLLECTIVES_COMM_LOCALITY_H

#include "bootstrap/world.h"
#include "collectives/comm/group.h"

struct gy_grouping {
    int *of;    /* [size] the group of each rank, numbered in the order of their lowest ranks; NULL: switched off */
    int groups; /* how many */
    int smallest, largest; /* members */
    bool paired;           /* ranks 2k and 2k + 1 are in one group, whatever k */
    int hosts;             /* that the ranks are on, whatever the setting makes of them */
    int cores;             /* of the host that all ranks are on, as far as they can see; 0: they are on several */
    bool oversubscribed;   /* all ranks are on one host, which has fewer cores: they wait for turns */
};

/* False: no memory. */
bool gy_grouping_make(struct gy_grouping *grouping_p, const struct gy_world *world, const struct gy_group *group,
                      const char *setting);
void gy_grouping_free(struct gy_grouping *grouping);

/* Is there anything to gain: several groups, and a rank that is not alone in its own? */
static inline bool gy_grouping_nested(const struct gy_grouping *grouping)
{
    return grouping->of && grouping->groups > 1 && grouping->largest > 1;
}

#endif
