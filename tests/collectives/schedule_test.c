/* Every schedule of every collective for every world size from 1 to 130, or to GYRE_TEST_LARGEST, through the checker
 * and against the formulas. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <stdlib.h>

#include "checker.h"
#include "collectives/schedule/reduction_order.h"
#include "collectives/select/selector.h"
#include "tree.h"

#define LARGEST 130

static int largest(void)
{
    const char *text = getenv("GYRE_TEST_LARGEST");
    return text && atoi(text) < LARGEST ? atoi(text) : LARGEST;
}

static void print(void *user, const char *line)
{
    (void)user;
    fprintf(stderr, "%s\n", line);
}

/* What a builder's author wants to see of a schedule that is wrong. */
static void show(struct gy_schedule *const *schedules, int size)
{
    for (int r = 0; r < size && size <= 8; r++)
        gy_schedule_print(schedules[r], print, NULL);
}

static void check(const struct gy_schedule_shape *shape, size_t total, size_t tile, bool in_place, bool canonical)
{
    struct gy_schedule **schedules = gy_checker_schedules(shape);
    cr_assert_not_null(schedules);
    struct gy_checker_call call = {
        .schedules = schedules, .total = total, .tile = tile, .in_place = in_place, .canonical = canonical};
    struct gy_checker_report report;
    char text[256];
    bool right = gy_checker_run(shape->size, &call, 1, &report, NULL, NULL);
    if (!right)
        show(schedules, shape->size);
    cr_assert(right, "%s %s size %d root %d total %zu tile %zu in_place %d canonical %d: %s",
              gy_collective_name(shape->collective), gy_algorithm_name(shape->algorithm), shape->size, shape->root,
              total, tile, in_place, canonical, report.text);
    right = gy_checker_formula(shape, total, NULL, &report, text, sizeof(text));
    cr_assert(right, "%s %s size %d root %d total %zu: %s", gy_collective_name(shape->collective),
              gy_algorithm_name(shape->algorithm), shape->size, shape->root, total, text);
    gy_checker_schedules_free(schedules, shape->size);
}

/* True if it is to give the canonical tree. Schedules over slots do where the call asks for it, the others always. */
static bool keeps_canonical(const struct gy_schedule_shape *shape)
{
    return gy_algorithm_keeps(shape->collective, shape->algorithm, GY_ORDER_CANONICAL);
}

static int32_t blocks_of(const struct gy_schedule_shape *shape)
{
    struct gy_schedule *schedule = gy_schedule_build(shape);
    cr_assert_not_null(schedule);
    int32_t blocks = schedule->blocks;
    gy_schedule_free(schedule);
    return blocks;
}

/* Totals that are no multiple of the blocks, with one to three tiles a round; the empty and the tiny vector for small
 * worlds. */
static void check_counts(const struct gy_schedule_shape *shape)
{
    size_t n = (size_t)shape->size;
    bool by_rank = gy_checker_by_rank(shape->collective);
    size_t blocks = (size_t)blocks_of(shape);
    bool small = n <= 24;
    if (shape->collective == GY_BARRIER) {
        check(shape, 0, 1, false, false);
        return;
    }
    for (int in_place = 0; in_place < 2; in_place++) {
        size_t total = blocks > 1 && !by_rank ? blocks + 1 : blocks;
        if (n > 48 && n % 2 != (size_t)in_place) /* of neighbours one is in place and one is not */
            continue;
        check(shape, total, 2, in_place != 0, keeps_canonical(shape));
        if (small || n % 13 == 0) {
            total = blocks > 1 && !by_rank ? 2 * blocks + 1 : 3 * blocks;
            check(shape, total, 1, in_place != 0, false);
        }
        if (small) {
            check(shape, 0, 4, in_place != 0, false);
            check(shape, by_rank ? 3 * n : n - 1, 2, in_place != 0, false);
            total = blocks == 1 ? 13 : by_rank ? 5 * n : 5 * blocks - 1;
            check(shape, total, 2, in_place != 0, keeps_canonical(shape));
        }
    }
}

