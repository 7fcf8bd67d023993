/* A model's life, and forward and backward over its modules.
 * Invariant: backward finishes gradients from the arena's end downwards, so after a module with parameters everything
 * at or above its offset is final; that is what `passed` announces, before the gradient goes on to the module below.
 * Parameters, gradients and what belongs to them are settled before a caller gets them. A forward settles module by
 * module, and everything before it returns; gyre_nn_settle does the rest. */
#include "model/model.h"

#include "base/error.h"
#include "base/require.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

gyre_nn_model *gy_nn_model_alloc(size_t nmodules)
{
    gyre_nn_model *model = calloc(1, sizeof(*model));
    if (!model)
        return NULL;
    model->modules = calloc(nmodules, sizeof(*model->modules));
    model->tensors = calloc(GY_NN_MOST_TENSORS * nmodules, sizeof(*model->tensors));
    model->starts = calloc(GY_NN_MOST_TENSORS * nmodules, sizeof(*model->starts));
    model->stale = calloc(nmodules, sizeof(*model->stale));
    model->slot_of = calloc(nmodules + 1, sizeof(*model->slot_of));
    model->slot_size = calloc(nmodules + 1, sizeof(*model->slot_size));
    model->nmodules = nmodules;
    if (!model->modules || !model->tensors || !model->starts || !model->stale || !model->slot_of || !model->slot_size) {
        gyre_nn_free(model);
        return NULL;
    }
    return model;
}

gyre_status gy_nn_model_finish(gyre_nn_model *model)
{
    gyre_status status = gy_nn_layout_make(model);
    if (status != GYRE_SUCCESS)
        return status;
    size_t bytes = model->count * model->backend->element;
    model->params = model->backend->alloc(bytes);
    model->grads = model->own_grads = model->backend->alloc(bytes);
    if (!model->params || !model->grads)
        return gy_nn_fail(GYRE_NO_MEMORY, "no memory for a model of %zu parameters; make it smaller", model->count);
    return GYRE_SUCCESS;
}

void gyre_nn_free(gyre_nn_model *model)
{
    if (!model)
        return;
    if (model->backend) {
        gy_nn_tape_free(model, &model->tape);
        gy_nn_work_free(model, &model->work);
        model->backend->release(model->params);
        model->backend->release(model->own_grads);
    }
    free(model->modules);
    free(model->tensors);
    free(model->starts);
    free(model->stale);
    free(model->slot_of);
    free(model->slot_size);
    free(model);
}

gyre_status gyre_nn_clone(const gyre_nn_model *model, gyre_nn_model **model_p)
{
    GY_NN_REQUIRE(model, model_p);
    gyre_status status = gyre_nn_settle(model);
    if (status != GYRE_SUCCESS)
        return status;
    gyre_nn_model *copy = gy_nn_model_alloc(model->nmodules);
    if (!copy)
        return gy_nn_fail(GYRE_NO_MEMORY, "no memory for a copy of a model");
    copy->backend = model->backend;
    copy->cost = model->cost;
    copy->in = model->in;
    memcpy(copy->alphabet, model->alphabet, sizeof(copy->alphabet));
    for (size_t i = 0; i < model->nmodules; i++)
        copy->modules[i] = model->modules[i];
    status = gy_nn_model_finish(copy);
    if (status != GYRE_SUCCESS) {
        gyre_nn_free(copy);
        return status;
    }
    copy->backend->copy(copy->params, model->params, model->count * model->backend->element);
    *model_p = copy;
    return GYRE_SUCCESS;
}

static struct gy_nn_call call_of(const gyre_nn_model *model, const struct gy_nn_tape *tape, size_t index)
{
    const struct gy_nn_module *module = &model->modules[index];
    struct gy_nn_call call = {
        .backend = model->backend,
        .module = module,
        .index = index,
        .samples = tape->samples,
        .rows = tape->samples * module->in.time,
        .y = tape->y[index],
        .state = tape->state[index],
        .scratch = model->work.scratch,
        .packed = model->work.packed,
        .params = gy_nn_at(model, model->params, module->offset),
        .grads = gy_nn_at(model, model->grads, module->offset),
        .keep = 1,
        .draw = tape->draw,
        .gathering = tape->gathering,
        .answers = tape->samples * model->out.time,
    };
    for (size_t k = 0; k < module->ninputs; k++)
        call.x[k] = module->from[k] <= tape->first ? tape->outside[module->from[k]] : tape->y[module->from[k] - 1];
    return call;
}

