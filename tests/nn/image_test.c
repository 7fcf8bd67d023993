/* Convolution, pooling and batch norm on images, against plain loops in double. Shapes and values over many windows;
 * im2col and col2im as transposes of each other; ties and NaN in pooling; statistics of a batch and those that run
 * along. The number of threads changes no bit. Gradients are in module_test. */
#include "backend/cpu.h"
#include "base/random.h"
#include "model/model.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 11;

/* Whole numbers, of which sums and products are exact in float as well. */
static void fill_whole(double *x, size_t count)
{
    for (size_t i = 0; i < count; i++)
        x[i] = (double)gy_nn_random_below(&state, 9) - 4;
}

static struct gy_nn_window draw_window(void)
{
    struct gy_nn_window w = {
        .height = 1 + gy_nn_random_below(&state, 7),
        .width = 1 + gy_nn_random_below(&state, 7),
        .channels = 1 + gy_nn_random_below(&state, 4),
        .kernel = 1 + gy_nn_random_below(&state, 4),
        .stride = 1 + gy_nn_random_below(&state, 4),
    };
    w.padding = gy_nn_random_below(&state, w.kernel);
    if (w.kernel > w.height + 2 * w.padding || w.kernel > w.width + 2 * w.padding)
        return draw_window();
    w.rows = (w.height + 2 * w.padding - w.kernel) / w.stride + 1;
    w.cols = (w.width + 2 * w.padding - w.kernel) / w.stride + 1;
    return w;
}

/* The value under the window, 0 in the padding. */
static double seen(const struct gy_nn_window *w, const double *image, size_t place, size_t ky, size_t kx, size_t c)
{
    ptrdiff_t y = (ptrdiff_t)(place / w->cols * w->stride + ky) - (ptrdiff_t)w->padding;
    ptrdiff_t x = (ptrdiff_t)(place % w->cols * w->stride + kx) - (ptrdiff_t)w->padding;
    if (y < 0 || x < 0 || y >= (ptrdiff_t)w->height || x >= (ptrdiff_t)w->width)
        return 0;
    return image[((size_t)y * w->width + (size_t)x) * w->channels + c];
}

static void check_columns(const struct gy_nn_window *w)
{
    const struct gyre_nn_backend *cpu = gy_nn_backend_cpu(GYRE_FLOAT64);
    size_t places = w->rows * w->cols, size = w->kernel * w->kernel * w->channels;
    size_t image = w->height * w->width * w->channels;
    double x[256], back[256] = {0}, *columns = calloc(2 * places * size, sizeof(*columns));
    double *other = columns + places * size, forth = 0, across = 0;
    fill_whole(x, image);
    fill_whole(other, places * size);
    cpu->im2col(w, x, columns);
    for (size_t p = 0; p < places; p++)
        for (size_t i = 0; i < size; i++) {
            size_t pixel = i / w->channels;
            double wanted = seen(w, x, p, pixel / w->kernel, pixel % w->kernel, i % w->channels);
            cr_assert_eq(columns[p * size + i], wanted, "place %zu, value %zu", p, i);
        }
    cpu->col2im(w, other, back);
    for (size_t i = 0; i < places * size; i++)
        forth += columns[i] * other[i];
    for (size_t i = 0; i < image; i++)
        across += x[i] * back[i];
    cr_assert_eq(forth, across);
    free(columns);
}

Test(image, columns_of_any_window)
{
    for (int i = 0; i < 500; i++) {
        struct gy_nn_window w = draw_window();
        check_columns(&w);
    }
}

/* A model whose first module is a convolution: its output against sums over the window. */
static void check_convolution(const struct gy_nn_window *w, size_t outputs, bool bias)
{
    gyre_nn_model *model = NULL;
    double x[3 * 256];
    size_t image = w->height * w->width * w->channels, size = w->kernel * w->kernel * w->channels;
    gyre_nn_layer *net = gyre_nn_input_image(w->height, w->width, w->channels);
    net = gyre_nn_conv2d(net, outputs, w->kernel, w->stride, w->padding, bias);
    net = gyre_nn_cost(gyre_nn_flatten(net), 2, GYRE_NN_CROSS_ENTROPY);
    cr_assert_eq(gyre_nn_new(net, GYRE_FLOAT64, 3, &model), GYRE_SUCCESS, "%s", gyre_nn_last_error());
    cr_assert_eq(gyre_nn_tensor(model, 0)->rows, outputs);
    cr_assert_eq(gyre_nn_tensor(model, 0)->cols, size);
    double *weights = gyre_nn_params(model);
    fill_whole(weights, gyre_nn_param_count(model));
    fill_whole(x, 3 * image);
    cr_assert_eq(gyre_nn_forward(model, x, 3, NULL), GYRE_SUCCESS);
    const double *y = model->tape.y[0];
    cr_assert_eq(gyre_nn_value_size(model, 1), w->rows * w->cols * outputs);
    for (size_t i = 0; i < 3 * w->rows * w->cols * outputs; i++) {
        size_t o = i % outputs, place = i / outputs % (w->rows * w->cols), s = i / outputs / (w->rows * w->cols);
        double sum = bias ? weights[outputs * size + o] : 0;
        for (size_t k = 0; k < size; k++) {
            size_t pixel = k / w->channels;
            sum += weights[o * size + k] *
                   seen(w, x + s * image, place, pixel / w->kernel, pixel % w->kernel, k % w->channels);
        }
        cr_assert_eq(y[i], sum, "sample %zu, place %zu, channel %zu: %g, not %g", s, place, o, y[i], sum);
    }
    gyre_nn_free(model);
}

