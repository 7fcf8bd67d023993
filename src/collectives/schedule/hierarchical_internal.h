/* For the builders of hierarchical plans only: what they have in common. */
#ifndef GY_COLLECTIVES_SCHEDULE_HIERARCHICAL_INTERNAL_H
#define GY_COLLECTIVES_SCHEDULE_HIERARCHICAL_INTERNAL_H

#include "collectives/schedule/hierarchy.h"
#include "collectives/schedule/message_rounds.h"

/* The first lanes; those of what happens between groups follow, on channels from 1. */
enum { GY_INSIDE_SEND, GY_INSIDE_RECV, GY_INSIDE_COPY };

struct gy_composition {
    const struct gy_plan_shape *shape;
    struct gy_hierarchy hierarchy;
    int *owners; /* [groups] of my slice; of slice 0 where I own none */
    struct gy_rounds rounds;
};

/* The plan's blocks and scratch are set: opens the rounds and the first lanes. */
void gy_composition_begin(struct gy_composition *composition, struct gy_builder *builder);

/* reduce_scatter and all_gather */
void gy_build_hierarchical_blocks(struct gy_builder *builder, struct gy_composition *composition);

#endif
