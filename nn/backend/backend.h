/* The operations with which a model computes. One table per element type and kind of memory. Modules, costs and
 * optimisers use only the table, so that a table for GPU memory can stand beside the CPU's. Sizes are in elements
 * unless a name says bytes. Matrices are row-major and dense. No function fails except alloc (NULL). All may be
 * asynchronous with regard to the host, except download and the functions that return a value. */
#ifndef GY_NN_BACKEND_H
#define GY_NN_BACKEND_H

#include <gyre/nn.h>

/* Arguments of an optimiser's step beside the arrays; see nn.h for the formulas. */
struct gy_nn_update {
    double rate, scale, weight_decay, momentum, beta1, beta2, epsilon;
    double correction1, correction2; /* 1 − beta^steps */
    bool nesterov, decoupled;
};

/* A square window that moves over an image of height × width pixels of `channels` values, and comes to rows × cols
 * places. `padding` pixels of zeros surround the image; they are fewer than the side of the window. */
struct gy_nn_window {
    size_t height, width, channels, kernel, stride, padding, rows, cols;
};

struct gyre_nn_backend {
    const char *name;
    gyre_dtype dtype;
    size_t element;               /* bytes */
    void *(*alloc)(size_t bytes); /* zeroed, at least 64-byte aligned */
    void (*release)(void *memory);
    void (*copy)(void *dst, const void *src, size_t bytes);
    void (*zero)(void *x, size_t bytes);

    /* c[m×n] = alpha·op(a)·op(b) + beta·c, where op transposes if asked: op(a) is m×k, op(b) is k×n. A row of a, b or c
     * begins stride_… elements after the one before. */
    void (*gemm)(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, double alpha, const void *a,
                 size_t stride_a, const void *b, size_t stride_b, double beta, void *c, size_t stride_c);
    /* For a matrix that many products use. Its packed form takes packed_size elements. pack makes it of op(b), which
     * is k×n. gemm_packed computes c[m×n] = a·op(b) + beta·c with beta 0 or 1. */
    size_t (*packed_size)(size_t n, size_t k);
    void (*pack)(bool transpose_b, size_t n, size_t k, const void *b, size_t stride_b, void *packed);
    void (*gemm_packed)(size_t m, size_t n, size_t k, const void *a, size_t stride_a, const void *packed, double beta,
                        void *c, size_t stride_c);
    void (*add)(size_t count, const void *x, void *y); /* y += x */
    void (*scale)(size_t count, double factor, void *x);
    void (*add_bias)(size_t rows, size_t cols, const void *bias, void *y);       /* y[r][c] += bias[c] */
    void (*add_column_sums)(size_t rows, size_t cols, const void *dy, void *db); /* db[c] += Σr dy[r][c] */
    void (*relu)(size_t count, const void *x, void *y);
    void (*tanh)(size_t count, const void *x, void *y);
    void (*sigmoid)(size_t count, const void *x, void *y);
    /* dx = dy · f'(x), from y = f(x); dx may be dy */
    void (*relu_backward)(size_t count, const void *y, const void *dy, void *dx);
    void (*tanh_backward)(size_t count, const void *y, const void *dy, void *dx);
    void (*sigmoid_backward)(size_t count, const void *y, const void *dy, void *dx);
    void (*gelu)(size_t count, const void *x, void *y);
    void (*gelu_backward)(size_t count, const void *x, const void *dy, void *dx); /* from x; dx may be dy */
    /* y[i] = 0 with probability rate, else x[i] / (1 − rate), by the numbers first + i of the stream `key`. */
    void (*drop)(size_t count, double rate, uint64_t key, uint64_t first, const void *x, void *y);

    /* stats: mean and 1/deviation of each row. affine: gain[cols], then bias[cols]; daffine alike, added to. */
    void (*layer_norm)(size_t rows, size_t cols, const void *x, const void *affine, void *stats, void *y);
    void (*layer_norm_backward_params)(size_t rows, size_t cols, const void *x, const void *stats, const void *dy,
                                       void *daffine);
    void (*layer_norm_backward_input)(size_t rows, size_t cols, const void *x, const void *affine, const void *stats,
                                      const void *dy, void *dx);

