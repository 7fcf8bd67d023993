/* The CPU's operations for one element type. cpu_table.h includes this file once for float and once for double,
 * and defines
 *   REAL                          the type
 *   NAME(x)                       the name of x for this type
 *   GEMM                          the CBLAS function
 *   FUSED(_mm256)                 the intrinsic function that multiplies and adds
 *   EXP, TANH, LOGISTIC, NORMAL   of cpu_float.h or libm
 *   LOG, SQRT                     of libm
 * The compiler vectorises the loops over elements. Sums of a row use a fixed number of lanes, so that their bits do
 * not depend on the vector width of the machine. */

/* `LANES` partial results, and one of what lies at p + i. */
typedef REAL NAME(lanes) __attribute__((vector_size(64), aligned(sizeof(REAL)), may_alias));
#define LANES (64 / sizeof(REAL))
#define LOAD(p) (*(const NAME(lanes) *)(const void *)((p) + i))

static inline REAL NAME(add_lanes)(const NAME(lanes) * part)
{
    REAL sum = 0;
    for (size_t l = 0; l < LANES; l++)
        sum += (*part)[l];
    return sum;
}

static inline REAL NAME(sum)(size_t count, const REAL *x)
{
    NAME(lanes) part = {0};
    size_t i = 0;
    for (; i + LANES <= count; i += LANES)
        part += LOAD(x);
    REAL sum = NAME(add_lanes)(&part);
    for (; i < count; i++)
        sum += x[i];
    return sum;
}

static inline REAL NAME(dot)(size_t count, const REAL *x, const REAL *y)
{
    NAME(lanes) part = {0};
    size_t i = 0;
    for (; i + LANES <= count; i += LANES)
        part += LOAD(x) * LOAD(y);
    REAL sum = NAME(add_lanes)(&part);
    for (; i < count; i++)
        sum += x[i] * y[i];
    return sum;
}

static inline REAL NAME(largest)(size_t count, const REAL *x)
{
    REAL top = x[0];
    size_t i = 0;
    if (count >= LANES) {
        NAME(lanes) most = LOAD(x);
        for (i = LANES; i + LANES <= count; i += LANES) {
            NAME(lanes) now = LOAD(x);
            __typeof__(now > most) more = now > most;
            most = (NAME(lanes))((more & (__typeof__(more))now) | (~more & (__typeof__(more))most));
        }
        for (size_t l = 0; l < LANES; l++)
            top = most[l] > top ? most[l] : top;
    }
    for (; i < count; i++)
        top = x[i] > top ? x[i] : top;
    return top;
}

static void NAME(gemm_alone)(const struct gemm *g)
{
    GEMM(CblasRowMajor, g->transpose_a ? CblasTrans : CblasNoTrans, g->transpose_b ? CblasTrans : CblasNoTrans,
         (blasint)g->m, (blasint)g->n, (blasint)g->k, (REAL)g->alpha, g->a, (blasint)g->stride_a, g->b,
         (blasint)g->stride_b, (REAL)g->beta, g->c, (blasint)g->stride_c);
}

/* Piece `index` of the grid over c: some rows of op(a) and some columns of op(b). */
static void NAME(gemm_piece)(const void *whole, size_t index)
{
    struct gemm g = *(const struct gemm *)whole;
    struct gy_nn_grid grid = gy_nn_team_grid();
    size_t row, col;
    gyre_nn_shard(g.m, (int)(index / grid.cols), (int)grid.rows, &row, &g.m);
    gyre_nn_shard(g.n, (int)(index % grid.cols), (int)grid.cols, &col, &g.n);
    if (g.m == 0 || g.n == 0)
        return;
    g.a = (const REAL *)g.a + (g.transpose_a ? row : row * g.stride_a);
    g.b = (const REAL *)g.b + (g.transpose_b ? col * g.stride_b : col);
    g.c = (REAL *)g.c + row * g.stride_c + col;
    NAME(gemm_alone)(&g);
}

static void NAME(gemm)(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, double alpha, const void *a,
                       size_t stride_a, const void *b, size_t stride_b, double beta, void *c, size_t stride_c)
{
    struct gemm g = {transpose_a, transpose_b, m, n, k, alpha, beta, a, stride_a, b, stride_b, c, stride_c};
    struct gy_nn_grid grid = gy_nn_team_grid();
    if (m == 0 || n == 0)
        return;
    if (grid.rows * grid.cols > 1 && m * n >= LEAST_SHARED / (k ? k : 1))
        gy_nn_team_run(NAME(gemm_piece), &g);
    else
        NAME(gemm_alone)(&g);
}

static void NAME(add)(size_t count, const void *x, void *y)
{
    const REAL *in = x;
    REAL *out = y;
    EACH
    for (size_t i = 0; i < count; i++)
        out[i] += in[i];
}