Test(image, convolutions_of_any_window)
{
    for (int i = 0; i < 200; i++) {
        struct gy_nn_window w = draw_window();
        check_convolution(&w, 1 + gy_nn_random_below(&state, 20), i % 2);
    }
}

static void check_pool(const struct gy_nn_window *w, gyre_dtype dtype)
{
    const struct gyre_nn_backend *cpu = gy_nn_backend_cpu(dtype);
    size_t image = w->height * w->width * w->channels, places = w->rows * w->cols;
    double x[2 * 256], dy[2 * 256], wanted[2 * 256] = {0}, out[2 * 256];
    float fx[2 * 256], fdy[2 * 256], fout[2 * 256];
    bool narrow = dtype == GYRE_FLOAT32;
    fill_whole(x, 2 * image); /* of nine values: there are ties */
    fill_whole(dy, 2 * places * w->channels);
    for (size_t i = 0; i < 2 * 256; i++) {
        fx[i] = i < 2 * image ? (float)x[i] : 0;
        fdy[i] = i < 2 * places * w->channels ? (float)dy[i] : 0;
    }
    const void *from = narrow ? (const void *)fx : x, *above = narrow ? (const void *)fdy : dy;
    void *to = narrow ? (void *)fout : out;
    cpu->max_pool(w, 2, from, to);
    for (size_t i = 0; i < 2 * places * w->channels; i++) {
        size_t c = i % w->channels, place = i / w->channels % places, s = i / w->channels / places, best = 0;
        double most = -INFINITY;
        for (size_t k = 0; k < w->kernel * w->kernel; k++) {
            size_t row = place / w->cols * w->stride + k / w->kernel;
            size_t col = place % w->cols * w->stride + k % w->kernel;
            size_t at = s * image + (row * w->width + col) * w->channels + c;
            if (x[at] > most) {
                most = x[at];
                best = at;
            }
        }
        cr_assert_eq(narrow ? (double)fout[i] : out[i], most);
        wanted[best] += dy[i];
    }
    cpu->max_pool_backward(w, 2, from, above, to);
    for (size_t i = 0; i < 2 * image; i++)
        cr_assert_eq(narrow ? (double)fout[i] : out[i], wanted[i], "value %zu", i);
}

Test(image, pooling_of_any_window)
{
    for (int i = 0; i < 500; i++) {
        struct gy_nn_window w = draw_window();
        if (w.kernel > w.height || w.kernel > w.width)
            continue;
        w.padding = 0;
        w.rows = (w.height - w.kernel) / w.stride + 1;
        w.cols = (w.width - w.kernel) / w.stride + 1;
        check_pool(&w, i % 2 ? GYRE_FLOAT32 : GYRE_FLOAT64);
    }
}

Test(image, nan_is_the_largest_and_the_first_one_gets_the_gradient)
{
    struct gy_nn_window w = {.height = 2, .width = 2, .channels = 1, .kernel = 2, .stride = 2, .rows = 1, .cols = 1};
    for (int i = 0; gy_nn_cpu_usable(i); i++) {
        const struct gyre_nn_backend *cpu = gy_nn_cpu_usable(i)[1];
        const double tie[4] = {1, 7, 7, 7}, none[4] = {1, NAN, INFINITY, NAN}, first[4] = {NAN, 1, 2, 3}, dy = 5;
        double y, dx[4];
        cpu->max_pool(&w, 1, tie, &y);
        cpu->max_pool_backward(&w, 1, tie, &dy, dx);
        cr_assert(y == 7 && dx[0] == 0 && dx[1] == 5 && dx[2] == 0 && dx[3] == 0);
        cpu->max_pool(&w, 1, none, &y);
        cpu->max_pool_backward(&w, 1, none, &dy, dx);
        cr_assert(isnan(y) && dx[0] == 0 && dx[1] == 5 && dx[2] == 0 && dx[3] == 0);
        cpu->max_pool(&w, 1, first, &y);
        cpu->max_pool_backward(&w, 1, first, &dy, dx);
        cr_assert(isnan(y) && dx[0] == 5 && dx[1] == 0);
    }
}

