/* A run: model, optimiser and strategy, opened together on every rank.
 * Invariant: where the strategy's parameters are local, the model holds this rank's own, except between show and hide,
 * when it holds the consensus and `shown` the own ones. */
#include "base/error.h"
#include "base/ready.h"
#include "base/require.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static size_t param_bytes(const struct gyre_nn_run *run)
{
    return gyre_nn_param_count(run->model) * gyre_dtype_size(gyre_nn_dtype(run->model));
}

static gyre_status check(const gyre_nn_strategy *strategy)
{
    if (strategy->size != sizeof(*strategy) || !strategy->name || !strategy->open || !strategy->close ||
        !strategy->update)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT,
                          "a strategy needs its size, a name, and the hooks open, close and update");
    if (strategy->params == GYRE_NN_SHARDED || (strategy->params == GYRE_NN_LOCAL && !strategy->consensus))
        return gy_nn_fail(GYRE_INVALID_ARGUMENT,
                          "strategy %s: parameters are replicated, or local with the hook consensus", strategy->name);
    return GYRE_SUCCESS;
}

static gyre_status make_optimizer(struct gyre_nn_run *run, const struct gyre_nn_optimizer_config *config)
{
    size_t first = 0, count = gyre_nn_param_count(run->model);
    if (run->strategy->optimizer == GYRE_NN_SHARDED)
        gyre_nn_shard(count, run->rank, run->ranks, &first, &count);
    return gyre_nn_optimizer_create_part(run->model, config, first, count, &run->optimizer);
}

static gyre_status share_params(const struct gyre_nn_run *run)
{
    void *params = gyre_nn_params(run->model);
    if (run->ranks == 1)
        return GYRE_SUCCESS;
    gyre_nn_share_cores(run->comm);
    gyre_status status = gyre_broadcast(run->comm, params, params, gyre_nn_param_count(run->model),
                                        gyre_nn_dtype(run->model), 0);
    return status ? gy_nn_fail_comm(status, run->comm, "the broadcast of the first parameters") : status;
}

gyre_status gyre_nn_run_open(gyre_nn_model *model, gyre_comm *comm, const struct gyre_nn_optimizer_config *optimizer,
                             const gyre_nn_strategy *strategy, const char *settings, size_t bucket_bytes,
                             double clip_norm, struct gyre_nn_run *run)
{
    GY_NN_REQUIRE(model, optimizer, run);
    if (!(clip_norm >= 0))
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "gyre_nn_run_open: clip_norm is %g: it is a norm, or 0", clip_norm);
    *run = (struct gyre_nn_run){.model = model, .bucket_bytes = bucket_bytes, .clip_norm = clip_norm};
    run->strategy = strategy ? strategy : gyre_nn_strategy_find("sync");
    run->ranks = comm ? gyre_comm_size(comm) : 1;
    run->rank = comm ? gyre_comm_rank(comm) : 0;
    run->comm = run->ranks > 1 ? comm : NULL;
    gyre_status status = check(run->strategy);
    status = status ? status : gyre_nn_strategy_parse(run->strategy, settings, run->settings);
    status = status ? status : make_optimizer(run, optimizer);
    status = gy_nn_agree_ready(run->comm, status);
    status = status ? status : share_params(run);
    status = status ? status : run->strategy->open(run, &run->self);
    if (status != GYRE_SUCCESS)
        gyre_nn_run_close(run);
    return status;
}

void gyre_nn_run_close(struct gyre_nn_run *run)
{
    GY_NN_REQUIRE_VOID(run);
    gyre_nn_run_hide(run);
    if (run->self)
        run->strategy->close(run->self);
    gyre_nn_optimizer_free(run->optimizer);
    run->self = NULL;
    run->optimizer = NULL;
}