/* Blocks of none, one and several elements; and all of it one rank's. */
static void check_uneven(const struct gy_schedule_shape *shape, bool alone, bool canonical)
{
    size_t starts[LARGEST + 1] = {0};
    struct gy_schedule **schedules = gy_checker_schedules(shape);
    cr_assert_not_null(schedules);
    for (int b = 0; b < shape->size; b++)
        starts[b + 1] = starts[b] + (alone ? (b == shape->size / 2 ? 7 : 0) : (size_t)(b * 5 % 7 % 4));
    for (int in_place = 0; in_place < 2; in_place++) {
        struct gy_checker_call call = {.schedules = schedules,
                                       .total = starts[shape->size],
                                       .tile = 2,
                                       .in_place = in_place != 0,
                                       .canonical = canonical,
                                       .starts = starts};
        struct gy_checker_report report;
        bool right = gy_checker_run(shape->size, &call, 1, &report, NULL, NULL);
        cr_assert(right, "%s %s size %d root %d, counts of their own: %s", gy_collective_name(shape->collective),
                  gy_algorithm_name(shape->algorithm), shape->size, shape->root, report.text);
        char text[256];
        bool counted = gy_is_hierarchical(shape->algorithm) ||
                       gy_checker_formula(shape, call.total, starts, &report, text, sizeof(text));
        cr_assert(counted, "%s %s size %d, counts of their own: %s", gy_collective_name(shape->collective),
                  gy_algorithm_name(shape->algorithm), shape->size, text);
    }
    gy_checker_schedules_free(schedules, shape->size);
}

static bool has_root(int collective)
{
    return gy_has_root((unsigned)collective) || gy_is_point_to_point((unsigned)collective);
}

static void check_algorithm(enum gy_algorithm algorithm)
{
    int schedules = 0;
    for (int collective = 0; collective < GY_COLLECTIVES; collective++) {
        for (int n = 1; n <= largest(); n++) {
            if (!gy_schedule_exists((enum gy_collective)collective, algorithm, n))
                continue;
            for (int root = 0; root < (has_root(collective) ? n : 1); root++) {
                struct gy_schedule_shape shape = {(enum gy_collective)collective, algorithm, 0, n, root, NULL};
                bool end = root == 0 || root == n - 1, inside = root == 1 || root == n / 2;
                if ((n > 12 && !end && !inside) || (n > 32 && !end && n % 5 != 0))
                    continue;
                check_counts(&shape);
                schedules++;
            }
        }
    }
    cr_assert_gt(schedules, largest() - 2);
}

static bool is_canonical(const struct gy_schedule_shape *shape)
{
    struct gy_schedule_shape canonical = *shape;
    struct gy_expression expression = {.nodes = 0};
    bool same = true;
    canonical.algorithm = GY_CANONICAL;
    for (int b = 0; b < gy_tree_blocks(shape); b++) {
        int32_t tree = gy_tree_build(shape, b, 0, &expression), other = gy_tree_build(&canonical, 0, 0, &expression);
        cr_assert(tree >= 0 && other >= 0);
        same = same && expression.node[tree].hash == expression.node[other].hash;
    }
    gy_expression_free(&expression);
    return same;
}

/* Over links an algorithm has the flag GY_KEEPS_ORDER if its tree of operands is the canonical one. */
Test(schedule, flag_of_order_is_that_of_the_tree, .timeout = 20)
{
    static const enum gy_collective reductions[] = {GY_ALL_REDUCE, GY_REDUCE_SCATTER, GY_REDUCE_TO};
    for (int a = 0; a < GY_ALGORITHMS; a++)
        for (size_t c = 0; c < GY_ARRAY_LENGTH(reductions); c++) {
            bool canonical = true;
            struct gy_schedule_shape shape = {.collective = reductions[c], .algorithm = (enum gy_algorithm)a};
            if (gy_is_over_shm(shape.algorithm) || !gy_schedule_exists(shape.collective, shape.algorithm, 2))
                continue;
            for (shape.size = 2; shape.size <= 17; shape.size++)
                canonical = canonical && is_canonical(&shape);
            cr_assert_eq(gy_algorithm_has(shape.algorithm, GY_KEEPS_ORDER), canonical, "%s %s",
                         gy_collective_name(shape.collective), gy_algorithm_name(shape.algorithm));
        }
}

/* In a step of all ranks with all ranks no two send to one rank, nor receive from one: it would leave the link of
 * one of them idle, and cost a step more. */
static void check_steps_apart(struct gy_schedule *const *schedules, int size, int lane)
{
    for (int32_t i = 0; i < schedules[0]->lane[lane].count; i++) {
        bool met[LARGEST] = {false};
        for (int r = 0; r < size; r++) {
            const struct gy_lane *it = &schedules[r]->lane[lane];
            cr_assert_lt(i, it->count);
            int peer = schedules[r]->step[it->first + i].peer;
            cr_assert(peer >= 0 && peer != r && !met[peer], "size %d lane %d step %d: two meet rank %d", size, lane, i,
                      peer);
            met[peer] = true;
        }
    }
}

