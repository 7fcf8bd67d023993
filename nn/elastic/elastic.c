/* Training that continues without failed ranks, and lets others join. A death costs the step in flight.
 *
 *     step t ─ failure anywhere ─▶ revoke ─▶ agree: "not done" ─▶ shrink ─▶ align ─▶ step t again, with the ranks left
 *     part of the run done ──────────────▶ agree: "done", if all ranks report it
 *
 * Each rank keeps the state after its last complete step: parameters, the optimiser's state, position. A step half done
 * is discarded. Of the ranks left, none can be more than one step ahead of another, since the sum at a step's end needs
 * every rank. If one rank is ahead, all take over its state. If none is, each returns to its own. Either way all have
 * the same bits, which the hash compares. So a step counts for all ranks if one rank that is left has completed it.
 *
 * Parts (an epoch with its report and checkpoint, the end of the run) close with an agreement. A rank whose part
 * failed calls it early. All ranks meet in that agreement, so no rank takes for done what another has to repeat.
 *
 * Strategies whose ranks train apart have such a state only after their exchange (the hook `common`). All that is said
 * of a step above then holds for all steps since the last exchange. A rank's local state, its optimiser's state too,
 * begins anew with every membership. So the bits depend only on the number of ranks at each step.
 *
 * Joiners wait at rank 0's listener. At intervals the sum at the end of a step says that it is time to check for
 * joiners, and all ranks call grow. The rest is as after a failure: joiners have no state, and get that of a rank that
 * has it.
 *
 * Data. Position counts the used samples of an epoch, and a batch is divided over the ranks of the moment. So after a
 * change the next batch begins behind the last complete one, and is divided anew. No sample is lost or used twice.
 * gy_nn_elastic_count adds up the rows that ranks have computed, and ends the run if the sum is not the batch.
 *
 * Invariant: `valid` state changes only when a step is complete, or when all of a newer state has arrived. */
#include "elastic/elastic.h"

#include "base/error.h"
#include "io/trace.h"
#include "strategies/strategies.h"

#include <stdlib.h>
#include <string.h>

/* How much of the run a rank has: nothing; the initial state, like others that were there then; the state up to a
 * step. */
enum { NOTHING, BEGINNING, STEPS };

gyre_status gy_nn_elastic_align(struct gy_nn_elastic *elastic, gyre_comm *comm)
{
    int ranks = comm ? gyre_comm_size(comm) : 1, source = 0;
    int rank = comm ? gyre_comm_rank(comm) : 0;
    uint64_t mine = elastic->valid ? STEPS + elastic->position.step : elastic->first ? BEGINNING : NOTHING;
    uint64_t *all = calloc((size_t)ranks, sizeof(*all));
    if (!all)
        return gy_nn_fail(GYRE_NO_MEMORY, "no memory to compare the steps of %d ranks", ranks);
    gyre_status status = GYRE_SUCCESS;
    bool same = true;
    all[0] = mine;
    if (ranks > 1)
        status = gyre_all_gather(comm, &mine, all, 1, GYRE_UINT64);
    if (status != GYRE_SUCCESS)
        gy_nn_fail_comm(status, comm, "comparing the ranks' steps");
    for (int r = 1; r < ranks && status == GYRE_SUCCESS; r++) {
        same = same && all[r] == all[0];
        source = all[r] > all[source] ? r : source;
    }
    uint64_t most = all[source];
    free(all);
    if (status != GYRE_SUCCESS)
        return status;
    if (most == NOTHING)
        return gy_nn_fail(GYRE_PARTITIONED, "none of the %d ranks that are left has the state of the run", ranks);
    if (most == BEGINNING && rank == source)
        status = gy_nn_elastic_begin(elastic);
    if (status != GYRE_SUCCESS)
        return status;
    if (ranks > 1 && (!same || most == BEGINNING))
        return gy_nn_elastic_spread(elastic, comm, source);
    gy_nn_elastic_restore(elastic);
    return GYRE_SUCCESS;
}

void gy_nn_elastic_leave(struct gy_nn_elastic *elastic)
{
    struct gyre_nn_run *run = elastic->run;
    gyre_nn_run_hide(run);
    if (run->self)
        run->strategy->close(run->self);
    run->self = NULL;
    run->comm = NULL;
}

