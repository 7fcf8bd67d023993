/* Operands that others use in place (collectives/shm/zero_copy.h), as a protocol of its own, since no step of a
 * schedule knows of it:
 *
 *   offers    instead of publishing, a rank has its input read where it is, by reduce, collect and exchange. What a
 *             one-shot schedule publishes is too small, but for a broadcast's and a reduction's to a root, whose own
 *             operand is not read; and an all_to_all in place would overwrite what is still to be read. Into an
 *             output of all_reduce the others write their slices, and its owner collects nothing; a rank that does
 *             not expose its own collects from it instead of from results
 *   waits     for the readers of a slot, unless it will not write it; and where blocks are only moved, for no counter
 *             of a rank that exposes its input, but for its arrival. Then it reads all of the block
 *             (collectives/shm/block_pull.h), unless the rank writes what others still have to read from it
 *   returns   when all ranks have counted its last iteration in every lane over slots
 *
 * At its return a rank's buffers are written over (memory_return), so a later read, or one that is not surely
 * earlier, is a race. */
#include "run.h"

bool mapped_offers(const struct run *run, int number, int rank, enum gy_space space)
{
    const struct gy_checker_call *call = &run->calls[number];
    const struct gy_schedule *schedule = call->schedules[rank];
    if (schedule == NULL || call->mapped == NULL || call->tiny != NULL || !schedule->shm)
        return false;
    enum gy_collective collective = schedule->shape.collective;
    if (schedule->side_by_side == 0 && !gy_has_root(collective))
        return false;
    if (schedule->one_shot && collective == GY_REDUCE_TO && rank == schedule->shape.root) /* no rank reads it */
        return false;
    bool exposed = collective == GY_ALL_TO_ALL && call->in_place && call->flaw != GY_CHECKER_EXPOSED;
    if (space == GY_INPUT)
        return schedule->input_blocks > 0 && !exposed && (call->mapped->input >> rank & 1);
    return collective == GY_ALL_REDUCE && (call->mapped->output >> rank & 1);
}

bool mapped_keeps(const struct run *run, int rank, const struct gy_step *reduce)
{
    int call = run->rank[rank].call;
    bool needed = false;
    for (int r = 0; r < run->size; r++)
        needed |= r != rank && !mapped_offers(run, call, r, GY_OUTPUT);
    return reduce->dst == GY_RESULT || (reduce->keep && needed && !mapped_offers(run, call, rank, GY_OUTPUT));
}

bool mapped_idle(const struct run *run, int rank, const struct gy_step *step)
{
    const struct gy_checker_call *call = &run->calls[run->rank[rank].call];
    if (call->flaw == GY_CHECKER_NO_READERS && call->mapped && (call->mapped->input | call->mapped->output))
        return true;
    if (step->kind == GY_PUBLISH)
        return mapped_offers(run, run->rank[rank].call, rank, GY_INPUT);
    return step->kind == GY_REDUCE_PUBLISHED && !mapped_keeps(run, rank, step);
}

bool mapped_whole(const struct run *run, int rank, const struct gy_step *step, int from)
{
    const struct gy_checker_call *call = &run->calls[run->rank[rank].call];
    bool moves = step->kind == GY_EXCHANGE || (step->kind == GY_COLLECT && step->src == GY_PUBLISHED);
    return moves && !(call->in_place && schedule_of(run, rank)->shape.collective == GY_ALL_TO_ALL) &&
           mapped_offers(run, run->rank[rank].call, from, GY_INPUT);
}

bool mapped_arrived(struct run *run, int rank, int from, int event)
{
    const struct rank_state *other = &run->rank[from];
    int call = run->rank[rank].call;
    if (run->calls[call].flaw == GY_CHECKER_NOT_ARRIVED)
        return true;
    if (other->call < call || (other->call == call && !other->started))
        return false;
    if (event >= 0)
        gy_order_after(&run->order, event, other->start_event);
    return true;
}

/* With its flaw: a rank that reads what the rank exposes. */
static int forgotten(const struct run *run, int rank)
{
    const struct gy_schedule_shape *shape = &schedule_of(run, rank)->shape;
    return gy_has_root(shape->collective) && shape->root != rank ? shape->root : (rank + 1) % run->size;
}

bool mapped_quiet(struct run *run, int rank, int event)
{
    const struct rank_state *state = &run->rank[rank];
    enum gy_checker_flaw flaw = run->calls[state->call].flaw;
    int count = state->base + state->iterations - (flaw == GY_CHECKER_WAIT_ONE_SHORT);
    if (flaw == GY_CHECKER_NO_LAST_WAIT || count <= 0 ||
        (!mapped_offers(run, state->call, rank, GY_INPUT) && !mapped_offers(run, state->call, rank, GY_OUTPUT)))
        return true;
    for (int r = 0; r < run->size; r++)
        for (int w = 0; w < GY_REGION_LANES; w++) {
            const struct events *counter = &run->rank[r].counter[w];
            if (flaw == GY_CHECKER_WAIT_NOT_FOR && r == forgotten(run, rank))
                continue;
            if (counter->count < count)
                return false;
            if (event >= 0)
                gy_order_after(&run->order, event, counter->event[count - 1]);
        }
    return true;
}
