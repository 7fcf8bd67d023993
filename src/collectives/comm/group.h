/* A group: which ranks of the world a communicator consists of, in which order. Ranks of a plan, a request and a
 * channel are numbers in the group; links, deaths and sentences use the numbers of the world. */
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

/* `world` lists `size` different ranks of a world of `world_size`; copied. NULL: the whole world. False: no memory. */
bool gy_group_make(struct gy_group *group_p, const int *world, int size, int world_size);
void gy_group_free(struct gy_group *group);

static inline int gy_group_world(const struct gy_group *group, int rank)
{
    return group->world ? group->world[rank] : rank;
}

/* −1: not a member. */
int gy_group_rank(const struct gy_group *group, int world);

#endif