/* Against two passes over all rows in double. A mean far from 0 would cost a sum of squares all its digits. */
static void check_statistics(double offset)
{
    enum { SAMPLES = 7, STEPS = 5, COLS = 3, ROWS = SAMPLES * STEPS };
    const struct gyre_nn_backend *cpu = gy_nn_backend_cpu(GYRE_FLOAT64);
    double x[ROWS * COLS], moments[SAMPLES * 2 * COLS], stats[3 * COLS];
    for (size_t i = 0; i < ROWS * COLS; i++)
        x[i] = offset + gy_nn_random_unit(&state);
    cpu->batch_norm_moments(SAMPLES, STEPS, COLS, x, moments);
    cpu->batch_norm_stats(SAMPLES, STEPS, COLS, moments, stats);
    for (size_t c = 0; c < COLS; c++) {
        double mean = 0, spread = 0;
        for (size_t r = 0; r < ROWS; r++)
            mean += (x[r * COLS + c] - offset) / ROWS;
        for (size_t r = 0; r < ROWS; r++)
            spread += pow(x[r * COLS + c] - offset - mean, 2);
        cr_assert_float_eq(stats[c], offset + mean, 1e-14 * (1 + offset));
        cr_assert_float_eq(stats[COLS + c], 1 / sqrt(spread / ROWS + 1e-5), 1e-6);
        cr_assert_float_eq(stats[2 * COLS + c], spread / (ROWS - 1), 1e-8);
    }
}

Test(image, statistics_of_a_batch)
{
    check_statistics(0);
    check_statistics(1e6);
}

static gyre_nn_model *norm_model(size_t features)
{
    gyre_nn_model *model = NULL;
    gyre_nn_layer *net = gyre_nn_cost(gyre_nn_batch_norm(gyre_nn_input(features)), 2, GYRE_NN_CROSS_ENTROPY);
    cr_assert_eq(gyre_nn_new(net, GYRE_FLOAT64, 1, &model), GYRE_SUCCESS);
    return model;
}

static void step(gyre_nn_model *model, gyre_nn_optimizer *optimizer, const double *x, size_t samples)
{
    const int32_t labels[4] = {0, 1, 0, 1};
    gyre_nn_zero_grads(model);
    gyre_nn_train_mode(model, 1, 0, 0);
    cr_assert_eq(gyre_nn_forward(model, x, samples, NULL), GYRE_SUCCESS);
    cr_assert_eq(gyre_nn_evaluate(model, labels, NULL, NULL, NULL), GYRE_SUCCESS);
    cr_assert_eq(gyre_nn_backward(model, NULL, NULL), GYRE_SUCCESS);
    gyre_nn_optimizer_begin(optimizer);
    gyre_nn_optimizer_update(optimizer, 0, gyre_nn_param_count(model), 0, 1 / (double)samples);
}

/* Of 1, 2, 4, 9: mean 4, Σ(x − 4)² = 38, so the variance is 9.5, and 38/3 without bias. Whatever the optimiser, its
 * rate and its decay. */
Test(image, statistics_that_run_along)
{
    const double x[4] = {1, 2, 4, 9};
    for (int kind = GYRE_NN_SGD; kind <= GYRE_NN_ADAMW; kind++) {
        gyre_nn_model *model = norm_model(1);
        struct gyre_nn_optimizer_config config = gyre_nn_optimizer_defaults((gyre_nn_optimizer_kind)kind);
        gyre_nn_optimizer *optimizer = NULL;
        const void *y;
        config.weight_decay = 0.3;
        cr_assert_eq(gyre_nn_optimizer_create(model, &config, &optimizer), GYRE_SUCCESS);
        cr_assert_str_eq(gyre_nn_tensor(model, 2)->name, "0.running_mean");
        cr_assert_str_eq(gyre_nn_tensor(model, 3)->name, "0.running_var");
        for (size_t i = 0; i < 6; i++)
            cr_assert_eq(gyre_nn_tensor_is_statistic(model, i), i == 2 || i == 3);
        double *running = (double *)gyre_nn_params(model) + 2;
        cr_assert(running[0] == 0 && running[1] == 1);
        step(model, optimizer, x, 4);
        cr_assert_float_eq(running[0], 0.4, 1e-14);
        cr_assert_float_eq(running[1], 0.9 + 3.8 / 3, 1e-14);
        step(model, optimizer, x, 4);
        cr_assert_float_eq(running[0], 0.76, 1e-14);
        gyre_nn_test_mode(model); /* the statistics that run along, also for one sample */
        cr_assert_eq(gyre_nn_forward(model, x + 3, 1, &y), GYRE_SUCCESS);
        cr_assert_float_eq(*(double *)model->tape.y[0], (9 - running[0]) / sqrt(running[1] + 1e-5), 1e-12);
        step(model, optimizer, x, 1); /* one row: no deviation at all */
        cr_assert_float_eq(running[0], 0.9 * 0.76 + 0.1, 1e-14);
        cr_assert_float_eq(*(double *)model->tape.y[0], 0, 1e-14);
        gyre_nn_optimizer_free(optimizer);
        gyre_nn_free(model);
    }
}

