/* A model: modules in an order in which each comes after those it takes its inputs from, over one arena of parameters
 * and one of gradients, both in this order.
 *
  * params  | 0.weight | 0.bias | 1.weight | 1.bias | …        grads: the same offsets
 *
  * Backward goes through the modules from the last to the first, so the gradients that it has finished are always one
 * range [lower, count), growing downwards. Values are numbered: 0 is the model's input, i + 1 the output of module i.
 * */
#ifndef GY_NN_MODEL_H
#define GY_NN_MODEL_H

#include "io/trace.h"
#include "model/modules/module.h"

/* What one forward leaves for its backward. A model has one; a schedule with several micro-batches in flight has one
 * for each. Grows to the largest number of samples seen. */
struct gy_nn_tape {
    size_t first, last;       /* of modules [first, last): all of the model, or a stage of it */
    size_t capacity, samples; /* samples: of the last forward */
    const void **outside;     /* values that modules below `first` make, or the model's input; the caller's */
    bool *have;               /* values whose slot holds a gradient in this backward */
    void *memory;
    void **y, **state; /* of each module, inside memory */
    struct gy_nn_draw draw;
    struct gy_nn_gathering *gathering;
    bool ready;     /* forward has succeeded */
    bool evaluated; /* the top's slot holds the cost's gradient */
    bool spent;     /* backward has used up what forward kept: another needs another forward */
};

/* Memory of one backward at a time. The gradient of a value lives from its last user down to its producer; values
 * whose lives do not meet share a slot. Of a value with several users the first writes, and the others write to a
 * spare slot, which is added. */
struct gy_nn_work {
    size_t capacity;
    void *memory;
    void **slots; /* nslots, and then a spare one for each input of a module */
    void *scratch, *packed;
};

struct gyre_nn_model {
    const struct gyre_nn_backend *backend;
    const struct gy_nn_cost_ops *cost;
    struct gy_nn_module *modules;
    size_t nmodules;
    struct gyre_nn_tensor *tensors;
    struct gy_nn_start *starts; /* of each tensor: its first values */
    size_t ntensors;
    struct gy_nn_shape in, out;
    size_t count; /* parameters */
    bool tracks;  /* some of them are statistics, see gy_nn_layout_statistic */
    void *params, *grads, *own_grads;
    bool *stale;     /* of each module: its next backward writes its gradients instead of adding to them */
    size_t *slot_of; /* of each value; of value 0, nslots */
    size_t nslots, *slot_size, spare_size, scratch_size; /* elements per sample */
    size_t packed_size;                                  /* elements */
    struct gy_nn_tape tape;
    struct gy_nn_work work;
    struct gy_nn_draw draw;
    char alphabet[2 * 256 + 1]; /* of text: the byte of each class, in hexadecimal; empty: there is none */
    gyre_nn_trace *trace;
    gyre_comm *comm; /* of the ranks that train in step, as long as `syncs` are attached; NULL: this one alone */
    size_t syncs;
    /* Set while parameters still have to move (sync.c): moves [first, first + count) before they are used. */
    gyre_status (*settle)(void *user, size_t first, size_t count);
    void *settle_user;
};

/* An empty model with room for nmodules; the caller fills backend, cost, in, and of the modules ops, config and
 * inputs, and calls gy_nn_model_finish, which lays out the arenas. NULL without memory; gyre_nn_free frees it at any
 * point. */
gyre_nn_model *gy_nn_model_alloc(size_t nmodules);
gyre_status gy_nn_model_finish(gyre_nn_model *model);

/* parameter_layout.c: shapes, tensors and their offsets, slots. */
gyre_status gy_nn_layout_make(gyre_nn_model *model);
/* One stream of random numbers through the tensors in order, in double: fp32 and fp64 models of a seed differ by
 * rounding only. */
void gy_nn_layout_initialize(const gyre_nn_model *model, uint64_t seed);

/* As gyre_nn_forward, …_evaluate and …_backward, for modules [first, last). x is value `first`; NULL: tape->outside
 * has it, as it has other values from below, or no module needs it. backward: dy is the gradient of value `last`;
 * NULL where evaluate has just left it or gy_nn_range_gradient has given all. *dx_p (or NULL) gets the gradient of
 * value `first`, valid until the next backward or evaluate. */
gyre_status gy_nn_range_forward(gyre_nn_model *model, struct gy_nn_tape *tape, size_t first, size_t last, const void *x,
                                size_t samples, const void **outputs_p);
gyre_status gy_nn_range_evaluate(gyre_nn_model *model, struct gy_nn_tape *tape, const int32_t *labels,
                                 const void *targets, double *cost_p, size_t *correct_p);
gyre_status gy_nn_range_backward(gyre_nn_model *model, struct gy_nn_tape *tape, const void *dy,
                                 gyre_nn_passed_func passed, void *user, const void **dx_p);

/* Adds `dy` to the gradient of a value that the range makes, before its backward. */
void gy_nn_range_gradient(gyre_nn_model *model, struct gy_nn_tape *tape, size_t value, const void *dy);
/* What modules of the range add to the cost of the last forward. */
double gy_nn_range_side_cost(const gyre_nn_model *model, const struct gy_nn_tape *tape);

/* activations.c: room for so many samples; what is there already stays only if nothing grows. */
gyre_status gy_nn_tape_reserve(const gyre_nn_model *model, struct gy_nn_tape *tape, size_t first, size_t last,
                               size_t samples);
void gy_nn_tape_free(const gyre_nn_model *model, struct gy_nn_tape *tape);
gyre_status gy_nn_work_reserve(const gyre_nn_model *model, struct gy_nn_work *work, size_t samples);
void gy_nn_work_free(const gyre_nn_model *model, struct gy_nn_work *work);

/* The next range of statistics in [*at, end): [*low_p, *high_p), from which *at goes on. False: there is none. */
bool gy_nn_next_statistic(const gyre_nn_model *model, size_t end, size_t *at, size_t *low_p, size_t *high_p);

static inline void *gy_nn_at(const gyre_nn_model *model, void *arena, size_t offset)
{
    return (char *)arena + offset * model->backend->element;
}

static inline struct gy_nn_shape gy_nn_shape_of(const gyre_nn_model *model, size_t value)
{
    return value == 0 ? model->in : model->modules[value - 1].out;
}

static inline bool gy_nn_value_used(const gyre_nn_model *model, size_t value, size_t first, size_t last)
{
    for (size_t i = first; i < last; i++)
        for (size_t k = 0; k < model->modules[i].ninputs; k++)
            if (model->modules[i].from[k] == value)
                return true;
    return false;
}

static inline size_t gy_nn_shape_size(struct gy_nn_shape shape)
{
    return shape.time * shape.features;
}

#endif