/* What settling takes is no part of a forward's span, which goes on after it. */
static gyre_status settle(const gyre_nn_model *model, size_t first, size_t count, int64_t *start)
{
    if (!model->settle || count == 0)
        return GYRE_SUCCESS;
    gy_nn_trace_add(model->trace, GY_NN_SPAN_FORWARD, 0, *start);
    gyre_status status = model->settle(model->settle_user, first, count);
    *start = gy_nn_trace_now(model->trace);
    return status;
}

/* What modules gather over all ranks. A rank without samples takes part. */
static gyre_status gather(const struct gy_nn_call *call, gyre_status (*gathers)(const struct gy_nn_call *call))
{
    struct gy_nn_gathering *gathering = call->gathering;
    gyre_status status = GYRE_SUCCESS;
    if (!gathers || (call->samples == 0 && !gathering->comm))
        return status;
    if (!gathering->counted)
        status = gy_nn_gathering_count(gathering, call->samples);
    return status ? status : gathers(call);
}

static gyre_status run_forward(const gyre_nn_model *model, const struct gy_nn_tape *tape)
{
    gyre_status status = GYRE_SUCCESS;
    int64_t start = gy_nn_trace_now(model->trace);
    bool work = tape->samples > 0;
    for (size_t i = tape->first; i < tape->last; i++) {
        struct gy_nn_call call = call_of(model, tape, i);
        if (work)
            status = settle(model, call.module->offset, call.module->params, &start);
        if (status == GYRE_SUCCESS && work && call.module->ops->check)
            status = call.module->ops->check(&call);
        if (status == GYRE_SUCCESS && call.draw.training)
            status = gather(&call, call.module->ops->gather);
        if (status != GYRE_SUCCESS)
            return status;
        if (work)
            call.module->ops->forward(&call);
    }
    status = settle(model, 0, model->count, &start); /* modules that this range does not have */
    gy_nn_trace_add(model->trace, GY_NN_SPAN_FORWARD, 0, start);
    return status;
}

gyre_status gyre_nn_settle(const gyre_nn_model *model)
{
    GY_NN_REQUIRE(model);
    return model->settle ? model->settle(model->settle_user, 0, model->count) : GYRE_SUCCESS;
}

gyre_status gyre_nn_forward(gyre_nn_model *model, const void *x, size_t samples, const void **outputs_p)
{
    GY_NN_REQUIRE(model, x);
    return gy_nn_range_forward(model, &model->tape, 0, model->nmodules, x, samples, outputs_p);
}

gyre_status gy_nn_range_forward(gyre_nn_model *model, struct gy_nn_tape *tape, size_t first, size_t last, const void *x,
                                size_t samples, const void **outputs_p)
{
    tape->evaluated = tape->ready = tape->spent = false;
    gyre_status status = gy_nn_tape_reserve(model, tape, first, last, samples ? samples : 1);
    if (status == GYRE_SUCCESS)
        status = gy_nn_work_reserve(model, &model->work, samples ? samples : 1);
    if (status != GYRE_SUCCESS)
        return status;
    if (x)
        tape->outside[first] = x;
    memset(tape->have, 0, (model->nmodules + 1) * sizeof(*tape->have));
    tape->samples = samples;
    tape->draw = model->draw;
    tape->gathering->comm = tape == &model->tape && model->draw.training ? model->comm : NULL;
    tape->gathering->counted = false;
    status = run_forward(model, tape);
    if (status != GYRE_SUCCESS)
        return status;
    tape->ready = true;
    if (outputs_p)
        *outputs_p = tape->y[last - 1];
    return GYRE_SUCCESS;
}

static gyre_status check_labels(const gyre_nn_model *model, const int32_t *labels, size_t rows)
{
    for (size_t r = 0; r < rows; r++)
        if (labels[r] < 0 || (size_t)labels[r] >= model->out.features)
            return gy_nn_fail(GYRE_INVALID_ARGUMENT, "label %d of row %zu is outside the model's %zu outputs",
                              (int)labels[r], r, model->out.features);
    return GYRE_SUCCESS;
}

