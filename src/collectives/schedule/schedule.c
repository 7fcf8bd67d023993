/* The table of algorithms; schedules: names, building, printing.
 *
 *   rows:     one per algorithm: its name, its builder, the collectives that it serves
 *   views:    which blocks input and output cover depends on the collective alone and is set here, before the builder
 *             runs
 *   size 1:   every algorithm is one copy */
#include "collectives/schedule/schedule.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "collectives/schedule/builder_internal.h"
#include "core/mem.h"

#define SERVES(collective) (1u << (collective))

static const struct {
    const char *name;
    gy_build_func build;
    unsigned serves;
} algorithms[GY_ALGORITHMS] = {
    [GY_SHM_ONE_SHOT] = {"direct_one_shot", gy_build_shm_one_shot,
                         SERVES(GY_ALL_REDUCE) | SERVES(GY_BROADCAST) | SERVES(GY_BARRIER) | SERVES(GY_REDUCE_TO)},
    [GY_SHM_TWO_SHOT] = {"direct_two_shot", gy_build_shm_two_shot,
                         SERVES(GY_ALL_REDUCE) | SERVES(GY_REDUCE_SCATTER) | SERVES(GY_ALL_GATHER) |
                             SERVES(GY_REDUCE_TO) | SERVES(GY_GATHER_TO) | SERVES(GY_SCATTER_FROM) |
                             SERVES(GY_ALL_TO_ALL)},
    [GY_RING] = {"ring", gy_build_ring,
                 SERVES(GY_ALL_REDUCE) | SERVES(GY_REDUCE_SCATTER) | SERVES(GY_ALL_GATHER) | SERVES(GY_BROADCAST) |
                     SERVES(GY_REDUCE_TO)},
    [GY_HALVING_DOUBLING] = {"halving_doubling", gy_build_halving_doubling,
                             SERVES(GY_ALL_REDUCE) | SERVES(GY_REDUCE_SCATTER) | SERVES(GY_ALL_GATHER) |
                                 SERVES(GY_BARRIER)},
    [GY_BINARY_TREE] = {"binary_tree", gy_build_binary_tree,
                        SERVES(GY_ALL_REDUCE) | SERVES(GY_BROADCAST) | SERVES(GY_BARRIER) | SERVES(GY_REDUCE_TO)},
    [GY_LINEAR] = {"linear", gy_build_linear,
                   SERVES(GY_GATHER_TO) | SERVES(GY_SCATTER_FROM) | SERVES(GY_SEND_TO) | SERVES(GY_RECEIVE_FROM)},
    [GY_PAIRWISE] = {"pairwise", gy_build_pairwise, SERVES(GY_ALL_TO_ALL)},
    [GY_CANONICAL] = {"canonical", gy_build_canonical,
                      SERVES(GY_ALL_REDUCE) | SERVES(GY_REDUCE_SCATTER) | SERVES(GY_REDUCE_TO)},
    [GY_RECURSIVE_DOUBLING] = {"recursive_doubling", gy_build_recursive_doubling, SERVES(GY_ALL_REDUCE)},
    [GY_BINOMIAL] = {"binomial", gy_build_binomial,
                     SERVES(GY_BROADCAST) | SERVES(GY_REDUCE_TO) | SERVES(GY_GATHER_TO) | SERVES(GY_SCATTER_FROM)},
    [GY_BRUCK] = {"bruck", gy_build_bruck, SERVES(GY_ALL_GATHER) | SERVES(GY_ALL_TO_ALL)},
    [GY_DOUBLE_TREE] = {"double_tree", gy_build_double_tree,
                        SERVES(GY_ALL_REDUCE) | SERVES(GY_BROADCAST) | SERVES(GY_REDUCE_TO)},
    [GY_HIERARCHICAL] = {"hierarchical", gy_build_hierarchical,
                         SERVES(GY_ALL_REDUCE) | SERVES(GY_REDUCE_SCATTER) | SERVES(GY_ALL_GATHER) |
                             SERVES(GY_BROADCAST) | SERVES(GY_REDUCE_TO) | SERVES(GY_BARRIER)},
    [GY_HIERARCHICAL_HALVING] = {"hierarchical_halving", gy_build_hierarchical_halving, SERVES(GY_ALL_REDUCE)},
    [GY_HIERARCHICAL_TREE] = {"hierarchical_tree", gy_build_hierarchical_tree,
                              SERVES(GY_ALL_REDUCE) | SERVES(GY_BROADCAST) | SERVES(GY_REDUCE_TO)},
};

