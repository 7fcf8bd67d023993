#include "collectives/comm/locality.h"

#include <stdlib.h>
#include <string.h>

#include "core/mem.h"

/* Returns the group of rank `rank` of the world if the setting is a list of sizes: consecutive ranks, cyclically
 * over the list. The list has been checked: numbers from 1 between commas. */
static int by_sizes(const char *sizes, int rank)
{
    int group = 0;
    const char *at = sizes;
    for (long end = strtol(at, NULL, 10); rank >= end; group++) {
        at = strchr(at, ',');
        at = at ? at + 1 : sizes;
        end += strtol(at, NULL, 10);
    }
    return group;
}

/* Returns the lowest rank of the same host bound to the same node or cache; unbound ranks form one group. */
static int by_place(const struct gy_world *world, int rank)
{
    const struct gy_member *member = &world->members[rank];
    int first = 0;
    while (world->members[first].host != member->host || world->members[first].binding != member->binding)
        first++;
    return first;
}

/* Renumbers groups in order of appearance; counts their members in `members`. */
static void count(struct gy_grouping *grouping, int size, int *number, int *members)
{
    for (int r = 0; r < size; r++) {
        if (number[grouping->of[r]] == 0)
            number[grouping->of[r]] = ++grouping->groups;
        grouping->of[r] = number[grouping->of[r]] - 1;
        members[grouping->of[r]]++;
    }
    grouping->paired = true;
    for (int r = 1; r < size; r += 2)
        grouping->paired = grouping->paired && grouping->of[r] == grouping->of[r - 1];
    grouping->smallest = size;
    for (int g = 0; g < grouping->groups; g++) {
        grouping->smallest = members[g] < grouping->smallest ? members[g] : grouping->smallest;
        grouping->largest = members[g] > grouping->largest ? members[g] : grouping->largest;
    }
}

/* Counts the hosts of the ranks; `seen`: zeros, one for each possible host. */
static int count_hosts(const struct gy_world *world, const struct gy_group *group, int *seen)
{
    int hosts = 0;
    for (int r = 0; r < group->size; r++)
        hosts += seen[world->members[gy_group_world(group, r)].host]++ == 0;
    return hosts;
}

static int count_cores(const struct gy_world *world, const struct gy_group *group)
{
    int cores = 1;
    for (int r = 0; r < group->size; r++) {
        const struct gy_member *member = &world->members[gy_group_world(group, r)];
        cores = member->cores > cores ? member->cores : cores;
    }
    return cores;
}

/* Both lists of `scratch` are zeros. */
static void put_in_groups(struct gy_grouping *grouping, const struct gy_world *world, const struct gy_group *group,
                          const char *setting, int *scratch)
{
    bool hosts = strcmp(setting, "host") == 0, places = strcmp(setting, "numa") == 0 || strcmp(setting, "cache") == 0;
    for (int r = 0; r < group->size; r++) {
        int rank = gy_group_world(group, r);
        grouping->of[r] = hosts ? world->members[rank].host : places ? by_place(world, rank) : by_sizes(setting, rank);
    }
    count(grouping, group->size, scratch, scratch + world->size);
}

bool gy_grouping_make(struct gy_grouping *grouping_p, const struct gy_world *world, const struct gy_group *group,
                      const char *setting)
{
    bool off = strcmp(setting, "off") == 0;
    size_t size = (size_t)group->size, most = (size_t)world->size;
    int *scratch = gy_alloc_zero(2 * most + size, sizeof(*scratch)); /* at most as many groups and hosts as ranks */
    *grouping_p = (struct gy_grouping){.of = off ? NULL : gy_alloc(size * sizeof(*grouping_p->of))};
    if (!scratch || (!off && !grouping_p->of)) {
        gy_free(scratch);
        gy_grouping_free(grouping_p);
        return false;
    }
    grouping_p->hosts = count_hosts(world, group, scratch);
    grouping_p->cores = grouping_p->hosts == 1 ? count_cores(world, group) : 0;
    /* single-core hosts choose as if they had enough cores: no measurements exist there */
    grouping_p->oversubscribed = grouping_p->cores > 1 && group->size > grouping_p->cores;
    if (!off)
        put_in_groups(grouping_p, world, group, setting, scratch + most);
    gy_free(scratch);
    return true;
}

void gy_grouping_free(struct gy_grouping *grouping)
{
    gy_free(grouping->of);
    *grouping = (struct gy_grouping){.of = NULL};
}
