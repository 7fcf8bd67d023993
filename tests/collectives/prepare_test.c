/* What both ends of a message must decide alike, each for itself, from the schedule, the lengths and the tile: of
 * every schedule over links, in vectors below, at and above what decides, and in tiles shorter and longer than that.
 *
 *   alike     the k-th round that a rank sends to another waits for grants if, and only if, the k-th that is received
 *             from it gives them, and both have as many tiles: a rank that waits for a grant that is never given
 *             hangs
 *   landing   what is reduced after a grant has a place, as long as the longest piece; and where a lane has a place, it
 *             is long enough for all that the lane reduces, since what needs no grant goes there, too */
#include <criterion/criterion.h>
#include <stdio.h>

#include "checker.h"
#include "collectives/call/prepare.h"
#include "collectives/engine/lane.h"
#include "collectives/engine/request.h"
#include "collectives/events/upcalls.h"
#include "collectives/link/flow_control.h"

#define LARGEST 13
#define ELEMENT 4u

static struct gy_world world = {.size = LARGEST, .epoch = 1};
static struct gy_peer peers[LARGEST];
static struct gy_transport_ops ops;
static struct gy_context ctx = {.up = &gy_upcalls, .world = &world, .peers = peers, .ops = {&ops}, .transports = 1};
static struct gyre_comm comms[LARGEST];
static struct gyre_request requests[LARGEST]; /* one per rank, of one call */
static size_t messages, granted, landings;

/* Rounds of a lane with one peer, in order. */
struct cursor {
    const struct gyre_request *request;
    int lane, peer;
    int32_t step, round;
};

static struct cursor cursor_at(const struct gyre_request *r, int lane, int peer)
{
    return (struct cursor){r, lane, peer, r->schedule->lane[lane].first, 0};
}

/* NULL: there are no more. */
static const struct gy_step *next_round(struct cursor *it)
{
    const struct gy_lane *lane = &it->request->schedule->lane[it->lane];
    for (; it->step < lane->first + lane->count; it->step++, it->round = 0) {
        const struct gy_step *step = &it->request->schedule->step[it->step];
        if (step->peer == it->peer && it->round < step->rounds) {
            it->round++;
            return step;
        }
    }
    return NULL;
}

static void expect_alike(int from, int lane, int to, const char *what)
{
    int theirs = gy_flow_lane(&requests[to], requests[from].schedule->lane[lane].tag, from, false);
    cr_assert(theirs >= 0, "%s: nobody receives what rank %d sends to %d", what, from, to);
    struct cursor send = cursor_at(&requests[from], lane, to), receive = cursor_at(&requests[to], theirs, from);
    for (int k = 0;; k++) {
        const struct gy_step *sent = next_round(&send), *received = next_round(&receive);
        cr_assert_eq(sent == NULL, received == NULL, "%s: rank %d sends %d %d rounds", what, from, to, k);
        if (!sent)
            return;
        bool at_once = gy_flow_is_eager(send.request, lane, sent);
        cr_assert_eq(at_once, gy_flow_is_eager(receive.request, theirs, received),
                     "%s: round %d from rank %d to %d waits for a grant at one end alone", what, k, from, to);
        cr_assert_eq(gy_layout_tiles(gy_step_longest(send.request, sent), send.request->tile),
                     gy_layout_tiles(gy_step_longest(receive.request, received), receive.request->tile),
                     "%s: round %d from rank %d to %d has other tiles at its ends", what, k, from, to);
        messages++;
        granted += !at_once;
    }
}

static void expect_landings(const struct gyre_request *r, const char *what)
{
    for (int l = 0; l < r->schedule->lanes; l++)
        for (int32_t s = r->schedule->lane[l].first; s < r->schedule->lane[l].first + r->schedule->lane[l].count; s++) {
            const struct gy_step *step = &r->schedule->step[s];
            if (step->kind != GY_RECV_REDUCE)
                continue;
            size_t longest = gy_min_size(gy_step_longest(r, step), r->tile) * ELEMENT;
            bool at_once = gy_flow_is_eager(r, l, step);
            cr_assert(at_once || r->landing[l].memory, "%s: rank %d has no place for %zu bytes that it grants", what,
                      r->comm->rank, longest);
            cr_assert(!r->landing[l].memory || r->landing[l].bytes >= longest,
                      "%s: rank %d has a place of %zu bytes for %zu", what, r->comm->rank, r->landing[l].bytes,
                      longest);
            landings += !at_once;
        }
}

/* All ranks of one call, in vectors whose layout the schedule's blocks cut. */
static void check_call(struct gy_schedule **schedules, int size, size_t tile, const char *what)
{
    for (int r = 0; r < size; r++) {
        requests[r].tile = tile / ELEMENT;
        cr_assert(gy_prepare_landings(&requests[r]));
    }
    for (int r = 0; r < size; r++) {
        expect_landings(&requests[r], what);
        for (int l = 0; l < schedules[r]->lanes; l++)
            for (int to = 0; to < size && gy_schedule_sends(schedules[r], l); to++)
                if (gy_schedule_meets(schedules[r], l, to))
                    expect_alike(r, l, to, what);
    }
    for (int r = 0; r < size; r++) {
        requests[r].schedule = NULL;
        gy_prepare_undo(&requests[r]);
        requests[r].schedule = schedules[r];
    }
}

/* Blocks of all lengths up to `most`, of which each rank knows its own in an all_to_all and all know all in the
 * others. */
