/* The state to which an elastic run returns: kept beside the live state, sent from rank to rank, written to files.
 *
 *     live ──save──▶ saved ──restore, copy_arrays──▶ live          spread: saved on one rank ──▶ live ──▶ saved, on all
 *
 * For strategies whose ranks train apart it is what all have alike after an exchange: the parameters that the hook
 * `common` writes, and the replicated arrays. The optimiser's state begins anew. The best parameters so far, which
 * all ranks have alike, go the same way, so that a joiner has them too. Invariant: the saved state changes only as a
 * whole: when a step is complete here, or all of another rank's has arrived. */
#include "elastic/elastic.h"

#include "base/error.h"
#include "base/ready.h"

#include <stdlib.h>
#include <string.h>

static size_t state_bytes(const struct gyre_nn_run *run)
{
    return gyre_nn_param_count(run->model) * gyre_dtype_size(gyre_nn_dtype(run->model));
}

/* True if ranks train apart, each with its own optimiser's state. */
static bool apart(const struct gyre_nn_run *run)
{
    return run->strategy->common != NULL;
}

/* Parameters, the optimiser's state where all have it alike, the best parameters; NULL where there is none. */
static void list(const struct gy_nn_elastic *elastic, void *live[GY_NN_KEPT])
{
    const struct gyre_nn_run *run = elastic->run;
    live[0] = gyre_nn_params(run->model);
    live[1] = apart(run) ? NULL : gyre_nn_optimizer_state(run->optimizer, 0);
    live[2] = apart(run) ? NULL : gyre_nn_optimizer_state(run->optimizer, 1);
    live[GY_NN_KEPT_BEST] = elastic->best;
}

bool gy_nn_elastic_settled(const struct gyre_nn_run *run)
{
    return !apart(run) || run->strategy->common(run->self, NULL);
}

gyre_status gy_nn_elastic_copy_arrays(struct gy_nn_elastic *elastic, bool back)
{
    const struct gyre_nn_run *run = elastic->run;
    struct gyre_nn_array arrays[GYRE_NN_MOST_ARRAYS];
    size_t n = 0;
    gyre_status status = run->strategy->arrays ? run->strategy->arrays(run->self, arrays, &n) : GYRE_SUCCESS;
    for (size_t i = 0; i < n && status == GYRE_SUCCESS; i++)
        if (elastic->arrays[i].bytes > 0)
            memcpy(back ? arrays[i].data : elastic->arrays[i].saved, back ? elastic->arrays[i].saved : arrays[i].data,
                   elastic->arrays[i].bytes);
    return status;
}

gyre_status gy_nn_elastic_save(struct gy_nn_elastic *elastic, const struct gyre_nn_position *position)
{
    struct gyre_nn_run *run = elastic->run;
    void *live[GY_NN_KEPT];
    gyre_status status = gy_nn_elastic_copy_arrays(elastic, false);
    if (status != GYRE_SUCCESS)
        return status;
    list(elastic, live);
    for (int i = 0; i < GY_NN_KEPT; i++)
        if (live[i] && (i > 0 || !apart(run)))
            memcpy(elastic->saved[i], live[i], state_bytes(run));
    if (apart(run))
        run->strategy->common(run->self, elastic->saved[0]);
    elastic->optimizer_steps = apart(run) ? 0 : gyre_nn_optimizer_steps(run->optimizer);
    elastic->position = *position;
    elastic->valid = true;
    return GYRE_SUCCESS;
}

/* Begins the local state of a rank anew. */
static void forget_optimizer(const struct gyre_nn_run *run)
{
    for (int slot = 0; slot < 2 && apart(run); slot++)
        if (gyre_nn_optimizer_state(run->optimizer, slot))
            memset(gyre_nn_optimizer_state(run->optimizer, slot), 0, state_bytes(run));
}

void gy_nn_elastic_restore(struct gy_nn_elastic *elastic)
{
    void *live[GY_NN_KEPT];
    list(elastic, live);
    for (int i = 0; i < GY_NN_KEPT; i++)
        if (live[i])
            memcpy(live[i], elastic->saved[i], state_bytes(elastic->run));
    forget_optimizer(elastic->run);
    gyre_nn_optimizer_set_steps(elastic->run->optimizer, elastic->optimizer_steps);
}

/* All has arrived: parameters and optimiser in their places, arrays in others. */
static void take_over(struct gy_nn_elastic *elastic, void *const live[GY_NN_KEPT],
                      const struct gyre_nn_position *position, uint64_t steps)
{
    for (int i = 0; i < GY_NN_KEPT; i++)
        if (live[i])
            memcpy(elastic->saved[i], live[i], state_bytes(elastic->run));
    for (size_t i = 0; i < GYRE_NN_MOST_ARRAYS; i++) {
        void *saved = elastic->arrays[i].saved;
        elastic->arrays[i].saved = elastic->arrays[i].arriving;
        elastic->arrays[i].arriving = saved;
    }
    elastic->position = *position;
    elastic->optimizer_steps = steps;
    elastic->valid = true;
    gy_nn_elastic_restore(elastic);
}