static uint64_t train_with_threads(size_t samples, size_t neurons)
{
    const struct gyre_nn_image image = {.height = 12, .width = 10, .channels = 3};
    gyre_nn_model *model = NULL;
    float x[5 * 360];
    const int32_t labels[5] = {0, 1, 2, 3, 4};
    state = 77;
    for (size_t i = 0; i < sizeof(x) / sizeof(x[0]); i++)
        x[i] = (float)gy_nn_random_unit(&state);
    cr_assert_eq(gyre_nn_set_threads(samples, neurons), GYRE_SUCCESS);
    cr_assert_eq(gyre_nn_cnn(&image, (size_t[]){37, 40}, 2, NULL, 0, 0, 5, GYRE_FLOAT32, 1, &model), GYRE_SUCCESS);
    gyre_nn_train_mode(model, 1, 0, 0);
    cr_assert_eq(gyre_nn_forward(model, x, 5, NULL), GYRE_SUCCESS);
    cr_assert_eq(gyre_nn_evaluate(model, labels, NULL, NULL, NULL), GYRE_SUCCESS);
    cr_assert_eq(gyre_nn_backward(model, NULL, NULL), GYRE_SUCCESS);
    memcpy(gyre_nn_params(model), gyre_nn_grads(model), gyre_nn_param_count(model) * sizeof(float));
    uint64_t hash = gyre_nn_params_hash(model);
    gyre_nn_free(model);
    gyre_nn_set_threads(1, 1);
    return hash;
}

Test(image, threads_change_no_bit)
{
    uint64_t alone = train_with_threads(1, 1);
    cr_assert_eq(train_with_threads(3, 1), alone);
    cr_assert_eq(train_with_threads(2, 2), alone);
}

static void refused(gyre_nn_layer *net, const char *text)
{
    gyre_nn_model *model = NULL;
    net = gyre_nn_cost(net, 2, GYRE_NN_CROSS_ENTROPY);
    cr_assert_eq(gyre_nn_new(net, GYRE_FLOAT32, 1, &model), GYRE_INVALID_ARGUMENT);
    cr_assert(strstr(gyre_nn_last_error(), text), "'%s' instead of '%s'", gyre_nn_last_error(), text);
}

Test(image, what_has_no_place_is_refused)
{
    refused(gyre_nn_conv2d(gyre_nn_input_image(3, 8, 1), 2, 5, 1, 0, true),
            "a convolution of 5×5 pixels has no place on images of 3×8 with a padding of 0");
    refused(gyre_nn_max_pool2d(gyre_nn_input_image(8, 1, 1), 2, 2), "a pooling of 2×2 pixels has no place");
    refused(gyre_nn_conv2d(gyre_nn_input(64), 2, 3, 1, 1, true), "a convolution needs an image below it");
    refused(gyre_nn_max_pool2d(gyre_nn_flatten(gyre_nn_input_image(8, 8, 1)), 2, 2), "a pooling needs an image");
    refused(gyre_nn_conv2d(gyre_nn_input_image(8, 8, 1), 2, 3, 1, 3, true), "a padding of 3 around windows of 3");
    refused(gyre_nn_conv2d(gyre_nn_input_image(8, 8, 1), 2, 3, 0, 1, true), "a layer of 0 pixels of a step");
    refused(gyre_nn_conv2d(gyre_nn_input_image(8, 8, 1 << 20), 2, 8, 1, 1, true), "is too large");
    refused(gyre_nn_input_image(300, 300, 1), "a layer of 90000 pixels");
    const struct gyre_nn_image image = {.height = 28, .width = 3, .channels = 1};
    gyre_nn_model *model = NULL;
    cr_assert_eq(gyre_nn_cnn(&image, (size_t[]){4, 4}, 2, NULL, 0, 0, 5, GYRE_FLOAT32, 1, &model),
                 GYRE_INVALID_ARGUMENT);
    cr_assert(strstr(gyre_nn_last_error(), "cannot be halved 2 times"), "%s", gyre_nn_last_error());
}
