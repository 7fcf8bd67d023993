/* A group: the ranks of the world in a communicator, and their order. Schedules, requests and channels use ranks of the
 * group; links, failures and error messages use ranks of the world. */
#ifndef GY_COLLECTIVES_COMM_GROUP_H
#define GY_COLLECTIVES_COMM_GROUP_H

#include "core/base.h"

struct gy_group_member {
    int world, rank;
};

struct gy_group {
    int size;
    int *world;                       /* [size] by rank; NULL: the whole world in its own order */
    struct gy_group_member *by_world; /* [size] sorted; NULL likewise */
};

/* `world` lists `size` different ranks of a world of `world_size`; it is copied. NULL: the whole world. Returns
 * false if out of memory. */
bool gy_group_make(struct gy_group *group_p, const int *world, int size, int world_size);
void gy_group_free(struct gy_group *group);

static inline int gy_group_world(const struct gy_group *group, int rank)
{
    return group->world ? group->world[rank] : rank;
}

/* Returns −1 for a rank that is no member. */
int gy_group_rank(const struct gy_group *group, int world);

#endif
