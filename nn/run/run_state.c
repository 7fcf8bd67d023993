/* A run's state, from all ranks to one file and back.
 *
 *     replicated   rank 0's ─────────────────▶ [count]            ─▶ broadcast
 *     local        gathered in rank order ───▶ [ranks × count]    ─▶ scattered
 *     sharded      gathered, of unequal parts ▶ [count]           ─▶ scattered
 *
 * Rank 0 has `whole` arrays of these shapes, and the file is theirs; the parameters in it, by their names, are the
 * consensus, which is a model to use. Every rank learns whether rank 0 could read or write. */
#include "run/run_state.h"

#include "base/error.h"
#include "base/ready.h"
#include "base/require.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct state {
    struct gyre_nn_array own[GYRE_NN_MOST_ARRAYS + 5], whole[GYRE_NN_MOST_ARRAYS + 5];
    size_t n;
    double steps; /* the optimiser's, where they may differ from rank to rank */
    size_t *counts;
};

static size_t bytes_of(const struct gyre_nn_array *array)
{
    return array->count * gyre_dtype_size(array->dtype);
}

static void add(struct state *state, const char *name, void *data, size_t count, gyre_dtype dtype,
                gyre_nn_placement placement)
{
    struct gyre_nn_array *array = &state->own[state->n++];
    *array = (struct gyre_nn_array){.data = data, .count = count, .dtype = dtype, .placement = placement};
    snprintf(array->name, sizeof(array->name), "%s", name);
}

/* Files hold no other types. */
static gyre_status check_types(const gyre_nn_strategy *strategy, const struct state *state)
{
    for (size_t i = 0; i < state->n; i++)
        if (state->own[i].dtype != GYRE_FLOAT32 && state->own[i].dtype != GYRE_FLOAT64)
            return gy_nn_fail(GYRE_INVALID_ARGUMENT, "strategy %s: the array %.31s is neither float32 nor float64",
                              strategy->name, state->own[i].name);
    return GYRE_SUCCESS;
}

/* The optimiser's state is listed where it is not replicated; else it is in the file as it always was. */
static gyre_status list(struct gyre_nn_run *run, const struct gy_nn_best *best, struct state *state)
{
    static const char *const slots[] = {"optimizer.0", "optimizer.1"};
    const gyre_nn_strategy *strategy = run->strategy;
    size_t count = gyre_nn_param_count(run->model);
    gyre_dtype dtype = gyre_nn_dtype(run->model);
    gyre_status status = gyre_nn_settle(run->model);
    if (status == GYRE_SUCCESS && strategy->arrays)
        status = strategy->arrays(run->self, state->own, &state->n);
    status = status ? status : check_types(strategy, state);
    if (status != GYRE_SUCCESS)
        return status;
    if (strategy->params == GYRE_NN_LOCAL)
        add(state, "local.params", gyre_nn_params(run->model), count, dtype, GYRE_NN_LOCAL);
    for (int slot = 0; slot < 2 && strategy->optimizer != GYRE_NN_REPLICATED; slot++)
        if (gyre_nn_optimizer_state(run->optimizer, slot))
            add(state, slots[slot], gyre_nn_optimizer_state(run->optimizer, slot), count, dtype, strategy->optimizer);
    state->steps = (double)gyre_nn_optimizer_steps(run->optimizer);
    if (strategy->optimizer != GYRE_NN_REPLICATED)
        add(state, "optimizer.steps", &state->steps, 1, GYRE_FLOAT64, GYRE_NN_LOCAL);
    if (best->params)
        add(state, GY_NN_BEST_NAME, best->params, count, dtype, GYRE_NN_REPLICATED);
    return GYRE_SUCCESS;
}

/* Memory for the whole arrays, on rank 0 alone. */
static gyre_status make_whole(const struct gyre_nn_run *run, struct state *state)
{
    state->counts = calloc((size_t)run->ranks, sizeof(*state->counts));
    bool ok = state->counts != NULL;
    for (size_t i = 0; i < state->n && ok; i++) {
        struct gyre_nn_array *whole = &state->whole[i];
        *whole = state->own[i];
        whole->count *= whole->placement == GYRE_NN_LOCAL ? (size_t)run->ranks : 1;
        whole->data = run->rank == 0 ? calloc(whole->count + 1, gyre_dtype_size(whole->dtype)) : NULL;
        ok = run->rank != 0 || whole->data;
    }
    return ok ? GYRE_SUCCESS : gy_nn_fail(GYRE_NO_MEMORY, "no memory for the state of %d ranks", run->ranks);
}