/* Modules keep gradients where forward has left what backward needs of it (lstm's gates). */
static gyre_status refuse_spent(const char *what)
{
    return gy_nn_fail(GYRE_INVALID_ARGUMENT, "%s after a backward: a forward is good for one, and another comes first",
                      what);
}

gyre_status gyre_nn_evaluate(gyre_nn_model *model, const int32_t *labels, const void *targets, double *cost_p,
                             size_t *correct_p)
{
    GY_NN_REQUIRE(model);
    return gy_nn_range_evaluate(model, &model->tape, labels, targets, cost_p, correct_p);
}

gyre_status gy_nn_range_evaluate(gyre_nn_model *model, struct gy_nn_tape *tape, const int32_t *labels,
                                 const void *targets, double *cost_p, size_t *correct_p)
{
    size_t rows = tape->samples * model->out.time;
    if (!tape->ready)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "gyre_nn_evaluate comes after gyre_nn_forward");
    if (tape->spent)
        return refuse_spent("gyre_nn_evaluate");
    if (model->cost->of_input && (!targets || tape->first == 0))
        targets = tape->outside[0];
    bool need = model->cost->needs_labels || !targets || correct_p;
    if (need && !labels && rows > 0)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "%s needs labels here", model->cost->name);
    if (labels) {
        gyre_status status = check_labels(model, labels, rows);
        if (status != GYRE_SUCCESS)
            return status;
    }
    const void *y = tape->y[model->nmodules - 1];
    void *dy = model->work.slots[model->slot_of[model->nmodules]];
    double cost = model->cost->evaluate(model->backend, rows, model->out.features, y, labels, targets, dy);
    cost += gy_nn_range_side_cost(model, tape);
    tape->evaluated = true;
    tape->have[model->nmodules] = true;
    if (correct_p)
        *correct_p = model->backend->count_correct(rows, model->out.features, y, labels);
    if (cost_p)
        *cost_p = cost;
    return GYRE_SUCCESS;
}

/* The first user of a value, from the top, writes its gradient; the others add to it. */
static void pass_down(const gyre_nn_model *model, const struct gy_nn_tape *tape, struct gy_nn_call *call)
{
    const struct gy_nn_module *module = call->module;
    void **spare = &model->work.slots[model->nslots];
    bool wanted = module->params > 0 && !module->ops->backward_params, adds[GY_NN_MOST_INPUTS] = {false};
    for (size_t k = 0; k < module->ninputs; k++) {
        size_t value = module->from[k];
        if (value == 0)
            continue;
        adds[k] = tape->have[value];
        call->dx[k] = adds[k] ? spare[k] : model->work.slots[model->slot_of[value]];
        wanted = tape->have[value] = true;
    }
    if (!wanted)
        return;
    module->ops->backward_input(call);
    for (size_t k = 0; k < module->ninputs; k++)
        if (adds[k])
            model->backend->add(call->samples * gy_nn_shape_size(gy_nn_shape_of(model, module->from[k])), spare[k],
                                model->work.slots[model->slot_of[module->from[k]]]);
}

/* Whether backward is to overwrite the gradients of a module: where it cannot they are set to 0. */
static bool forget(const gyre_nn_model *model, size_t index, bool overwrites)
{
    const struct gy_nn_module *module = &model->modules[index];
    bool stale = model->stale[index];
    model->stale[index] = false;
    if (stale && !overwrites)
        model->backend->zero(gy_nn_at(model, model->grads, module->offset), module->params * model->backend->element);
    return stale && overwrites;
}

