/* The chain of layers: a list of modules from the last down to the input, from which gyre_nn_new makes a model. A
 * failure frees the chain and gives NULL, which every later call passes on. */
#include "base/error.h"
#include "base/require.h"
#include "model/model.h"

#include <stdlib.h>

struct gyre_nn_layer {
    struct gy_nn_module module; /* ops NULL: the input */
    struct gy_nn_shape in;      /* of the input */
    const struct gy_nn_cost_ops *cost;
    gyre_nn_layer *below;
    size_t number; /* of the value that it makes: 0 for the input */
};

#define LARGEST_LAYER ((size_t)1 << 24) /* keeps products of two sizes far from overflow */
#define LARGEST_TIME ((size_t)1 << 16)
#define LARGEST_SIDE ((size_t)1 << 12) /* of a window */

void gyre_nn_layer_free(gyre_nn_layer *top)
{
    while (top) {
        gyre_nn_layer *below = top->below;
        free(top);
        top = below;
    }
}

/* A chain that failed is NULL, and gyre_nn_new has to know why. */
static _Thread_local gyre_status reason;

static gyre_nn_layer *refuse(gyre_nn_layer *chain)
{
    gyre_nn_layer_free(chain);
    reason = reason ? reason : GYRE_INVALID_ARGUMENT;
    return NULL;
}

static gyre_nn_layer *push(gyre_nn_layer *below, gyre_nn_layer layer)
{
    gyre_nn_layer *top = malloc(sizeof(*top));
    if (!top) {
        gy_nn_fail(GYRE_NO_MEMORY, "no memory for a layer");
        reason = GYRE_NO_MEMORY;
        return refuse(below);
    }
    *top = layer;
    top->below = below;
    top->number = below ? below->number + 1 : 0;
    return top;
}

static bool allowed(const char *what, size_t size, size_t most)
{
    if (size > 0 && size <= most)
        return true;
    gy_nn_fail(GYRE_INVALID_ARGUMENT, "a layer of %zu %s; between 1 and %zu are allowed", size, what, most);
    return false;
}

/* A module above `below`, which may be NULL after a failure. */
static gyre_nn_layer *stack(gyre_nn_layer *below, const struct gy_nn_module_ops *ops, struct gy_nn_config config)
{
    if (!below)
        return NULL;
    if (below->cost) {
        gy_nn_fail(GYRE_INVALID_ARGUMENT, "nothing comes above the cost of a model");
        return refuse(below);
    }
    return push(below,
                (gyre_nn_layer){.module = {.ops = ops, .config = config, .ninputs = 1, .from = {below->number}}});
}

gyre_nn_layer *gyre_nn_input_sequence(size_t steps, size_t features)
{
    reason = GYRE_SUCCESS;
    if (!allowed("steps", steps, LARGEST_TIME) || !allowed("outputs", features, LARGEST_LAYER))
        return refuse(NULL);
    return push(NULL, (gyre_nn_layer){.in = {.time = steps, .features = features}});
}

gyre_nn_layer *gyre_nn_input_image(size_t height, size_t width, size_t channels)
{
    reason = GYRE_SUCCESS;
    if (!allowed("rows", height, LARGEST_TIME) || !allowed("columns", width, LARGEST_TIME) ||
        !allowed("pixels", height * width, LARGEST_TIME) || !allowed("channels", channels, LARGEST_LAYER))
        return refuse(NULL);
    return push(NULL, (gyre_nn_layer){.in = {.time = height * width, .features = channels, .height = height}});
}

gyre_nn_layer *gyre_nn_input(size_t features)
{
    return gyre_nn_input_sequence(1, features);
}

gyre_nn_layer *gyre_nn_activate(gyre_nn_layer *below, gyre_nn_activation activation)
{
    static const struct gy_nn_module_ops *const ops[] = {
        [GYRE_NN_RELU] = &gy_nn_relu,
        [GYRE_NN_TANH] = &gy_nn_tanh,
        [GYRE_NN_SIGMOID] = &gy_nn_sigmoid,
        [GYRE_NN_GELU] = &gy_nn_gelu,
    };
    if (activation == GYRE_NN_IDENTITY)
        return below;
    if ((unsigned)activation < sizeof(ops) / sizeof(ops[0]))
        return stack(below, ops[activation], (struct gy_nn_config){0});
    gy_nn_fail(GYRE_INVALID_ARGUMENT, "there is no activation number %d", (int)activation);
    return refuse(below);
}

