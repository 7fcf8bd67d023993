/* Rounds of a rank in a sequential order, their needs, and their folding into loops. See message_rounds.h.
 *
 * Invariant: `writer` names, for every block of the output and every slot of the scratch, the last round that wrote
 * it in that order. A reader of the block needs that round, and so all earlier rounds of the same lane. */
#include "collectives/schedule/message_rounds.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>

#include "core/mem.h"

struct gy_rounds_entry {
    struct gy_round round;
    int lane, number; /* number: index of the round in its lane */
    struct gy_need needs[GY_NEEDS];
};

void gy_rounds_open(struct gy_rounds *rounds, struct gy_builder *builder)
{
    const struct gy_schedule *schedule = gy_builder_schedule(builder);
    int keys = schedule->blocks + schedule->scratch_slots;
    *rounds = (struct gy_rounds){.builder = builder, .blocks = schedule->blocks};
    rounds->writer = gy_alloc((size_t)keys * sizeof(*rounds->writer));
    if (!rounds->writer)
        gy_builder_fail(builder);
    for (int k = 0; rounds->writer && k < keys; k++)
        rounds->writer[k] = -1;
}

int gy_rounds_lane(struct gy_rounds *rounds, uint16_t tag)
{
    assert(rounds->lanes < GY_SCHEDULE_LANES);
    rounds->lane[rounds->lanes].tag = tag;
    rounds->lane[rounds->lanes].rounds = 0;
    rounds->lane[rounds->lanes].received = -1;
    return rounds->lanes++;
}

static struct gy_rounds_entry *append(struct gy_rounds *rounds)
{
    if (rounds->count == rounds->capacity) {
        int capacity = rounds->capacity ? 2 * rounds->capacity : 64;
        struct gy_rounds_entry *entries = gy_realloc(rounds->entries, (size_t)capacity * sizeof(*entries));
        if (!entries) {
            gy_builder_fail(rounds->builder);
            return NULL;
        }
        rounds->entries = entries;
        rounds->capacity = capacity;
    }
    return &rounds->entries[rounds->count++];
}

/* Of two needs on one lane the later round implies the other. */
static void need(struct gy_rounds_entry *entry, int lane, int number, bool whole)
{
    int lag = entry->number - number, n = 0;
    while (n < GY_NEEDS && entry->needs[n].lane >= 0 && entry->needs[n].lane != lane)
        n++;
    assert(n < GY_NEEDS);
    struct gy_need *found = &entry->needs[n];
    if (found->lane < 0 || found->lag > lag)
        *found = (struct gy_need){.lane = (int8_t)lane, .whole = whole, .lag = lag};
    else if (found->lag == lag)
        found->whole |= whole;
}

/* Returns the key of a block in a space; −1: the input, which is never written. */
static int key_of(const struct gy_rounds *rounds, const struct gy_round *round, enum gy_space space, int block)
{
    if (space == GY_SCRATCH)
        return rounds->blocks + round->slot;
    return space == GY_OUTPUT ? block : -1;
}

/* Finds the last writes by lanes below `most` of all blocks that this round reads. */
static void find_needs(struct gy_rounds *rounds, struct gy_rounds_entry *entry, int most)
{
    const struct gy_round *round = &entry->round;
    for (int l = 0; l < most && round->kind == GY_SEND && round->width == 0; l++)
        if (l != entry->lane && rounds->lane[l].received >= 0)
            need(entry, l, rounds->entries[rounds->lane[l].received].number, true);
    for (int b = round->lo; b < round->lo + round->width && round->kind != GY_RECV; b++) {
        int key = key_of(rounds, round, round->src, b), writer = key >= 0 ? rounds->writer[key] : -1;
        if (writer < 0 || rounds->entries[writer].lane == entry->lane || rounds->entries[writer].lane >= most)
            continue;
        const struct gy_rounds_entry *before = &rounds->entries[writer];
        need(entry, before->lane, before->number, before->round.lo != round->lo || before->round.width != round->width);
    }
}

static void note_writes(struct gy_rounds *rounds, const struct gy_rounds_entry *entry)
{
    const struct gy_round *round = &entry->round;
    int index = (int)(entry - rounds->entries);
    if (round->kind == GY_SEND)
        return;
    if (round->kind != GY_COPY)
        rounds->lane[entry->lane].received = index;
    for (int b = round->lo; b < round->lo + round->width; b++) {
        int key = key_of(rounds, round, round->dst, b);
        if (key >= 0)
            rounds->writer[key] = index;
    }
}

