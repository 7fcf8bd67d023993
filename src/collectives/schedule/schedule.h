/* A schedule: what one rank does in one collective, as data.
 *
 * The collective works on one *global vector* of `total` elements, cut into `blocks` balanced blocks: block b covers
 * elements [total*b/blocks, total*(b+1)/blocks). Each space of memory is a view on a contiguous run of blocks:
 *
 *                     input covers     output covers
 *   all_reduce        all blocks       all blocks            total = count
 *   broadcast         all (root)       all blocks            total = count
 *   reduce_scatter    all blocks       blocks of this rank   total = count * size
 *   all_gather        blocks of rank   all blocks            total = count * size
 *   reduce            all blocks       all blocks (root)     total = count
 *   gather            blocks of rank   all blocks (root)     total = count * size
 *   scatter           all blocks (root)  blocks of rank      total = count * size
 *   all_to_all        all blocks       all blocks            total = count * size
 *   send, receive     all / none       none / all            total = count
 *
 * Only all_to_all has different vectors as input and output: block b of the input goes to rank b, block b of the
 * output comes from rank b. A send's range is blocks of the input, a receive's of the output.
 *
 * A *lane* is a list of steps done in order; lanes run in parallel. A step is a loop over `rounds`, and each round
 * over tiles of its range: an *iteration* is (round of the lane, tile). Rounds are numbered through all steps of the
 * lane: step 1 begins where step 0 ended. Count, pointers, tile size and sequence number are run-time arguments, so the
 * number of steps does not depend on the count. It is 2 to 3 per lane in a ring, O(log N) in trees and exchanges, and
 * N − 1 in linear and pairwise. A hierarchical schedule has as many as its groups have members, or as there are groups.
 *
 * Ordering. A step lists *needs*: iteration (q, t) of it may start only when lane `lane` has completed iteration (q
 * − lag, t), or, with `whole`, all tiles of round q − lag. A negative round is no need. A lag may be negative: a copy
 * in round 0 that reads what round 2 of lane 1 received needs lane 1 with lag −2. A need on `everyone` is on the shared
 * counters of the *other* ranks, see Regions. A need on the own lane is never necessary. Lanes without needs run
 * concurrently; the checker proves that every race is harmless.
 *
 * Regions. A lane with region_lane >= 0 has one step of one round; its iterations are counted through the whole life of
 * the communicator, in the shared counter of that region lane. `everyone` needs count these iterations. Iteration i of
 * the schedule needs the counter of `lane`'s region lane to be >= base + i + 1 − lag on every other rank (on rank
 * step.peer only, if that is >= 0). Here base is the counter when the collective began. So a lag reaches back into
 * earlier collectives: this synchronises regions and permits the reuse of slots. At the end of a region schedule every
 * region lane counter has advanced by the same number of iterations, the schedule's; a counter that the schedule does
 * not use is advanced when all lanes of the schedule have finished on that rank, never before. The slot of an iteration
 * is its number mod GY_REGION_SLOTS, so a reuse need has lag GY_REGION_SLOTS.
 *
 * Tiles. A round whose range is w blocks wide has as many as the longest run of w blocks, the same for every lo, so
 * that both sides of a link and all lanes agree; a tile at the end may be empty, and is still an iteration (an empty
 * message). Steps on regions have those of the longest block, whatever their width; PACK and UNPACK have one. Needs
 * between rounds of different width are `whole`.
 *
 * Matching. A send in lane `lane` of rank a to rank b matches the receives of exactly one lane of b: the k-th round
 * sent by a's lane to b matches the k-th round received by b's lane whose `tag` is the same. Links are FIFO per tag;
 * both sides' rounds have the same element range.
 *
 * Builders are pure functions of gy_schedule_shape, one file per algorithm; the checker (checker.h) shares no code with
 * them. */
#ifndef GY_COLLECTIVES_SCHEDULE_SCHEDULE_H
#define GY_COLLECTIVES_SCHEDULE_SCHEDULE_H

#include "collectives/schedule/algorithms.h"
#include "core/base.h"

/* The numbers travel on the wire. */
enum gy_collective {
    GY_ALL_REDUCE,
    GY_REDUCE_SCATTER,
    GY_ALL_GATHER,
    GY_BROADCAST,
    GY_BARRIER,
    GY_REDUCE_TO,
    GY_GATHER_TO,
    GY_SCATTER_FROM,
    GY_ALL_TO_ALL,
    GY_SEND_TO, /* point to point: `root` is the other rank */
    GY_RECEIVE_FROM,
    GY_COLLECTIVES
};

#define GY_ALGORITHM_CONSTANT(constant, ...) constant,
/* The rows of algorithms.h, numbered in their order. The numbers travel on the wire: gy_frame.algorithm. */
enum gy_algorithm { GY_ALGORITHM_ROWS(GY_ALGORITHM_CONSTANT) GY_ALGORITHMS };

