/* The mutator: breaks one step of one rank's schedule in one way at a time; the checker must reject every mutant that
 * is not equivalent.
 *
 * Whether a mutant that survives is equivalent is computed from what it did, not from how it was made. In every run:
 *   same       its dataflow (order.h) is the original's, and so is its happens-before relation: it does the same
 *   stronger   its dataflow is the original's, and every event comes after all that it came after in the original:
 *              whatever can happen in the mutant could happen in the original. It is slower at most
 *   reordered  over links only: its dataflow is the original's, and it is not merely weaker: messages that have nothing
 *              to do with each other come in another order. Nothing of a call over links outlives it (its buffers are
 *              its own, and messages belong to calls), so that the runs of it alone have proved it
 *   paced      its dataflow is the original's, and it is merely weaker, but by a need of which the schedule itself says
 *              that the same tile would do (gy_need.paced)
 *   barrier    of barriers only: no data are in it, so that the checker's proof (no rank leaves before all have
 *              entered, and the collectives around it are right) is the whole definition
 * Any other survivor is a failure.
 *
 * Two-shot schedules go through runs in which operands are read in place as well, and the protocol of that (checker.h's
 * flaws) is broken like a schedule. A world of one rank sends messages to itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checker.h"

enum mutation {
    DROP_STEP,
    SHIFT_RANGE,
    WIDEN_RANGE,
    CHANGE_PEER,
    MORE_ROUNDS,
    FEWER_ROUNDS,
    SWAP_SLOT,
    SWAP_RUNS_SLOT,
    SHIFT_RUNS,
    STRIDE_RUNS,
    LONGER_RUNS,
    SWAP_STEPS,
    CHANGE_SOURCE,
    CHANGE_TARGET,
    FLIP,
    TOGGLE_KEEP,
    CHANGE_TAG,
    NEED_MUTATIONS, /* the following are made of each need */
    DROP_NEED = NEED_MUTATIONS,
    WEAKER_LAG,
    STRONGER_LAG,
    TOGGLE_WHOLE,
    FLAWS, /* and these of a call */
    MUTATIONS = FLAWS + GY_CHECKER_SENDS_FORGOTTEN
};

static const char *const names[] = {
    "drop step",     "shift range",     "widen range",  "change peer",    "more rounds",    "fewer rounds",
    "swap slot",     "swap runs' slot", "shift runs",   "stride of runs", "longer runs",    "swap steps",
    "change source", "change target",   "flip",         "toggle keep",    "change tag",     "drop need",
    "weaker lag",    "stronger lag",    "toggle whole", "no last wait",   "wait one short", "wait not for one",
    "offer exposed", "not arrived",     "no readers",   "forget sends"};

#define RUNS 8
#define CALLS 128

/* The runs that every mutant of a shape goes through. Schedules of `mine` are exchanged for the mutant. */
struct arena {
    struct gy_schedule_shape shape;
    struct gy_schedule **mine;
    struct gy_checker_call calls[RUNS][CALLS];
    int count[RUNS];
    int runs;
    struct gy_order order[RUNS]; /* what the original does in each run */
    struct gy_schedule **others[CALLS];
    int nothers;
};

/* The ranks that expose operands in the runs of two-shot schedules that have such. */
static const struct gy_checker_mapped everyone = {UINT64_MAX, UINT64_MAX}, some = {0x35, 0x5a};

static struct {
    long made, killed, same, stronger, reordered, paced, barrier, unexplained;
} tally[MUTATIONS];

/* Elements of a vector of `per_block` elements a block; if that is more than one, one less, so that blocks differ. */
static size_t vector(const struct gy_schedule *schedule, size_t per_block)
{
    size_t blocks = (size_t)schedule->blocks;
    if (schedule->shape.collective == GY_BARRIER)
        return 0;
    bool differ = !gy_checker_by_rank(schedule->shape.collective) && blocks > 1 && per_block > 1;
    return per_block * blocks - (differ ? 1 : 0);
}

static void add_call(struct arena *arena, int run, struct gy_schedule **schedules, size_t per_block, bool in_place,
                     const struct gy_checker_mapped *mapped)
{
    const struct gy_schedule *one = NULL; /* point to point, not every rank has one */
    for (int r = 0; r < arena->shape.size; r++)
        one = schedules[r] ? schedules[r] : one;
    arena->calls[run][arena->count[run]++] = (struct gy_checker_call){
        .schedules = schedules, .total = vector(one, per_block), .tile = 1, .in_place = in_place, .mapped = mapped};
}

/* Sequences in which every collective over shared memory, and those of rings, come before and after mine. Calls over
 * links share nothing with each other but their ranks' time, so that one kind of them is enough. */
