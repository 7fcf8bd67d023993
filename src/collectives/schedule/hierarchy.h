/* A hierarchy: the ranks of a communicator divided into arbitrary groups, and the queries that builders need.
 *
 *   groups           0 0 1 1 1 2 2        or interleaved: 0 1 0 1 0; or of one rank each
 *   index            0 1 0 1 2 0 1        a rank's place in its group, in the order of ranks
 *   slices           2                    the members of the smallest group: so many ranks of every group are
 *                                         *owners*, and owner s of each group works on slice s of the vector with the
 *                                         owners s of the others
 *
 * Everything here is a function of the shape. */
#ifndef GY_COLLECTIVES_SCHEDULE_HIERARCHY_H
#define GY_COLLECTIVES_SCHEDULE_HIERARCHY_H

#include "collectives/schedule/schedule.h"

struct gy_hierarchy {
    int size, groups, slices;
    int *memory;      /* the allocation that the pointers below share */
    int *group;       /* [size] of each rank */
    int *index;       /* [size] its place in its group */
    int *ranks;       /* [size] sorted by group */
    int *first;       /* [groups + 1] first index of each group in `ranks` */
    int mine, place;  /* group and index of the shape's rank */
    int members;      /* size of its group */
    const int *peers; /* [members] ranks of its group */
};

/* Returns false if out of memory. */
bool gy_hierarchy_open(struct gy_hierarchy *hierarchy, const struct gy_schedule_shape *shape);
void gy_hierarchy_close(struct gy_hierarchy *hierarchy);

static inline int gy_hierarchy_members(const struct gy_hierarchy *hierarchy, int group)
{
    return hierarchy->first[group + 1] - hierarchy->first[group];
}

static inline int gy_hierarchy_rank(const struct gy_hierarchy *hierarchy, int group, int index)
{
    return hierarchy->ranks[hierarchy->first[group] + index];
}

#endif