gyre_status gy_nn_elastic_reform(struct gy_nn_elastic *elastic, gyre_comm *comm)
{
    struct gyre_nn_run *run = elastic->run;
    gy_nn_elastic_leave(elastic);
    elastic->cost = 0;
    elastic->rows = elastic->global_rows = 0;
    run->rank = comm ? gyre_comm_rank(comm) : 0;
    run->ranks = comm ? gyre_comm_size(comm) : 1;
    run->comm = run->ranks > 1 ? comm : NULL;
    if (run->ranks < elastic->how.least)
        return gy_nn_fail(GYRE_PARTITIONED, "%d rank%s left, and the run needs %d", run->ranks,
                          run->ranks == 1 ? " is" : "s are", elastic->how.least);
    gyre_status status = gy_nn_elastic_align(elastic, comm);
    status = status ? status : run->strategy->open(run, &run->self);
    status = status ? status : gy_nn_elastic_copy_arrays(elastic, true);
    status = status ? status : gyre_nn_run_compare(run);
    if (status == GYRE_SUCCESS && elastic->how.changed) {
        struct gyre_nn_membership now = {.step = elastic->position.step, .ranks = run->ranks};
        elastic->how.changed(elastic->how.user, comm, &now);
    }
    return status;
}

/* True if the ranks that are left may go on: a rank or a connection has been lost. */
static bool survivable(gyre_status status)
{
    return (status >= GYRE_PEER_DEAD && status <= GYRE_PEER_LEFT) || status == GYRE_CORRUPTED || status == GYRE_REVOKED;
}

/* Repeats until the ranks that are left are together with one state. A death meanwhile causes another round. */
static gyre_status recover(struct gy_nn_elastic *elastic)
{
    gyre_status status;
    uint64_t bits;
    do {
        gyre_comm *next;
        gy_nn_elastic_leave(elastic);
        status = gyre_comm_shrink(*elastic->comm, &next);
        if (status != GYRE_SUCCESS)
            return gy_nn_fail_comm(status, *elastic->comm, "going on without the ranks that failed");
        gyre_comm_destroy(*elastic->comm);
        *elastic->comm = next;
        status = gy_nn_elastic_reform(elastic, next);
        if (!survivable(status))
            return status;
        gyre_comm_revoke(next);
        status = gyre_comm_agree(next, 0, &bits);
    } while (status == GYRE_SUCCESS);
    return gy_nn_fail_comm(status, *elastic->comm, "agreeing on who is left");
}

gyre_status gy_nn_elastic_settle(struct gy_nn_elastic *elastic, gyre_status status, struct gyre_nn_position *position_p,
                                 bool *done_p)
{
    gyre_comm *comm = *elastic->comm;
    uint64_t done = status == GYRE_SUCCESS;
    if (!done && !survivable(status))
        return status;
    if (comm && !elastic->how.replays) {
        if (!done)
            gyre_comm_revoke(comm);
        status = gyre_comm_agree(comm, done, &done);
        if (status != GYRE_SUCCESS)
            return gy_nn_fail_comm(status, comm, "agreeing on what is done");
    }
    *done_p = done != 0;
    if (done)
        return !elastic->idle && gy_nn_elastic_settled(elastic->run) ? gy_nn_elastic_save(elastic, position_p)
                                                                     : GYRE_SUCCESS;
    status = elastic->how.replays ? status : recover(elastic);
    *position_p = elastic->position;
    return status;
}

/* Rank 0's clock decides, and the sum tells all ranks. */
static bool time_to_look(struct gy_nn_elastic *elastic)
{
    const struct gyre_nn_run *run = elastic->run;
    int64_t now = gy_nn_now();
    if (run->rank != 0 || !*elastic->comm || elastic->how.replays || !(elastic->how.grow > 0) ||
        now < elastic->looked + (int64_t)(elastic->how.grow * 1e9))
        return false;
    elastic->looked = now;
    return true;
}

/* No rank has failed: a resource was too short to let others join, on this rank or on another. */
static bool harmless(gyre_status status)
{
    return status == GYRE_NO_MEMORY || status == GYRE_NO_DESCRIPTORS || status == GYRE_SYSTEM;
}

