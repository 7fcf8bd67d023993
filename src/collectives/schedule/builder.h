/* For builders only: grows a schedule step by step. Each algorithm has a file of its own, which exports one builder
 * function; the table in algorithms.h names it. */
#ifndef GY_COLLECTIVES_SCHEDULE_BUILDER_H
#define GY_COLLECTIVES_SCHEDULE_BUILDER_H

#include "collectives/schedule/schedule.h"

struct gy_builder;
typedef void (*gy_build_func)(struct gy_builder *builder, const struct gy_schedule_shape *shape);

/* The schedule under construction. A builder sets here, before or between its steps, what is not the default: blocks
 * (default: one per rank if input or output are blocks of ranks, else one), scratch_slots, scratch_width and scratch_lo
 * (default: no scratch), shm, side_by_side and one_shot. The views are set when it has ended. Valid until the next call
 * that adds a step. */
struct gy_schedule *gy_builder_schedule(struct gy_builder *builder);
/* Opens a lane; returns its index. Following steps belong to it, and at least one has to follow. region_lane: −1 for
 * lanes over links. */
int gy_builder_lane(struct gy_builder *builder, uint16_t tag, int region_lane);
/* Adds a step of zeros with needs unused, rounds 1, peer −1; valid until the next call. The builder fills in the fields
 * that its kind has (struct gy_step). An allocation failure makes gy_schedule_build return NULL. */
struct gy_step *gy_builder_step(struct gy_builder *builder, enum gy_step_kind kind);
/* Records an allocation failure of the caller: gy_schedule_build returns NULL. */
void gy_builder_fail(struct gy_builder *builder);

/* What a need is on. */
enum gy_need_flag {
    GY_NEED_TILE = 0,     /* the same tile of the other lane's round */
    GY_NEED_ROUND = 1,    /* all tiles of that round: where the two ranges differ */
    GY_NEED_EVERYONE = 2, /* the same tile, by the counters of the other ranks */
};
/* Adds a need on the lane's round `lag` rounds before the step's own. */
void gy_step_need(struct gy_step *step, int lane, int lag, enum gy_need_flag flag);

/* The ranks in groups by the bits of their number, largest first: group g has ranks [first, first + 2^bits). */
struct gy_bit_groups {
    struct gy_bit_group {
        int first;
        uint8_t bits;
    } groups[31];
    int count, mine; /* number of groups; index of the rank's group */
    int index;       /* the rank's index in its group */
};
struct gy_bit_groups gy_bit_groups(int size, int rank);

#define GY_BUILDER(constant, name, builder, ...) \
    void builder(struct gy_builder *, const struct gy_schedule_shape *shape);
GY_ALGORITHM_ROWS(GY_BUILDER)

#endif