static void NAME(scale)(size_t count, double factor, void *x)
{
    REAL *out = x, by = (REAL)factor;
    EACH
    for (size_t i = 0; i < count; i++)
        out[i] *= by;
}

static void NAME(add_bias)(size_t rows, size_t cols, const void *bias, void *y)
{
    const REAL *b = bias;
    REAL *out = y;
    for (size_t r = 0; r < rows; r++, out += cols) {
        EACH
        for (size_t c = 0; c < cols; c++)
            out[c] += b[c];
    }
}

static void NAME(add_column_sums)(size_t rows, size_t cols, const void *dy, void *db)
{
    const REAL *in = dy;
    REAL *sum = db;
    for (size_t r = 0; r < rows; r++, in += cols) {
        EACH
        for (size_t c = 0; c < cols; c++)
            sum[c] += in[c];
    }
}

#define ELEMENTWISE(name, expression)                            \
    static void NAME(name)(size_t count, const void *x, void *y) \
    {                                                            \
        const REAL *in = x;                                      \
        REAL *out = y;                                           \
        EACH                                                     \
        for (size_t i = 0; i < count; i++)                       \
            out[i] = expression;                                 \
    }
ELEMENTWISE(relu, in[i] > 0 ? in[i] : 0)
ELEMENTWISE(tanh, TANH(in[i]))
ELEMENTWISE(sigmoid, LOGISTIC(in[i]))
#undef ELEMENTWISE

#define DERIVATIVE(name, expression)                                              \
    static void NAME(name)(size_t count, const void *y, const void *dy, void *dx) \
    {                                                                             \
        const REAL *f = y, *in = dy;                                              \
        REAL *out = dx;                                                           \
        EACH                                                                      \
        for (size_t i = 0; i < count; i++)                                        \
            out[i] = expression;                                                  \
    }
DERIVATIVE(relu_backward, f[i] > 0 ? in[i] : 0)
DERIVATIVE(tanh_backward, in[i] * (1 - f[i] * f[i]))
DERIVATIVE(sigmoid_backward, in[i] * f[i] * (1 - f[i]))
#undef DERIVATIVE

/* Stable softmax: the largest output is subtracted first. Gradient: softmax − one-hot. */
static double NAME(cross_entropy)(size_t rows, size_t cols, const void *y, const int32_t *labels, void *dy)
{
    double cost = 0;
    const REAL *in = y;
    REAL *out = dy;
    for (size_t r = 0; r < rows; r++, in += cols, out += cols) {
        REAL top = NAME(largest)(cols, in);
        EACH
        for (size_t c = 0; c < cols; c++)
            out[c] = EXP(in[c] - top);
        REAL sum = NAME(sum)(cols, out);
        EACH
        for (size_t c = 0; c < cols; c++)
            out[c] /= sum;
        out[labels[r]] -= 1;
        cost += (double)(LOG(sum) + top - in[labels[r]]);
    }
    return cost;
}

static double NAME(squared_error)(size_t rows, size_t cols, const void *y, const int32_t *labels, const void *targets,
                                  void *dy)
{
    double cost = 0;
    const REAL *in = y, *target = targets;
    REAL *out = dy;
    for (size_t r = 0; r < rows; r++, in += cols, out += cols) {
        const REAL *want = target ? target + r * cols : NULL;
        EACH
        for (size_t c = 0; c < cols; c++)
            out[c] = in[c] - (want ? want[c] : 0);
        if (!want)
            out[labels[r]] -= 1;
        cost += (double)NAME(dot)(cols, out, out) / (double)cols;
        EACH
        for (size_t c = 0; c < cols; c++)
            out[c] = 2 * out[c] / (REAL)cols;
    }
    return cost;
}

static size_t NAME(count_correct)(size_t rows, size_t cols, const void *y, const int32_t *labels)
{
    size_t correct = 0;
    const REAL *in = y;
    for (size_t r = 0; r < rows; r++, in += cols) {
        size_t best = 0;
        for (size_t c = 1; c < cols; c++)
            best = in[c] > in[best] ? c : best;
        correct += best == (size_t)labels[r];
    }
    return correct;
}

static double NAME(sum_squares)(size_t count, const void *x)
{
    double sum = 0;
    const REAL *in = x;
    for (size_t i = 0; i < count; i++)
        sum += (double)in[i] * (double)in[i];
    return sum;
}

static void NAME(sgd)(const struct gy_nn_update *u, size_t count, void *p, const void *g, void *m)
{
    REAL rate = (REAL)u->rate, scale = (REAL)u->scale, decay = (REAL)u->weight_decay, momentum = (REAL)u->momentum;
    REAL *param = p, *velocity = m;
    const REAL *grad = g;
    EACH
    for (size_t i = 0; i < count; i++) {
        REAL step = grad[i] * scale + decay * param[i];
        if (velocity) {
            velocity[i] = momentum * velocity[i] + step;
            step = u->nesterov ? step + momentum * velocity[i] : velocity[i];
        }
        param[i] -= rate * step;
    }
}

