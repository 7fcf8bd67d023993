/* A module: a function of one or more values, with explicit forward and backward. One file per kind; each has one
 * symbol, its table. A module keeps no state of its own: what distinguishes two modules of a kind is their
 * gy_nn_config, and all memory comes in a call.
 *
 * A value is samples × time × features, dense, the features of a step together; time is 1 where there is no sequence.
 * "Rows" are samples × time. */
#ifndef GY_NN_MODULE_H
#define GY_NN_MODULE_H

#include "backend/backend.h"

#define GY_NN_MOST_INPUTS 3
#define GY_NN_MOST_TENSORS 4 /* of a module */

/* An image is a sequence of its pixels, row by row; the features of a pixel are its channels. */
struct gy_nn_shape {
    size_t time, features;
    size_t height; /* rows of pixels, which divide `time`; 0: no image */
};

/* Every kind reads what concerns it. */
struct gy_nn_config {
    size_t outputs;           /* features of the result; embedding: of a vector; lstm: of the hidden state */
    size_t symbols;           /* embedding: rows of the table */
    size_t heads;             /* attention */
    double rate;              /* dropout: share of zeros */
    bool causal;              /* attention: a step sees itself and those before it */
    bool relu;                /* linear: a relu follows, which asks for larger weights */
    size_t first;             /* slice: where it begins in a sample */
    struct gy_nn_shape shape; /* slice: of the result */
    size_t kernel, stride;    /* conv2d, max_pool2d: side of the window; pixels from one window to the next */
    size_t padding;           /* conv2d: pixels of zeros around the image */
    bool bias;                /* conv2d: one is added to each channel */
};

struct gy_nn_module {
    const struct gy_nn_module_ops *ops;
    struct gy_nn_config config;
    size_t ninputs, from[GY_NN_MOST_INPUTS]; /* values: 0 is the model's input, i + 1 the output of module i */
    /* Filled by the layout: */
    struct gy_nn_shape in, out;                   /* `in` is the first input's */
    struct gy_nn_shape others[GY_NN_MOST_INPUTS]; /* of every input */
    size_t offset, params;                        /* elements of the arenas */
    size_t state, scratch; /* elements per sample: kept from forward to backward; used within one call or backward */
    size_t packed;         /* elements, however many samples: used within one call */
};

/* Which random numbers a training step draws: those of (seed, step), by the place of a sample in the global batch, so
 * that they depend neither on the ranks nor on the pieces, and a forward can be done again. */
struct gy_nn_draw {
    bool training; /* false: draw nothing, dropout passes its input on */
    uint64_t seed, step, first;
};

/* The samples of one forward, of all ranks: for modules whose result depends on the whole batch. Numbers of samples
 * are gathered in the order of the samples, so that what is made of them does not depend on the number of ranks. */
struct gy_nn_gathering {
    gyre_comm *comm;       /* NULL: this rank's samples are all */
    bool counted;          /* first and samples are known */
    size_t first, samples; /* this rank's samples begin at `first` of so many */
    size_t *counts;        /* samples of each rank, then elements of each */
    int ranks;             /* for which there is room in counts */
    double *values;        /* room for the numbers of each sample, and of one sample more */
    size_t room;           /* elements of values */
};

struct gy_nn_call {
    const struct gyre_nn_backend *backend;
    const struct gy_nn_module *module;
    size_t index; /* of the module */
    size_t samples, rows;
    const void *x[GY_NN_MOST_INPUTS];
    void *y;     /* written by forward, read by backward */
    void *state; /* the same */
    void *scratch, *packed;
    const void *params;
    void *grads; /* backward adds to it what `keep` (0 or 1) leaves of it */
    double keep;
    gyre_nn_passed_func passed; /* NULL, or for backward_params to say that its gradients from there on are final */
    void *passed_user;
    const void *dy;              /* like y */
    void *dx[GY_NN_MOST_INPUTS]; /* like x; written by backward_input; NULL where it is not needed */
    struct gy_nn_draw draw;
    struct gy_nn_gathering *gathering;
    size_t answers; /* rows of the model's output that belong to these samples */
};

struct gy_nn_start {
    double limit, constant; /* uniform in [−limit, limit], or constant where limit is 0 */
    bool statistic;         /* no parameter: see gy_nn_layout_statistic */
};

/* Where the parameters of a model lie, module after module. */
struct gy_nn_layout {
    const struct gyre_nn_backend *backend;
    struct gy_nn_module *module; /* being laid out */
    size_t number;               /* of the modules with parameters */
    struct gyre_nn_tensor *tensors;
    struct gy_nn_start *starts;
    size_t ntensors, count; /* so far: tensors, elements */
};

/* backward comes in two halves, so that a module's gradients can leave while the gradient of its input is computed. A
 * module whose halves are one leaves backward_params NULL and does both in backward_input. check is optional. */