static void add_sequences(struct arena *arena)
{
    for (int c = 0; c < GY_COLLECTIVES; c++)
        for (int a = 0; a < GY_ALGORITHMS; a++) {
            bool sought = gy_is_over_shm((enum gy_algorithm)a) || a == GY_RING;
            if (!sought || !gy_schedule_exists((enum gy_collective)c, (enum gy_algorithm)a, arena->shape.size))
                continue;
            int root = (c + a) % arena->shape.size;
            struct gy_schedule_shape shape = {
                (enum gy_collective)c, (enum gy_algorithm)a, 0, arena->shape.size, root, NULL};
            arena->others[arena->nothers++] = gy_checker_schedules(&shape);
        }
    for (int i = 0; i < 2; i++, arena->runs++) {
        for (int o = 0; o < arena->nothers; o++) {
            add_call(arena, arena->runs, arena->others[o], i == 0 ? 2 : 6, i == 0, NULL);
            add_call(arena, arena->runs, arena->mine, i == 0 ? 1 : 3, i == 0, NULL);
        }
    }
}

static void open_arena(struct arena *arena, const struct gy_schedule_shape *shape)
{
    memset(arena, 0, sizeof(*arena));
    arena->shape = *shape;
    arena->mine = gy_checker_schedules(shape);
    for (int i = 0; i < 3; i++)
        add_call(arena, arena->runs++, arena->mine, i == 0 ? 1 : 9, i != 2, NULL);
    for (int i = 0; i < 3 && shape->algorithm == GY_SHM_TWO_SHOT; i++, arena->runs++)
        for (int c = 0; c < 3; c++)
            add_call(arena, arena->runs, arena->mine, i == 2 || c == 1 ? 1 : 6, i == 0,
                     i == 0             ? &everyone
                     : i == 1 && c == 1 ? NULL
                                        : &some);
    add_sequences(arena);
    for (int i = 0; i < arena->runs; i++) {
        struct gy_checker_report report;
        if (!gy_checker_run(shape->size, arena->calls[i], arena->count[i], &report, &arena->order[i], NULL)) {
            printf("the schedule itself is rejected: %s\n", report.text);
            exit(1);
        }
    }
}

static void close_arena(struct arena *arena)
{
    gy_checker_schedules_free(arena->mine, arena->shape.size);
    for (int i = 0; i < arena->nothers; i++)
        gy_checker_schedules_free(arena->others[i], arena->shape.size);
    for (int i = 0; i < arena->runs; i++)
        gy_order_close(&arena->order[i]);
}

static void drop_step(struct gy_schedule *schedule, int s)
{
    for (int i = 0; i < schedule->lanes; i++) {
        struct gy_lane *lane = &schedule->lane[i];
        if (s < lane->first)
            lane->first--;
        else if (s < lane->first + lane->count)
            lane->count--;
    }
    memmove(&schedule->step[s], &schedule->step[s + 1], (size_t)(schedule->steps - s - 1) * sizeof(schedule->step[0]));
    schedule->steps--;
}

static void change_tag(struct gy_schedule *schedule, int s)
{
    for (int i = 0; i < schedule->lanes; i++)
        if (s >= schedule->lane[i].first && s < schedule->lane[i].first + schedule->lane[i].count)
            schedule->lane[i].tag = (uint16_t)(schedule->lane[i].tag + 1);
}

static bool reads(const struct gy_step *step)
{
    return step->kind != GY_RECV && step->range.width > 0;
}

static bool writes(const struct gy_step *step)
{
    return step->kind != GY_SEND && step->kind != GY_PUBLISH && step->range.width > 0;
}

static bool is_last(const struct gy_schedule *schedule, int s)
{
    for (int i = 0; i < schedule->lanes; i++)
        if (s == schedule->lane[i].first + schedule->lane[i].count - 1)
            return true;
    return false;
}

static void swap_steps(struct gy_step *a, struct gy_step *b)
{
    struct gy_step step = *a;
    *a = *b;
    *b = step;
}

/* Swaps the operands of a reduction. */
static bool flip(struct gy_step *step)
{
    enum gy_space src = step->src;
    step->flip = !step->flip;
    if (step->kind == GY_REDUCE) {
        step->src = step->src2;
        step->src2 = src;
    }
    return step->kind == GY_RECV_REDUCE || step->kind == GY_REDUCE;
}

static enum gy_space other_space(enum gy_space space)
{
    switch (space) {
    case GY_INPUT: return GY_OUTPUT;
    case GY_OUTPUT: return GY_INPUT;
    case GY_SCRATCH: return GY_OUTPUT;
    case GY_PUBLISHED: return GY_RESULT;
    default: return GY_PUBLISHED;
    }
}

