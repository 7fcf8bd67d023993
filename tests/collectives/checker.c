/* The scheduler of a symbolic run: every rank takes every iteration that it may take until no rank can go on. See
 * checker.h. */
#include "checker.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "run.h"

bool run_fail(struct run *run, int rank, const char *format, ...)
{
    if (!run->failed) {
        char *text = run->report->text;
        int n = snprintf(text, sizeof(run->report->text), "call %d rank %d: ", run->rank[rank].call, rank);
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(text + n, sizeof(run->report->text) - (size_t)n, format, arguments);
        va_end(arguments);
    }
    run->failed = true;
    return false;
}

enum { EVENTS = 3 }; /* of the caller, in a call: it starts, it finishes, it returns */

static bool in_call(const struct run *run, int rank)
{
    return run->rank[rank].call < run->ncalls && run->rank[rank].started; /* never in a call that it has no part in */
}

static bool has_receive_from(const struct gy_schedule *schedule, int lane, int peer)
{
    for (int s = schedule->lane[lane].first; s < schedule->lane[lane].first + schedule->lane[lane].count; s++)
        if ((schedule->step[s].kind == GY_RECV || schedule->step[s].kind == GY_RECV_REDUCE) &&
            schedule->step[s].peer == peer)
            return true;
    return false;
}

/* True if the send at the head of this lane meets its receive. Then both happen. */
static bool exchange(struct run *run, int rank, int lane)
{
    const struct gy_step *step = lane_head(run, rank, lane);
    int peer = step->peer, to = -1;
    if (peer < 0 || peer >= run->size || (peer == rank && !form_to_self(schedule_of(run, rank))))
        return run_fail(run, rank, "lane %d sends to rank %d", lane, peer);
    if (!in_call(run, peer) || run->rank[peer].call != run->rank[rank].call)
        return false;
    const struct gy_schedule *schedule = schedule_of(run, peer);
    for (int i = 0; i < schedule->lanes; i++) {
        if (schedule->lane[i].tag != schedule_of(run, rank)->lane[lane].tag || !has_receive_from(schedule, i, rank))
            continue;
        if (to >= 0)
            return run_fail(run, peer, "two lanes receive from rank %d with one tag", rank);
        to = i;
    }
    const struct gy_step *receive = to < 0 ? NULL : lane_head(run, peer, to);
    if (receive == NULL || receive->peer != rank || receive->kind == GY_SEND || !needs_met(run, peer, to, -1))
        return false;
    struct iteration out = iteration_begin(run, rank, lane), in = iteration_begin(run, peer, to);
    size_t start, count;
    if (!effect_send(run, &out, &start, &count))
        return false;
    gy_order_after(&run->order, in.event, out.event);
    run->order.depth[in.event] = run->order.depth[in.event] > run->order.depth[out.event] + 1
                                     ? run->order.depth[in.event]
                                     : run->order.depth[out.event] + 1;
    const struct gy_checker_call *call = &run->calls[run->rank[rank].call];
    if (out.tile != in.tile || tiles_of(call, in.schedule, in.step) != tiles_of(call, out.schedule, out.step))
        return run_fail(run, rank, "lane %d sends in other tiles than rank %d receives", lane, peer);
    if (!effect_receive(run, &in, start, count))
        return false;
    iteration_end(run, &out);
    iteration_end(run, &in);
    return true;
}

static bool advance(struct run *run, int rank, int lane)
{
    const struct gy_step *step = lane_head(run, rank, lane);
    if (step == NULL || step->kind == GY_RECV || step->kind == GY_RECV_REDUCE || !needs_met(run, rank, lane, -1))
        return false;
    if (step->kind == GY_SEND)
        return exchange(run, rank, lane);
    struct iteration it = iteration_begin(run, rank, lane);
    if (!effect_local(run, &it))
        return false;
    iteration_end(run, &it);
    return true;
}

static bool begin_call(struct run *run, int rank)
{
    struct rank_state *state = &run->rank[rank];
    const struct gy_schedule *schedule = schedule_of(run, rank);
    for (int i = 0; i < GY_SCHEDULE_LANES; i++) {
        struct lane_state *lane = &state->lane[i];
        lane->done.count = lane->first_done.count = 0;
        lane->step = lane->round = lane->round_in_step = 0;
        lane->tile = 0;
    }
    state->started = true;
    state->finished = false;
    state->base = state->counter[0].count;
    state->start_event = gy_order_event(&run->order, chain_of(run, rank, -1), run->rank[rank].call);
    if (!form_holds(run, rank, schedule))
        return false;
    memory_begin(run, rank);
    return true;
}