/* What other parts of the library have to know of an algorithm. */
enum gy_algorithm_flag {
    GY_OVER_SHM = 1,          /* over shared memory: all ranks on one host */
    GY_GROUPED = 2,           /* hierarchical: reads shape.groups, needs GYRE_HIERARCHY other than off */
    GY_KEEPS_ORDER = 4,       /* combines in canonical order; over shared memory also in rank order, as the call asks */
    GY_SHARES_WIRES = 8,      /* over links: ranks send to several peers, or receive from several, at once */
    GY_SCRATCH_IS_OUTPUT = 16 /* of two ranks: the one scratch slot may be the output, where that is not the input */
};

enum gy_space {
    GY_INPUT,
    GY_OUTPUT,
    GY_SCRATCH,   /* private, `scratch_slots` slots of the widest scratch range; a range names its slot */
    GY_PUBLISHED, /* the shared region: half of what PUBLISH writes; slot = iteration, ring of GY_REGION_SLOTS */
    GY_RESULT,    /* the shared region: half of results */
};

enum gy_step_kind {
    GY_SEND,        /* range of src to peer */
    GY_RECV,        /* from peer to dst */
    GY_RECV_REDUCE, /* dst = src op received   (src: own operand, on the left; `flip`: received op src) */
    GY_COPY,        /* dst = src; skipped at run time when they are the same memory */
    GY_REDUCE,      /* dst = src op src2 */
    /* Blocks of one length between the range and `runs`, which lie in the space of the other side. One iteration,
     * whatever the length. */
    GY_PACK,   /* dst = the blocks of runs in src, side by side */
    GY_UNPACK, /* the blocks of runs in dst = src */
    /* Fused leaves on regions. Per iteration, tile t of slices (slice = block; blocks is 1 or the world size). Width 0:
     * nothing but the count. */
    GY_PUBLISH, /* published[slot] = tile t of src. Width 1: of slice lo, at the start of the slot. Width blocks > 1:
                 * of every slice b but mine, side by side: at element (b < rank ? b : b − 1) * tile of the slot */
    GY_REDUCE_PUBLISHED, /* dst = reduction in rank order over all ranks' published tile t of slice lo (own part from
                          * src), from left to right, or in the canonical tree (reduction_order.h) where the call asks
                          * for it; also to the start of result[slot] when `keep`, or only there when dst is GY_RESULT
                          */
    GY_COLLECT, /* dst = tile t of slices, from the start of src[slot] (GY_RESULT or GY_PUBLISHED) of their ranks. peer
                 * −1: of every slice b but mine, from rank b; peer >= 0: of slice lo, from that rank */
    GY_EXCHANGE, /* dst = tile t of my slice of what others published. peer −1: block b of dst from every rank b but me;
                  * peer >= 0: block lo of dst from that rank */
};

#define GY_NEEDS 3
struct gy_need {
    int8_t lane;   /* −1: unused */
    bool everyone; /* on the counters of all ranks, else on the own */
    bool whole;
    bool paced; /* whole only to pace the links: the same tile would suffice */
    int32_t lag;
};

/* Blocks [lo, lo + width) of the vector, lo = (lo0 + stride*round) mod blocks, or fixed if stride 0; round counts from
 * 0 inside the step. For GY_SCRATCH: slot = (slot0 + slot_stride*round) mod scratch_slots, and the range says how long
 * it is. */
struct gy_range {
    int32_t lo, stride, width;
};

/* Of PACK and UNPACK: block p of the range is block (lo + stride * (p / run) + p % run) mod blocks on the other
 * side. */
struct gy_runs {
    int32_t lo, stride, run; /* run >= 1 */
    int32_t slot;            /* where that side is GY_SCRATCH */
};

/* Which fields a kind reads; the others stay as gy_builder_step has set them. All kinds read rounds, range and
 * needs. slot0 and slot_stride are read where an operand is GY_SCRATCH.
 *
 *   kind               peer            src           src2  dst           others
 *   SEND               receiver        x
 *   RECV               sender                              x
 *   RECV_REDUCE        sender          x                   x             flip
 *   COPY                               x                   x
 *   REDUCE                             x             x     x
 *   PACK, UNPACK                       x                   x             runs; slot0: of the range's side
 *   PUBLISH                            x                   GY_PUBLISHED
 *   REDUCE_PUBLISHED                   x                   x             keep
 *   COLLECT            −1 or a source  x                   x
 *   EXCHANGE           −1 or a source  GY_PUBLISHED        x
 *
 * Messages need a peer, and no step with blocks writes to GY_INPUT. So a step in which nothing has been filled in is
 * not well formed, and the checker refuses it. */
struct gy_step {
    enum gy_step_kind kind;
    int32_t peer;          /* the same in all rounds; −1: none */
    int32_t rounds;        /* >= 1 */
    struct gy_range range; /* the same elements in every operand */
    enum gy_space src, src2, dst;
    int32_t slot0, slot_stride; /* scratch slot (src or dst) */
    bool flip, keep;
    struct gy_runs runs;
    struct gy_need needs[GY_NEEDS];
};