static struct gy_rounds_entry *begin(struct gy_rounds *rounds, int lane, struct gy_round round)
{
    struct gy_rounds_entry *entry = rounds->writer ? append(rounds) : NULL;
    if (!entry)
        return NULL;
    *entry = (struct gy_rounds_entry){.round = round, .lane = lane, .number = rounds->lane[lane].rounds++};
    if (round.src != GY_SCRATCH && round.dst != GY_SCRATCH)
        entry->round.slot = 0;
    for (int n = 0; n < GY_NEEDS; n++)
        entry->needs[n].lane = -1;
    return entry;
}

void gy_rounds_add(struct gy_rounds *rounds, int lane, struct gy_round round)
{
    struct gy_rounds_entry *entry = begin(rounds, lane, round);
    if (!entry)
        return;
    find_needs(rounds, entry, rounds->lanes);
    note_writes(rounds, entry);
}

/* ---- another schedule, round by round ---- */

struct replay {
    const struct gy_schedule *schedule;
    int lane; /* lane of the round returned last */
    struct {
        int step, round, done;
    } at[GY_SCHEDULE_LANES];
};

static bool may_go(const struct replay *replay, int lane)
{
    const struct gy_step *step = &replay->schedule->step[replay->schedule->lane[lane].first + replay->at[lane].step];
    for (int n = 0; n < GY_NEEDS && step->needs[n].lane >= 0; n++)
        if (replay->at[step->needs[n].lane].done <= replay->at[lane].done - step->needs[n].lag)
            return false;
    return true;
}

/* Returns the next round, lane after lane; NULL at the end. */
static const struct gy_step *next_round(struct replay *replay, int *lane_p, int *round_p)
{
    const struct gy_schedule *schedule = replay->schedule;
    for (int tried = 0; tried < schedule->lanes; tried++) {
        int l = replay->lane = (replay->lane + 1) % schedule->lanes;
        if (replay->at[l].step == schedule->lane[l].count || !may_go(replay, l))
            continue;
        const struct gy_step *step = &schedule->step[schedule->lane[l].first + replay->at[l].step];
        *lane_p = l;
        *round_p = replay->at[l].round;
        replay->at[l].done++;
        if (++replay->at[l].round == step->rounds) {
            replay->at[l].round = 0;
            replay->at[l].step++;
        }
        return step;
    }
    return NULL;
}

static enum gy_space space_in(const struct gy_part *part, enum gy_space space)
{
    return space == GY_INPUT ? part->input : space == GY_OUTPUT ? part->output : part->scratch;
}

void gy_rounds_play(struct gy_rounds *rounds, const struct gy_schedule *schedule, const struct gy_part *part)
{
    int base = rounds->lanes, lane, number;
    struct replay replay = {.schedule = schedule, .lane = schedule->lanes - 1};
    for (int l = 0; l < schedule->lanes; l++)
        gy_rounds_lane(rounds, (uint16_t)(part->tag + schedule->lane[l].tag));
    const struct gy_step *step;
    while ((step = next_round(&replay, &lane, &number)) != NULL) {
        struct gy_round round = {.kind = step->kind,
                                 .peer = step->peer >= 0 ? part->ranks[step->peer] : -1,
                                 .lo = part->lo + gy_range_block(step->range, schedule->blocks, number),
                                 .width = step->range.width,
                                 .src = space_in(part, step->src),
                                 .dst = space_in(part, step->dst),
                                 .flip = step->flip};
        round.slot = round.lo - part->lo;
        if (round.kind == GY_COPY && (part->uncopied || round.src == round.dst))
            continue;
        struct gy_rounds_entry *entry = begin(rounds, base + lane, round);
        if (!entry)
            return;
        for (int n = 0; n < GY_NEEDS && step->needs[n].lane >= 0; n++)
            if (entry->number >= step->needs[n].lag)
                need(entry, base + step->needs[n].lane, entry->number - step->needs[n].lag, step->needs[n].whole);
        find_needs(rounds, entry, base);
        note_writes(rounds, entry);
    }
}

static int by_time(const void *a, const void *b)
{
    const struct gy_moment *x = a, *y = b;
    return x->when != y->when ? (x->when > y->when) - (x->when < y->when)
                              : (x->block > y->block) - (x->block < y->block);
}

