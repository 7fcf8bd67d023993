/* The scheduler of a symbolic run: every rank takes every iteration that it may take until nobody can go on. See
 * checker.h. */
#include "checker.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void push(struct events *events, int event)
{
    if (events->count == events->capacity) {
        events->capacity = events->capacity == 0 ? 8 : 2 * events->capacity;
        events->event = realloc(events->event, (size_t)events->capacity * sizeof(events->event[0]));
        if (events->event == NULL)
            abort();
    }
    events->event[events->count++] = event;
}

size_t block_begin(size_t total, int blocks, int block)
{
    return total * (size_t)block / (size_t)blocks;
}

/* Tile t of blocks [block, block + width); a range beyond the vector is an error. */
size_t piece_of(const struct run *run, const struct iteration *it, int block, int width, size_t *start_p)
{
    const struct gy_checker_call *call = &run->calls[run->rank[it->rank].call];
    size_t begin = block_begin(call->total, it->plan->blocks, block);
    size_t end = block_begin(call->total, it->plan->blocks, block + width);
    *start_p = begin + it->tile * call->tile;
    if (*start_p >= end)
        return 0;
    return end - *start_p < call->tile ? end - *start_p : call->tile;
}

static size_t tiles_of(const struct gy_checker_call *call, const struct gy_plan *plan, const struct gy_step *step)
{
    size_t width = step->kind >= GY_PUBLISH ? 1 : (size_t)step->range.width, blocks = (size_t)plan->blocks;
    size_t longest = (call->total * width + blocks - 1) / blocks;
    return longest == 0 ? 1 : (longest + call->tile - 1) / call->tile;
}

static const struct gy_plan *plan_of(const struct run *run, int rank)
{
    return run->calls[run->rank[rank].call].plans[rank];
}

static bool in_call(const struct run *run, int rank)
{
    return run->rank[rank].call < run->ncalls && run->rank[rank].started;
}

/* Chain 0 of a rank is its caller: starts and ends of calls; the lanes follow. */
static int chain_of(const struct run *run, int rank, int lane)
{
    return rank * (run->lanes + 1) + 1 + lane;
}

static const struct gy_step *head(const struct run *run, int rank, int lane)
{
    const struct gy_plan *plan = plan_of(run, rank);
    const struct lane_state *state = &run->rank[rank].lane[lane];
    return state->step < plan->lane[lane].count ? &plan->step[plan->lane[lane].first + state->step] : NULL;
}

static const struct gy_step *step_of_round(const struct gy_plan *plan, int lane, int round)
{
    for (int s = plan->lane[lane].first; s < plan->lane[lane].first + plan->lane[lane].count; s++) {
        if (round < plan->step[s].rounds)
            return &plan->step[s];
        round -= plan->step[s].rounds;
    }
    return NULL;
}

/* The event that a need on my own lane waits for: −1 no need, −2 not yet. */
static int local_need(struct run *run, int rank, const struct lane_state *state, const struct gy_step *step,
                      const struct gy_need *need)
{
    const struct gy_plan *plan = plan_of(run, rank);
    const struct lane_state *other = &run->rank[rank].lane[need->lane];
    int round = state->round - need->lag;
    if (round < 0)
        return -1;
    const struct gy_step *target = step_of_round(plan, need->lane, round);
    if (target == NULL)
        return -2; /* never: shows as a deadlock */
    size_t tiles = tiles_of(&run->calls[run->rank[rank].call], plan, target);
    if (!need->whole && tiles != tiles_of(&run->calls[run->rank[rank].call], plan, step)) {
        run_fail(run, rank, "a need by tile between rounds of %d and %d blocks", step->range.width,
                 target->range.width);
        return -2;
    }
    if (round >= other->first_done.count)
        return -2;
    int index = other->first_done.event[round] + (int)(need->whole ? tiles - 1 : state->tile);
    return index < other->done.count ? other->done.event[index] : -2;
}