    /* One image: columns[place] = the kernel × kernel × channels values of the window there, row by row. col2im adds
     * them back to x. */
    void (*im2col)(const struct gy_nn_window *window, const void *x, void *columns);
    void (*col2im)(const struct gy_nn_window *window, const void *columns, void *x);
    void (*transpose)(size_t rows, size_t cols, const void *x, void *y);
    /* The largest value of each channel in each window, without padding; of equal ones the first, row by row, gets
     * the gradient. NaN counts as larger than any number, and so the result is NaN. */
    void (*max_pool)(const struct gy_nn_window *window, size_t samples, const void *x, void *y);
    void (*max_pool_backward)(const struct gy_nn_window *window, size_t samples, const void *x, const void *dy,
                              void *dx);

    /* Batch norm over samples × rows × cols. Arrays of double are in host memory, and are sums in the order of rows.
     * moments: of each sample, the means of the columns and their Σ(x − mean)².
     * stats: mean, 1/deviation and unbiased variance of each column: of those samples by Chan's combination, in their
     * order (batch_norm_stats), or from running means and variances (batch_norm_running).
     * sums: of each sample, Σ dy and Σ dy·n, with n the normalised x. means: such sums of all samples by their number
     * of rows; 0 where stats do not depend on x. track: drunning += weight·(running − batch). */
    void (*batch_norm_moments)(size_t samples, size_t rows, size_t cols, const void *x, double *moments);
    void (*batch_norm_stats)(size_t samples, size_t rows, size_t cols, const double *moments, void *stats);
    void (*batch_norm_running)(size_t cols, const void *running, void *stats);
    void (*batch_norm)(size_t rows, size_t cols, const void *x, const void *affine, const void *stats, void *y);
    void (*batch_norm_sums)(size_t samples, size_t rows, size_t cols, const void *x, const void *stats, const void *dy,
                            double *sums);
    void (*batch_norm_backward_params)(size_t samples, size_t cols, const double *sums, void *daffine);
    void (*batch_norm_track)(size_t cols, double weight, const void *running, const void *stats, void *drunning);
    void (*batch_norm_backward_input)(size_t rows, size_t cols, const void *x, const void *affine, const void *stats,
                                      const double *means, const void *dy, void *dx);

    /* symbols: numbers as elements. find: the first row that is no integer below `symbols`, `rows` if there is none. */
    size_t (*find_bad_symbol)(size_t rows, size_t symbols, const void *x);
    void (*embed)(size_t rows, size_t cols, const void *table, const void *x, void *y);
    void (*embed_backward)(size_t rows, size_t cols, const void *x, const void *dy, void *dtable);

    /* One step of an LSTM, of every sample; a sample's data of this step begin time·4·hidden elements (gates i, f, g,
     * o) or time·hidden (all else) after the sample's before. Gates come in before their activations and go out after.
     * c_before NULL: zeros. */
    void (*lstm)(size_t samples, size_t hidden, size_t time, void *gates, const void *c_before, void *c, void *h);
    /* dh and dc (samples × hidden, dense) hold what the later step passes down; dc leaves as what goes to the step
     * before. Gates go out as the gradients before their activations. */
    void (*lstm_backward)(size_t samples, size_t hidden, size_t time, const void *dy, const void *dh, void *dc,
                          const void *c_before, const void *c, void *gates);

    /* In place, row by row; causal: of row r, columns after r get 0. */
    void (*softmax)(size_t rows, size_t cols, bool causal, void *x);
    void (*softmax_backward)(size_t rows, size_t cols, const void *y, void *dy); /* dy leaves as dx */

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

/* Returns the table of a type; NULL: none. */
const struct gyre_nn_backend *gy_nn_backend_cpu(gyre_dtype dtype);

#endif