/* After the last iteration: a barrier must have met every rank's start; unused counters of region lanes catch up. */
static bool finish_call(struct run *run, int rank)
{
    struct rank_state *state = &run->rank[rank];
    const struct gy_schedule *schedule = schedule_of(run, rank);
    bool forgets = run->calls[state->call].flaw == GY_CHECKER_SENDS_FORGOTTEN;
    int event = gy_order_event(&run->order, chain_of(run, rank, -1), run->rank[rank].call), iterations = 0;
    for (int i = 0; i + 1 < run->chains; i++) {
        int last = run->order.last[chain_of(run, rank, i)];
        if (last >= 0 && !(forgets && i >= run->lanes)) /* tiny vectors use one lane only */
            gy_order_after(&run->order, event, last);
    }
    for (int i = 0; i < schedule->lanes; i++) {
        if (schedule->lane[i].region_lane >= 0 && state->lane[i].done.count > iterations)
            iterations = state->lane[i].done.count;
    }
    for (int w = 0; w < GY_REGION_LANES; w++)
        while (state->counter[w].count < state->base + iterations)
            events_push(&state->counter[w], event);
    if (schedule->shape.collective == GY_BARRIER) {
        const uint16_t *clock = run->order.clock + (size_t)event * (size_t)run->order.chains;
        for (int r = 0; r < run->size; r++)
            if (clock[chain_of(run, r, -1)] < EVENTS * state->call + 1)
                return run_fail(run, rank, "leaves the barrier before rank %d has entered", r);
    }
    if (run->report->depth < run->order.depth[event])
        run->report->depth = run->order.depth[event];
    state->finished = true;
    state->finish_event = event;
    state->iterations = iterations;
    return true;
}

/* The two requests of a message to oneself return each for itself, the receiving one first. */
static bool return_both(struct run *run, int rank)
{
    enum { SEND_LANE, RECV_LANE };
    const struct rank_state *state = &run->rank[rank];
    int received = gy_order_event(&run->order, chain_of(run, rank, RECV_LANE), state->call);
    if (!memory_end(run, rank, received) || !memory_return(run, rank, GY_OUTPUT, received))
        return false;
    int sent = gy_order_event(&run->order, chain_of(run, rank, SEND_LANE), state->call);
    if (run->sends > 0 && run->calls[state->call].flaw != GY_CHECKER_SENDS_FORGOTTEN)
        gy_order_after(&run->order, sent, run->order.last[chain_of(run, rank, run->lanes + run->sends + SEND_LANE)]);
    return memory_return(run, rank, GY_INPUT, sent);
}

/* What others read in place is not read any more: the call returns. */
static bool end_call(struct run *run, int rank)
{
    struct rank_state *state = &run->rank[rank];
    if (form_to_self(schedule_of(run, rank)) && !return_both(run, rank))
        return false;
    int event = gy_order_event(&run->order, chain_of(run, rank, -1), state->call);
    gy_order_after(&run->order, event, state->finish_event);
    mapped_quiet(run, rank, event);
    if (!form_to_self(schedule_of(run, rank)) &&
        (!memory_end(run, rank, event) || !memory_return(run, rank, GY_INPUT, event) ||
         !memory_return(run, rank, GY_OUTPUT, event) || !memory_return(run, rank, GY_SCRATCH, event)))
        return false;
    state->started = false;
    state->call++;
    return true;
}

/* Everything that rank can do now. */
static bool advance_rank(struct run *run, int rank)
{
    struct rank_state *state = &run->rank[rank];
    bool moved = false, done = true;
    if (state->call == run->ncalls)
        return false;
    if (schedule_of(run, rank) == NULL) {
        for (int i = 0; i < EVENTS; i++)
            gy_order_event(&run->order, chain_of(run, rank, -1), state->call);
        state->call++;
        return true;
    }
    if (!state->started) {
        moved = true;
        if (!begin_call(run, rank))
            return false;
    }
    const struct gy_schedule *schedule = schedule_of(run, rank);
    bool tiny = run->calls[state->call].tiny != NULL;
    if (tiny)
        moved = tiny_advance(run, rank, &done) || moved;
    for (int i = 0; i < schedule->lanes && !tiny; i++) {
        while (!run->failed && advance(run, rank, i))
            moved = true;
        done = done && lane_head(run, rank, i) == NULL;
    }
    if (run->failed || !done)
        return moved && !run->failed;
    if (!state->finished) {
        moved = true;
        if (!finish_call(run, rank))
            return false;
    }
    return mapped_quiet(run, rank, -1) ? end_call(run, rank) : moved;
}