/* Are all needs met? With `event` >= 0, orders that event after them. */
static bool needs(struct run *run, int rank, int lane, int event)
{
    const struct gy_plan *plan = plan_of(run, rank);
    const struct lane_state *state = &run->rank[rank].lane[lane];
    const struct gy_step *step = head(run, rank, lane);
    for (int i = 0; i < GY_NEEDS; i++) {
        const struct gy_need *need = &step->needs[i];
        if (need->lane < 0)
            continue;
        if (need->lane >= plan->lanes || (need->everyone && plan->lane[need->lane].window_lane < 0))
            return run_fail(run, rank, "lane %d needs a lane that is not there", lane);
        if (!need->everyone) {
            int before = local_need(run, rank, state, step, need);
            if (before == -2)
                return false;
            if (before >= 0 && event >= 0)
                gy_order_after(&run->order, event, before);
            continue;
        }
        int count = run->rank[rank].base + (int)state->tile + 1 - need->lag;
        for (int r = 0; r < run->size && count > 0; r++) {
            if (r == rank || (step->peer >= 0 && r != step->peer))
                continue;
            const struct events *counter = &run->rank[r].counter[plan->lane[need->lane].window_lane];
            if (counter->count < count)
                return false;
            if (event >= 0)
                gy_order_after(&run->order, event, counter->event[count - 1]);
        }
    }
    return true;
}

static struct iteration begin_iteration(struct run *run, int rank, int lane)
{
    struct rank_state *state = &run->rank[rank];
    const struct lane_state *at = &state->lane[lane];
    struct iteration it = {.rank = rank, .lane = lane, .plan = plan_of(run, rank), .step = head(run, rank, lane)};
    it.tile = at->tile;
    it.round_in_step = at->round_in_step;
    it.number = state->base + (int)at->tile;
    it.event = gy_order_event(&run->order, chain_of(run, rank, lane));
    gy_order_after(&run->order, it.event, state->start_event);
    needs(run, rank, lane, it.event);
    return it;
}

static void end_iteration(struct run *run, const struct iteration *it)
{
    struct lane_state *at = &run->rank[it->rank].lane[it->lane];
    if (at->tile == 0)
        push(&at->first_done, at->done.count);
    push(&at->done, it->event);
    int window_lane = it->plan->lane[it->lane].window_lane;
    if (window_lane >= 0)
        push(&run->rank[it->rank].counter[window_lane], it->event);
    if (++at->tile < tiles_of(&run->calls[run->rank[it->rank].call], it->plan, it->step))
        return;
    at->tile = 0;
    at->round++;
    if (++at->round_in_step < it->step->rounds)
        return;
    at->round_in_step = 0;
    at->step++;
}

static bool has_receive_from(const struct gy_plan *plan, int lane, int peer)
{
    for (int s = plan->lane[lane].first; s < plan->lane[lane].first + plan->lane[lane].count; s++)
        if ((plan->step[s].kind == GY_RECV || plan->step[s].kind == GY_RECV_REDUCE) && plan->step[s].peer == peer)
            return true;
    return false;
}

/* Does the send at the head of this lane meet its receive? Then both happen. */
static bool exchange(struct run *run, int rank, int lane)
{
    const struct gy_step *step = head(run, rank, lane);
    int peer = step->peer, to = -1;
    if (peer < 0 || peer >= run->size || peer == rank)
        return run_fail(run, rank, "lane %d sends to rank %d", lane, peer);
    if (!in_call(run, peer) || run->rank[peer].call != run->rank[rank].call)
        return false;
    const struct gy_plan *plan = plan_of(run, peer);
    for (int i = 0; i < plan->lanes; i++) {
        if (plan->lane[i].channel != plan_of(run, rank)->lane[lane].channel || !has_receive_from(plan, i, rank))
            continue;
        if (to >= 0)
            return run_fail(run, peer, "two lanes receive from rank %d on one channel", rank);
        to = i;
    }
    const struct gy_step *receive = to < 0 ? NULL : head(run, peer, to);
    if (receive == NULL || receive->peer != rank || receive->kind == GY_SEND || !needs(run, peer, to, -1))
        return false;
    struct iteration out = begin_iteration(run, rank, lane), in = begin_iteration(run, peer, to);
    size_t start, count;
    if (!effect_send(run, &out, &start, &count))
        return false;
    gy_order_after(&run->order, in.event, out.event);
    run->order.depth[in.event] = run->order.depth[in.event] > run->order.depth[out.event] + 1
                                     ? run->order.depth[in.event]
                                     : run->order.depth[out.event] + 1;
    const struct gy_checker_call *call = &run->calls[run->rank[rank].call];
    if (out.tile != in.tile || tiles_of(call, in.plan, in.step) != tiles_of(call, out.plan, out.step))
        return run_fail(run, rank, "lane %d sends in other tiles than rank %d receives", lane, peer);
    if (!effect_receive(run, &in, start, count))
        return false;
    end_iteration(run, &out);
    end_iteration(run, &in);
    return true;
}

