/* The model's memory and its views, and forward and backward over the stack.
 * Invariant: backward finishes gradients from the arena's end downwards, so after a module with parameters everything
 * at or above its offset is final; that is what `passed` announces, before the gradient goes on to the module below. */
#include "model.h"

#include "error.h"

#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

gyre_nn_model *gy_nn_model_alloc(size_t nmodules)
{
    gyre_nn_model *model = calloc(1, sizeof(*model));
    if (!model)
        return NULL;
    model->modules = calloc(nmodules, sizeof(*model->modules));
    model->tensors = calloc(2 * nmodules, sizeof(*model->tensors));
    model->nmodules = nmodules;
    if (!model->modules || !model->tensors) {
        free(model->modules);
        free(model->tensors);
        free(model);
        return NULL;
    }
    return model;
}

/* A module with parameters is a weight matrix and a bias; they are numbered from 0 without the activations between
 * them. */
static void add_tensors(gyre_nn_model *model, const struct gy_nn_module *module)
{
    size_t number = model->ntensors / 2;
    struct gyre_nn_tensor *weight = &model->tensors[model->ntensors++];
    struct gyre_nn_tensor *bias = &model->tensors[model->ntensors++];
    *weight = (struct gyre_nn_tensor){.rows = module->outputs, .cols = module->inputs, .offset = module->offset};
    *bias = (struct gyre_nn_tensor){
        .rows = 1, .cols = module->outputs, .offset = module->offset + module->inputs * module->outputs};
    snprintf(weight->name, sizeof(weight->name), "%zu.weight", number);
    snprintf(bias->name, sizeof(bias->name), "%zu.bias", number);
}

gyre_status gy_nn_model_finish(gyre_nn_model *model)
{
    model->inputs = model->modules[0].inputs;
    model->outputs = model->modules[model->nmodules - 1].outputs;
    model->width = model->inputs;
    for (size_t i = 0; i < model->nmodules; i++) {
        struct gy_nn_module *module = &model->modules[i];
        module->offset = model->count;
        module->params = module->ops->param_count ? module->ops->param_count(module->inputs, module->outputs) : 0;
        if (module->params > 0)
            add_tensors(model, module);
        model->count += module->params;
        model->width = module->outputs > model->width ? module->outputs : model->width;
    }
    size_t bytes = model->count * model->backend->element;
    model->params = model->backend->alloc(bytes);
    model->grads = model->own_grads = model->backend->alloc(bytes);
    if (!model->params || !model->grads)
        return gy_nn_fail(GYRE_NO_MEMORY, "no memory for a model of %zu parameters; make it smaller", model->count);
    return GYRE_SUCCESS;
}

static void free_activations(gyre_nn_model *model)
{
    for (size_t i = 0; i < model->nmodules; i++) {
        model->backend->release(model->modules[i].y);
        model->modules[i].y = NULL;
    }
    for (int i = 0; i < 2; i++) {
        model->backend->release(model->delta[i]);
        model->delta[i] = NULL;
    }
    model->capacity = 0;
}

void gyre_nn_free(gyre_nn_model *model)
{
    if (!model)
        return;
    if (model->backend) {
        free_activations(model);
        model->backend->release(model->params);
        model->backend->release(model->own_grads);
    }
    free(model->modules);
    free(model->tensors);
    free(model);
}

gyre_status gyre_nn_clone(const gyre_nn_model *model, gyre_nn_model **model_p)
{
    gyre_nn_model *copy = gy_nn_model_alloc(model->nmodules);
    if (!copy)
        return gy_nn_fail(GYRE_NO_MEMORY, "no memory for a copy of a model");
    copy->backend = model->backend;
    copy->cost = model->cost;
    for (size_t i = 0; i < model->nmodules; i++) {
        copy->modules[i].ops = model->modules[i].ops;
        copy->modules[i].inputs = model->modules[i].inputs;
        copy->modules[i].outputs = model->modules[i].outputs;
    }
    gyre_status status = gy_nn_model_finish(copy);
    if (status != GYRE_SUCCESS) {
        gyre_nn_free(copy);
        return status;
    }
    copy->backend->copy(copy->params, model->params, model->count * model->backend->element);
    *model_p = copy;
    return GYRE_SUCCESS;
}

/* The buffers grow to the largest batch seen and stay. */
static gyre_status reserve(gyre_nn_model *model, size_t rows)
{
    if (rows <= model->capacity)
        return GYRE_SUCCESS;
    free_activations(model);
    size_t row = model->width * model->backend->element;
    bool ok = rows <= SIZE_MAX / row;
    for (size_t i = 0; ok && i < model->nmodules; i++) {
        model->modules[i].y = model->backend->alloc(rows * model->modules[i].outputs * model->backend->element);
        ok = model->modules[i].y != NULL;
    }
    for (int i = 0; ok && i < 2; i++) {
        model->delta[i] = model->backend->alloc(rows * row);
        ok = model->delta[i] != NULL;
    }
    if (!ok) {
        free_activations(model);
        return gy_nn_fail(GYRE_NO_MEMORY,
                          "no memory for the activations of %zu rows; use a smaller batch or --accumulate", rows);
    }
    model->capacity = rows;
    return GYRE_SUCCESS;
}