static void free_state(struct state *state)
{
    for (size_t i = 0; i < state->n; i++)
        free(state->whole[i].data);
    free(state->counts);
}

static const size_t *shards(const struct gyre_nn_run *run, struct state *state, size_t count)
{
    size_t first;
    for (int r = 0; r < run->ranks; r++)
        gyre_nn_shard(count, r, run->ranks, &first, &state->counts[r]);
    return state->counts;
}

static gyre_status collect(const struct gyre_nn_run *run, struct state *state)
{
    gyre_status status = GYRE_SUCCESS;
    for (size_t i = 0; i < state->n && status == GYRE_SUCCESS; i++) {
        const struct gyre_nn_array *own = &state->own[i], *whole = &state->whole[i];
        if (run->comm && own->placement == GYRE_NN_LOCAL)
            status = gyre_gather(run->comm, own->data, whole->data, own->count, own->dtype, 0);
        else if (run->comm && own->placement == GYRE_NN_SHARDED)
            status = gyre_gatherv(run->comm, own->data, whole->data, shards(run, state, own->count), NULL, own->dtype,
                                  0);
        else if (run->rank == 0)
            memcpy(whole->data, own->data, bytes_of(own));
    }
    return status ? gy_nn_fail_comm(status, run->comm, "gathering the state of the ranks") : status;
}

static gyre_status spread(const struct gyre_nn_run *run, struct state *state)
{
    gyre_status status = GYRE_SUCCESS;
    for (size_t i = 0; i < state->n && status == GYRE_SUCCESS; i++) {
        const struct gyre_nn_array *own = &state->own[i], *whole = &state->whole[i];
        if (!run->comm)
            memcpy(own->data, whole->data, bytes_of(own));
        else if (own->placement == GYRE_NN_LOCAL)
            status = gyre_scatter(run->comm, whole->data, own->data, own->count, own->dtype, 0);
        else if (own->placement == GYRE_NN_SHARDED)
            status = gyre_scatterv(run->comm, whole->data, shards(run, state, own->count), NULL, own->data, own->dtype,
                                   0);
        else
            status = gyre_broadcast(run->comm, whole->data, own->data, own->count, own->dtype, 0);
    }
    return status ? gy_nn_fail_comm(status, run->comm, "spreading the state of the ranks") : status;
}

static const gyre_nn_optimizer *replicated_optimizer(const struct gyre_nn_run *run)
{
    return run->strategy->optimizer == GYRE_NN_REPLICATED ? run->optimizer : NULL;
}

static bool is_finite(const gyre_nn_model *model)
{
    const void *params = gyre_nn_params(model);
    size_t count = gyre_nn_param_count(model), i = 0;
    if (gyre_nn_dtype(model) == GYRE_FLOAT64)
        while (i < count && isfinite(((const double *)params)[i]))
            i++;
    else
        while (i < count && isfinite(((const float *)params)[i]))
            i++;
    return i == count;
}

/* On rank 0, between show and hide. A run that has diverged does not overwrite the checkpoint of before. A run with
 * patience that has seen a good model will return to that one, and writes. */
static gyre_status write_model(struct gyre_nn_run *run, const char *path, const struct gyre_nn_position *position,
                               const struct gy_nn_best *best, struct state *state)
{
    size_t bytes = gyre_nn_param_count(run->model) * gyre_dtype_size(gyre_nn_dtype(run->model));
    void *params = gyre_nn_params(run->model), *shown = NULL;
    bool good = best->params && position->best > 0;
    if (!good && !is_finite(run->model))
        return gy_nn_fail(
            GYRE_INVALID_ARGUMENT,
            "after step %llu the parameters are no finite numbers any more, and %s is left as it is: take a "
            "smaller learning rate, or clip gradients",
            (unsigned long long)position->step, path);
    if (best->stands) {
        shown = malloc(bytes);
        if (!shown)
            return gy_nn_fail(GYRE_NO_MEMORY, "no memory to write the best model");
        memcpy(shown, params, bytes);
        memcpy(params, best->params, bytes);
    }
    gyre_status status = gy_nn_checkpoint_write_run(path, run, position, state->whole, state->n);
    if (shown)
        memcpy(params, shown, bytes);
    free(shown);
    return status;
}