static bool advance(struct run *run, int rank, int lane)
{
    const struct gy_step *step = head(run, rank, lane);
    if (step == NULL || step->kind == GY_RECV || step->kind == GY_RECV_REDUCE || !needs(run, rank, lane, -1))
        return false;
    if (step->kind == GY_SEND)
        return exchange(run, rank, lane);
    struct iteration it = begin_iteration(run, rank, lane);
    if (!effect_local(run, &it))
        return false;
    end_iteration(run, &it);
    return true;
}

/* Lanes send, or receive, or do neither; on windows they are one step of one round; no two send to a peer on one
 * channel. */
static bool well_formed(struct run *run, int rank, const struct gy_plan *plan)
{
    for (int i = 0; i < plan->lanes; i++) {
        const struct gy_lane *lane = &plan->lane[i];
        if (lane->window_lane >= GY_WINDOW_LANES ||
            (lane->window_lane >= 0) != (plan->step[lane->first].kind >= GY_PUBLISH))
            return run_fail(run, rank, "lane %d has the wrong window lane", i);
        if (lane->count < 1 || (lane->window_lane >= 0 && (lane->count != 1 || plan->step[lane->first].rounds != 1)))
            return run_fail(run, rank, "lane %d has the wrong number of steps", i);
        for (int s = lane->first; s < lane->first + lane->count; s++) {
            const struct gy_step *step = &plan->step[s];
            bool sends = step->kind == GY_SEND, sent = plan->step[lane->first].kind == GY_SEND;
            if (sends != sent || step->rounds < 1 || step->range.width < 0)
                return run_fail(run, rank, "lane %d is not well formed", i);
            for (int k = 0; k < step->rounds; k++)
                if (gy_range_block(step->range, plan->blocks, k) + step->range.width > plan->blocks)
                    return run_fail(run, rank, "lane %d reaches beyond the last block", i);
            for (int j = 0; j < i && sends; j++)
                for (int u = plan->lane[j].first; u < plan->lane[j].first + plan->lane[j].count; u++)
                    if (plan->step[u].kind == GY_SEND && plan->step[u].peer == step->peer &&
                        plan->lane[j].channel == lane->channel)
                        return run_fail(run, rank, "two lanes send to rank %d on one channel", step->peer);
        }
    }
    return true;
}

static bool begin_call(struct run *run, int rank)
{
    struct rank_state *state = &run->rank[rank];
    const struct gy_plan *plan = plan_of(run, rank);
    for (int i = 0; i < GY_PLAN_LANES; i++) {
        struct lane_state *lane = &state->lane[i];
        lane->done.count = lane->first_done.count = 0;
        lane->step = lane->round = lane->round_in_step = 0;
        lane->tile = 0;
    }
    state->started = true;
    state->base = state->counter[0].count;
    state->start_event = gy_order_event(&run->order, chain_of(run, rank, -1));
    if (!well_formed(run, rank, plan) || !views_hold(run, rank, plan))
        return false;
    memory_begin(run, rank);
    return true;
}

/* After the last iteration: a barrier must have met every rank's start; unused window counters catch up. */
static bool end_call(struct run *run, int rank)
{
    struct rank_state *state = &run->rank[rank];
    const struct gy_plan *plan = plan_of(run, rank);
    int event = gy_order_event(&run->order, chain_of(run, rank, -1)), iterations = 0;
    for (int i = 0; i < plan->lanes; i++) {
        gy_order_after(&run->order, event, run->order.last[chain_of(run, rank, i)]);
        if (plan->lane[i].window_lane >= 0 && state->lane[i].done.count > iterations)
            iterations = state->lane[i].done.count;
    }
    for (int w = 0; w < GY_WINDOW_LANES; w++)
        while (state->counter[w].count < state->base + iterations)
            push(&state->counter[w], event);
    if (plan->shape.collective == GY_BARRIER) {
        const uint16_t *clock = run->order.clock + (size_t)event * (size_t)run->order.chains;
        for (int r = 0; r < run->size; r++)
            if (clock[chain_of(run, r, -1)] < 2 * state->call + 1)
                return run_fail(run, rank, "leaves the barrier before rank %d has entered", r);
    }
    if (run->report->depth < run->order.depth[event])
        run->report->depth = run->order.depth[event];
    if (!memory_end(run, rank, event))
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
    if (!state->started) {
        moved = true;
        if (!begin_call(run, rank))
            return false;
    }
    const struct gy_plan *plan = plan_of(run, rank);
    for (int i = 0; i < plan->lanes; i++) {
        while (!run->failed && advance(run, rank, i))
            moved = true;
        done = done && head(run, rank, i) == NULL;
    }
    if (run->failed || !done)
        return moved && !run->failed;
    return end_call(run, rank);
}