static gyre_status backward_module(const gyre_nn_model *model, const struct gy_nn_tape *tape, size_t index,
                                   gyre_nn_passed_func passed, void *user)
{
    struct gy_nn_call call = call_of(model, tape, index);
    const struct gy_nn_module *module = call.module;
    bool split = module->ops->backward_params != NULL, work = call.samples > 0;
    call.dy = model->work.slots[model->slot_of[index + 1]];
    call.passed = passed;
    call.passed_user = user;
    call.keep = forget(model, index, work && module->ops->overwrites) ? 0 : 1;
    int64_t start = gy_nn_trace_now(model->trace);
    gyre_status status = gather(&call, module->ops->gather_backward);
    if (status != GYRE_SUCCESS)
        return status;
    if (split && work)
        module->ops->backward_params(&call);
    if (split && passed) {
        gy_nn_trace_add(model->trace, GY_NN_SPAN_BACKWARD, (int32_t)index, start);
        passed(user, module->offset);
        start = gy_nn_trace_now(model->trace);
    }
    if (work)
        pass_down(model, tape, &call);
    gy_nn_trace_add(model->trace, GY_NN_SPAN_BACKWARD, (int32_t)index, start);
    if (!split && module->params > 0 && passed)
        passed(user, module->offset);
    return GYRE_SUCCESS;
}

gyre_status gyre_nn_backward(gyre_nn_model *model, gyre_nn_passed_func passed, void *user)
{
    GY_NN_REQUIRE(model);
    return gy_nn_range_backward(model, &model->tape, NULL, passed, user, NULL);
}

gyre_status gy_nn_range_backward(gyre_nn_model *model, struct gy_nn_tape *tape, const void *dy,
                                 gyre_nn_passed_func passed, void *user, const void **dx_p)
{
    if (tape->ready && tape->spent)
        return refuse_spent("gyre_nn_backward");
    if (dy && tape->ready)
        gy_nn_range_gradient(model, tape, tape->last, dy);
    if (!tape->ready || !tape->have[tape->last])
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "gyre_nn_backward comes after gyre_nn_evaluate");
    tape->evaluated = false;
    tape->spent = true;
    for (size_t i = tape->last; i-- > tape->first;) {
        gyre_status status = backward_module(model, tape, i, passed, user);
        if (status != GYRE_SUCCESS)
            return status;
    }
    if (dx_p)
        *dx_p = tape->first > 0 ? model->work.slots[model->slot_of[tape->first]] : NULL;
    memset(tape->have, 0, (model->nmodules + 1) * sizeof(*tape->have));
    return GYRE_SUCCESS;
}

void gy_nn_range_gradient(gyre_nn_model *model, struct gy_nn_tape *tape, size_t value, const void *dy)
{
    size_t size = tape->samples * gy_nn_shape_size(gy_nn_shape_of(model, value));
    void *slot = model->work.slots[model->slot_of[value]];
    if (tape->have[value])
        model->backend->add(size, dy, slot);
    else
        model->backend->copy(slot, dy, size * model->backend->element);
    tape->have[value] = true;
}

double gy_nn_range_side_cost(const gyre_nn_model *model, const struct gy_nn_tape *tape)
{
    double cost = 0;
    for (size_t i = tape->first; i < tape->last && tape->samples > 0; i++) {
        struct gy_nn_call call = call_of(model, tape, i);
        cost += call.module->ops->cost ? call.module->ops->cost(&call) : 0;
    }
    return cost;
}

gyre_status gyre_nn_attention_weights(const gyre_nn_model *model, size_t sample, size_t step, double *weights,
                                      size_t room, size_t *count_p)
{
    GY_NN_REQUIRE(model, weights, count_p);
    size_t i = model->nmodules;
    while (i > 0 && model->modules[i - 1].ops != &gy_nn_attention)
        i--;
    if (i == 0 || !model->tape.ready || sample >= model->tape.samples || step >= model->modules[i - 1].in.time)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT,
                          i == 0 ? "this model has no attention layer to explain it"
                                 : "no sample %zu with a step %zu is in the last forward",
                          sample, step);
    struct gy_nn_call call = call_of(model, &model->tape, i - 1);
    size_t count = model->modules[i - 1].in.time;
    gy_nn_attention_row(&call, sample, step, weights, count < room ? count : room);
    *count_p = count;
    return GYRE_SUCCESS;
}

void gyre_nn_train_mode(gyre_nn_model *model, uint64_t seed, uint64_t step, uint64_t first)
{
    GY_NN_REQUIRE_VOID(model);
    model->draw = (struct gy_nn_draw){.training = true, .seed = seed, .step = step, .first = first};
}