gyre_status gy_nn_elastic_grow(struct gy_nn_elastic *elastic)
{
    gyre_comm *next;
    if (!elastic->look)
        return GYRE_SUCCESS;
    gyre_status status = gyre_comm_grow(*elastic->comm, 0, 0, &next);
    if (harmless(status)) /* the next check may succeed; the next step reports an exclusion of this rank */
        return GYRE_SUCCESS;
    if (status != GYRE_SUCCESS)
        return gy_nn_fail_comm(status, *elastic->comm, "looking for joining processes");
    if (!next)
        return GYRE_SUCCESS;
    gy_nn_elastic_leave(elastic);
    gyre_comm_destroy(*elastic->comm);
    *elastic->comm = next;
    return gy_nn_elastic_reform(elastic, next);
}

/* Collective: the cost since the last count, and whether it is time to check for joiners. */
static gyre_status add_up(struct gy_nn_elastic *elastic, bool look, double *cost_p)
{
    const struct gyre_nn_run *run = elastic->run;
    double sums[3] = {elastic->cost, (double)elastic->rows, look};
    gyre_status status = GYRE_SUCCESS;
    if (run->comm)
        status = gyre_all_reduce(run->comm, sums, sums, 3, GYRE_FLOAT64, GYRE_SUM);
    if (status != GYRE_SUCCESS)
        return gy_nn_fail_comm(status, run->comm, "counting the rows of a step");
    if ((size_t)sums[1] != elastic->global_rows)
        return gy_nn_fail(GYRE_INTERNAL, "the ranks have computed %.0f rows of batches of %zu", sums[1],
                          elastic->global_rows);
    *cost_p = sums[0];
    elastic->look = sums[2] > 0;
    elastic->cost = 0;
    elastic->rows = elastic->global_rows = 0;
    return GYRE_SUCCESS;
}

gyre_status gy_nn_elastic_count(struct gy_nn_elastic *elastic, struct gyre_nn_step *step)
{
    elastic->cost += step->cost;
    elastic->rows += step->rows;
    elastic->global_rows += step->global_rows;
    elastic->complete = gy_nn_elastic_settled(elastic->run);
    elastic->look = false;
    step->cost = 0;
    return elastic->complete ? add_up(elastic, time_to_look(elastic), &step->cost) : GYRE_SUCCESS;
}

gyre_status gy_nn_elastic_gather(struct gy_nn_elastic *elastic, double *cost_p)
{
    *cost_p = 0;
    return elastic->global_rows > 0 ? add_up(elastic, false, cost_p) : GYRE_SUCCESS;
}

static gyre_status check(const struct gyre_nn_run *run)
{
    const gyre_nn_strategy *strategy = run->strategy;
    if (!strategy->common && (strategy->params != GYRE_NN_REPLICATED || strategy->optimizer != GYRE_NN_REPLICATED ||
                              strategy->arrays || strategy->apart))
        return gy_nn_fail(GYRE_UNSUPPORTED,
                          "strategy %s keeps state that dies with a rank, and cannot be elastic: take sync, "
                          "deterministic, or one that averages every so many steps",
                          strategy->name);
    if (!gy_nn_elastic_settled(run))
        return gy_nn_fail(GYRE_UNSUPPORTED,
                          "strategy %s with an exchange beside further steps has no moment at which what all ranks "
                          "have alike is enough, and cannot be elastic: take delay=0",
                          strategy->name);
    return GYRE_SUCCESS;
}

gyre_status gy_nn_elastic_open(struct gy_nn_elastic *elastic, struct gyre_nn_run *run,
                               struct gyre_nn_position *position)
{
    char joined[8] = "no";
    elastic->run = run;
    elastic->position = *position;
    gyre_status status = check(run);
    status = status ? status : gy_nn_elastic_make_memory(elastic);
    if (status == GYRE_SUCCESS && *elastic->comm)
        status = gyre_comm_get(*elastic->comm, "joined", joined, sizeof(joined));
    if (status != GYRE_SUCCESS)
        return status;
    elastic->first = strcmp(joined, "no") == 0;
    if (run->strategy == &gy_nn_sync) /* a step ends with its update: to hold buckets back for a forward is only late */
        run->settings[GY_NN_SYNC_AHEAD] = 0;
    status = gy_nn_elastic_reform(elastic, *elastic->comm);
    if (survivable(status)) {
        bool done;
        status = gy_nn_elastic_settle(elastic, status, position, &done);
    }
    *position = elastic->position;
    return status;
}

void gy_nn_elastic_close(struct gy_nn_elastic *elastic)
{
    gy_nn_elastic_free_memory(elastic);
    gyre_comm_destroy(elastic->part);
}
