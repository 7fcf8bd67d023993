/* The CPU's loops: those of every instruction set give the same bits, element by element and row by row, for odd sizes
 * too; and products with a packed matrix are products, whose elements do not depend on the number of rows; float's own
 * exp, tanh, logistic function and normal distribution are within 3e-7 of libm's in double, NaN included. */
#include "backend/cpu.h"
#include "backend/cpu_float.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 1037 /* no multiple of any vector */
#define COLS 61
#define ROWS 17

static void fill(double scale, float *x, double *d, size_t count)
{
    uint64_t state = 88172645463325252u;
    for (size_t i = 0; i < count; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        d[i] = scale * ((double)(state >> 11) * 0x1p-53 - 0.5);
        x[i] = (float)d[i];
    }
}

struct arrays {
    _Alignas(64) double a[4 * COUNT], b[4 * COUNT], c[4 * COUNT], d[4 * COUNT];
};

/* Three images of 4 × 5 pixels; at->b has the affine and the running values of COLS columns, at->c what is kept. */
static void run_images(const struct gyre_nn_backend *cpu, struct arrays *at)
{
    const struct gy_nn_window window = {
        .height = 4, .width = 5, .channels = 13, .kernel = 3, .stride = 1, .padding = 1, .rows = 4, .cols = 5};
    const struct gy_nn_window pool = {
        .height = 4, .width = 5, .channels = 13, .kernel = 2, .stride = 2, .rows = 2, .cols = 2};
    double numbers[ROWS * 2 * COLS];
    cpu->im2col(&window, at->a, at->d);
    cpu->col2im(&window, at->d, at->a);
    cpu->transpose(ROWS, COLS, at->a, at->d);
    cpu->max_pool(&pool, 3, at->d, at->c);
    cpu->max_pool_backward(&pool, 3, at->d, at->c, at->d);
    cpu->add(COUNT, at->d, at->a);
    cpu->batch_norm_moments(ROWS, 1, COLS, at->a, numbers);
    cpu->batch_norm_moments(1, ROWS, COLS, at->a, numbers);
    cpu->batch_norm_stats(1, ROWS, COLS, numbers, at->c);
    cpu->batch_norm(ROWS, COLS, at->a, at->b, at->c, at->d);
    cpu->batch_norm_sums(1, ROWS, COLS, at->a, at->c, at->d, numbers);
    cpu->batch_norm_backward_params(1, COLS, numbers, at->b);
    cpu->batch_norm_track(COLS, 3, at->b, at->c, at->b);
    cpu->batch_norm_backward_input(ROWS, COLS, at->a, at->b, at->c, numbers, at->d, at->a);
    cpu->batch_norm_running(COLS, at->b, at->c);
}

/* Every operation that has loops, one after another, on one set of arrays. */
static void run(const struct gyre_nn_backend *cpu, struct arrays *at)
{
    static float f[2][4 * COUNT];
    static double d[2][4 * COUNT];
    int32_t labels[ROWS];
    const struct gy_nn_update update = {.rate = 0.01,
                                        .scale = 0.5,
                                        .weight_decay = 0.1,
                                        .momentum = 0.9,
                                        .beta1 = 0.9,
                                        .beta2 = 0.99,
                                        .epsilon = 1e-8,
                                        .correction1 = 0.1,
                                        .correction2 = 0.01};
    bool single = cpu->dtype == GYRE_FLOAT32;
    fill(12, f[0], d[0], 4 * COUNT);
    fill(3, f[1], d[1], 4 * COUNT);
    for (int r = 0; r < ROWS; r++)
        labels[r] = r;
    memset(at, 0, sizeof(*at));
    memcpy(at->a, single ? (void *)f[0] : d[0], 4 * COUNT * cpu->element);
    memcpy(at->b, single ? (void *)f[1] : d[1], 4 * COUNT * cpu->element);
    cpu->add(COUNT, at->b, at->a);
    cpu->scale(COUNT, 1.3, at->a);
    cpu->add_bias(ROWS, COLS, at->b, at->a);
    cpu->add_column_sums(ROWS, COLS, at->a, at->c);
    cpu->gelu(COUNT, at->a, at->d);
    cpu->gelu_backward(COUNT, at->d, at->a, at->a);
    cpu->sigmoid(COUNT, at->a, at->d);
    cpu->sigmoid_backward(COUNT, at->d, at->a, at->a);
    cpu->tanh(COUNT, at->b, at->d);
    cpu->tanh_backward(COUNT, at->d, at->b, at->b);
    cpu->relu(COUNT, at->b, at->d);
    cpu->relu_backward(COUNT, at->d, at->a, at->a);
    cpu->layer_norm(ROWS, COLS, at->a, at->b, at->c, at->d);
    cpu->layer_norm_backward_params(ROWS, COLS, at->a, at->c, at->d, at->b);
    cpu->layer_norm_backward_input(ROWS, COLS, at->a, at->b, at->c, at->d, at->a);
    cpu->cross_entropy(ROWS, COLS, at->a, labels, at->d);
    cpu->squared_error(ROWS, COLS, at->a, labels, NULL, at->c);
    cpu->softmax(ROWS, COLS, true, at->a);
    cpu->softmax_backward(ROWS, COLS, at->a, at->b);
    cpu->lstm(3, COLS, 2, at->a, NULL, at->c, at->d);
    cpu->lstm(3, COLS, 2, at->b, at->c, at->c, at->d);
    cpu->lstm_backward(3, COLS, 2, at->d, at->b, at->c, at->d, at->c, at->a);
    run_images(cpu, at);
    cpu->sgd(&update, COUNT, at->b, at->a, at->c);
    memset(at->d, 0, sizeof(at->d));
    cpu->adam(&update, COUNT, at->b, at->a, at->c, at->d);
}