static const char *const collectives[GY_COLLECTIVES] = {
    [GY_ALL_REDUCE] = "all_reduce", [GY_REDUCE_SCATTER] = "reduce_scatter",
    [GY_ALL_GATHER] = "all_gather", [GY_BROADCAST] = "broadcast",
    [GY_BARRIER] = "barrier",       [GY_REDUCE_TO] = "reduce",
    [GY_GATHER_TO] = "gather",      [GY_SCATTER_FROM] = "scatter",
    [GY_ALL_TO_ALL] = "all_to_all", [GY_SEND_TO] = "send",
    [GY_RECEIVE_FROM] = "recv",
};

bool gy_schedule_exists(enum gy_collective collective, enum gy_algorithm algorithm, int size)
{
    return size >= 1 && (unsigned)collective < GY_COLLECTIVES && (unsigned)algorithm < GY_ALGORITHMS &&
           (algorithms[algorithm].serves & SERVES(collective)) != 0;
}

/* Collectives whose input, or whose output, is one block per rank. */
#define BY_RANK                                                                                           \
    (SERVES(GY_REDUCE_SCATTER) | SERVES(GY_ALL_GATHER) | SERVES(GY_GATHER_TO) | SERVES(GY_SCATTER_FROM) | \
     SERVES(GY_ALL_TO_ALL))
#define OWN_BLOCK_IN (SERVES(GY_ALL_GATHER) | SERVES(GY_GATHER_TO))
#define OWN_BLOCK_OUT (SERVES(GY_REDUCE_SCATTER) | SERVES(GY_SCATTER_FROM))
#define ROOT_IN (SERVES(GY_BROADCAST) | SERVES(GY_SCATTER_FROM))
#define ROOT_OUT (SERVES(GY_REDUCE_TO) | SERVES(GY_GATHER_TO))
#define NO_INPUT (SERVES(GY_BARRIER) | SERVES(GY_RECEIVE_FROM))
#define NO_OUTPUT (SERVES(GY_BARRIER) | SERVES(GY_SEND_TO))

/* Whole-vector views by default; builders that cut finer scale the numbers by their `blocks`. */
static void set_views(struct gy_schedule *schedule)
{
    const struct gy_schedule_shape *shape = &schedule->shape;
    unsigned which = SERVES(shape->collective);
    bool root = shape->rank == shape->root;
    if (schedule->blocks == 0)
        schedule->blocks = which & BY_RANK ? shape->size : 1;
    schedule->input_blocks = schedule->output_blocks = schedule->blocks;
    if (which & OWN_BLOCK_IN) {
        schedule->input_lo = shape->rank;
        schedule->input_blocks = 1;
    }
    if (which & OWN_BLOCK_OUT) {
        schedule->output_lo = shape->rank;
        schedule->output_blocks = 1;
    }
    if ((which & NO_INPUT) || ((which & ROOT_IN) && !root))
        schedule->input_blocks = 0;
    if ((which & NO_OUTPUT) || ((which & ROOT_OUT) && !root))
        schedule->output_blocks = 0;
}

static void build_alone(struct gy_builder *builder)
{
    if (gy_builder_schedule(builder)->shape.collective == GY_BARRIER)
        return;
    gy_builder_lane(builder, 0, -1);
    struct gy_step *copy = gy_builder_step(builder, GY_COPY);
    copy->range.width = 1;
    copy->src = GY_INPUT;
    copy->dst = GY_OUTPUT;
}

struct gy_schedule *gy_schedule_build(const struct gy_schedule_shape *shape)
{
    if (!gy_schedule_exists(shape->collective, shape->algorithm, shape->size))
        return NULL;
    struct gy_builder builder;
    if (gy_builder_open(&builder, shape) != GYRE_SUCCESS)
        return NULL;
    if (shape->size == 1 && shape->collective != GY_SEND_TO && shape->collective != GY_RECEIVE_FROM)
        build_alone(&builder);
    else
        algorithms[shape->algorithm].build(&builder, shape);
    set_views(gy_builder_schedule(&builder));
    return gy_builder_close(&builder);
}