/* False: this mutation would change nothing that has a meaning here. */
static bool mutate(struct gy_schedule *schedule, int s, enum mutation mutation, int n)
{
    struct gy_step *step = &schedule->step[s];
    struct gy_need *need = &step->needs[n];
    bool message = step->kind <= GY_RECV_REDUCE;
    bool all_slices = step->kind >= GY_PUBLISH && step->range.width > 1;
    bool rearranges = step->kind == GY_PACK || step->kind == GY_UNPACK;
    if (mutation >= NEED_MUTATIONS && need->lane < 0)
        return false;
    switch (mutation) {
    case DROP_STEP: drop_step(schedule, s); return true;
    case SHIFT_RANGE: step->range.lo++; return schedule->blocks > 1 && step->range.width > 0 && !all_slices;
    case WIDEN_RANGE: step->range.width++; return schedule->shape.collective != GY_BARRIER && !all_slices;
    case CHANGE_PEER: step->peer = (step->peer + 1) % schedule->shape.size; return message || step->peer > 0;
    case MORE_ROUNDS: step->rounds++; return true;
    case FEWER_ROUNDS: step->rounds--; return step->rounds > 0;
    case SWAP_SLOT:
        step->slot0++;
        return schedule->scratch_slots > 1 && (step->src == GY_SCRATCH || step->dst == GY_SCRATCH);
    case SWAP_RUNS_SLOT:
        step->runs.slot++;
        return rearranges && (step->kind == GY_PACK ? step->src : step->dst) == GY_SCRATCH;
    case SHIFT_RUNS: step->runs.lo++; return rearranges;
    case STRIDE_RUNS: step->runs.stride++; return rearranges && step->runs.run < step->range.width;
    case LONGER_RUNS: step->runs.run++; return rearranges && step->runs.run <= step->range.width;
    case SWAP_STEPS:
        if (is_last(schedule, s))
            return false;
        swap_steps(step, step + 1);
        return true;
    case CHANGE_SOURCE: step->src = other_space(step->src); return reads(step);
    case CHANGE_TARGET: step->dst = other_space(step->dst); return writes(step);
    case FLIP: return flip(step);
    case TOGGLE_KEEP: step->keep = !step->keep; return step->kind == GY_REDUCE_PUBLISHED && step->range.width > 0;
    case CHANGE_TAG: change_tag(schedule, s); return message;
    case DROP_NEED: need->lane = -1; return true;
    case WEAKER_LAG: need->lag++; return true;
    case STRONGER_LAG: need->lag--; return true;
    case TOGGLE_WHOLE: need->whole = !need->whole; return !need->everyone;
    default: return false;
    }
}

/* What a mutant that is not rejected has done, in all runs. */
struct survival {
    bool same, stronger, reordered, weaker;
};

/* Runs the mutant everywhere. False: it was rejected. */
static bool survives(struct arena *arena, struct survival *did_p)
{
    struct gy_checker_report report;
    *did_p = (struct survival){true, true, true, true};
    for (int i = 0; i < arena->runs; i++) {
        struct gy_order order;
        const struct gy_order *original = &arena->order[i];
        if (!gy_checker_run(arena->shape.size, arena->calls[i], arena->count[i], &report, &order, NULL))
            return false;
        bool flow = order.dataflow == original->dataflow, weaker = gy_order_contains(original, &order);
        did_p->stronger = did_p->stronger && flow && gy_order_contains(&order, original);
        did_p->same = did_p->same && did_p->stronger && weaker;
        did_p->reordered = did_p->reordered && flow && !weaker;
        did_p->weaker = did_p->weaker && flow && weaker;
        gy_order_close(&order);
    }
    return true;
}

static void check_mutant(struct arena *arena, enum mutation mutation, bool shm, bool paced, int rank, int s)
{
    struct survival did;
    tally[mutation].made++;
    if (!survives(arena, &did))
        tally[mutation].killed++;
    else if (did.same)
        tally[mutation].same++;
    else if (did.stronger)
        tally[mutation].stronger++;
    else if (did.reordered && !shm)
        tally[mutation].reordered++;
    else if (did.weaker && paced)
        tally[mutation].paced++;
    else if (arena->shape.collective == GY_BARRIER)
        tally[mutation].barrier++;
    else {
        tally[mutation].unexplained++;
        printf("UNEXPLAINED: %s of step %d in %s %s rank %d of %d\n", names[mutation], s,
               gy_collective_name(arena->shape.collective), gy_algorithm_name(arena->shape.algorithm), rank,
               arena->shape.size);
    }
}

