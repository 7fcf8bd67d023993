/* A module: a function with explicit forward and backward. It keeps no state; all it works on comes in a call. */
#ifndef GY_NN_MODULE_H
#define GY_NN_MODULE_H

#include "backend.h"

struct gy_nn_call {
    const struct gyre_nn_backend *backend;
    size_t rows, inputs, outputs;
    const void *x; /* rows × inputs */
    void *y;       /* rows × outputs; written by forward, read by backward */
    const void *params;
    void *grads;    /* backward_params adds to it */
    const void *dy; /* rows × outputs */
    void *dx;       /* rows × inputs; written by backward_input */
};

/* backward_params and param_count are NULL for a module without parameters. */
struct gy_nn_module_ops {
    const char *name;
    size_t (*param_count)(size_t inputs, size_t outputs);
    void (*forward)(const struct gy_nn_call *call);
    void (*backward_params)(const struct gy_nn_call *call);
    void (*backward_input)(const struct gy_nn_call *call);
};

/* The top of a model: returns the sum of the costs of the rows and writes its gradient to dy. */
struct gy_nn_cost_ops {
    const char *name;
    bool needs_labels; /* targets cannot stand in for labels */
    double (*evaluate)(const struct gyre_nn_backend *backend, size_t rows, size_t outputs, const void *y,
                       const int32_t *labels, const void *targets, void *dy);
};

extern const struct gy_nn_module_ops gy_nn_linear, gy_nn_relu, gy_nn_tanh, gy_nn_sigmoid;
extern const struct gy_nn_cost_ops gy_nn_softmax_cross_entropy, gy_nn_mean_squared_error;

#endif