void gy_rounds_survey(const struct gy_schedule *schedule, struct gy_moment *first_p, struct gy_moment *last_p)
{
    int lane, number, now = 0;
    struct replay replay = {.schedule = schedule, .lane = schedule->lanes - 1};
    for (int b = 0; b < schedule->blocks; b++)
        first_p[b] = last_p[b] = (struct gy_moment){INT_MAX, b};
    const struct gy_step *step;
    while ((step = next_round(&replay, &lane, &number)) != NULL) {
        int lo = gy_range_block(step->range, schedule->blocks, number);
        for (int b = lo; b < lo + step->range.width; b++, now++) {
            if (step->kind != GY_RECV && first_p[b].when == INT_MAX)
                first_p[b].when = now;
            if (step->kind != GY_SEND)
                last_p[b].when = now;
        }
    }
    qsort(first_p, (size_t)schedule->blocks, sizeof(*first_p), by_time);
    qsort(last_p, (size_t)schedule->blocks, sizeof(*last_p), by_time);
}

/* ---- loops ---- */

static bool same_needs(const struct gy_step *step, const struct gy_rounds_entry *entry)
{
    for (int n = 0; n < GY_NEEDS; n++) {
        const struct gy_need *a = &step->needs[n], *b = &entry->needs[n];
        if (a->lane != b->lane || (a->lane >= 0 && (a->lag != b->lag || a->whole != b->whole)))
            return false;
    }
    return true;
}

/* Appends the entry to the step as one more round; false: it does not continue the step. */
static bool fold(struct gy_step *step, const struct gy_rounds_entry *entry, int blocks, int slots)
{
    const struct gy_round *round = &entry->round;
    if (step->kind != round->kind || step->peer != round->peer || step->range.width != round->width ||
        step->src != round->src || step->dst != round->dst || step->flip != round->flip || !same_needs(step, entry))
        return false;
    struct gy_range range = step->range;
    int stride = step->slot_stride;
    if (step->rounds == 1) {
        range.stride = round->lo - range.lo;
        stride = slots > 0 ? (round->slot - step->slot0 + slots) % slots : 0;
    }
    int slot = slots > 0 ? (int)((step->slot0 + (int64_t)stride * step->rounds) % slots) : 0;
    if (gy_range_block(range, blocks, step->rounds) != round->lo || slot != round->slot)
        return false;
    step->range = range;
    step->slot_stride = stride;
    step->rounds++;
    return true;
}

static void emit(struct gy_builder *builder, const struct gy_rounds_entry *entry, const int *lane_of,
                 struct gy_step **step_p)
{
    const struct gy_round *round = &entry->round;
    struct gy_rounds_entry mapped = *entry;
    for (int n = 0, kept = 0; n < GY_NEEDS; n++) { /* a need on a lane without rounds is dropped */
        struct gy_need need = entry->needs[n];
        mapped.needs[n].lane = -1;
        if (need.lane >= 0 && (need.lane = (int8_t)lane_of[need.lane]) >= 0)
            mapped.needs[kept++] = need;
    }
    const struct gy_schedule *schedule = gy_builder_schedule(builder);
    if (*step_p && fold(*step_p, &mapped, schedule->blocks, schedule->scratch_slots))
        return;
    struct gy_step *step = *step_p = gy_builder_step(builder, round->kind);
    step->peer = round->peer;
    step->range = (struct gy_range){round->lo, 0, round->width};
    step->src = round->src;
    step->dst = round->dst;
    step->slot0 = round->slot;
    step->flip = round->flip;
    for (int n = 0; n < GY_NEEDS; n++)
        step->needs[n] = mapped.needs[n];
}

void gy_rounds_close(struct gy_rounds *rounds)
{
    int lane_of[GY_SCHEDULE_LANES], lanes = 0;
    for (int l = 0; l < rounds->lanes; l++)
        lane_of[l] = rounds->lane[l].rounds > 0 ? lanes++ : -1;
    for (int l = 0; l < rounds->lanes; l++) {
        if (rounds->lane[l].rounds == 0)
            continue;
        struct gy_step *step = NULL;
        gy_builder_lane(rounds->builder, rounds->lane[l].tag, -1);
        for (int i = 0; i < rounds->count; i++)
            if (rounds->entries[i].lane == l)
                emit(rounds->builder, &rounds->entries[i], lane_of, &step);
    }
    gy_free(rounds->entries);
    gy_free(rounds->writer);
}