Test(schedule, pairwise_keeps_every_link_busy)
{
    for (int size = 2; size <= largest(); size++) {
        struct gy_schedule_shape shape = {.collective = GY_ALL_TO_ALL, .algorithm = GY_PAIRWISE, .size = size};
        struct gy_schedule **schedules = gy_checker_schedules(&shape);
        int32_t sends = 0;
        cr_assert_not_null(schedules);
        for (int lane = 0; lane < schedules[0]->lanes; lane++)
            if (gy_schedule_sends(schedules[0], lane) || gy_schedule_receives(schedules[0], lane)) {
                check_steps_apart(schedules, size, lane);
                sends += gy_schedule_sends(schedules[0], lane) ? schedules[0]->lane[lane].count : 0;
            }
        cr_assert_eq(sends, size - 1);
        gy_checker_schedules_free(schedules, size);
    }
}

/* Two steps under way keep a link busy between blocks; where there are no more than two they would be all of them at
 * once. */
Test(schedule, pairwise_never_sends_to_everybody_at_once)
{
    for (int size = 3; size <= 5; size++) {
        struct gy_schedule_shape shape = {.collective = GY_ALL_TO_ALL, .algorithm = GY_PAIRWISE, .size = size};
        struct gy_schedule **schedules = gy_checker_schedules(&shape);
        int sending = 0;
        cr_assert_not_null(schedules);
        for (int lane = 0; lane < schedules[0]->lanes; lane++)
            sending += gy_schedule_sends(schedules[0], lane);
        cr_assert_eq(sending, size == 3 ? 1 : 2, "%d lanes send on %d ranks", sending, size);
        gy_checker_schedules_free(schedules, size);
    }
}

/* Every way to cut ranks into groups that is of a kind of its own; false: there is none of that number for this
 * size. */
static bool group_ranks(int number, int size, int *groups)
{
    uint32_t state = (uint32_t)(size * 31 + number);
    int ends = 1, group = 0;
    for (int r = 0; r < size; r++) {
        switch (number) {
        case 0: groups[r] = 0; break;                    /* all in one */
        case 1: groups[r] = r; break;                    /* one each */
        case 2: groups[r] = r / 2; break;                /* pairs, and perhaps one alone */
        case 3: groups[r] = r % 2; break;                /* two, interleaved */
        case 4: groups[r] = r / 4; break;                /* runs of four, the last one shorter */
        case 5: groups[r] = r % ((size + 2) / 3); break; /* of two or three, interleaved */
        case 6: groups[r] = r == ends ? ends += ++group + 1, group : group; break; /* 1, 2, 3, ... */
        case 7: groups[r] = r > 0; break;                                          /* one alone, and the rest */
        case 8: groups[r] = r / ((size + 1) / 2); break;                           /* halves */
        default:
            state = state * 1664525u + 1013904223u; /* any */
            groups[r] = r == 0 ? 0 : (int)((state >> 8) % (unsigned)(2 + number % 4));
        }
    }
    int number_of[130] = {0}, found = 0; /* without gaps */
    for (int r = 0; r < size; r++) {
        if (number_of[groups[r]] == 0)
            number_of[groups[r]] = ++found;
        groups[r] = number_of[groups[r]] - 1;
    }
    return size > 2 || number < 3;
}

#define GROUPINGS 14

static void check_groupings(const struct gy_schedule_shape *one)
{
    int groups[LARGEST], n = one->size;
    struct gy_schedule_shape shape = *one;
    shape.groups = groups;
    for (int number = 0; number < GROUPINGS; number++) {
        if (!group_ranks(number, n, groups) || (n > 14 && (number + n) % 4 != 0))
            continue;
        bool by_rank = gy_checker_by_rank(shape.collective), empty = shape.collective == GY_BARRIER;
        size_t size = (size_t)n, total = empty ? 0 : by_rank ? size : size + 1;
        check(&shape, total, 1, number % 2 == 0, false);
        if (n > 14 || empty)
            continue;
        check(&shape, total, 1, number % 2 != 0, false);
        check(&shape, by_rank ? 3 * size : 3 * size - 1, 1, true, false);
        check(&shape, by_rank ? 5 * size : 7 * size + 2, 2, false, false);
        check(&shape, by_rank ? 0 : size / 2, 2, number % 2 == 0, false);
    }
}