static struct gy_nn_call call_of(const gyre_nn_model *model, size_t index)
{
    const struct gy_nn_module *module = &model->modules[index];
    return (struct gy_nn_call){
        .backend = model->backend,
        .rows = model->rows,
        .inputs = module->inputs,
        .outputs = module->outputs,
        .x = index > 0 ? model->modules[index - 1].y : model->x,
        .y = module->y,
        .params = gy_nn_at(model, model->params, module->offset),
        .grads = gy_nn_at(model, model->grads, module->offset),
    };
}

gyre_status gyre_nn_forward(gyre_nn_model *model, const void *x, size_t rows, const void **outputs_p)
{
    gyre_status status = reserve(model, rows ? rows : 1);
    if (status != GYRE_SUCCESS)
        return status;
    int64_t start = gy_nn_trace_now(model->trace);
    model->x = x;
    model->rows = rows;
    model->evaluated = false;
    for (size_t i = 0; rows > 0 && i < model->nmodules; i++) {
        struct gy_nn_call call = call_of(model, i);
        model->modules[i].ops->forward(&call);
    }
    gy_nn_trace_add(model->trace, GY_NN_SPAN_FORWARD, 0, start);
    if (outputs_p)
        *outputs_p = model->modules[model->nmodules - 1].y;
    return GYRE_SUCCESS;
}

static gyre_status check_labels(const gyre_nn_model *model, const int32_t *labels)
{
    for (size_t r = 0; r < model->rows; r++)
        if (labels[r] < 0 || (size_t)labels[r] >= model->outputs)
            return gy_nn_fail(GYRE_INVALID_ARGUMENT, "label %d of row %zu is outside the model's %zu outputs",
                              (int)labels[r], r, model->outputs);
    return GYRE_SUCCESS;
}

gyre_status gyre_nn_evaluate(gyre_nn_model *model, const int32_t *labels, const void *targets, double *cost_p,
                             size_t *correct_p)
{
    if (model->capacity == 0)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "gyre_nn_evaluate comes after gyre_nn_forward");
    bool need = model->cost->needs_labels || !targets || correct_p;
    if (need && !labels && model->rows > 0)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "%s needs labels here", model->cost->name);
    if (labels) {
        gyre_status status = check_labels(model, labels);
        if (status != GYRE_SUCCESS)
            return status;
    }
    const void *y = model->modules[model->nmodules - 1].y;
    double cost = model->cost->evaluate(model->backend, model->rows, model->outputs, y, labels, targets,
                                        model->delta[0]);
    model->evaluated = true;
    if (correct_p)
        *correct_p = model->backend->count_correct(model->rows, model->outputs, y, labels);
    if (cost_p)
        *cost_p = cost;
    return GYRE_SUCCESS;
}

gyre_status gyre_nn_backward(gyre_nn_model *model, gyre_nn_passed_func passed, void *user)
{
    if (!model->evaluated)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "gyre_nn_backward comes after gyre_nn_evaluate");
    model->evaluated = false;
    int side = 0;
    for (size_t i = model->nmodules; i-- > 0;) {
        const struct gy_nn_module *module = &model->modules[i];
        struct gy_nn_call call = call_of(model, i);
        call.dy = model->delta[side];
        call.dx = model->delta[!side];
        if (module->params > 0) {
            int64_t start = gy_nn_trace_now(model->trace);
            if (model->rows > 0)
                module->ops->backward_params(&call);
            gy_nn_trace_add(model->trace, GY_NN_SPAN_BACKWARD, (int32_t)i, start);
            if (passed)
                passed(user, module->offset);
        }
        if (i > 0 && model->rows > 0) {
            int64_t start = gy_nn_trace_now(model->trace);
            module->ops->backward_input(&call);
            gy_nn_trace_add(model->trace, GY_NN_SPAN_BACKWARD, (int32_t)i, start);
            side = !side;
        }
    }
    return GYRE_SUCCESS;
}

void gyre_nn_zero_grads(gyre_nn_model *model)
{
    model->backend->zero(model->grads, model->count * model->backend->element);
}

void gyre_nn_place_grads(gyre_nn_model *model, void *memory)
{
    model->grads = memory ? memory : model->own_grads;
}

void gyre_nn_trace_attach(gyre_nn_model *model, gyre_nn_trace *trace)
{
    model->trace = trace;
}

gyre_dtype gyre_nn_dtype(const gyre_nn_model *model)
{
    return model->backend->dtype;
}

size_t gyre_nn_inputs(const gyre_nn_model *model)
{
    return model->inputs;
}

size_t gyre_nn_outputs(const gyre_nn_model *model)
{
    return model->outputs;
}

size_t gyre_nn_param_count(const gyre_nn_model *model)
{
    return model->count;
}

void *gyre_nn_params(const gyre_nn_model *model)
{
    return model->params;
}

void *gyre_nn_grads(const gyre_nn_model *model)
{
    return model->grads;
}

size_t gyre_nn_tensor_count(const gyre_nn_model *model)
{
    return model->ntensors;
}

const struct gyre_nn_tensor *gyre_nn_tensor(const gyre_nn_model *model, size_t index)
{
    return index < model->ntensors ? &model->tensors[index] : NULL;
}

uint64_t gyre_nn_params_hash(const gyre_nn_model *model)
{
    return XXH3_64bits(model->params, model->count * model->backend->element);
}