/* It goes into the model, which holds nothing of worth, and counts when all is there. */
gyre_status gy_nn_elastic_spread(struct gy_nn_elastic *elastic, gyre_comm *comm, int source)
{
    struct gyre_nn_run *run = elastic->run;
    struct gyre_nn_position position = elastic->position;
    uint64_t steps = elastic->optimizer_steps;
    void *live[GY_NN_KEPT];
    list(elastic, live);
    gyre_status status = gyre_broadcast(comm, &position, &position, sizeof(position), GYRE_UINT8, source);
    status = status ? status : gyre_broadcast(comm, &steps, &steps, 1, GYRE_UINT64, source);
    for (int i = 0; i < GY_NN_KEPT && status == GYRE_SUCCESS; i++)
        if (live[i])
            status = gyre_broadcast(comm, elastic->saved[i], live[i], gyre_nn_param_count(run->model),
                                    gyre_nn_dtype(run->model), source);
    for (size_t i = 0; i < GYRE_NN_MOST_ARRAYS && status == GYRE_SUCCESS; i++)
        if (elastic->arrays[i].bytes > 0)
            status = gyre_broadcast(comm, elastic->arrays[i].saved, elastic->arrays[i].arriving,
                                    elastic->arrays[i].bytes, GYRE_UINT8, source);
    if (status != GYRE_SUCCESS)
        return gy_nn_fail_comm(status, comm, "handing on the state of the run");
    take_over(elastic, live, &position, steps);
    return GYRE_SUCCESS;
}

gyre_status gy_nn_elastic_begin(struct gy_nn_elastic *elastic)
{
    struct gyre_nn_run *run = elastic->run, now = *run;
    run->comm = NULL;
    run->rank = 0;
    run->ranks = 1;
    gyre_status status = run->strategy->open(run, &run->self);
    if (status == GYRE_SUCCESS && elastic->resume)
        status = gy_nn_run_resume(run, elastic->resume, &(struct gy_nn_best){.params = elastic->best},
                                  &elastic->position);
    status = status ? status : gy_nn_elastic_save(elastic, &elastic->position);
    gy_nn_elastic_leave(elastic);
    run->comm = now.comm;
    run->rank = now.rank;
    run->ranks = now.ranks;
    return status;
}

/* Writes the saved state as the file of a run of one rank. A run of any number of ranks can resume from it. The
 * model's memory is needed for the description of the model in the file. */
static gyre_status write_file(struct gy_nn_elastic *elastic, const char *path, const struct gyre_nn_position *position,
                              const struct gy_nn_best *best)
{
    struct gyre_nn_run *run = elastic->run, alone = *run;
    const struct gy_nn_best then = {.params = elastic->saved[GY_NN_KEPT_BEST]};
    void *params = gyre_nn_params(run->model), *live = malloc(state_bytes(run));
    if (!live)
        return gy_nn_fail(GYRE_NO_MEMORY, "no memory for a checkpoint");
    alone.comm = NULL;
    alone.rank = 0;
    alone.ranks = 1;
    alone.self = NULL;
    memcpy(live, params, state_bytes(run));
    memcpy(params, elastic->saved[0], state_bytes(run));
    gyre_status status = run->strategy->open(&alone, &alone.self);
    elastic->run = &alone;
    status = status ? status : gy_nn_elastic_copy_arrays(elastic, true);
    status = status         ? status
             : best->stands ? gy_nn_run_save(&alone, path, position, best)
                            : gy_nn_run_save(&alone, path, &elastic->position, &then);
    elastic->run = run;
    if (alone.self)
        run->strategy->close(alone.self);
    memcpy(params, live, state_bytes(run));
    free(live);
    return status;
}

gyre_status gy_nn_elastic_checkpoint(struct gy_nn_elastic *elastic, const char *path,
                                     const struct gyre_nn_position *position, const struct gy_nn_best *best)
{
    struct gyre_nn_run *run = elastic->run;
    if (!apart(run))
        return gy_nn_run_save(run, path, position, best);
    gyre_status status = run->rank == 0 ? write_file(elastic, path, position, best) : GYRE_SUCCESS;
    return gy_nn_agree_ready(run->comm, status);
}

gyre_status gy_nn_elastic_make_memory(struct gy_nn_elastic *elastic)
{
    const struct gyre_nn_run *run = elastic->run;
    struct gyre_nn_array arrays[GYRE_NN_MOST_ARRAYS];
    void *live[GY_NN_KEPT];
    size_t n = 0;
    bool ok = true;
    gyre_status status = run->strategy->arrays ? run->strategy->arrays(run->self, arrays, &n) : GYRE_SUCCESS;
    if (status != GYRE_SUCCESS)
        return status;
    list(elastic, live);
    for (int i = 0; i < GY_NN_KEPT; i++)
        if (live[i])
            ok = (elastic->saved[i] = malloc(state_bytes(run))) && ok;
    for (size_t i = 0; i < n; i++) {
        struct gy_nn_kept *kept = &elastic->arrays[i];
        if (arrays[i].placement != GYRE_NN_REPLICATED || arrays[i].count == 0)
            continue;
        kept->bytes = arrays[i].count * gyre_dtype_size(arrays[i].dtype);
        kept->saved = malloc(kept->bytes);
        kept->arriving = malloc(kept->bytes);
        ok = kept->saved && kept->arriving && ok;
    }
    return ok ? GYRE_SUCCESS : gy_nn_fail(GYRE_NO_MEMORY, "no memory for the state to go back to");
}

void gy_nn_elastic_free_memory(struct gy_nn_elastic *elastic)
{
    for (int i = 0; i < GY_NN_KEPT; i++)
        free(elastic->saved[i]);
    for (size_t i = 0; i < GYRE_NN_MOST_ARRAYS; i++) {
        free(elastic->arrays[i].saved);
        free(elastic->arrays[i].arriving);
    }
}