static void check_hierarchical(enum gy_algorithm algorithm)
{
    for (int collective = 0; collective < GY_COLLECTIVES; collective++)
        for (int n = 1; n <= largest(); n += n < 13 ? 1 : n < 32 ? 3 : n < 66 ? 11 : 22) {
            if (!gy_schedule_exists((enum gy_collective)collective, algorithm, n))
                continue;
            for (int root = 0; root < (has_root(collective) ? n : 1); root++) {
                struct gy_schedule_shape shape = {(enum gy_collective)collective, algorithm, 0, n, root, NULL};
                if ((n > 6 && root != 0 && root != n - 1 && root != n / 2) || (n > 14 && root != n / 2))
                    continue;
                check_groupings(&shape);
            }
        }
}

/* Every algorithm of the table, each in a process of its own. */
ParameterizedTestParameters(schedule, of_every_algorithm)
{
    static enum gy_algorithm algorithms[GY_ALGORITHMS];
    for (int a = 0; a < GY_ALGORITHMS; a++)
        algorithms[a] = (enum gy_algorithm)a;
    return cr_make_param_array(enum gy_algorithm, algorithms, GY_ALGORITHMS);
}

ParameterizedTest(enum gy_algorithm *algorithm, schedule, of_every_algorithm, .timeout = 280)
{
    if (gy_is_hierarchical(*algorithm))
        check_hierarchical(*algorithm);
    else
        check_algorithm(*algorithm);
}

/* After how many rounds inside a host its first one between hosts of this kind may begin. */
static int32_t begins_after(const struct gy_schedule *schedule, enum gy_step_kind kind)
{
    for (int l = 0; l < schedule->lanes; l++) {
        const struct gy_step *first = &schedule->step[schedule->lane[l].first];
        if (schedule->lane[l].tag > 0 && first->kind == kind && first->needs[0].lane >= 0)
            return 1 - first->needs[0].lag;
    }
    return 0;
}

/* Groups of `least` ranks, and of up to `more` others, in turn; what is left over is in the last one. */
static void cut_in_turn(int size, int least, int more, int *groups)
{
    int group = 0, room = least;
    for (int r = 0; r < size; r++, room--) {
        if (room == 0 && size - r >= least) {
            group++;
            room = least + group % (more + 1);
        }
        groups[r] = group;
    }
}

/* `owners`: ranks of each group that have a slice, as many as the smallest has. */
static void check_owners(const struct gy_schedule_shape *shape, int owners)
{
    int found = 0, groups = shape->groups[shape->size - 1] + 1;
    struct gy_schedule **schedules = gy_checker_schedules(shape);
    cr_assert_not_null(schedules);
    for (int r = 0; r < shape->size; r++) {
        int32_t receives = begins_after(schedules[r], GY_RECV_REDUCE), sends = begins_after(schedules[r], GY_SEND);
        found += receives > 0;
        cr_assert(receives == 0 ? sends == 0 : receives < sends, "%s: rank %d of %d receives after %d, sends after %d",
                  gy_collective_name(shape->collective), r, shape->size, receives, sends);
    }
    cr_assert_eq(found, owners * groups, "%s: %d of %d ranks own a slice", gy_collective_name(shape->collective), found,
                 shape->size);
    gy_checker_schedules_free(schedules, shape->size);
}

/* Both ends of a swap over a link allow the other one to send before they send: a grant behind a payload waits for all
 * of it. */
Test(schedule, owners_may_receive_before_they_send)
{
    static const enum gy_collective collectives[] = {GY_ALL_REDUCE, GY_REDUCE_SCATTER};
    int groups[32];
    for (int least = 2; least <= 4; least++)
        for (int more = 0; more <= 2; more++)
            for (int size = 2 * least + more; size <= 32; size++)
                for (size_t c = 0; c < GY_ARRAY_LENGTH(collectives); c++) {
                    struct gy_schedule_shape shape = {collectives[c], GY_HIERARCHICAL, 0, size, 0, groups};
                    cut_in_turn(size, least, more, groups);
                    check_owners(&shape, least);
                }
}

