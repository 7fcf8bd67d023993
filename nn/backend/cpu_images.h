/* The CPU's operations on images and batches, for one element type; included by cpu_ops.h, with the same names
 * defined. All sums go over rows in order, and the loops over columns or channels are the inner ones, so bits depend
 * neither on the vector width nor on threads. */

#define BATCH_NORM_EPSILON 1e-5

/* Row `ky` of the window at place (r, c), as a part of a row of the image: columns [low, high) of the window are in the
 * image and begin at *at_p, an element of it. False: the whole row is padding. */
static inline bool NAME(window_row)(const struct gy_nn_window *w, size_t r, size_t c, size_t ky, size_t *low_p,
                                    size_t *high_p, size_t *at_p)
{
    size_t top = r * w->stride + ky, left = c * w->stride;
    if (top < w->padding || top - w->padding >= w->height)
        return false;
    size_t end = w->width + w->padding - left;
    *low_p = left < w->padding ? w->padding - left : 0;
    *high_p = end < w->kernel ? end : w->kernel;
    *at_p = ((top - w->padding) * w->width + left + *low_p - w->padding) * w->channels;
    return true;
}

static void NAME(im2col)(const struct gy_nn_window *window, const void *x, void *columns)
{
    const REAL *in = x;
    REAL *out = columns;
    size_t channels = window->channels, length = window->kernel * channels, low, high, at;
    for (size_t r = 0; r < window->rows; r++)
        for (size_t c = 0; c < window->cols; c++)
            for (size_t ky = 0; ky < window->kernel; ky++, out += length) {
                if (!NAME(window_row)(window, r, c, ky, &low, &high, &at)) {
                    memset(out, 0, length * sizeof(REAL));
                    continue;
                }
                memset(out, 0, low * channels * sizeof(REAL));
                memcpy(out + low * channels, in + at, (high - low) * channels * sizeof(REAL));
                memset(out + high * channels, 0, (window->kernel - high) * channels * sizeof(REAL));
            }
}

static void NAME(col2im)(const struct gy_nn_window *window, const void *columns, void *x)
{
    const REAL *in = columns;
    REAL *out = x;
    size_t channels = window->channels, length = window->kernel * channels, low, high, at;
    for (size_t r = 0; r < window->rows; r++)
        for (size_t c = 0; c < window->cols; c++)
            for (size_t ky = 0; ky < window->kernel; ky++, in += length) {
                if (!NAME(window_row)(window, r, c, ky, &low, &high, &at))
                    continue;
                const REAL *from = in + low * channels;
                REAL *to = out + at;
                EACH
                for (size_t i = 0; i < (high - low) * channels; i++)
                    to[i] += from[i];
            }
}

static void NAME(transpose)(size_t rows, size_t cols, const void *x, void *y)
{
    const REAL *in = x;
    REAL *out = y;
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++)
            out[c * rows + r] = in[r * cols + c];
}

/* The element of the image that has the largest value of a channel in the window at (r, c). */
static inline size_t NAME(largest_in)(const struct gy_nn_window *w, const REAL *image, size_t r, size_t c,
                                      size_t channel)
{
    size_t first = (r * w->stride * w->width + c * w->stride) * w->channels + channel, best = first;
    REAL most = image[first];
    for (size_t ky = 0; ky < w->kernel; ky++)
        for (size_t kx = 0; kx < w->kernel; kx++) {
            size_t at = first + (ky * w->width + kx) * w->channels;
            REAL value = image[at];
            if (value > most || (isnan(value) && !isnan(most))) {
                most = value;
                best = at;
            }
        }
    return best;
}

static void NAME(max_pool)(const struct gy_nn_window *window, size_t samples, const void *x, void *y)
{
    const REAL *in = x;
    REAL *out = y;
    size_t channels = window->channels;
    for (size_t s = 0; s < samples; s++, in += window->height * window->width * channels)
        for (size_t r = 0; r < window->rows; r++)
            for (size_t c = 0; c < window->cols; c++, out += channels)
                for (size_t k = 0; k < channels; k++)
                    out[k] = in[NAME(largest_in)(window, in, r, c, k)];
}

static void NAME(max_pool_backward)(const struct gy_nn_window *window, size_t samples, const void *x, const void *dy,
                                    void *dx)
{
    const REAL *at = x, *in = dy;
    REAL *out = dx;
    size_t channels = window->channels, image = window->height * window->width * channels;
    memset(out, 0, samples * image * sizeof(REAL));
    for (size_t s = 0; s < samples; s++, at += image, out += image)
        for (size_t r = 0; r < window->rows; r++)
            for (size_t c = 0; c < window->cols; c++, in += channels)
                for (size_t k = 0; k < channels; k++)
                    out[NAME(largest_in)(window, at, r, c, k)] += in[k];
}

