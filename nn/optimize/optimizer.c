/* Optimisers. A step is `begin` once and then `update` for slices that cover the parameters once, in any order: every
 * formula works on one element at a time, so a slice can be updated as soon as its gradients are there. */
#include "optimize/optimizer.h"

#include "base/error.h"
#include "base/require.h"

#include <math.h>
#include <stdlib.h>

static int slot_count(gyre_nn_optimizer_kind kind)
{
    switch (kind) {
    case GYRE_NN_MOMENTUM:
    case GYRE_NN_NESTEROV: return 1;
    case GYRE_NN_ADAM:
    case GYRE_NN_ADAMW: return 2;
    default: return 0;
    }
}

struct gyre_nn_optimizer_config gyre_nn_optimizer_defaults(gyre_nn_optimizer_kind kind)
{
    return (struct gyre_nn_optimizer_config){
        .kind = kind,
        .momentum = 0.9,
        .beta1 = 0.9,
        .beta2 = 0.999,
        .epsilon = 1e-8,
        .weight_decay = kind == GYRE_NN_ADAMW ? 0.01 : 0,
    };
}

gyre_status gyre_nn_optimizer_create(gyre_nn_model *model, const struct gyre_nn_optimizer_config *config,
                                     gyre_nn_optimizer **optimizer_p)
{
    GY_NN_REQUIRE(model, config, optimizer_p);
    return gyre_nn_optimizer_create_part(model, config, 0, model->count, optimizer_p);
}

static bool is_fraction(double value)
{
    return value >= 0 && value < 1;
}

gyre_status gyre_nn_optimizer_create_part(gyre_nn_model *model, const struct gyre_nn_optimizer_config *config,
                                          size_t first, size_t count, gyre_nn_optimizer **optimizer_p)
{
    GY_NN_REQUIRE(model, config, optimizer_p);
    if (first > model->count || count > model->count - first)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "parameters %zu to %zu of a model of %zu", first, first + count,
                          model->count);
    if ((unsigned)config->kind > GYRE_NN_ADAMW)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "there is no optimiser number %d", (int)config->kind);
    if (!is_fraction(config->momentum) || !is_fraction(config->beta1) || !is_fraction(config->beta2) ||
        !(config->epsilon >= 0) || !(config->weight_decay >= 0 && isfinite(config->weight_decay)))
        return gy_nn_fail(
            GYRE_INVALID_ARGUMENT,
            "an optimiser's momentum %g, beta1 %g and beta2 %g have to be from 0 to below 1, its epsilon %g and "
            "weight_decay %g at least 0",
            config->momentum, config->beta1, config->beta2, config->epsilon, config->weight_decay);
    gyre_nn_optimizer *optimizer = calloc(1, sizeof(*optimizer));
    if (!optimizer)
        return gy_nn_fail(GYRE_NO_MEMORY, "no memory for an optimiser");
    optimizer->model = model;
    optimizer->config = *config;
    optimizer->first = first;
    optimizer->count = count;
    for (int i = 0; i < slot_count(config->kind); i++) {
        optimizer->slots[i] = model->backend->alloc(count * model->backend->element);
        if (!optimizer->slots[i]) {
            gyre_nn_optimizer_free(optimizer);
            return gy_nn_fail(GYRE_NO_MEMORY, "no memory for the optimiser's state of %zu parameters", count);
        }
    }
    *optimizer_p = optimizer;
    return GYRE_SUCCESS;
}

gyre_status gy_nn_optimizer_check_whole(const gyre_nn_optimizer *optimizer, const gyre_nn_model *model,
                                        const char *what)
{
    if (!optimizer || optimizer->count == model->count)
        return GYRE_SUCCESS;
    return gy_nn_fail(GYRE_INVALID_ARGUMENT,
                      "%s needs the optimiser of a whole model, of %zu parameters here, and this one is of %zu", what,
                      model->count, optimizer->count);
}

void gyre_nn_optimizer_free(gyre_nn_optimizer *optimizer)
{
    if (!optimizer)
        return;
    for (int i = 0; i < 2; i++)
        optimizer->model->backend->release(optimizer->slots[i]);
    free(optimizer);
}