struct gy_nn_module_ops {
    const char *name;
    /* Knows `in` and config; sets out, state and scratch, and lays out the parameters by gy_nn_layout_tensor. */
    gyre_status (*plan)(struct gy_nn_module *module, struct gy_nn_layout *layout);
    gyre_status (*check)(const struct gy_nn_call *call); /* of the values of x, before forward */
    /* Both optional, before forward in training and before either half of backward. They may communicate by the
     * call's gathering: all ranks call them, also a rank without samples. */
    gyre_status (*gather)(const struct gy_nn_call *call);
    gyre_status (*gather_backward)(const struct gy_nn_call *call);
    void (*forward)(const struct gy_nn_call *call);
    void (*backward_params)(const struct gy_nn_call *call);
    void (*backward_input)(const struct gy_nn_call *call);
    double (*cost)(const struct gy_nn_call *call); /* optional: what it adds to the cost, after forward */
    bool mixed;                                    /* its inputs may have different shapes; plan checks them */
    bool overwrites; /* backward heeds `keep`; else, where that is 0, its gradients are set to 0 before */
};

/* The next tensor of a module; returns nothing, for offsets follow the order of the calls. It begins with values
 * uniform in [−limit, limit], or, with limit 0, with `constant`. rows 0: a vector of `cols`. */
void gy_nn_layout_tensor(struct gy_nn_layout *layout, const char *name, size_t rows, size_t cols, double limit,
                         double constant);

/* The same for a vector that follows the data and not the cost. It moves by p −= 0.1·scale·g, whatever the optimiser,
 * so its gradient is Σ over output rows of (p − value seen). It travels with the gradients and the parameters. */
void gy_nn_layout_statistic(struct gy_nn_layout *layout, const char *name, size_t cols, double constant);

/* Room for the packed form of a k×n matrix: one at a time. */
void gy_nn_layout_packed(struct gy_nn_layout *layout, size_t n, size_t k);

/* For modules of one input that change no shape and have no parameters. */
gyre_status gy_nn_plan_same(struct gy_nn_module *module, struct gy_nn_layout *layout);

static inline void *gy_nn_step(const struct gy_nn_call *call, const void *from, size_t elements)
{
    return (char *)(uintptr_t)from + elements * call->backend->element;
}

/* Elements of y. */
static inline size_t gy_nn_size(const struct gy_nn_call *call)
{
    return call->samples * call->module->out.time * call->module->out.features;
}

/* c[m×n] = op(a)·op(b) + beta·c, all dense. */
static inline void gy_nn_product(const struct gyre_nn_backend *backend, bool transpose_a, bool transpose_b, size_t m,
                                 size_t n, size_t k, const void *a, const void *b, double beta, void *c)
{
    backend->gemm(transpose_a, transpose_b, m, n, k, 1, a, transpose_a ? m : k, b, transpose_b ? k : n, beta, c, n);
}

/* Columns sums of dy are added to db, which holds nothing yet where keep is 0. */
static inline void gy_nn_bias_gradient(const struct gy_nn_call *call, size_t rows, size_t cols, const void *dy,
                                       void *db)
{
    if (call->keep == 0)
        call->backend->zero(db, cols * call->backend->element);
    call->backend->add_column_sums(rows, cols, dy, db);
}

/* The window of a module over its image; false, with a message, where `in` is no image or has no room for it. */
bool gy_nn_plan_window(struct gy_nn_module *module, size_t channels);
struct gy_nn_window gy_nn_window_of(const struct gy_nn_module *module);

/* Learns how many samples each rank has. Collective where there is a communicator. */
gyre_status gy_nn_gathering_count(struct gy_nn_gathering *gathering, size_t samples);
/* Makes room for `width` numbers of each sample; *mine_p is the place of this rank's first sample. */
gyre_status gy_nn_gathering_reserve(struct gy_nn_gathering *gathering, size_t width, double **mine_p);
/* Fills `values` with the numbers of all ranks' samples. Collective where there is a communicator. */
gyre_status gy_nn_gathering_run(struct gy_nn_gathering *gathering, size_t width);
void gy_nn_gathering_free(struct gy_nn_gathering *gathering); /* NULL is allowed */

/* The top of a model: returns the sum of the costs of the rows and writes its gradient to dy. */
struct gy_nn_cost_ops {
    const char *name;
    gyre_nn_cost_kind kind;
    bool needs_labels; /* targets cannot stand in for labels */
    bool of_input;     /* the targets are the model's input */
    double (*evaluate)(const struct gyre_nn_backend *backend, size_t rows, size_t outputs, const void *y,
                       const int32_t *labels, const void *targets, void *dy);
};

/* The weights that a step gave to the first `count` steps, in the last forward; means over the heads. */
void gy_nn_attention_row(const struct gy_nn_call *call, size_t sample, size_t step, double *weights, size_t count);

extern const struct gy_nn_module_ops gy_nn_linear, gy_nn_relu, gy_nn_tanh, gy_nn_sigmoid, gy_nn_gelu, gy_nn_embedding,
    gy_nn_position, gy_nn_layer_norm, gy_nn_dropout, gy_nn_lstm, gy_nn_attention, gy_nn_add, gy_nn_slice, gy_nn_join,
    gy_nn_reconstruct, gy_nn_conv2d, gy_nn_max_pool2d, gy_nn_batch_norm, gy_nn_flatten;
extern const struct gy_nn_cost_ops gy_nn_softmax_cross_entropy, gy_nn_mean_squared_error, gy_nn_reconstruction;

#endif
