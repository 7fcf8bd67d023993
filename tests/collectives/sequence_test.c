/* Sequences of collectives on one communicator, through the checker: any mixture of kinds, algorithms, roots,
 * lengths and tile counts. Over links (as rendezvous), over slots, whose counters live on from call to call, and
 * over the lines of tiny vectors, which live on by parity. With operands that are published and ones that are read
 * in place, and with messages to other ranks and to oneself. */
#include <criterion/criterion.h>

#include "checker.h"

#define CALLS 12

static const struct gy_checker_eager two_lines = {2, true};

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Which calls a sequence is made of. */
struct mixture {
    int size;
    bool links, shm;
    const struct gy_checker_eager *tiny; /* for half of what can be tiny, or NULL */
    bool mapped;                         /* some ranks' operands are read in place */
    enum gy_checker_flaw flaw;
    bool for_root_alone; /* broken on purpose: a rank that publishes for a root asks only it about its slots */
};

/* Groups that the calls of a sequence may have, if their algorithm looks at them. */
static const int groupings[][48] = {
    {0, 0, 1, 1, 2, 2, 3, 3, 4}, {0, 1, 0, 1, 0, 1, 0, 1, 0}, {0, 1, 1, 1, 1, 1, 1, 1, 1}, {0}};

static struct gy_schedule_shape random_shape(const struct mixture *mixture, uint32_t *state)
{
    struct gy_schedule_shape shape = {.size = mixture->size};
    bool fits;
    do {
        shape.collective = (enum gy_collective)(next_random(state) % GY_COLLECTIVES);
        shape.algorithm = (enum gy_algorithm)(next_random(state) % GY_ALGORITHMS);
        fits = gy_schedule_exists(shape.collective, shape.algorithm, shape.size) &&
               (gy_is_over_shm(shape.algorithm) ? mixture->shm : mixture->links);
    } while (!fits);
    shape.root = (int)(next_random(state) % (unsigned)mixture->size);
    shape.groups = groupings[next_random(state) % (sizeof(groupings) / sizeof(groupings[0]))];
    return shape;
}

/* Of a schedule that publishes for the root alone, takes the knowledge that others may still be reading the slot. */
static void ask_root_alone(struct gy_schedule *schedule)
{
    for (int s = 0; s < schedule->steps; s++)
        if (schedule->step[s].kind == GY_PUBLISH && schedule->shape.rank != schedule->shape.root)
            schedule->step[s].peer = schedule->shape.root;
}

static struct gy_schedule **schedules_of(const struct gy_schedule_shape *shape, uint32_t *state)
{
    bool to_self = gy_is_point_to_point(shape->collective) && next_random(state) % 3 == 0;
    struct gy_schedule **schedules = to_self ? gy_checker_schedules_to_self(shape->size, shape->root)
                                             : gy_checker_schedules(shape);
    cr_assert_not_null(schedules);
    return schedules;
}

static struct gy_checker_call random_call(const struct mixture *mixture, uint32_t *state,
                                          struct gy_checker_mapped *mapped)
{
    struct gy_schedule_shape shape = random_shape(mixture, state);
    size_t n = (size_t)shape.size, total = next_random(state) % (2 * n + 9), tile = 1 + next_random(state) % 3;
    if (gy_checker_by_rank(shape.collective))
        total = n * (next_random(state) % 10);
    if (shape.collective == GY_BARRIER)
        total = 0;
    const struct gy_checker_eager *tiny = NULL;
    if (mixture->tiny && shape.algorithm == GY_SHM_ONE_SHOT && next_random(state) % 2 == 0)
        tiny = mixture->tiny;
    bool canonical = (gy_is_over_shm(shape.algorithm) || shape.algorithm == GY_CANONICAL) &&
                     next_random(state) % 2 == 0;
    struct gy_schedule **schedules = schedules_of(&shape, state);
    *mapped = (struct gy_checker_mapped){0};
    if (mixture->mapped)
        *mapped = (struct gy_checker_mapped){next_random(state) | next_random(state), next_random(state)};
    for (int r = 0; r < shape.size && mixture->for_root_alone; r++)
        if (shape.collective == GY_REDUCE_TO || shape.collective == GY_GATHER_TO)
            ask_root_alone(schedules[r]);
    return (struct gy_checker_call){.schedules = schedules,
                                    .total = total,
                                    .tile = tile,
                                    .in_place = next_random(state) % 2 == 0,
                                    .tiny = tiny,
                                    .canonical = canonical,
                                    .mapped = mapped,
                                    .flaw = mixture->flaw};
}