void gy_schedule_free(struct gy_schedule *schedule)
{
    gy_free(schedule);
}

const char *gy_collective_name(enum gy_collective collective)
{
    return (unsigned)collective < GY_COLLECTIVES ? collectives[collective] : "unknown";
}

const char *gy_algorithm_name(enum gy_algorithm algorithm)
{
    return (unsigned)algorithm < GY_ALGORITHMS ? algorithms[algorithm].name : "unknown";
}

bool gy_collective_find(const char *name, enum gy_collective *collective_p)
{
    for (unsigned i = 0; i < GY_COLLECTIVES; i++) {
        if (strcmp(name, collectives[i]) == 0) {
            *collective_p = (enum gy_collective)i;
            return true;
        }
    }
    return false;
}

bool gy_algorithm_find(const char *name, enum gy_algorithm *algorithm_p)
{
    for (unsigned i = 0; i < GY_ALGORITHMS; i++) {
        if (strcmp(name, algorithms[i].name) == 0) {
            *algorithm_p = (enum gy_algorithm)i;
            return true;
        }
    }
    return false;
}

/* One line of text, truncated at the end of its buffer. */
struct line {
    char text[256];
    size_t length;
};

static void GY_PRINTF(2, 3)
add(struct line *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(line->text + line->length, sizeof(line->text) - line->length, format, arguments);
    va_end(arguments);
    if (n > 0)
        line->length = gy_min_size(line->length + (size_t)n, sizeof(line->text) - 1);
}

static void print_step(const struct gy_step *step, gyre_print_func print, void *user)
{
    static const char *const kinds[] = {"send",   "recv",    "recv_reduce", "copy",    "reduce",  "pack",
                                        "unpack", "publish", "gather",      "collect", "exchange"};
    static const char *const spaces[] = {"input", "output", "scratch", "region", "result"};
    struct line line = {.length = 0};
    add(&line, "    %-11s", kinds[step->kind]);
    if (step->peer >= 0)
        add(&line, " peer %d", step->peer);
    add(&line, " blocks %d%+d*round width %d", step->range.lo, step->range.stride, step->range.width);
    if (step->rounds > 1)
        add(&line, " rounds %d", step->rounds);
    add(&line, " %s -> %s", spaces[step->src], spaces[step->dst]);
    if (step->src == GY_SCRATCH || step->dst == GY_SCRATCH)
        add(&line, " slot %d%+d*round", step->slot0, step->slot_stride);
    add(&line, "%s%s", step->flip ? " flip" : "", step->keep ? " keep" : "");
    if (step->kind == GY_PACK || step->kind == GY_UNPACK)
        add(&line, " runs of %d from block %d%+d*run", step->runs.run, step->runs.lo, step->runs.stride);
    for (int i = 0; i < GY_NEEDS && step->needs[i].lane >= 0; i++) {
        const struct gy_need *need = &step->needs[i];
        add(&line, " needs lane %d%s lag %d%s", need->lane, need->everyone ? " of everyone" : "", need->lag,
            need->whole ? " whole" : "");
    }
    print(user, line.text);
}

void gy_schedule_print(const struct gy_schedule *schedule, gyre_print_func print, void *user)
{
    const struct gy_schedule_shape *shape = &schedule->shape;
    struct line line = {.length = 0};
    add(&line, "%s %s rank %d of %d root %d: %d blocks, %d lanes, %d steps", gy_collective_name(shape->collective),
        gy_algorithm_name(shape->algorithm), shape->rank, shape->size, shape->root, schedule->blocks, schedule->lanes,
        schedule->steps);
    if (schedule->scratch_slots > 0)
        add(&line, ", scratch %d x %d blocks", schedule->scratch_slots, schedule->scratch_width);
    print(user, line.text);
    for (int i = 0; i < schedule->lanes; i++) {
        const struct gy_lane *lane = &schedule->lane[i];
        line.length = 0;
        add(&line, "  lane %d channel %u", i, lane->channel);
        if (lane->region_lane >= 0)
            add(&line, " slot lane %d", lane->region_lane);
        print(user, line.text);
        for (int s = lane->first; s < lane->first + lane->count; s++)
            print_step(&schedule->step[s], print, user);
    }
}