void gyre_nn_optimizer_begin(gyre_nn_optimizer *optimizer)
{
    GY_NN_REQUIRE_VOID(optimizer);
    optimizer->steps++;
}

#define TRACKING 0.1 /* share of a batch in the statistics that run along */

static void move(const gyre_nn_optimizer *optimizer, const struct gy_nn_update *update, size_t first, size_t count)
{
    const gyre_nn_model *model = optimizer->model;
    void *params = gy_nn_at(model, model->params, first);
    const void *grads = gy_nn_at(model, model->grads, first);
    void *slots[2];
    for (int i = 0; i < 2; i++)
        slots[i] = optimizer->slots[i] ? gy_nn_at(model, optimizer->slots[i], first - optimizer->first) : NULL;
    if (slot_count(optimizer->config.kind) == 2)
        model->backend->adam(update, count, params, grads, slots[0], slots[1]);
    else
        model->backend->sgd(update, count, params, grads, slots[0]);
}

/* Statistics move by their own rule, and the parameters between them by the optimiser's. */
static void move_all(const gyre_nn_optimizer *optimizer, const struct gy_nn_update *update, size_t first, size_t count)
{
    const gyre_nn_model *model = optimizer->model;
    const struct gy_nn_update tracking = {.rate = TRACKING, .scale = update->scale};
    size_t from = first, at = first, low, high;
    while (gy_nn_next_statistic(model, first + count, &at, &low, &high)) {
        move(optimizer, update, from, low - from);
        model->backend->sgd(&tracking, high - low, gy_nn_at(model, model->params, low),
                            gy_nn_at(model, model->grads, low), NULL);
        from = high;
    }
    move(optimizer, update, from, first + count - from);
}

void gyre_nn_optimizer_update(gyre_nn_optimizer *optimizer, size_t first, size_t count, double rate, double scale)
{
    GY_NN_REQUIRE_VOID(optimizer);
    if (!isfinite(rate) || !isfinite(scale)) {
        gy_nn_fail(GYRE_INVALID_ARGUMENT, "gyre_nn_optimizer_update: rate %g and scale %g have to be finite", rate,
                   scale);
        return;
    }
    if (first < optimizer->first || count > optimizer->count || first - optimizer->first > optimizer->count - count) {
        (void)gy_nn_fail(GYRE_INVALID_ARGUMENT,
                         "gyre_nn_optimizer_update: parameters from %zu on, %zu of them, are not "
                         "all the optimiser's, which has %zu from %zu on",
                         first, count, optimizer->count, optimizer->first);
        return;
    }
    const struct gyre_nn_optimizer_config *config = &optimizer->config;
    double steps = (double)optimizer->steps;
    struct gy_nn_update update = {
        .rate = rate,
        .scale = scale,
        .weight_decay = config->weight_decay,
        .momentum = config->momentum,
        .beta1 = config->beta1,
        .beta2 = config->beta2,
        .epsilon = config->epsilon,
        .correction1 = 1 - pow(config->beta1, steps),
        .correction2 = 1 - pow(config->beta2, steps),
        .nesterov = config->kind == GYRE_NN_NESTEROV,
        .decoupled = config->kind == GYRE_NN_ADAMW,
    };
    move_all(optimizer, &update, first, count);
}

void *gyre_nn_optimizer_state(const gyre_nn_optimizer *optimizer, int slot)
{
    GY_NN_REQUIRE_OR(NULL, optimizer);
    gyre_nn_settle(optimizer->model);
    return slot == 0 || slot == 1 ? optimizer->slots[slot] : NULL;
}

uint64_t gyre_nn_optimizer_steps(const gyre_nn_optimizer *optimizer)
{
    GY_NN_REQUIRE_OR(0, optimizer);
    return optimizer->steps;
}

void gyre_nn_optimizer_set_steps(gyre_nn_optimizer *optimizer, uint64_t steps)
{
    GY_NN_REQUIRE_VOID(optimizer);
    optimizer->steps = steps;
}

gyre_nn_optimizer_kind gyre_nn_optimizer_get_kind(const gyre_nn_optimizer *optimizer)
{
    GY_NN_REQUIRE_OR(GYRE_NN_SGD, optimizer);
    return optimizer->config.kind;
}