static void lay_out_uneven(const struct gy_schedule *schedule, size_t most, size_t starts[2][LARGEST + 1])
{
    int rank = schedule->shape.rank;
    bool pairs = schedule->shape.collective == GY_ALL_TO_ALL;
    for (int b = 0; b < schedule->blocks; b++) {
        unsigned out = pairs ? (unsigned)(3 * rank + 5 * b) : (unsigned)(5 * b);
        unsigned in = pairs ? (unsigned)(3 * b + 5 * rank) : out;
        starts[0][b + 1] = starts[0][b] + most * (out % 7) / 6;
        starts[1][b + 1] = starts[1][b] + most * (in % 7) / 6;
    }
    for (int way = 0; way < 2; way++) {
        struct gy_layout *layout = way == 0 ? &requests[rank].in : &requests[rank].out;
        *layout = (struct gy_layout){
            .total = starts[way][schedule->blocks], .blocks = schedule->blocks, .starts = starts[way]};
        for (int b = 0; b < schedule->blocks; b++)
            layout->largest = gy_max_size(layout->largest, starts[way][b + 1] - starts[way][b]);
    }
}

static void check_lengths(const struct gy_schedule_shape *shape, struct gy_schedule **schedules)
{
    static const size_t blocks[] = {0,     4,     4096,  8188,  8192,   8196,   16384,  24000,
                                    32768, 32772, 49152, 65536, 131080, 524288, 1 << 20};
    static const size_t tiles[] = {8192, 12288, 32768, 131072, 1 << 20}, eager[] = {0, 8192, 32768};
    bool uneven = gy_checker_by_rank(shape->collective) && schedules[0]->blocks == shape->size &&
                  shape->algorithm != GY_BRUCK; /* whose blocks have one length */
    for (size_t i = 0; i < GY_ARRAY_LENGTH(blocks) * GY_ARRAY_LENGTH(tiles) * GY_ARRAY_LENGTH(eager); i++) {
        size_t tile = tiles[i % GY_ARRAY_LENGTH(tiles)], j = i / GY_ARRAY_LENGTH(tiles);
        size_t block = blocks[j % GY_ARRAY_LENGTH(blocks)];
        char what[160];
        ops.eager = eager[j / GY_ARRAY_LENGTH(blocks)];
        for (int counted = 0; counted <= uneven; counted++) {
            static size_t starts[LARGEST][2][LARGEST + 1];
            snprintf(what, sizeof(what),
                     "%s %s of %d ranks, root %d, blocks of %zu in tiles of %zu, %s, at once up to %zu",
                     gy_collective_name(shape->collective), gy_algorithm_name(shape->algorithm), shape->size,
                     shape->root, block, tile, counted ? "uneven" : "even", ops.eager);
            for (int r = 0; r < shape->size; r++) {
                requests[r].in = requests[r].out = (struct gy_layout){
                    .total = block / ELEMENT * (size_t)schedules[r]->blocks, .blocks = schedules[r]->blocks};
                if (counted)
                    lay_out_uneven(schedules[r], block / ELEMENT, starts[r]);
            }
            check_call(schedules, shape->size, tile, what);
        }
    }
}

static void check_shape(const struct gy_schedule_shape *shape)
{
    struct gy_schedule **schedules = gy_checker_schedules(shape);
    cr_assert_not_null(schedules);
    for (int r = 0; r < shape->size; r++) {
        comms[r] = (struct gyre_comm){.ctx = &ctx, .rank = r, .size = shape->size, .group.size = shape->size};
        requests[r] = (struct gyre_request){.comm = &comms[r], .schedule = schedules[r], .element = ELEMENT};
    }
    if (!schedules[0]->shm)
        check_lengths(shape, schedules);
    gy_checker_schedules_free(schedules, shape->size);
}

static void check_algorithm(enum gy_algorithm algorithm, const int *groups)
{
    for (int collective = 0; collective < GY_SEND_TO; collective++)
        for (int size = 2; size <= LARGEST; size += size < 6 ? 1 : 3) {
            bool there = gy_schedule_exists((enum gy_collective)collective, algorithm, size);
            int roots = there ? gy_has_root((unsigned)collective) ? size : 1 : 0;
            for (int root = 0; root < roots; root += size - 1)
                check_shape(
                    &(struct gy_schedule_shape){(enum gy_collective)collective, algorithm, 0, size, root, groups});
        }
}

Test(prepare, both_ends_compute_the_same_and_granted_frames_have_a_buffer, .timeout = 240)
{
    for (int algorithm = 0; algorithm < GY_ALGORITHMS; algorithm++)
        if (!gy_is_hierarchical((enum gy_algorithm)algorithm))
            check_algorithm((enum gy_algorithm)algorithm, NULL);
    cr_assert(messages > 100000 && granted > messages / 10 && granted < messages && landings > 1000);
}

Test(prepare, both_ends_compute_the_same_in_hierarchies, .timeout = 240)
{
    static const int pairs[LARGEST] = {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6};
    static const int growing[LARGEST] = {0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4}, in_turn[LARGEST] = {0, 1, 0, 1, 0, 1};
    static const int *const groupings[] = {pairs, growing, in_turn};
    for (int algorithm = 0; algorithm < GY_ALGORITHMS; algorithm++)
        for (size_t g = 0; gy_is_hierarchical((enum gy_algorithm)algorithm) && g < GY_ARRAY_LENGTH(groupings); g++)
            check_algorithm((enum gy_algorithm)algorithm, groupings[g]);
    cr_assert(messages > 100000 && granted > messages / 10 && granted < messages && landings > 1000);
}
