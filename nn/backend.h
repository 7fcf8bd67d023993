/* What a model computes with. One table per element type and kind of memory; modules, costs and optimisers go through
 * it, so that a table for GPU memory can stand beside the CPU's. Sizes are in elements unless a name says bytes;
 * matrices are row-major and dense. No function fails except alloc (NULL); all may be asynchronous with regard to the
 * host except download and those that return a value. */
#ifndef GY_NN_BACKEND_H
#define GY_NN_BACKEND_H

#include <gyre/nn.h>

/* What an optimiser's step needs beside the arrays; see nn.h for the formulas. */
struct gy_nn_update {
    double rate, scale, weight_decay, momentum, beta1, beta2, epsilon;
    double correction1, correction2; /* 1 − beta^steps */
    bool nesterov, decoupled;
};

struct gyre_nn_backend {
    const char *name;
    gyre_dtype dtype;
    size_t element;               /* bytes */
    void *(*alloc)(size_t bytes); /* zeroed, at least 64-byte aligned */
    void (*release)(void *memory);
    void (*copy)(void *dst, const void *src, size_t bytes);
    void (*zero)(void *x, size_t bytes);

    /* c[m×n] = op(a)·op(b) + beta·c, where op transposes if asked: op(a) is m×k, op(b) is k×n. */
    void (*gemm)(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, const void *a, const void *b,
                 double beta, void *c);
    void (*add_bias)(size_t rows, size_t cols, const void *bias, void *y);       /* y[r][c] += bias[c] */
    void (*add_column_sums)(size_t rows, size_t cols, const void *dy, void *db); /* db[c] += Σr dy[r][c] */
    void (*relu)(size_t count, const void *x, void *y);
    void (*tanh)(size_t count, const void *x, void *y);
    void (*sigmoid)(size_t count, const void *x, void *y);
    /* dx = dy · f'(x), from y = f(x); dx may be dy */
    void (*relu_backward)(size_t count, const void *y, const void *dy, void *dx);
    void (*tanh_backward)(size_t count, const void *y, const void *dy, void *dx);
    void (*sigmoid_backward)(size_t count, const void *y, const void *dy, void *dx);
    /* Both return the cost summed over the rows (in double) and write its gradient with regard to y. targets may be
     * NULL: one-hot labels */
    double (*cross_entropy)(size_t rows, size_t cols, const void *y, const int32_t *labels, void *dy);
    double (*squared_error)(size_t rows, size_t cols, const void *y, const int32_t *labels, const void *targets,
                            void *dy);
    size_t (*count_correct)(size_t rows, size_t cols, const void *y, const int32_t *labels);

    double (*sum_squares)(size_t count, const void *x);
    void (*sgd)(const struct gy_nn_update *u, size_t count, void *p, const void *g, void *m); /* m NULL: no momentum */
    void (*adam)(const struct gy_nn_update *u, size_t count, void *p, const void *g, void *m, void *v);
};

/* NULL for a type that has no table. */
const struct gyre_nn_backend *gy_nn_backend_cpu(gyre_dtype dtype);

#endif
