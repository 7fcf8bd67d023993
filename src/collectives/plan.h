/* A plan: what one rank does in one collective, as data.
 *
 * The collective works on one *global vector* of `total` elements, cut into `blocks` balanced blocks: block b covers elements
 * [total*b/blocks, total*(b+1)/blocks). Each space of memory is a view on a contiguous run of blocks:
 *
 *                     input covers     output covers
 *   all_reduce        all blocks       all blocks            total = count
 *   broadcast         all (root)       all blocks            total = count
 *   reduce_scatter    all blocks       blocks of this rank   total = count * size
 *   all_gather        blocks of rank   all blocks            total = count * size
 *
 * A *lane* is a list of steps done in order; lanes run in parallel. A step is a loop over `rounds`, and each round over tiles of its range:
 * an *iteration* is (round of the lane, tile). Rounds are numbered through all steps of the lane: step 1 begins where step 0 ended.
 * Count, pointers, tile size and sequence number are run-time arguments, so a plan has O(log N) steps whatever the count.
 *
 * Ordering. A step lists *needs*: iteration (q, t) of it may start only when lane `lane` has completed iteration (q − lag, t), or, with `whole`, all tiles
 * of round q − lag. A negative round is no need. Across ranks (`everyone`), the need is on each other rank's shared counter of that window lane, and `lag` counts
 * iterations of the counter (window plans have one round of tiles): iteration i needs everybody's counter >= base + i + 1 − lag, where base is the counter's value
 * when the collective began, so that a lag reaches back into earlier collectives: that is how windows synchronise and how slots are reused. At the
 * end of a window plan every window lane's counter has advanced by the same number of iterations, lanes that the plan does not use included.
 * A need on the own lane is never necessary. Without needs, lanes race: the checker proves that every race is harmless.
 *
 * Matching. A send in lane `lane` of rank a to rank b matches the receives of exactly one lane of b: the k-th round sent by a's lane to b matches the k-th
 * round received by b's lane whose `channel` is the same. Links are FIFO per channel; both sides' rounds have the same element range.
 *
 * Builders are pure functions of gy_plan_shape, one file per algorithm; the checker (checker.h) shares no code with them. */
#ifndef GY_COLLECTIVES_PLAN_H
#define GY_COLLECTIVES_PLAN_H

#include "core/base.h"

enum gy_collective { GY_ALL_REDUCE, GY_REDUCE_SCATTER, GY_ALL_GATHER, GY_BROADCAST, GY_BARRIER, GY_COLLECTIVES };

enum gy_algorithm {
    GY_DIRECT_ONE_SHOT,   /* windows: everyone publishes all, everyone reduces all */
    GY_DIRECT_TWO_SHOT,   /* windows: everyone reduces its slice of all, everyone collects */
    GY_RING,
    GY_HALVING_DOUBLING,
    GY_BINARY_TREE,
    GY_ALGORITHMS
};

enum gy_space {
    GY_INPUT,
    GY_OUTPUT,
    GY_SCRATCH, /* private, `scratch_slots` slots of the widest scratch range; a range names its slot */
    GY_WINDOW,  /* the shared window: `publish` half; slot = iteration of the window, ring of GY_WINDOW_SLOTS */
    GY_RESULT,  /* the shared window: `result` half */
};

enum gy_step_kind {
    GY_SEND,        /* range of src to peer */
    GY_RECV,        /* from peer to dst */
    GY_RECV_REDUCE, /* dst = src op received   (src: own operand, on the left; `flip`: received op src) */
    GY_COPY,        /* dst = src; skipped at run time when they are the same memory */
    GY_REDUCE,      /* dst = src op src2 */
    /* Fused leaves on windows. Per iteration, for the tile of every slice (slices = blocks, one per rank) or of the whole vector: */
    GY_PUBLISH,     /* window[slot] = tile t of src, of the range (two-shot: of every rank's slice but mine, side by side) */
    GY_GATHER,      /* dst = reduction in rank order over everyone's published tile t of range (own part from src); also into result[slot] when `keep` */
    GY_COLLECT,     /* dst = tile t of every other rank's slice, out of its result (or window, all_gather, broadcast) slot */
};

#define GY_NEEDS 3
struct gy_need {
    int8_t lane;    /* −1: unused */
    bool everyone;  /* on the counters of all ranks, else on mine */
    bool whole;
    int32_t lag;
};

/* Blocks [lo, lo + width) of the vector, lo = (lo0 + stride*round) mod blocks, or fixed if stride 0; round counts from 0 inside the step.
 * For GY_SCRATCH: slot = (slot0 + slot_stride*round) mod scratch_slots, and the range says how long it is. */
struct gy_range {
    int32_t lo, stride, width;
};

struct gy_step {
    enum gy_step_kind kind;
    int32_t peer;              /* SEND, RECV*: fixed for the whole loop */
    int32_t rounds;            /* >= 1 */
    struct gy_range range;     /* the same elements in every operand */
    enum gy_space src, src2, dst;
    int16_t slot0, slot_stride; /* scratch slot (src or dst) */
    bool flip, keep;
    struct gy_need needs[GY_NEEDS];
};

struct gy_lane {
    uint16_t channel;     /* SEND/RECV lanes: matches the peer's lane with the same channel; all its steps send, or all receive, or none communicates */
    int16_t window_lane;  /* >= 0: its iteration counter is shared in the window's lane[window_lane]; −1: private */
    int32_t first, count; /* steps [first, first+count) */
};

#define GY_PLAN_LANES 8

struct gy_plan_shape {
    enum gy_collective collective;
    enum gy_algorithm algorithm;
    int rank, size, root;
};

struct gy_plan {
    struct gy_plan_shape shape;
    int32_t blocks;
    int32_t input_lo, input_blocks;   /* blocks that the input covers (0 blocks: not read) */
    int32_t output_lo, output_blocks;
    int32_t scratch_slots;
    int32_t scratch_width;            /* widest scratch range, in blocks */
    bool window;                      /* uses windows: all ranks on one host */
    bool one_shot;                    /* fits the tiny fast path: the vector must fit one window slot */
    int32_t lanes;
    struct gy_lane lane[GY_PLAN_LANES];
    int32_t steps;
    struct gy_step step[];            /* grouped by lane */
};

/* Builds the plan for a shape; NULL when out of memory. `gy_plan_exists` says whether the algorithm is there for the collective and size. Pure. */
bool gy_plan_exists(enum gy_collective collective, enum gy_algorithm algorithm, int size);
struct gy_plan *gy_plan_build(const struct gy_plan_shape *shape);
void gy_plan_free(struct gy_plan *plan);
void gy_plan_print(const struct gy_plan *plan, gyre_print_func print, void *user);

const char *gy_collective_name(enum gy_collective collective);
const char *gy_algorithm_name(enum gy_algorithm algorithm);
bool gy_collective_find(const char *name, enum gy_collective *collective_p);
bool gy_algorithm_find(const char *name, enum gy_algorithm *algorithm_p);

/* First element of block b. 128-bit safe: total up to 2^63. */
static inline size_t gy_block_start(size_t total, int32_t blocks, int32_t b)
{
    return (size_t)((unsigned __int128)total * (unsigned)b / (unsigned)blocks);
}

#endif