/* Four arrays at once. The processor prefetches each only to the end of a page; the lines behind it are prefetched
 * here. */
#define BLOCK ((size_t)64)
#define AHEAD ((size_t)512)
static void NAME(adam)(const struct gy_nn_update *u, size_t count, void *p, const void *g, void *m, void *v)
{
    REAL rate = (REAL)(u->rate / u->correction1), root = (REAL)(1 / u->correction2), scale = (REAL)u->scale;
    REAL b1 = (REAL)u->beta1, b2 = (REAL)u->beta2, c1 = (REAL)(1 - u->beta1), c2 = (REAL)(1 - u->beta2);
    REAL coupled = u->decoupled ? 0 : (REAL)u->weight_decay;
    REAL shrink = u->decoupled ? (REAL)(u->rate * u->weight_decay) : 0;
    REAL epsilon = (REAL)u->epsilon;
    REAL *param = p, *first = m, *second = v;
    const REAL *grad = g;
    for (size_t at = 0; at < count; at += BLOCK) {
        size_t end = count - at < BLOCK ? count : at + BLOCK;
        for (size_t i = at + AHEAD; i < end + AHEAD && i < count; i += LANES) {
            __builtin_prefetch(param + i, 1);
            __builtin_prefetch(grad + i);
            __builtin_prefetch(first + i, 1);
            __builtin_prefetch(second + i, 1);
        }
        EACH
        for (size_t i = at; i < end; i++) {
            REAL gradient = grad[i] * scale + coupled * param[i];
            first[i] = b1 * first[i] + c1 * gradient;
            second[i] = b2 * second[i] + c2 * gradient * gradient;
            param[i] -= shrink * param[i];
            param[i] -= rate * first[i] / (SQRT(second[i] * root) + epsilon);
        }
    }
}
#undef BLOCK
#undef AHEAD

#include "backend/cpu_images.h"
#include "backend/cpu_modules.h"
#include "backend/cpu_packed.h"

#undef LANES
#undef LOAD

static const struct gyre_nn_backend NAME(backend) = {
    .name = "cpu",
    .dtype = DTYPE,
    .element = sizeof(REAL),
    .alloc = cpu_alloc,
    .release = free,
    .copy = cpu_copy,
    .zero = cpu_zero,
    .gemm = NAME(gemm),
    .packed_size = NAME(packed_size),
    .pack = NAME(pack),
    .gemm_packed = NAME(gemm_packed),
    .add = NAME(add),
    .scale = NAME(scale),
    .gelu = NAME(gelu),
    .gelu_backward = NAME(gelu_backward),
    .drop = NAME(drop),
    .layer_norm = NAME(layer_norm),
    .layer_norm_backward_params = NAME(layer_norm_backward_params),
    .layer_norm_backward_input = NAME(layer_norm_backward_input),
    .im2col = NAME(im2col),
    .col2im = NAME(col2im),
    .transpose = NAME(transpose),
    .max_pool = NAME(max_pool),
    .max_pool_backward = NAME(max_pool_backward),
    .batch_norm_moments = NAME(batch_norm_moments),
    .batch_norm_stats = NAME(batch_norm_stats),
    .batch_norm_running = NAME(batch_norm_running),
    .batch_norm = NAME(batch_norm),
    .batch_norm_sums = NAME(batch_norm_sums),
    .batch_norm_backward_params = NAME(batch_norm_backward_params),
    .batch_norm_track = NAME(batch_norm_track),
    .batch_norm_backward_input = NAME(batch_norm_backward_input),
    .find_bad_symbol = NAME(find_bad_symbol),
    .embed = NAME(embed),
    .embed_backward = NAME(embed_backward),
    .lstm = NAME(lstm),
    .lstm_backward = NAME(lstm_backward),
    .softmax = NAME(softmax),
    .softmax_backward = NAME(softmax_backward),
    .add_bias = NAME(add_bias),
    .add_column_sums = NAME(add_column_sums),
    .relu = NAME(relu),
    .tanh = NAME(tanh),
    .sigmoid = NAME(sigmoid),
    .relu_backward = NAME(relu_backward),
    .tanh_backward = NAME(tanh_backward),
    .sigmoid_backward = NAME(sigmoid_backward),
    .cross_entropy = NAME(cross_entropy),
    .squared_error = NAME(squared_error),
    .count_correct = NAME(count_correct),
    .sum_squares = NAME(sum_squares),
    .sgd = NAME(sgd),
    .adam = NAME(adam),
};
