/* The exchange of tiny vectors: no schedule runs, so its protocol is stated here and proved like one.
 *
 *   enter k    a rank writes its vector to its line k mod lines, and publishes k, when all ranks have published k − 1
 *   leave k    when the ranks from which it consumes have published k, it reads their lines: in a barrier those of all
 *              ranks, of a broadcast the root's; in a reduction to a root only the root reads
 *
 * With two lines, a rank that writes line k mod 2 again, to enter k + 2, has seen all ranks publish k + 1. So all
 * ranks have left k: no line is written while it is read. With one line, or a root that enters without waiting for
 * the others, this is false, and the vector clocks must find it. The library publishes up to four at once, with as
 * many lines: tests/models/exchange.pml. */
#include "run.h"

static bool gives(const struct gy_schedule *schedule)
{
    return schedule->shape.collective != GY_BARRIER &&
           (schedule->shape.collective != GY_BROADCAST || schedule->shape.rank == schedule->shape.root);
}

static bool takes(const struct gy_schedule *schedule)
{
    return schedule->shape.collective != GY_BARRIER &&
           (schedule->shape.collective != GY_REDUCE_TO || schedule->shape.rank == schedule->shape.root);
}

static struct gy_cell *line_of(const struct run *run, int rank, int exchange, const struct gy_checker_eager *tiny)
{
    return run->rank[rank].line[exchange % tiny->lines];
}

static struct iteration step_begin(struct run *run, int rank)
{
    struct iteration it = {.rank = rank, .schedule = schedule_of(run, rank)};
    it.event = gy_order_event(&run->order, chain_of(run, rank, 0), run->rank[rank].call);
    gy_order_after(&run->order, it.event, run->rank[rank].start_event);
    return it;
}

static bool enter(struct run *run, int rank, const struct gy_checker_call *call)
{
    struct rank_state *state = &run->rank[rank];
    struct iteration it = step_begin(run, rank);
    for (int r = 0; r < run->size && call->tiny->makes_room && state->exchanged > 0; r++)
        gy_order_after(&run->order, it.event, run->rank[r].published.event[state->exchanged - 1]);
    struct gy_cell *line = line_of(run, rank, state->exchanged, call->tiny);
    for (size_t e = 0; e < call->total && gives(it.schedule); e++) {
        int32_t value;
        if (!effect_load(run, &it, &state->input[e], e, &value) || !effect_store(run, &it, &line[e], e, value))
            return false;
    }
    events_push(&state->published, it.event);
    return true;
}

static bool take(struct run *run, const struct iteration *it, const struct gy_checker_call *call, size_t e)
{
    struct rank_state *state = &run->rank[it->rank];
    int exchange = state->exchanged, root = it->schedule->shape.root;
    bool broadcast = it->schedule->shape.collective == GY_BROADCAST;
    int32_t sum, values[GY_EXPRESSION_RANKS];
    for (int r = 0; r < run->size; r++)
        if ((!broadcast || r == root) &&
            !effect_load(run, it, &line_of(run, r, exchange, call->tiny)[e], e, &values[r]))
            return false;
    if (broadcast)
        sum = values[root];
    else if (!effect_combine(run, it, values, &sum))
        return false;
    return effect_store(run, it, &state->output[e], e, sum);
}

/* The ranks for which a rank waits before it leaves. */
static bool waits_for(const struct gy_schedule *schedule, int rank)
{
    switch (schedule->shape.collective) {
    case GY_BROADCAST: return rank == schedule->shape.root;
    case GY_REDUCE_TO: return schedule->shape.rank == schedule->shape.root;
    default: return true;
    }
}

/* True if all ranks have published the exchange before this one. */
static bool has_room(const struct run *run, int rank, const struct gy_checker_call *call)
{
    int exchange = run->rank[rank].exchanged;
    for (int r = 0; r < run->size && call->tiny->makes_room; r++)
        if (run->rank[r].published.count < exchange)
            return false;
    return true;
}

bool tiny_advance(struct run *run, int rank, bool *done_p)
{
    struct rank_state *state = &run->rank[rank];
    const struct gy_checker_call *call = &run->calls[state->call];
    bool moved = state->published.count == state->exchanged && has_room(run, rank, call);
    *done_p = false;
    if ((moved && !enter(run, rank, call)) || state->published.count == state->exchanged)
        return false;
    for (int r = 0; r < run->size; r++)
        if (waits_for(schedule_of(run, rank), r) && run->rank[r].published.count <= state->exchanged)
            return moved;
    struct iteration it = step_begin(run, rank);
    for (int r = 0; r < run->size; r++)
        if (waits_for(it.schedule, r))
            gy_order_after(&run->order, it.event, run->rank[r].published.event[state->exchanged]);
    for (size_t e = 0; e < call->total && takes(it.schedule); e++)
        if (!take(run, &it, call, e))
            return false;
    state->exchanged++;
    *done_p = true;
    return true;
}
