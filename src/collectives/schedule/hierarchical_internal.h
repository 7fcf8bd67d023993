/* For the builders of hierarchical schedules only: what they share. */
#ifndef GY_COLLECTIVES_SCHEDULE_HIERARCHICAL_INTERNAL_H
#define GY_COLLECTIVES_SCHEDULE_HIERARCHICAL_INTERNAL_H

#include "collectives/schedule/hierarchy.h"
#include "collectives/schedule/message_rounds.h"

/* The first lanes; the lanes between groups follow, with tags from 1. */
enum { GY_INSIDE_SEND, GY_INSIDE_RECV, GY_INSIDE_COPY };

struct gy_composition {
    const struct gy_schedule_shape *shape;
    struct gy_hierarchy hierarchy;
    int *owners; /* [groups] of this rank's slice; of slice 0 if it owns none */
    struct gy_rounds rounds;
};

/* Opens the rounds and the first lanes; the schedule's blocks and scratch must be set. */
void gy_composition_begin(struct gy_composition *composition, struct gy_builder *builder);

/* reduce_scatter and all_gather */
void gy_build_hierarchical_blocks(struct gy_builder *builder, struct gy_composition *composition);

#endif