void gyre_nn_test_mode(gyre_nn_model *model)
{
    GY_NN_REQUIRE_VOID(model);
    model->draw = (struct gy_nn_draw){0};
}

void gyre_nn_zero_grads(gyre_nn_model *model)
{
    GY_NN_REQUIRE_VOID(model);
    gyre_nn_settle(model); /* a failure stays until the next forward */
    model->backend->zero(model->grads, model->count * model->backend->element);
    memset(model->stale, 0, model->nmodules * sizeof(*model->stale));
}

void gyre_nn_renew_grads(gyre_nn_model *model)
{
    GY_NN_REQUIRE_VOID(model);
    for (size_t i = 0; i < model->nmodules; i++)
        model->stale[i] = model->modules[i].params > 0;
}

void gyre_nn_place_grads(gyre_nn_model *model, void *memory)
{
    GY_NN_REQUIRE_VOID(model);
    gyre_nn_settle(model);
    model->grads = memory ? memory : model->own_grads;
}

void gyre_nn_trace_attach(gyre_nn_model *model, gyre_nn_trace *trace)
{
    GY_NN_REQUIRE_VOID(model);
    model->trace = trace;
}

gyre_dtype gyre_nn_dtype(const gyre_nn_model *model)
{
    GY_NN_REQUIRE_OR(GYRE_FLOAT32, model);
    return model->backend->dtype;
}

size_t gyre_nn_inputs(const gyre_nn_model *model)
{
    GY_NN_REQUIRE_OR(0, model);
    return gy_nn_shape_size(model->in);
}

size_t gyre_nn_outputs(const gyre_nn_model *model)
{
    GY_NN_REQUIRE_OR(0, model);
    return model->out.features;
}

size_t gyre_nn_output_steps(const gyre_nn_model *model)
{
    GY_NN_REQUIRE_OR(0, model);
    return model->out.time;
}

gyre_nn_cost_kind gyre_nn_cost_of(const gyre_nn_model *model)
{
    GY_NN_REQUIRE_OR(GYRE_NN_CROSS_ENTROPY, model);
    return model->cost->kind;
}

size_t gyre_nn_param_count(const gyre_nn_model *model)
{
    GY_NN_REQUIRE_OR(0, model);
    return model->count;
}

void *gyre_nn_params(const gyre_nn_model *model)
{
    GY_NN_REQUIRE_OR(NULL, model);
    gyre_nn_settle(model);
    return model->params;
}

void *gyre_nn_grads(const gyre_nn_model *model)
{
    GY_NN_REQUIRE_OR(NULL, model);
    gyre_nn_settle(model);
    return model->grads;
}

size_t gyre_nn_tensor_count(const gyre_nn_model *model)
{
    GY_NN_REQUIRE_OR(0, model);
    return model->ntensors;
}

const struct gyre_nn_tensor *gyre_nn_tensor(const gyre_nn_model *model, size_t index)
{
    GY_NN_REQUIRE_OR(NULL, model);
    return index < model->ntensors ? &model->tensors[index] : NULL;
}

bool gyre_nn_tensor_is_statistic(const gyre_nn_model *model, size_t index)
{
    GY_NN_REQUIRE_OR(false, model);
    return index < model->ntensors && model->starts[index].statistic;
}

bool gy_nn_next_statistic(const gyre_nn_model *model, size_t end, size_t *at, size_t *low_p, size_t *high_p)
{
    for (size_t i = 0; model->tracks && i < model->ntensors; i++) {
        const struct gyre_nn_tensor *tensor = &model->tensors[i];
        size_t low = tensor->offset, high = low + tensor->rows * tensor->cols;
        if (!model->starts[i].statistic || high <= *at)
            continue;
        *low_p = low > *at ? low : *at;
        *high_p = high < end ? high : end;
        *at = *high_p;
        return *low_p < *high_p;
    }
    return false;
}

uint64_t gyre_nn_params_hash(const gyre_nn_model *model)
{
    GY_NN_REQUIRE_OR(0, model);
    return XXH3_64bits(gyre_nn_params(model), model->count * model->backend->element);
}