/* What a rank shares with the others: slots and lines. */
static void open_shared(struct run *run, int r)
{
    int place = r * GY_RUN_SHARED;
    for (int i = 0; i < GY_REGION_SLOTS; i++) {
        run->rank[r].slots[i] = gy_cells_new(run->stride, place++);
        run->rank[r].result[i] = gy_cells_new(run->stride, place++);
    }
    for (int i = 0; i < GY_RUN_LINES; i++)
        run->rank[r].line[i] = gy_cells_new(run->stride, place++);
}

static void close_shared(struct rank_state *rank)
{
    for (int i = 0; i < GY_REGION_SLOTS; i++) {
        free(rank->slots[i]);
        free(rank->result[i]);
    }
    for (int i = 0; i < GY_RUN_LINES; i++)
        free(rank->line[i]);
}

static void open_run(struct run *run)
{
    size_t elements = 1, slot = 1;
    for (int c = 0; c < run->ncalls; c++) {
        const struct gy_checker_call *call = &run->calls[c];
        elements = call->total > elements ? call->total : elements;
        slot = call->tile * (size_t)run->size > slot ? call->tile * (size_t)run->size : slot;
        for (int r = 0; r < run->size; r++)
            if (call->schedules[r] != NULL && call->schedules[r]->lanes > run->lanes)
                run->lanes = call->schedules[r]->lanes;
    }
    run->stride = elements > slot ? elements : slot;
    run->rank = calloc((size_t)run->size, sizeof(run->rank[0]));
    run->expected = calloc((size_t)run->ncalls * run->stride, sizeof(run->expected[0]));
    run->message = calloc(run->stride, sizeof(run->message[0]));
    run->expression.root = calloc(run->stride, sizeof(run->expression.root[0]));
    if (run->rank == NULL || run->expected == NULL || run->message == NULL || run->expression.root == NULL)
        abort();
    run->expression.total = run->calls[0].total;
    run->sends = run->size <= GY_RUN_SENDS_WORLD ? run->lanes * GY_RUN_SENDS : 0;
    run->chains = 1 + run->lanes + (run->sends > 0 ? run->sends + run->lanes : 0);
    gy_order_open(&run->order, run->size * run->chains);
    bool shm = false;
    for (int c = 0; c < run->ncalls; c++)
        shm = shm || (run->calls[c].schedules[0] != NULL && run->calls[c].schedules[0]->shm);
    for (int r = 0; r < run->size && shm; r++)
        open_shared(run, r);
}

static void close_run(struct run *run)
{
    for (int r = 0; r < run->size; r++) {
        struct rank_state *rank = &run->rank[r];
        for (int i = 0; i < GY_SCHEDULE_LANES; i++) {
            free(rank->lane[i].done.event);
            free(rank->lane[i].first_done.event);
        }
        for (int i = 0; i < GY_REGION_LANES; i++)
            free(rank->counter[i].event);
        free(rank->published.event);
        close_shared(rank);
        if (rank->input != rank->output)
            free(rank->input);
        free(rank->output);
        free(rank->scratch);
    }
    free(run->rank);
    free(run->expected);
    free(run->message);
}

bool gy_checker_run(int size, const struct gy_checker_call *calls, int ncalls, struct gy_checker_report *report_p,
                    struct gy_order *order_p, struct gy_expression *expression_p)
{
    struct run run = {.size = size, .ncalls = ncalls, .calls = calls, .report = report_p};
    memset(report_p, 0, sizeof(*report_p));
    open_run(&run);
    for (bool moved = true; moved && !run.failed;) {
        moved = false;
        for (int r = 0; r < size && !run.failed; r++)
            moved = advance_rank(&run, r) || moved;
    }
    for (int r = 0; r < size && !run.failed; r++)
        if (run.rank[r].call < ncalls)
            run_fail(&run, r, "deadlock: waits for ever");
    close_run(&run);
    if (order_p != NULL && !run.failed)
        *order_p = run.order;
    else
        gy_order_close(&run.order);
    if (expression_p != NULL && !run.failed)
        *expression_p = run.expression;
    else
        gy_expression_free(&run.expression);
    return !run.failed;
}

