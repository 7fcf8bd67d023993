/* For builders only: grows a schedule step by step. Each algorithm has a file of its own, which exports one builder
 * function; the table in schedule.c lists them. */
#ifndef GY_COLLECTIVES_SCHEDULE_BUILDER_H
#define GY_COLLECTIVES_SCHEDULE_BUILDER_H

#include "collectives/schedule/schedule.h"

struct gy_builder;
typedef void (*gy_build_func)(struct gy_builder *builder, const struct gy_schedule_shape *shape);

/* The schedule under construction, without steps: set blocks, views, scratch, region there. */
struct gy_schedule *gy_builder_schedule(struct gy_builder *builder);
/* Opens a lane; returns its index. Following steps belong to it. Lanes without steps are dropped by the builder's
 * caller, so indices stay as given only if each opened lane gets a step. */
int gy_builder_lane(struct gy_builder *builder, uint16_t channel, int region_lane);
/* Adds a zeroed step with needs unused, rounds 1, peer −1; valid until the next call. An allocation failure makes
 * gy_schedule_build return NULL. */
struct gy_step *gy_builder_step(struct gy_builder *builder, enum gy_step_kind kind);
/* Records an allocation failure of the caller: gy_schedule_build returns NULL. */
void gy_builder_fail(struct gy_builder *builder);
void gy_step_need(struct gy_step *step, int lane, int lag, bool everyone, bool whole);

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

void gy_build_ring(struct gy_builder *builder, const struct gy_schedule_shape *shape);
void gy_build_halving_doubling(struct gy_builder *builder, const struct gy_schedule_shape *shape);
void gy_build_binary_tree(struct gy_builder *builder, const struct gy_schedule_shape *shape);
void gy_build_linear(struct gy_builder *builder, const struct gy_schedule_shape *shape);
void gy_build_recursive_doubling(struct gy_builder *builder, const struct gy_schedule_shape *shape);
void gy_build_binomial(struct gy_builder *builder, const struct gy_schedule_shape *shape);
void gy_build_bruck(struct gy_builder *builder, const struct gy_schedule_shape *shape);
void gy_build_double_tree(struct gy_builder *builder, const struct gy_schedule_shape *shape);
void gy_build_canonical(struct gy_builder *builder, const struct gy_schedule_shape *shape);
void gy_build_pairwise(struct gy_builder *builder, const struct gy_schedule_shape *shape);
void gy_build_shm_one_shot(struct gy_builder *builder, const struct gy_schedule_shape *shape);
void gy_build_shm_two_shot(struct gy_builder *builder, const struct gy_schedule_shape *shape);
void gy_build_hierarchical(struct gy_builder *builder, const struct gy_schedule_shape *shape);
void gy_build_hierarchical_halving(struct gy_builder *builder, const struct gy_schedule_shape *shape);
void gy_build_hierarchical_tree(struct gy_builder *builder, const struct gy_schedule_shape *shape);

#endif