gyre_status gyre_nn_run_show(struct gyre_nn_run *run)
{
    GY_NN_REQUIRE(run);
    GY_NN_REQUIRE(run->model, run->strategy);
    size_t bytes = param_bytes(run);
    if (run->strategy->params != GYRE_NN_LOCAL || run->shown)
        return GYRE_SUCCESS;
    void *consensus = malloc(bytes), *own = malloc(bytes);
    gyre_status status = GYRE_NO_MEMORY;
    if (consensus && own)
        status = run->strategy->consensus(run->self, consensus);
    else
        gy_nn_fail(status, "no memory for a consensus");
    if (status == GYRE_SUCCESS) {
        run->shown = memcpy(own, gyre_nn_params(run->model), bytes);
        memcpy(gyre_nn_params(run->model), consensus, bytes);
        own = NULL;
    }
    free(consensus);
    free(own);
    return status;
}

void gyre_nn_run_hide(struct gyre_nn_run *run)
{
    GY_NN_REQUIRE_VOID(run);
    if (!run->shown)
        return;
    memcpy(gyre_nn_params(run->model), run->shown, param_bytes(run));
    free(run->shown);
    run->shown = NULL;
}

/* The state of which every rank should have the same bits. */
static gyre_status hash_state(struct gyre_nn_run *run, uint64_t *hash_p)
{
    struct gyre_nn_array arrays[GYRE_NN_MOST_ARRAYS];
    size_t n = 0, bytes = param_bytes(run);
    gyre_status status = gyre_nn_settle(run->model);
    if (status == GYRE_SUCCESS && run->strategy->arrays)
        status = run->strategy->arrays(run->self, arrays, &n);
    uint64_t hash = run->strategy->params == GYRE_NN_REPLICATED ? gyre_nn_params_hash(run->model) : 0;
    for (int slot = 0; slot < 2 && run->strategy->optimizer == GYRE_NN_REPLICATED; slot++)
        if (gyre_nn_optimizer_state(run->optimizer, slot))
            hash = XXH3_64bits_withSeed(gyre_nn_optimizer_state(run->optimizer, slot), bytes, hash);
    for (size_t i = 0; i < n && status == GYRE_SUCCESS; i++)
        if (arrays[i].placement == GYRE_NN_REPLICATED)
            hash = XXH3_64bits_withSeed(arrays[i].data, arrays[i].count * gyre_dtype_size(arrays[i].dtype), hash);
    *hash_p = hash;
    return status;
}

/* The value that most ranks have; of several such, that of the lowest rank. */
static uint64_t commonest(const uint64_t *hashes, int ranks)
{
    int most = 0, best = 0;
    for (int i = 0; i < ranks; i++) {
        int same = 0;
        for (int j = 0; j < ranks; j++)
            same += hashes[j] == hashes[i];
        if (same > most) {
            most = same;
            best = i;
        }
    }
    return hashes[best];
}

static gyre_status compare_hashes(const uint64_t *hashes, int ranks)
{
    uint64_t right = commonest(hashes, ranks);
    char names[256] = "";
    size_t used = 0, wrong = 0;
    for (int i = 0; i < ranks; i++)
        if (hashes[i] != right && wrong++ < 16)
            used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%d", used ? ", " : "", i);
    if (wrong == 0)
        return GYRE_SUCCESS;
    return gy_nn_fail(GYRE_MISMATCH, "the state of %zu of %d ranks differs from that of most others: rank %s%s", wrong,
                      ranks, names, wrong > 16 ? ", …" : "");
}

gyre_status gyre_nn_run_compare(struct gyre_nn_run *run)
{
    GY_NN_REQUIRE(run);
    GY_NN_REQUIRE(run->model, run->strategy);
    uint64_t mine;
    if (run->ranks == 1 || run->strategy->apart)
        return GYRE_SUCCESS;
    gyre_status status = hash_state(run, &mine);
    if (status != GYRE_SUCCESS)
        return status;
    uint64_t *all = calloc((size_t)run->ranks, sizeof(*all));
    if (!all)
        return gy_nn_fail(GYRE_NO_MEMORY, "no memory to compare %d ranks", run->ranks);
    status = gyre_all_gather(run->comm, &mine, all, 1, GYRE_UINT64);
    status = status ? gy_nn_fail_comm(status, run->comm, "comparing the ranks") : compare_hashes(all, run->ranks);
    free(all);
    return status;
}