/* The forms with counts, by every algorithm that serves them; but all_to_allv, whose counts are of pairs. */
Test(schedule, counts_of_their_own)
{
    int schedules = 0;
    for (int collective = 0; collective < GY_COLLECTIVES; collective++)
        for (int algorithm = 0; algorithm < GY_ALGORITHMS; algorithm++)
            for (int n = 2; n <= largest(); n += n < 20 ? 1 : 22) {
                struct gy_schedule_shape shape = {(enum gy_collective)collective, (enum gy_algorithm)algorithm,
                                                  .size = n, .root = n / 3};
                if (!gy_checker_by_rank(shape.collective) || shape.collective == GY_ALL_TO_ALL ||
                    !gy_schedule_exists(shape.collective, shape.algorithm, n) ||
                    !gy_algorithm_takes_counts(shape.collective, shape.algorithm))
                    continue;
                check_uneven(&shape, false, keeps_canonical(&shape));
                if (n < 65)
                    check_uneven(&shape, true, false);
                schedules++;
            }
    cr_assert_gt(schedules, 180);
}

Test(schedule, message_to_oneself)
{
    for (int n = 1; n <= 5; n++)
        for (int rank = 0; rank < n; rank++) {
            struct gy_schedule **schedules = gy_checker_schedules_to_self(n, rank);
            struct gy_checker_call call = {.schedules = schedules, .total = 5, .tile = 2};
            struct gy_checker_report report;
            cr_assert_not_null(schedules);
            cr_expect(gy_checker_run(n, &call, 1, &report, NULL, NULL), "%s", report.text);
            cr_expect_eq(report.sent, 5);
            call.flaw = GY_CHECKER_SENDS_FORGOTTEN;
            cr_expect_not(gy_checker_run(n, &call, 1, &report, NULL, NULL));
            gy_checker_schedules_free(schedules, n);
        }
}

/* The flag GY_OVER_SHM says what the schedule does; each collective has an algorithm over links and one over shared
 * memory. */
Test(schedule, every_collective_has_links_and_shm)
{
    for (int collective = 0; collective < GY_COLLECTIVES; collective++) {
        for (int n = 2; n <= largest(); n++) {
            bool kinds[2] = {false, false};
            for (int algorithm = 0; algorithm < GY_ALGORITHMS; algorithm++) {
                struct gy_schedule_shape shape = {
                    (enum gy_collective)collective, (enum gy_algorithm)algorithm, 0, n, 0, NULL};
                struct gy_schedule *schedule = gy_schedule_build(&shape);
                cr_assert_eq(schedule != NULL, gy_schedule_exists(shape.collective, shape.algorithm, n));
                cr_assert(!schedule || schedule->shm == gy_is_over_shm(shape.algorithm));
                if (schedule != NULL)
                    kinds[schedule->shm] = true;
                gy_schedule_free(schedule);
            }
            cr_assert(kinds[0] && (kinds[1] || gy_is_point_to_point((unsigned)collective)), "%s",
                      gy_collective_name((enum gy_collective)collective));
        }
    }
}

Test(schedule, expression_of_a_ring_evaluates_in_its_order)
{
    struct gy_schedule_shape shape = {GY_ALL_REDUCE, GY_RING, 0, 3, 0, NULL};
    struct gy_expression expression;
    cr_assert(gy_checker_expression(&shape, 3, 1, &expression));
    float a[3] = {1e8f, 1e8f, 1e8f}, b[3] = {-1e8f, -1e8f, -1e8f}, c[3] = {1.0f, 1.0f, 1.0f}, got[3];
    const void *inputs[3] = {a, b, c};
    for (size_t e = 0; e < 3; e++)
        gy_expression_evaluate(&expression, expression.root[e], e, inputs, GYRE_FLOAT32, GYRE_SUM, &got[e]);
    /* block e begins at rank e: own op received, so block 0 is c + (b + a), block 1 is a + (c + b), block 2 is b + (a +
     * c) */
    float c_b = c[1] + b[1], a_c = a[2] + c[2];
    cr_expect_eq(got[0], 1.0f);
    cr_expect_eq(got[1], a[1] + c_b);
    cr_expect_eq(got[2], b[2] + a_c);
    gy_expression_free(&expression);
}

Test(schedule, names_are_found)
{
    enum gy_collective collective;
    enum gy_algorithm algorithm;
    cr_assert(gy_collective_find("broadcast", &collective) && collective == GY_BROADCAST);
    cr_assert(gy_algorithm_find("halving_doubling", &algorithm) && algorithm == GY_HALVING_DOUBLING);
    cr_assert_not(gy_collective_find("all_to_none", &collective));
    cr_assert_not(gy_algorithm_find("", &algorithm));
}