static void open_run(struct run *run)
{
    size_t elements = 1, slot = 1;
    for (int c = 0; c < run->ncalls; c++) {
        const struct gy_checker_call *call = &run->calls[c];
        elements = call->total > elements ? call->total : elements;
        slot = call->tile * (size_t)run->size > slot ? call->tile * (size_t)run->size : slot;
        for (int r = 0; r < run->size; r++)
            run->lanes = call->plans[r]->lanes > run->lanes ? call->plans[r]->lanes : run->lanes;
    }
    run->stride = elements > slot ? elements : slot;
    run->rank = calloc((size_t)run->size, sizeof(run->rank[0]));
    run->expected = calloc((size_t)run->ncalls * run->stride, sizeof(run->expected[0]));
    run->message = calloc(run->stride, sizeof(run->message[0]));
    run->expression.root = calloc(run->stride, sizeof(run->expression.root[0]));
    if (run->rank == NULL || run->expected == NULL || run->message == NULL || run->expression.root == NULL)
        abort();
    run->expression.total = run->calls[0].total;
    gy_order_open(&run->order, run->size * (run->lanes + 1));
    bool window = false;
    for (int c = 0; c < run->ncalls; c++)
        window = window || run->calls[c].plans[0]->window;
    for (int r = 0; r < run->size && window; r++)
        for (int s = 0; s < GY_WINDOW_SLOTS; s++) {
            run->rank[r].window[s] = gy_cells_new(run->stride);
            run->rank[r].result[s] = gy_cells_new(run->stride);
        }
}

static void close_run(struct run *run)
{
    for (int r = 0; r < run->size; r++) {
        struct rank_state *rank = &run->rank[r];
        for (int i = 0; i < GY_PLAN_LANES; i++) {
            free(rank->lane[i].done.event);
            free(rank->lane[i].first_done.event);
        }
        for (int i = 0; i < GY_WINDOW_LANES; i++)
            free(rank->counter[i].event);
        for (int i = 0; i < GY_WINDOW_SLOTS; i++) {
            free(rank->window[i]);
            free(rank->result[i]);
        }
        if (rank->input != rank->output)
            free(rank->input);
        free(rank->output);
        free(rank->scratch);
    }
    gy_order_close(&run->order);
    free(run->rank);
    free(run->expected);
    free(run->message);
}

bool gy_checker_run(int size, const struct gy_checker_call *calls, int ncalls, bool hash_order,
                    struct gy_checker_report *report_p, struct gy_expression *expression_p)
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
    if (hash_order && !run.failed)
        report_p->order = gy_order_hash(&run.order);
    close_run(&run);
    if (expression_p != NULL && !run.failed)
        *expression_p = run.expression;
    else
        gy_expression_free(&run.expression);
    return !run.failed;
}

struct gy_plan **gy_checker_plans(const struct gy_plan_shape *shape)
{
    struct gy_plan **plans = calloc((size_t)shape->size, sizeof(plans[0]));
    for (int r = 0; plans != NULL && r < shape->size; r++) {
        struct gy_plan_shape mine = *shape;
        mine.rank = r;
        plans[r] = gy_plan_build(&mine);
        if (plans[r] == NULL) {
            gy_checker_plans_free(plans, shape->size);
            return NULL;
        }
    }
    return plans;
}

void gy_checker_plans_free(struct gy_plan **plans, int size)
{
    for (int r = 0; r < size; r++)
        gy_plan_free(plans[r]);
    free(plans);
}

bool gy_checker_expression(const struct gy_plan_shape *shape, size_t total, size_t tile,
                           struct gy_expression *expression_p)
{
    struct gy_plan **plans = gy_checker_plans(shape);
    if (plans == NULL)
        return false;
    struct gy_checker_call call = {plans, total, tile, false};
    struct gy_checker_report report;
    bool right = gy_checker_run(shape->size, &call, 1, false, &report, expression_p);
    gy_checker_plans_free(plans, shape->size);
    return right;
}