bool gy_checker_by_rank(enum gy_collective collective)
{
    return collective == GY_REDUCE_SCATTER || collective == GY_ALL_GATHER || collective == GY_GATHER_TO ||
           collective == GY_SCATTER_FROM || collective == GY_ALL_TO_ALL;
}

/* The shape as rank r sees it. False: it has no part in it. */
static bool shape_of_rank(const struct gy_schedule_shape *shape, int r, struct gy_schedule_shape *mine)
{
    int other = (shape->root + 1) % shape->size;
    *mine = *shape;
    mine->rank = r;
    if (!gy_is_point_to_point(shape->collective) || r == other)
        return true;
    mine->root = other;
    mine->collective = shape->collective == GY_SEND_TO ? GY_RECEIVE_FROM : GY_SEND_TO;
    return r == shape->root;
}

/* The lanes of both requests of a message to oneself. */
static struct gy_schedule *build_to_self(int size, int rank)
{
    struct gy_schedule_shape shape = {GY_SEND_TO, GY_LINEAR, .rank = rank, .size = size, .root = rank};
    struct gy_schedule *send = gy_schedule_build(&shape), *both = NULL;
    shape.collective = GY_RECEIVE_FROM;
    struct gy_schedule *receive = gy_schedule_build(&shape);
    if (send != NULL && receive != NULL && send->lanes == 1 && receive->lanes == 1)
        both = gy_alloc_zero(1, sizeof(*both) + (size_t)(send->steps + receive->steps) * sizeof(both->step[0]));
    if (both != NULL) {
        *both = *send;
        memcpy(both->step, send->step, (size_t)send->steps * sizeof(both->step[0]));
        memcpy(both->step + send->steps, receive->step, (size_t)receive->steps * sizeof(both->step[0]));
        both->lane[1] = receive->lane[0];
        both->lane[1].first += send->steps;
        both->lanes = 2;
        both->steps += receive->steps;
        both->output_lo = receive->output_lo;
        both->output_blocks = receive->output_blocks;
    }
    gy_schedule_free(send);
    gy_schedule_free(receive);
    return both;
}

struct gy_schedule **gy_checker_schedules_to_self(int size, int rank)
{
    struct gy_schedule **schedules = calloc((size_t)size, sizeof(schedules[0]));
    if (schedules != NULL)
        schedules[rank] = build_to_self(size, rank);
    if (schedules != NULL && schedules[rank] != NULL)
        return schedules;
    free(schedules);
    return NULL;
}

struct gy_schedule **gy_checker_schedules(const struct gy_schedule_shape *shape)
{
    if (gy_is_point_to_point(shape->collective) && shape->size == 1)
        return gy_checker_schedules_to_self(1, 0);
    struct gy_schedule **schedules = calloc((size_t)shape->size, sizeof(schedules[0]));
    for (int r = 0; schedules != NULL && r < shape->size; r++) {
        struct gy_schedule_shape mine;
        if (!shape_of_rank(shape, r, &mine))
            continue;
        schedules[r] = gy_schedule_build(&mine);
        if (schedules[r] == NULL) {
            gy_checker_schedules_free(schedules, shape->size);
            return NULL;
        }
    }
    return schedules;
}

void gy_checker_schedules_free(struct gy_schedule **schedules, int size)
{
    for (int r = 0; r < size; r++)
        gy_schedule_free(schedules[r]);
    free(schedules);
}

bool gy_checker_expression(const struct gy_schedule_shape *shape, size_t total, size_t tile,
                           struct gy_expression *expression_p)
{
    struct gy_schedule **schedules = gy_checker_schedules(shape);
    if (schedules == NULL)
        return false;
    struct gy_checker_call call = {.schedules = schedules, .total = total, .tile = tile};
    struct gy_checker_report report;
    bool right = gy_checker_run(shape->size, &call, 1, &report, NULL, expression_p);
    gy_checker_schedules_free(schedules, shape->size);
    return right;
}