gyre_status gy_nn_run_save(struct gyre_nn_run *run, const char *path, const struct gyre_nn_position *position,
                           const struct gy_nn_best *best)
{
    struct state state = {0};
    gyre_status status = list(run, best, &state);
    if (status != GYRE_SUCCESS)
        return status;
    status = gy_nn_agree_ready(run->comm, make_whole(run, &state));
    status = status ? status : collect(run, &state);
    status = status ? status : gyre_nn_run_show(run);
    if (status == GYRE_SUCCESS) {
        if (run->rank == 0)
            status = write_model(run, path, position, best, &state);
        gyre_nn_run_hide(run);
        status = gy_nn_agree_ready(run->comm, status);
    }
    free_state(&state);
    return status;
}

gyre_status gyre_nn_run_save(struct gyre_nn_run *run, const char *path, const struct gyre_nn_position *position)
{
    GY_NN_REQUIRE(run, path, position);
    GY_NN_REQUIRE(run->model, run->strategy);
    return gy_nn_run_save(run, path, position, &(struct gy_nn_best){0});
}

/* Parameters, the replicated optimiser, position. */
static gyre_status spread_rest(struct gyre_nn_run *run, struct gyre_nn_position *position)
{
    void *slots[3] = {gyre_nn_params(run->model), NULL, NULL};
    uint64_t steps = gyre_nn_optimizer_steps(run->optimizer);
    gyre_status status = gyre_broadcast(run->comm, position, position, sizeof(*position) / 4, GYRE_INT32, 0);
    status = status ? status : gyre_broadcast(run->comm, &steps, &steps, 1, GYRE_UINT64, 0);
    for (int i = 0; i < 2 && replicated_optimizer(run); i++)
        slots[i + 1] = gyre_nn_optimizer_state(run->optimizer, i);
    for (int i = 0; i < 3 && status == GYRE_SUCCESS; i++)
        if (slots[i])
            status = gyre_broadcast(run->comm, slots[i], slots[i], gyre_nn_param_count(run->model),
                                    gyre_nn_dtype(run->model), 0);
    if (status != GYRE_SUCCESS)
        return gy_nn_fail_comm(status, run->comm, "the broadcast of the position");
    gyre_nn_optimizer_set_steps(run->optimizer, steps);
    return GYRE_SUCCESS;
}

gyre_status gy_nn_run_resume(struct gyre_nn_run *run, const char *path, const struct gy_nn_best *best,
                             struct gyre_nn_position *position_p)
{
    struct state state = {0};
    struct gyre_nn_position position = {0};
    gyre_status status = list(run, best, &state);
    if (status != GYRE_SUCCESS)
        return status;
    status = gy_nn_agree_ready(run->comm, make_whole(run, &state));
    if (status == GYRE_SUCCESS) {
        if (run->rank == 0)
            status = gy_nn_checkpoint_read_run(path, run, &position, state.whole, state.n);
        status = gy_nn_agree_ready(run->comm, status);
    }
    if (status == GYRE_SUCCESS && run->comm)
        status = spread_rest(run, &position);
    status = status ? status : spread(run, &state);
    if (status == GYRE_SUCCESS) {
        if (!replicated_optimizer(run))
            gyre_nn_optimizer_set_steps(run->optimizer, (uint64_t)state.steps);
        *position_p = position;
    }
    free_state(&state);
    return status;
}

gyre_status gyre_nn_run_resume(struct gyre_nn_run *run, const char *path, struct gyre_nn_position *position_p)
{
    GY_NN_REQUIRE(run, path, position_p);
    GY_NN_REQUIRE(run->model, run->strategy);
    return gy_nn_run_resume(run, path, &(struct gy_nn_best){0}, position_p);
}
