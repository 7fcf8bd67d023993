/* Rounds: for builders that list a rank's messages one by one, in an order valid for sequential execution. Needs and
 * loops are derived.
 *
 *   add     one round of a lane. It reads blocks that rounds of other lanes have written: those become its needs, tile
 *           by tile where the round before moved the very same blocks, whole otherwise. An empty message that is sent
 *           needs all that has been received.
 *   play    a whole schedule of some of the ranks, as a part of this one: its ranks, blocks and spaces are mapped, its
 *           lanes become lanes of this schedule, and its own needs are kept. So any schedule over links can stand at a
 *           level of a hierarchy.
 *   close   folds the rounds of each lane into loops, as long as blocks and slots move by one stride and needs keep
 *           their lag
 *
 * Write-after-read hazards between lanes are the builder's responsibility, as in every builder. */
#ifndef GY_COLLECTIVES_SCHEDULE_MESSAGE_ROUNDS_H
#define GY_COLLECTIVES_SCHEDULE_MESSAGE_ROUNDS_H

#include "collectives/schedule/builder.h"

struct gy_round {
    enum gy_step_kind kind; /* of a link, or GY_COPY */
    int peer;
    int lo, width;
    enum gy_space src, dst;
    int slot; /* where one of them is GY_SCRATCH */
    bool flip;
};

struct gy_rounds_entry;

struct gy_rounds {
    struct gy_builder *builder;
    struct gy_rounds_entry *entries;
    int count, capacity;
    struct {
        uint16_t tag;
        int rounds;
        int received; /* entry of its last receive, −1 */
    } lane[GY_SCHEDULE_LANES];
    int lanes;
    int blocks;
    int *writer; /* entry of the last write, −1: [blocks] of the output, then [slots] of the scratch */
};

/* How a schedule is embedded. */
struct gy_part {
    const int *ranks; /* its ranks in this schedule */
    int lo;           /* its block 0 */
    enum gy_space input, output, scratch;
    bool uncopied; /* omit its copies */
    uint16_t tag;  /* offset added to its tags */
};

/* The schedule's blocks and scratch must be set. The builder records allocation failures, as in gy_builder_step. */
void gy_rounds_open(struct gy_rounds *rounds, struct gy_builder *builder);
int gy_rounds_lane(struct gy_rounds *rounds, uint16_t tag);
void gy_rounds_add(struct gy_rounds *rounds, int lane, struct gy_round round);
/* The part's scratch has one slot per block. */
void gy_rounds_play(struct gy_rounds *rounds, const struct gy_schedule *schedule, const struct gy_part *part);
/* Drops lanes without rounds. */
void gy_rounds_close(struct gy_rounds *rounds);

struct gy_moment {
    int when, block;
};
/* Returns the schedule's blocks in the order of their first read and of their last write; [blocks] each. Untouched
 * blocks come last. */
void gy_rounds_survey(const struct gy_schedule *schedule, struct gy_moment *first_p, struct gy_moment *last_p);

#endif