gyre_nn_layer *gyre_nn_dense(gyre_nn_layer *below, size_t outputs, gyre_nn_activation activation)
{
    if (below && !allowed("outputs", outputs, LARGEST_LAYER))
        return refuse(below);
    bool relu = activation == GYRE_NN_RELU;
    return gyre_nn_activate(stack(below, &gy_nn_linear, (struct gy_nn_config){.outputs = outputs, .relu = relu}),
                            activation);
}

gyre_nn_layer *gyre_nn_embedding(gyre_nn_layer *below, size_t symbols, size_t outputs)
{
    if (below && (!allowed("symbols", symbols, LARGEST_LAYER) || !allowed("outputs", outputs, LARGEST_LAYER)))
        return refuse(below);
    return stack(below, &gy_nn_embedding, (struct gy_nn_config){.symbols = symbols, .outputs = outputs});
}

gyre_nn_layer *gyre_nn_position(gyre_nn_layer *below)
{
    return stack(below, &gy_nn_position, (struct gy_nn_config){0});
}

gyre_nn_layer *gyre_nn_layer_norm(gyre_nn_layer *below)
{
    return stack(below, &gy_nn_layer_norm, (struct gy_nn_config){0});
}

gyre_nn_layer *gyre_nn_dropout(gyre_nn_layer *below, double rate)
{
    return stack(below, &gy_nn_dropout, (struct gy_nn_config){.rate = rate});
}

gyre_nn_layer *gyre_nn_lstm(gyre_nn_layer *below, size_t hidden)
{
    if (below && !allowed("outputs", hidden, LARGEST_LAYER))
        return refuse(below);
    return stack(below, &gy_nn_lstm, (struct gy_nn_config){.outputs = hidden});
}

gyre_nn_layer *gyre_nn_attention(gyre_nn_layer *below, size_t heads, bool causal)
{
    return stack(below, &gy_nn_attention, (struct gy_nn_config){.heads = heads, .causal = causal});
}

gyre_nn_layer *gyre_nn_conv2d(gyre_nn_layer *below, size_t channels, size_t kernel, size_t stride, size_t padding,
                              bool bias)
{
    if (below &&
        (!allowed("channels", channels, LARGEST_LAYER) || !allowed("pixels of a window", kernel, LARGEST_SIDE) ||
         !allowed("pixels of a step", stride, LARGEST_SIDE)))
        return refuse(below);
    if (below && padding >= kernel) {
        gy_nn_fail(GYRE_INVALID_ARGUMENT, "a padding of %zu around windows of %zu pixels; it is less than the window",
                   padding, kernel);
        return refuse(below);
    }
    struct gy_nn_config config = {
        .outputs = channels, .kernel = kernel, .stride = stride, .padding = padding, .bias = bias};
    return stack(below, &gy_nn_conv2d, config);
}

gyre_nn_layer *gyre_nn_max_pool2d(gyre_nn_layer *below, size_t kernel, size_t stride)
{
    if (below &&
        (!allowed("pixels of a window", kernel, LARGEST_SIDE) || !allowed("pixels of a step", stride, LARGEST_SIDE)))
        return refuse(below);
    return stack(below, &gy_nn_max_pool2d, (struct gy_nn_config){.kernel = kernel, .stride = stride});
}

gyre_nn_layer *gyre_nn_batch_norm(gyre_nn_layer *below)
{
    return stack(below, &gy_nn_batch_norm, (struct gy_nn_config){0});
}

gyre_nn_layer *gyre_nn_flatten(gyre_nn_layer *below)
{
    return stack(below, &gy_nn_flatten, (struct gy_nn_config){0});
}

static bool in_chain(const gyre_nn_layer *below, const gyre_nn_layer *layer)
{
    while (below && below != layer)
        below = below->below;
    if (!below || !layer)
        gy_nn_fail(GYRE_INVALID_ARGUMENT, "a branch starts at a layer of the same chain");
    return below && layer;
}

/* A module that takes `below` and then others of the chain. */
static gyre_nn_layer *stack_more(gyre_nn_layer *below, const struct gy_nn_module_ops *ops, struct gy_nn_config config,
                                 const gyre_nn_layer *second)
{
    if (!below)
        return NULL;
    if (!in_chain(below, second))
        return refuse(below);
    size_t number = second->number;
    gyre_nn_layer *top = stack(below, ops, config);
    if (top) {
        top->module.ninputs = 2;
        top->module.from[1] = number;
    }
    return top;
}

gyre_nn_layer *gyre_nn_residual(gyre_nn_layer *below, const gyre_nn_layer *from)
{
    return stack_more(below, &gy_nn_add, (struct gy_nn_config){0}, from);
}