static void NAME(batch_norm_moments)(size_t samples, size_t rows, size_t cols, const void *x, double *moments)
{
    const REAL *in = x;
    for (size_t s = 0; s < samples; s++, in += rows * cols, moments += 2 * cols) {
        double *mean = moments, *spread = moments + cols;
        memset(moments, 0, 2 * cols * sizeof(double));
        for (size_t r = 0; r < rows; r++) {
            EACH
            for (size_t c = 0; c < cols; c++)
                mean[c] += (double)in[r * cols + c];
        }
        for (size_t c = 0; c < cols; c++)
            mean[c] /= (double)rows;
        for (size_t r = 0; r < rows; r++) {
            EACH
            for (size_t c = 0; c < cols; c++) {
                double apart = (double)in[r * cols + c] - mean[c];
                spread[c] += apart * apart;
            }
        }
    }
}

/* Chan, Golub and LeVeque (1979): of two parts with counts a and b, means and spreads, δ the difference of the means:
 * mean = mean_a + δ·b/(a + b), spread = spread_a + spread_b + δ²·a·b/(a + b). */
static void NAME(batch_norm_stats)(size_t samples, size_t rows, size_t cols, const double *moments, void *stats)
{
    REAL *keep = stats;
    double part = (double)rows, all = part * (double)samples;
    for (size_t c = 0; c < cols; c++) {
        double mean = 0, spread = 0;
        for (size_t s = 0; s < samples; s++) {
            double before = part * (double)s, apart = moments[2 * s * cols + c] - mean;
            mean += apart * part / (before + part);
            spread += moments[(2 * s + 1) * cols + c] + apart * apart * before * part / (before + part);
        }
        keep[c] = (REAL)mean;
        keep[cols + c] = (REAL)(1 / sqrt(spread / all + BATCH_NORM_EPSILON));
        keep[2 * cols + c] = (REAL)(all > 1 ? spread / (all - 1) : 0);
    }
}

/* A variance below 0 can only be a user's. */
static void NAME(batch_norm_running)(size_t cols, const void *running, void *stats)
{
    const REAL *mean = running, *variance = mean + cols;
    REAL *keep = stats;
    for (size_t c = 0; c < cols; c++) {
        keep[c] = mean[c];
        keep[2 * cols + c] = variance[c] < 0 ? 0 : variance[c];
        keep[cols + c] = (REAL)(1 / sqrt((double)keep[2 * cols + c] + BATCH_NORM_EPSILON));
    }
}

static void NAME(batch_norm)(size_t rows, size_t cols, const void *x, const void *affine, const void *stats, void *y)
{
    const REAL *in = x, *gain = affine, *bias = gain + cols, *mean = stats, *inverse = mean + cols;
    REAL *out = y;
    for (size_t r = 0; r < rows; r++, in += cols, out += cols) {
        EACH
        for (size_t c = 0; c < cols; c++)
            out[c] = (in[c] - mean[c]) * inverse[c] * gain[c] + bias[c];
    }
}

static void NAME(batch_norm_sums)(size_t samples, size_t rows, size_t cols, const void *x, const void *stats,
                                  const void *dy, double *sums)
{
    const REAL *at = x, *in = dy, *mean = stats, *inverse = mean + cols;
    for (size_t s = 0; s < samples; s++, sums += 2 * cols) {
        double *plain = sums, *products = sums + cols;
        memset(sums, 0, 2 * cols * sizeof(double));
        for (size_t r = 0; r < rows; r++, at += cols, in += cols) {
            EACH
            for (size_t c = 0; c < cols; c++) {
                plain[c] += (double)in[c];
                products[c] += (double)in[c] * (double)((at[c] - mean[c]) * inverse[c]);
            }
        }
    }
}

static void NAME(batch_norm_backward_params)(size_t samples, size_t cols, const double *sums, void *daffine)
{
    REAL *dgain = daffine, *dbias = dgain + cols;
    for (size_t c = 0; c < cols; c++) {
        double plain = 0, product = 0;
        for (size_t s = 0; s < samples; s++) {
            plain += sums[2 * s * cols + c];
            product += sums[(2 * s + 1) * cols + c];
        }
        dgain[c] += (REAL)product;
        dbias[c] += (REAL)plain;
    }
}

static void NAME(batch_norm_track)(size_t cols, double weight, const void *running, const void *stats, void *drunning)
{
    const REAL *now = running, *seen = stats;
    REAL *out = drunning;
    for (size_t c = 0; c < cols; c++) {
        out[c] += (REAL)weight * (now[c] - seen[c]);
        out[cols + c] += (REAL)weight * (now[cols + c] - seen[2 * cols + c]);
    }
}

static void NAME(batch_norm_backward_input)(size_t rows, size_t cols, const void *x, const void *affine,
                                            const void *stats, const double *means, const void *dy, void *dx)
{
    const REAL *at = x, *in = dy, *gain = affine, *mean = stats, *inverse = mean + cols;
    REAL *out = dx;
    for (size_t r = 0; r < rows; r++, at += cols, in += cols, out += cols) {
        EACH
        for (size_t c = 0; c < cols; c++) {
            REAL normal = (at[c] - mean[c]) * inverse[c];
            out[c] = gain[c] * inverse[c] * (in[c] - (REAL)means[c] - normal * (REAL)means[cols + c]);
        }
    }
}

#undef BATCH_NORM_EPSILON
