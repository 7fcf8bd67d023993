/* The front door's chain: a list from the top layer down to the input, turned into a model by gyre_nn_new.
 * A failure frees the chain and gives NULL, which every later call passes on. */
#include "error.h"
#include "model.h"
#include "random.h"

#include <math.h>
#include <stdlib.h>

enum kind { INPUT, DENSE, COST };

struct gyre_nn_layer {
    enum kind kind;
    size_t outputs;
    gyre_nn_activation activation;
    gyre_nn_cost_kind cost;
    gyre_nn_layer *below;
};

#define LARGEST_LAYER ((size_t)1 << 24) /* keeps products of two sizes far from overflow */

static void free_chain(gyre_nn_layer *top)
{
    while (top) {
        gyre_nn_layer *below = top->below;
        free(top);
        top = below;
    }
}

void gyre_nn_layer_free(gyre_nn_layer *top)
{
    free_chain(top);
}

static gyre_nn_layer *push(gyre_nn_layer *below, gyre_nn_layer layer)
{
    gyre_nn_layer *top = NULL;
    if (layer.outputs == 0 || layer.outputs > LARGEST_LAYER)
        gy_nn_fail(GYRE_INVALID_ARGUMENT, "a layer of %zu outputs; between 1 and %zu are allowed", layer.outputs,
                   LARGEST_LAYER);
    else if (below && below->kind == COST)
        gy_nn_fail(GYRE_INVALID_ARGUMENT, "nothing comes above the cost of a model");
    else if (!(top = malloc(sizeof(*top))))
        gy_nn_fail(GYRE_NO_MEMORY, "no memory for a layer");
    if (!top) {
        free_chain(below);
        return NULL;
    }
    *top = layer;
    top->below = below;
    return top;
}

gyre_nn_layer *gyre_nn_input(size_t features)
{
    return push(NULL, (gyre_nn_layer){.kind = INPUT, .outputs = features});
}

gyre_nn_layer *gyre_nn_dense(gyre_nn_layer *below, size_t outputs, gyre_nn_activation activation)
{
    if (!below)
        return NULL;
    return push(below, (gyre_nn_layer){.kind = DENSE, .outputs = outputs, .activation = activation});
}

gyre_nn_layer *gyre_nn_cost(gyre_nn_layer *below, size_t outputs, gyre_nn_cost_kind cost)
{
    if (!below)
        return NULL;
    return push(below, (gyre_nn_layer){.kind = COST, .outputs = outputs, .cost = cost});
}

static const struct gy_nn_module_ops *activation_ops(gyre_nn_activation activation)
{
    switch (activation) {
    case GYRE_NN_RELU: return &gy_nn_relu;
    case GYRE_NN_TANH: return &gy_nn_tanh;
    case GYRE_NN_SIGMOID: return &gy_nn_sigmoid;
    default: return NULL;
    }
}

/* Fills the modules from the last to the first, as the chain is linked. */
static void fill_modules(gyre_nn_model *model, const gyre_nn_layer *top)
{
    size_t i = model->nmodules;
    for (const gyre_nn_layer *layer = top; layer->kind != INPUT; layer = layer->below) {
        const struct gy_nn_module_ops *activation = activation_ops(layer->activation);
        if (activation)
            model->modules[--i] = (struct gy_nn_module){
                .ops = activation, .inputs = layer->outputs, .outputs = layer->outputs};
        model->modules[--i] = (struct gy_nn_module){
            .ops = &gy_nn_linear, .inputs = layer->below->outputs, .outputs = layer->outputs};
    }
}

static void draw(const gyre_nn_model *model, size_t offset, size_t count, double limit, uint64_t *state)
{
    void *at = gy_nn_at(model, model->params, offset);
    for (size_t i = 0; i < count; i++) {
        double value = (2 * gy_nn_random_unit(state) - 1) * limit;
        if (model->backend->dtype == GYRE_FLOAT32)
            ((float *)at)[i] = (float)value;
        else
            ((double *)at)[i] = value;
    }
}

/* One stream of random numbers through the layers in order, in double: fp32 and fp64 models of a seed differ by
 * rounding only. */
static void initialize(const gyre_nn_model *model, uint64_t seed)
{
    uint64_t state = seed;
    for (size_t i = 0; i < model->nmodules; i++) {
        const struct gy_nn_module *module = &model->modules[i];
        if (module->params == 0)
            continue;
        bool relu = i + 1 < model->nmodules && model->modules[i + 1].ops == &gy_nn_relu;
        double in = (double)module->inputs, out = (double)module->outputs;
        draw(model, module->offset, module->inputs * module->outputs, relu ? sqrt(6 / in) : sqrt(6 / (in + out)),
             &state);
    }
}

gyre_status gyre_nn_new(gyre_nn_layer *top, gyre_dtype dtype, uint64_t seed, gyre_nn_model **model_p)
{
    gyre_status status = GYRE_INVALID_ARGUMENT;
    gyre_nn_model *model = NULL;
    size_t nmodules = 0;
    if (!top) /* the sentence is there since the call that failed */
        return status;
    if (top->kind != COST || !gy_nn_backend_cpu(dtype)) {
        gy_nn_fail(status, top->kind != COST ? "the top of a model is a cost" : "a model is of float32 or float64");
        goto free_layers;
    }
    for (const gyre_nn_layer *layer = top; layer->kind != INPUT; layer = layer->below)
        nmodules += activation_ops(layer->activation) ? 2 : 1;
    model = gy_nn_model_alloc(nmodules);
    if (!model) {
        status = gy_nn_fail(GYRE_NO_MEMORY, "no memory for a model of %zu modules", nmodules);
        goto free_layers;
    }
    model->backend = gy_nn_backend_cpu(dtype);
    model->cost = top->cost == GYRE_NN_CROSS_ENTROPY ? &gy_nn_softmax_cross_entropy : &gy_nn_mean_squared_error;
    fill_modules(model, top);
    status = gy_nn_model_finish(model);
    if (status != GYRE_SUCCESS) {
        gyre_nn_free(model);
        goto free_layers;
    }
    initialize(model, seed);
    *model_p = model;
free_layers:
    free_chain(top);
    return status;
}