/* The calls of mine with each flaw. Over slots a rank has no sends, and over links no rank exposes anything. */
static void break_protocols(struct arena *arena)
{
    const struct gy_schedule *first = arena->mine[arena->shape.root];
    for (int flaw = GY_CHECKER_NO_LAST_WAIT; flaw <= GY_CHECKER_SENDS_FORGOTTEN; flaw++) {
        for (int i = 0; i < arena->runs; i++)
            for (int c = 0; c < arena->count[i]; c++)
                if (arena->calls[i][c].schedules == arena->mine)
                    arena->calls[i][c].flaw = (enum gy_checker_flaw)flaw;
        check_mutant(arena, (enum mutation)(FLAWS + flaw - 1), first->shm, false, 0, -1);
    }
    for (int i = 0; i < arena->runs; i++)
        for (int c = 0; c < arena->count[i]; c++)
            arena->calls[i][c].flaw = GY_CHECKER_SOUND;
}

static void mutate_rank(struct arena *arena, int rank)
{
    struct gy_schedule *original = arena->mine[rank];
    if (original == NULL)
        return;
    size_t bytes = sizeof(*original) + (size_t)original->steps * sizeof(original->step[0]);
    struct gy_schedule *mutant = malloc(bytes);
    if (mutant == NULL)
        abort();
    arena->mine[rank] = mutant;
    for (int s = 0; s < original->steps; s++)
        for (int m = 0; m < FLAWS; m++)
            for (int n = 0; n < (m < NEED_MUTATIONS ? 1 : GY_NEEDS); n++) {
                memcpy(mutant, original, bytes);
                bool paced = m == TOGGLE_WHOLE && original->step[s].needs[n].paced;
                if (mutate(mutant, s, (enum mutation)m, n))
                    check_mutant(arena, (enum mutation)m, mutant->shm, paced, rank, s);
            }
    arena->mine[rank] = original;
    free(mutant);
}

static void mutate_shape(const struct gy_schedule_shape *shape)
{
    struct arena arena;
    if (!gy_schedule_exists(shape->collective, shape->algorithm, shape->size))
        return;
    open_arena(&arena, shape);
    for (int r = 0; r < shape->size; r++)
        mutate_rank(&arena, r);
    break_protocols(&arena);
    close_arena(&arena);
}

/* Hierarchical schedules: of pairs, of interleaved halves, of one and the others. The rest knows no groups. */
static void mutate_groupings(enum gy_collective collective, enum gy_algorithm algorithm, int n)
{
    static const int groupings[][5] = {{0, 0, 1, 1, 2}, {0, 1, 0, 1, 0}, {0, 1, 1, 1, 1}};
    struct gy_schedule_shape shape = {collective, algorithm, 0, n, n / 2, NULL};
    bool hierarchical = gy_is_hierarchical(algorithm);
    if (!hierarchical)
        mutate_shape(&shape);
    for (int g = 0; hierarchical && n > 2 && n <= 5 && g < 3; g++) {
        shape.groups = groupings[g];
        if (n == 4 ? algorithm == GY_HIERARCHICAL || g != 1 : algorithm == GY_HIERARCHICAL && g == n % 3 % 2)
            mutate_shape(&shape);
    }
}

/* The argument is the largest world, 7 where there is none. */
int main(int argc, char **argv)
{
    int largest = argc > 1 ? atoi(argv[1]) : 7;
    long made = 0, killed = 0, unexplained = 0;
    alarm(280);
    for (int c = 0; c < GY_COLLECTIVES; c++)
        for (int a = 0; a < GY_ALGORITHMS; a++)
            for (int n = gy_is_point_to_point((unsigned)c) ? 1 : 2; n <= largest; n++)
                mutate_groupings((enum gy_collective)c, (enum gy_algorithm)a, n);
    printf("%-16s %7s %7s %8s %8s %9s %7s %8s %s\n", "mutation", "mutants", "killed", "same", "stronger", "reordered",
           "paced", "barrier", "unexplained");
    for (int m = 0; m < MUTATIONS; m++) {
        printf("%-16s %7ld %7ld %8ld %8ld %9ld %7ld %8ld %ld\n", names[m], tally[m].made, tally[m].killed,
               tally[m].same, tally[m].stronger, tally[m].reordered, tally[m].paced, tally[m].barrier,
               tally[m].unexplained);
        made += tally[m].made;
        killed += tally[m].killed;
        unexplained += tally[m].unexplained;
    }
    printf("%ld mutants, %ld killed, %ld equivalent, %ld unexplained\n", made, killed, made - killed - unexplained,
           unexplained);
    return unexplained == 0 && killed > 0 ? 0 : 1;
}
