/* A model: a stack of modules over one arena of parameters and one of gradients, both in layer order.
 *
 *     params  | 0.weight | 0.bias | 1.weight | 1.bias | …        grads: the same offsets
 *
 * so that the gradients which backward has finished are always one range [lower, count), growing downwards. */
#ifndef GY_NN_MODEL_H
#define GY_NN_MODEL_H

#include "modules/module.h"
#include "trace.h"

struct gy_nn_module {
    const struct gy_nn_module_ops *ops;
    size_t inputs, outputs;
    size_t offset, params; /* elements in the arenas */
    void *y;               /* capacity rows of output */
};

struct gyre_nn_model {
    const struct gyre_nn_backend *backend;
    const struct gy_nn_cost_ops *cost;
    struct gy_nn_module *modules;
    size_t nmodules;
    struct gyre_nn_tensor *tensors;
    size_t ntensors;
    size_t inputs, outputs, width; /* width: the widest module boundary */
    size_t count;                  /* parameters */
    void *params, *grads, *own_grads;
    void *delta[2];  /* capacity × width: gradients on their way down */
    size_t capacity; /* rows that the buffers hold */
    const void *x;   /* of the last forward */
    size_t rows;     /* of the last forward */
    bool evaluated;  /* delta[0] holds the cost's gradient */
    gyre_nn_trace *trace;
};

/* An empty model with room for nmodules; the caller fills modules (ops, inputs, outputs) and calls gy_nn_model_finish,
 * which lays out the arenas. NULL without memory; gyre_nn_free frees it at any point. */
gyre_nn_model *gy_nn_model_alloc(size_t nmodules);
gyre_status gy_nn_model_finish(gyre_nn_model *model);

static inline void *gy_nn_at(const gyre_nn_model *model, void *arena, size_t offset)
{
    return (char *)arena + offset * model->backend->element;
}

#endif