gyre_nn_layer *gyre_nn_join(gyre_nn_layer *below, const gyre_nn_layer *with)
{
    return stack_more(below, &gy_nn_join, (struct gy_nn_config){0}, with);
}

gyre_nn_layer *gyre_nn_slice(gyre_nn_layer *below, const gyre_nn_layer *from, size_t first, size_t steps,
                             size_t features)
{
    if (below && (!allowed("steps", steps, LARGEST_TIME) || !allowed("outputs", features, LARGEST_LAYER)))
        return refuse(below);
    if (below && !in_chain(below, from))
        return refuse(below);
    size_t number = below ? from->number : 0;
    struct gy_nn_config config = {.first = first, .shape = {.time = steps, .features = features}};
    gyre_nn_layer *top = stack(below, &gy_nn_slice, config);
    if (top)
        top->module.from[0] = number;
    return top;
}

gyre_nn_layer *gyre_nn_reconstruct(gyre_nn_layer *below, const gyre_nn_layer *on, const gyre_nn_layer *of)
{
    if (!below)
        return NULL;
    if (!in_chain(below, on) || !in_chain(below, of))
        return refuse(below);
    size_t from[] = {on->number, below->number, of->number};
    gyre_nn_layer *top = stack(below, &gy_nn_reconstruct, (struct gy_nn_config){0});
    if (top) {
        top->module.ninputs = 3;
        for (size_t k = 0; k < 3; k++)
            top->module.from[k] = from[k];
    }
    return top;
}

gyre_nn_layer *gyre_nn_cost(gyre_nn_layer *below, size_t outputs, gyre_nn_cost_kind cost)
{
    static const struct gy_nn_cost_ops *const ops[] = {
        [GYRE_NN_CROSS_ENTROPY] = &gy_nn_softmax_cross_entropy,
        [GYRE_NN_MEAN_SQUARED_ERROR] = &gy_nn_mean_squared_error,
        [GYRE_NN_RECONSTRUCTION] = &gy_nn_reconstruction,
    };
    if (below && (unsigned)cost >= sizeof(ops) / sizeof(ops[0])) {
        gy_nn_fail(GYRE_INVALID_ARGUMENT, "there is no cost number %d", (int)cost);
        return refuse(below);
    }
    gyre_nn_layer *top = gyre_nn_dense(below, outputs, GYRE_NN_IDENTITY);
    if (top)
        top->cost = ops[cost];
    return top;
}

static gyre_status build(const gyre_nn_layer *top, gyre_dtype dtype, gyre_nn_model **model_p)
{
    gyre_nn_model *model = gy_nn_model_alloc(top->number);
    if (!model)
        return gy_nn_fail(GYRE_NO_MEMORY, "no memory for a model of %zu modules", top->number);
    model->backend = gy_nn_backend_cpu(dtype);
    model->cost = top->cost;
    for (const gyre_nn_layer *layer = top; layer; layer = layer->below)
        if (layer->number > 0)
            model->modules[layer->number - 1] = layer->module;
        else
            model->in = layer->in;
    gyre_status status = gy_nn_model_finish(model);
    if (status == GYRE_SUCCESS && model->cost->of_input &&
        (model->in.time != model->out.time || model->in.features != model->out.features))
        status = gy_nn_fail(GYRE_INVALID_ARGUMENT, "a reconstruction has as many outputs as inputs: %zu, not %zu",
                            gy_nn_shape_size(model->in), gy_nn_shape_size(model->out));
    if (status != GYRE_SUCCESS)
        gyre_nn_free(model);
    else
        *model_p = model;
    return status;
}

gyre_status gyre_nn_new(gyre_nn_layer *top, gyre_dtype dtype, uint64_t seed, gyre_nn_model **model_p)
{
    gyre_status status = GYRE_INVALID_ARGUMENT, before = reason;
    gyre_nn_model *model = NULL;
    reason = GYRE_SUCCESS;
    if (!top && before) /* the call that failed has written the error message */
        return before;
    if (!top || !model_p) {
        (void)GY_NN_GIVEN(model_p, top);
        gyre_nn_layer_free(top);
        return status;
    }
    if (!top->cost || !gy_nn_backend_cpu(dtype))
        gy_nn_fail(status, top->cost ? "a model is of float32 or float64" : "the top of a model is a cost");
    else
        status = build(top, dtype, &model);
    gyre_nn_layer_free(top);
    if (status != GYRE_SUCCESS)
        return status;
    gy_nn_layout_initialize(model, seed);
    *model_p = model;
    return GYRE_SUCCESS;
}
