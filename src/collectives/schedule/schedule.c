/* Schedules: building by the table of algorithms, names, printing.
 *
 *   views:    which blocks input and output cover depends on the collective and the number of blocks alone. The builder
 *             sets `blocks`; the views are set after it
 *   size 1:   every algorithm is one copy */
#include "collectives/schedule/schedule.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "collectives/schedule/builder_internal.h"
#include "core/mem.h"

static const struct {
    const char *name;
    gy_build_func build;
    uint16_t serves, counts; /* bits of collectives */
} algorithms[GY_ALGORITHMS] = {
#define ROW(constant, name, builder, serves, counts, flags) [constant] = {name, builder, serves, counts},
    GY_ALGORITHM_ROWS(ROW)
#undef ROW
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
           (algorithms[algorithm].serves & GY_SERVES(collective)) != 0;
}

bool gy_algorithm_takes_counts(enum gy_collective collective, enum gy_algorithm algorithm)
{
    return (unsigned)collective < GY_COLLECTIVES && (unsigned)algorithm < GY_ALGORITHMS &&
           (algorithms[algorithm].counts & GY_SERVES(collective)) != 0;
}

/* Collectives whose input, or whose output, is one block per rank. */
#define BY_RANK                                                                                                       \
    (GY_SERVES(GY_REDUCE_SCATTER) | GY_SERVES(GY_ALL_GATHER) | GY_SERVES(GY_GATHER_TO) | GY_SERVES(GY_SCATTER_FROM) | \
     GY_SERVES(GY_ALL_TO_ALL))
#define OWN_BLOCK_IN (GY_SERVES(GY_ALL_GATHER) | GY_SERVES(GY_GATHER_TO))
#define OWN_BLOCK_OUT (GY_SERVES(GY_REDUCE_SCATTER) | GY_SERVES(GY_SCATTER_FROM))
#define ROOT_IN (GY_SERVES(GY_BROADCAST) | GY_SERVES(GY_SCATTER_FROM))
#define ROOT_OUT (GY_SERVES(GY_REDUCE_TO) | GY_SERVES(GY_GATHER_TO))
#define NO_INPUT (GY_SERVES(GY_BARRIER) | GY_SERVES(GY_RECEIVE_FROM))
#define NO_OUTPUT (GY_SERVES(GY_BARRIER) | GY_SERVES(GY_SEND_TO))

/* Sets which blocks input and output cover, and `blocks` where the builder has not: one per rank, or one in all. */
static void set_views(struct gy_schedule *schedule)
{
    const struct gy_schedule_shape *shape = &schedule->shape;
    unsigned which = GY_SERVES(shape->collective);
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
    static const char *const kinds[] = {"send",   "recv",    "recv_reduce",      "copy",    "reduce",  "pack",
                                        "unpack", "publish", "reduce_published", "collect", "exchange"};
    static const char *const spaces[] = {"input", "output", "scratch", "published", "result"};
    struct line line = {.length = 0};
    add(&line, "    %-16s", kinds[step->kind]);
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
        add(&line, "  lane %d tag %u", i, lane->tag);
        if (lane->region_lane >= 0)
            add(&line, " region lane %d", lane->region_lane);
        print(user, line.text);
        for (int s = lane->first; s < lane->first + lane->count; s++)
            print_step(&schedule->step[s], print, user);
    }
}