struct gy_lane {
    uint16_t tag;         /* SEND/RECV lanes: matches the peer's lane with the same tag; all its steps send, or all
                           * receive, or none communicates */
    int16_t region_lane;  /* >= 0: its iteration counter is shared in the region's lane[region_lane]; −1: private */
    int32_t first, count; /* steps [first, first+count) */
};

#define GY_SCHEDULE_LANES 12

struct gy_schedule_shape {
    enum gy_collective collective;
    enum gy_algorithm algorithm;
    int rank, size, root;
    const int *groups; /* [size] the group of each rank, from 0 without gaps; outlives the schedule. NULL: one group */
};

struct gy_schedule {
    struct gy_schedule_shape shape;
    int32_t blocks;
    int32_t input_lo, input_blocks; /* blocks that the input covers (0 blocks: not read) */
    int32_t output_lo, output_blocks;
    int32_t scratch_slots;
    int32_t scratch_width; /* widest scratch range, in blocks */
    int32_t scratch_lo;    /* −1: a range lies at the start of its slot; else a slot is a view on blocks
                            * [scratch_lo, + scratch_width) */
    bool shm;              /* uses regions: all ranks on one host */
    int32_t side_by_side;  /* published slices in one slot, 0 or 1: one; the same on every rank */
    bool one_shot;         /* eligible for the eager exchange: the vector must fit one region slot */
    int32_t lanes;
    struct gy_lane lane[GY_SCHEDULE_LANES];
    int32_t steps;
    struct gy_step step[]; /* grouped by lane */
};

/* gy_schedule_build returns the schedule for a shape; NULL if out of memory. `gy_schedule_exists` is true if the
 * algorithm serves the collective and size. Both are pure. */
bool gy_schedule_exists(enum gy_collective collective, enum gy_algorithm algorithm, int size);
/* True if the algorithm serves the form of the collective that has a count for every rank. */
bool gy_algorithm_takes_counts(enum gy_collective collective, enum gy_algorithm algorithm);
struct gy_schedule *gy_schedule_build(const struct gy_schedule_shape *shape);
void gy_schedule_free(struct gy_schedule *schedule);
void gy_schedule_print(const struct gy_schedule *schedule, gyre_print_func print, void *user);

const char *gy_collective_name(enum gy_collective collective);
const char *gy_algorithm_name(enum gy_algorithm algorithm);
bool gy_collective_find(const char *name, enum gy_collective *collective_p);
bool gy_algorithm_find(const char *name, enum gy_algorithm *algorithm_p);

#define GY_VARYING 0x80u                      /* in a shape's collective: counts differ from rank to rank */
#define GY_POINT_TO_POINT (UINT64_C(1) << 63) /* in a sequence number: of messages from one rank to another */

/* True if the algorithm has the flag. */
static inline bool gy_algorithm_has(enum gy_algorithm algorithm, enum gy_algorithm_flag flag)
{
#define GY_ALGORITHM_FLAGS(constant, name, builder, serves, counts, flags) flags,
    static const uint8_t flags[GY_ALGORITHMS] = {GY_ALGORITHM_ROWS(GY_ALGORITHM_FLAGS)};
    return (unsigned)algorithm < GY_ALGORITHMS && (flags[algorithm] & flag) != 0;
}

static inline bool gy_is_hierarchical(enum gy_algorithm algorithm)
{
    return gy_algorithm_has(algorithm, GY_GROUPED);
}

static inline bool gy_is_over_shm(enum gy_algorithm algorithm)
{
    return gy_algorithm_has(algorithm, GY_OVER_SHM);
}

static inline bool gy_is_point_to_point(unsigned collective)
{
    return collective == GY_SEND_TO || collective == GY_RECEIVE_FROM;
}

/* True if the collective has a root, so that not all ranks wait for all others. */
static inline bool gy_has_root(unsigned collective)
{
    collective &= ~GY_VARYING;
    return collective == GY_BROADCAST || (collective >= GY_REDUCE_TO && collective <= GY_SCATTER_FROM);
}

/* gy_schedule_sends and gy_schedule_receives: true if the lane sends or receives; the others: if it does so with the
 * peer. */
static inline bool gy_schedule_sends(const struct gy_schedule *schedule, int lane)
{
    return schedule->step[schedule->lane[lane].first].kind == GY_SEND;
}
static inline bool gy_schedule_receives(const struct gy_schedule *schedule, int lane)
{
    enum gy_step_kind kind = schedule->step[schedule->lane[lane].first].kind;
    return kind == GY_RECV || kind == GY_RECV_REDUCE;
}
static inline bool gy_schedule_meets(const struct gy_schedule *schedule, int lane, int peer)
{
    const struct gy_lane *it = &schedule->lane[lane];
    for (int32_t s = it->first; s < it->first + it->count; s++)
        if (schedule->step[s].peer == peer)
            return true;
    return false;
}

/* First block of a range in a round of its step. */
static inline int32_t gy_range_block(struct gy_range range, int32_t blocks, int32_t round)
{
    int64_t lo = ((int64_t)range.lo + (int64_t)range.stride * round) % blocks;
    return (int32_t)(lo < 0 ? lo + blocks : lo);
}

#endif