Test(backend, instruction_sets_agree)
{
    static struct arrays plain, wide;
    cr_assert(gy_nn_cpu_usable(0));
    for (int type = 0; type < 2; type++) {
        run(gy_nn_cpu_usable(0)[type], &plain);
        for (int i = 1; gy_nn_cpu_usable(i); i++) {
            run(gy_nn_cpu_usable(i)[type], &wide);
            cr_assert_arr_eq(&wide, &plain, sizeof(plain), "instruction set %d, type %d", i, type);
        }
        double sum = gy_nn_cpu_usable(0)[type]->sum_squares(COUNT, plain.b);
        cr_assert(sum > 0 && sum < 1e9, "%g", sum);
    }
}

static double apart(float is, double should_be)
{
    return fabs((double)is - should_be) / fabs(should_be);
}

Test(backend, functions_of_float)
{
    double worst[4] = {0};
    for (double at = -86; at < 87; at += 0.00037) {
        float x = (float)at, bell;
        double d = (double)x;
        worst[0] = fmax(worst[0], apart(gy_nn_float_exp(x), exp(d)));
        worst[1] = fmax(worst[1], x != 0 ? apart(gy_nn_float_tanh(x), tanh(d)) : 0);
        worst[2] = fmax(worst[2], apart(gy_nn_float_logistic(x), 1 / (1 + exp(-d))));
        if (fabs(d) < 6) /* beyond, the rounding of x² alone is more */
            worst[3] = fmax(worst[3], fabs((double)gy_nn_float_normal(x, &bell) - 0.5 * (1 + erf(d * M_SQRT1_2))));
    }
    for (int i = 0; i < 4; i++)
        cr_assert_lt(worst[i], 3e-7, "function %d: %g", i, worst[i]);
    cr_assert(gy_nn_float_exp(-1000.0f) < 2e-38f && gy_nn_float_exp(1000.0f) > 1e38f && gy_nn_float_tanh(50.0f) == 1 &&
              gy_nn_float_tanh(-50.0f) == -1 && gy_nn_float_tanh(0) == 0);
    cr_assert(isnan(gy_nn_float_exp(NAN)) && isnan(gy_nn_float_tanh(NAN)) && isnan(gy_nn_float_logistic(NAN)));
}

static double value_at(const struct gyre_nn_backend *cpu, const void *array, size_t index)
{
    return cpu->dtype == GYRE_FLOAT32 ? (double)((const float *)array)[index] : ((const double *)array)[index];
}

/* m rows of k at once, and each alone, against sums in double; the rows of a and c are further apart than they are
 * long. */
static void check_packed(const struct gyre_nn_backend *cpu, bool transpose, size_t m, size_t n, size_t k, double beta)
{
    size_t stride_b = transpose ? k + 2 : n + 2, stride_a = k + 3, stride_c = n + 1;
    size_t counts[] = {m * stride_a, (transpose ? n : k) * stride_b, m * stride_c, m * stride_c};
    void *arrays[4], *packed = cpu->alloc((cpu->packed_size(n, k) + 1) * cpu->element);
    for (int i = 0; i < 4; i++) {
        float *x = calloc(counts[i], sizeof(*x));
        double *d = calloc(counts[i], sizeof(*d));
        fill(1 + i % 2, x, d, counts[i]); /* both c's alike */
        arrays[i] = cpu->dtype == GYRE_FLOAT32 ? (void *)x : d;
        free(cpu->dtype == GYRE_FLOAT32 ? (void *)d : x);
    }
    memcpy(arrays[3], arrays[2], counts[2] * cpu->element);
    cpu->pack(transpose, n, k, arrays[1], stride_b, packed);
    cpu->gemm_packed(m, n, k, arrays[0], stride_a, packed, beta, arrays[2], stride_c);
    for (size_t r = 0; r < m; r++)
        for (size_t c = 0; c < n; c++) {
            double sum = beta * value_at(cpu, arrays[3], r * stride_c + c);
            for (size_t i = 0; i < k; i++)
                sum += value_at(cpu, arrays[0], r * stride_a + i) *
                       value_at(cpu, arrays[1], transpose ? c * stride_b + i : i * stride_b + c);
            cr_assert_float_eq(value_at(cpu, arrays[2], r * stride_c + c), sum,
                               cpu->dtype == GYRE_FLOAT32 ? 2e-4 : 1e-12, "%zu x %zu x %zu, row %zu, column %zu", m, n,
                               k, r, c);
        }
    for (size_t r = 0; r < m; r++)
        cpu->gemm_packed(1, n, k, (char *)arrays[0] + r * stride_a * cpu->element, stride_a, packed, beta,
                         (char *)arrays[3] + r * stride_c * cpu->element, stride_c);
    cr_assert_arr_eq(arrays[2], arrays[3], counts[2] * cpu->element); /* what lies between the rows included */
    for (int i = 0; i < 4; i++)
        free(arrays[i]);
    cpu->release(packed);
}

Test(backend, products_with_a_packed_matrix)
{
    static const size_t sizes[][3] = {{1, 1, 1}, {3, 33, 7}, {15, 64, 300}, {17, 70, 257}, {32, 31, 512}};
    for (int i = 0; gy_nn_cpu_usable(i); i++)
        for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
            for (int how = 0; how < 8; how++)
                check_packed(gy_nn_cpu_usable(i)[how & 1], how & 2, sizes[s][0], sizes[s][1], sizes[s][2],
                             how & 4 ? 1 : 0);
}