static bool run_sequence(const struct mixture *mixture, uint32_t *state, struct gy_checker_report *report_p)
{
    struct gy_checker_call calls[CALLS];
    struct gy_checker_mapped mapped[CALLS];
    for (int c = 0; c < CALLS; c++)
        calls[c] = random_call(mixture, state, &mapped[c]);
    bool right = gy_checker_run(mixture->size, calls, CALLS, report_p, NULL, NULL);
    for (int c = 0; c < CALLS; c++)
        gy_checker_schedules_free((struct gy_schedule **)calls[c].schedules, mixture->size);
    return right;
}

static void run_sequences(struct mixture mixture, int sequences)
{
    uint32_t state = 1;
    for (int i = 0; i < sequences; i++) {
        struct gy_checker_report report;
        mixture.size = 2 + i % 8;
        bool right = run_sequence(&mixture, &state, &report);
        cr_assert(right, "sequence %d of %d ranks: %s", i, mixture.size, report.text);
    }
}

Test(sequence, of_collectives_over_shm)
{
    run_sequences((struct mixture){.shm = true, .tiny = &two_lines}, 400);
    run_sequences((struct mixture){.shm = true, .mapped = true, .tiny = &two_lines}, 400);
    uint32_t state = 1;
    struct gy_checker_report report;
    cr_assert(run_sequence(&(struct mixture){.size = 40, .shm = true, .tiny = &two_lines}, &state, &report), "%s",
              report.text);
}

Test(sequence, of_collectives_over_links)
{
    run_sequences((struct mixture){.links = true}, 400);
}

Test(sequence, that_mixes_links_and_shm)
{
    run_sequences((struct mixture){.links = true, .shm = true, .mapped = true, .tiny = &two_lines}, 1000);
}

/* The check of the check: the lines of tiny vectors are safe for the two reasons that their protocol gives. */
static int rejected(struct mixture mixture)
{
    uint32_t state = 1;
    int count = 0;
    for (int i = 0; i < 400; i++) {
        struct gy_checker_report report;
        mixture.size = 2 + i % 8;
        count += !run_sequence(&mixture, &state, &report);
    }
    return count;
}

Test(sequence, one_line_or_a_root_that_runs_away_is_rejected)
{
    const struct gy_checker_eager one_line = {1, true}, runs_ahead = {2, false};
    cr_expect_eq(rejected((struct mixture){.shm = true, .tiny = &two_lines}), 0);
    cr_expect_gt(rejected((struct mixture){.shm = true, .tiny = &one_line}), 10);
    cr_expect_gt(rejected((struct mixture){.shm = true, .tiny = &runs_ahead}), 0);
}

/* The readers of a slot four iterations ago were those of another collective with another root. */
Test(sequence, asking_the_root_alone_about_a_slot_is_rejected)
{
    cr_expect_gt(rejected((struct mixture){.shm = true, .for_root_alone = true}), 10);
}

/* Memory that is used in place is its caller's again too early, or is written while it is read, or read before it is
 * there; a slot is written while it is read. */
Test(sequence, operands_that_go_back_too_early_are_rejected)
{
    static const enum gy_checker_flaw flaws[] = {GY_CHECKER_NO_LAST_WAIT, GY_CHECKER_WAIT_ONE_SHORT,
                                                 GY_CHECKER_WAIT_NOT_FOR, GY_CHECKER_EXPOSED,
                                                 GY_CHECKER_NOT_ARRIVED,  GY_CHECKER_NO_READERS};
    for (size_t i = 0; i < sizeof(flaws) / sizeof(flaws[0]); i++) {
        struct mixture mixture = {.shm = true, .mapped = true, .flaw = flaws[i]};
        cr_expect_gt(rejected(mixture), 100, "flaw %d: %d of 400", (int)flaws[i], rejected(mixture));
        mixture.mapped = false; /* what is published has no such need */
        cr_expect_eq(rejected(mixture), 0);
    }
}

Test(sequence, a_return_before_the_sends_have_been_read_is_rejected)
{
    cr_expect_gt(rejected((struct mixture){.links = true, .flaw = GY_CHECKER_SENDS_FORGOTTEN}), 300);
}
