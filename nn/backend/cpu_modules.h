/* The CPU's operations of the larger modules, for one element type; included by cpu_ops.h, with
 * the same names defined. */

#define NORM_EPSILON ((REAL)1e-5)

static void NAME(gelu)(size_t count, const void *x, void *y)
{
    const REAL *in = x;
    REAL *out = y;
    EACH
    for (size_t i = 0; i < count; i++) {
        REAL bell, below = NORMAL(in[i], &bell);
        out[i] = in[i] * below;
    }
}

static void NAME(gelu_backward)(size_t count, const void *x, const void *dy, void *dx)
{
    const REAL *at = x, *in = dy;
    REAL *out = dx, density = (REAL)(0.5 * M_SQRT1_2 * M_2_SQRTPI); /* 1/√(2π) */
    EACH
    for (size_t i = 0; i < count; i++) {
        REAL bell, below = NORMAL(at[i], &bell);
        out[i] = in[i] * (below + at[i] * density * bell);
    }
}

/* The number `first + i` of a splitmix64 stream is reached without those before it. */
static void NAME(drop)(size_t count, double rate, uint64_t key, uint64_t first, const void *x, void *y)
{
    const REAL *in = x;
    REAL *out = y, scale = (REAL)(1 / (1 - rate));
    uint64_t state = key + first * GY_NN_RANDOM_STRIDE;
    for (size_t i = 0; i < count; i++) {
        double drawn = gy_nn_random_unit(&state);
        out[i] = drawn < rate ? 0 : in[i] * scale;
    }
}

/* Σ (x − mean)². */
static inline REAL NAME(spread)(size_t count, const REAL *x, REAL mean)
{
    NAME(lanes) part = {0};
    size_t i = 0;
    for (; i + LANES <= count; i += LANES)
        part += (LOAD(x) - mean) * (LOAD(x) - mean);
    REAL sum = NAME(add_lanes)(&part);
    for (; i < count; i++)
        sum += (x[i] - mean) * (x[i] - mean);
    return sum;
}

static void NAME(layer_norm)(size_t rows, size_t cols, const void *x, const void *affine, void *stats, void *y)
{
    const REAL *in = x, *gain = affine, *bias = gain + cols;
    REAL *out = y, *keep = stats, n = (REAL)cols;
    for (size_t r = 0; r < rows; r++, in += cols, out += cols, keep += 2) {
        REAL mean = NAME(sum)(cols, in) / n;
        REAL inverse = 1 / SQRT(NAME(spread)(cols, in, mean) / n + NORM_EPSILON);
        EACH
        for (size_t c = 0; c < cols; c++)
            out[c] = (in[c] - mean) * inverse * gain[c] + bias[c];
        keep[0] = mean;
        keep[1] = inverse;
    }
}

static void NAME(layer_norm_backward_params)(size_t rows, size_t cols, const void *x, const void *stats, const void *dy,
                                             void *daffine)
{
    const REAL *at = x, *keep = stats, *in = dy;
    REAL *dgain = daffine, *dbias = dgain + cols;
    for (size_t r = 0; r < rows; r++, at += cols, in += cols, keep += 2) {
        REAL mean = keep[0], inverse = keep[1];
        EACH
        for (size_t c = 0; c < cols; c++) {
            dgain[c] += in[c] * (at[c] - mean) * inverse;
            dbias[c] += in[c];
        }
    }
}

static void NAME(layer_norm_backward_input)(size_t rows, size_t cols, const void *x, const void *affine,
                                            const void *stats, const void *dy, void *dx)
{
    const REAL *at = x, *gain = affine, *keep = stats, *in = dy;
    REAL *out = dx, n = (REAL)cols;
    for (size_t r = 0; r < rows; r++, at += cols, in += cols, out += cols, keep += 2) {
        REAL mean = keep[0], inverse = keep[1];
        NAME(lanes) sums = {0}, products = {0};
        size_t i = 0;
        for (; i + LANES <= cols; i += LANES) {
            NAME(lanes) scaled = LOAD(in) * LOAD(gain);
            sums += scaled;
            products += scaled * (LOAD(at) - mean) * inverse;
        }
        REAL sum = NAME(add_lanes)(&sums), product = NAME(add_lanes)(&products);
        for (; i < cols; i++) {
            sum += in[i] * gain[i];
            product += in[i] * gain[i] * (at[i] - mean) * inverse;
        }
        REAL shift = sum / n, slope = product / n;
        EACH
        for (size_t c = 0; c < cols; c++)
            out[c] = inverse * (in[c] * gain[c] - shift - (at[c] - mean) * inverse * slope);
    }
}

static size_t NAME(find_bad_symbol)(size_t rows, size_t symbols, const void *x)
{
    const REAL *in = x;
    for (size_t r = 0; r < rows; r++)
        if (!(in[r] >= 0 && in[r] < (REAL)symbols && in[r] == (REAL)(size_t)in[r]))
            return r;
    return rows;
}

static void NAME(embed)(size_t rows, size_t cols, const void *table, const void *x, void *y)
{
    const REAL *from = table, *in = x;
    REAL *out = y;
    for (size_t r = 0; r < rows; r++)
        memcpy(out + r * cols, from + (size_t)in[r] * cols, cols * sizeof(REAL));
}

static void NAME(embed_backward)(size_t rows, size_t cols, const void *x, const void *dy, void *dtable)
{
    const REAL *in = x, *d = dy;
    REAL *to = dtable;
    for (size_t r = 0; r < rows; r++, d += cols) {
        REAL *row = to + (size_t)in[r] * cols;
        EACH
        for (size_t c = 0; c < cols; c++)
            row[c] += d[c];
    }
}

/* The arrays of a cell do not overlap. */
static inline void NAME(cell_forward)(size_t hidden, REAL *restrict i, REAL *restrict f, REAL *restrict g,
                                      REAL *restrict o, const REAL *restrict before, REAL *restrict cell,
                                      REAL *restrict out)
{
    EACH
    for (size_t n = 0; n < hidden; n++) {
        i[n] = LOGISTIC(i[n]);
        f[n] = LOGISTIC(f[n]);
        g[n] = TANH(g[n]);
        o[n] = LOGISTIC(o[n]);
        cell[n] = (before ? f[n] * before[n] : 0) + i[n] * g[n];
        out[n] = o[n] * TANH(cell[n]);
    }
}

static void NAME(lstm)(size_t samples, size_t hidden, size_t time, void *gates, const void *c_before, void *c, void *h)
{
    for (size_t s = 0; s < samples; s++) {
        REAL *i = (REAL *)gates + s * time * 4 * hidden, *cell = (REAL *)c + s * time * hidden;
        const REAL *before = c_before ? (const REAL *)c_before + s * time * hidden : NULL;
        REAL *out = (REAL *)h + s * time * hidden;
        if (before) /* two loops, neither of which asks */
            NAME(cell_forward)(hidden, i, i + hidden, i + 2 * hidden, i + 3 * hidden, before, cell, out);
        else
            NAME(cell_forward)(hidden, i, i + hidden, i + 2 * hidden, i + 3 * hidden, NULL, cell, out);
    }
}

static inline void NAME(cell_backward)(size_t hidden, REAL *restrict i, REAL *restrict f, REAL *restrict g,
                                       REAL *restrict o, const REAL *restrict before, const REAL *restrict cell,
                                       const REAL *restrict above, const REAL *restrict later, REAL *restrict down)
{
    EACH
    for (size_t n = 0; n < hidden; n++) {
        REAL squashed = TANH(cell[n]), dout = above[n] + later[n];
        REAL dcell = down[n] + dout * o[n] * (1 - squashed * squashed);
        REAL di = dcell * g[n] * i[n] * (1 - i[n]), dg = dcell * i[n] * (1 - g[n] * g[n]);
        down[n] = dcell * f[n];
        f[n] = before ? dcell * before[n] * f[n] * (1 - f[n]) : 0;
        o[n] = dout * squashed * o[n] * (1 - o[n]);
        i[n] = di;
        g[n] = dg;
    }
}

static void NAME(lstm_backward)(size_t samples, size_t hidden, size_t time, const void *dy, const void *dh, void *dc,
                                const void *c_before, const void *c, void *gates)
{
    for (size_t s = 0; s < samples; s++) {
        REAL *i = (REAL *)gates + s * time * 4 * hidden, *f = i + hidden, *g = f + hidden, *o = g + hidden;
        const REAL *before = c_before ? (const REAL *)c_before + s * time * hidden : NULL;
        const REAL *cell = (const REAL *)c + s * time * hidden, *above = (const REAL *)dy + s * time * hidden;
        const REAL *later = (const REAL *)dh + s * hidden;
        REAL *down = (REAL *)dc + s * hidden;
        if (before)
            NAME(cell_backward)(hidden, i, f, g, o, before, cell, above, later, down);
        else
            NAME(cell_backward)(hidden, i, f, g, o, NULL, cell, above, later, down);
    }
}

static void NAME(softmax)(size_t rows, size_t cols, bool causal, void *x)
{
    REAL *at = x;
    for (size_t r = 0; r < rows; r++, at += cols) {
        size_t seen = causal && r + 1 < cols ? r + 1 : cols;
        REAL top = NAME(largest)(seen, at);
        EACH
        for (size_t c = 0; c < seen; c++)
            at[c] = EXP(at[c] - top);
        REAL sum = NAME(sum)(seen, at);
        EACH
        for (size_t c = 0; c < seen; c++)
            at[c] /= sum;
        for (size_t c = seen; c < cols; c++)
            at[c] = 0;
    }
}

static void NAME(softmax_backward)(size_t rows, size_t cols, const void *y, void *dy)
{
    const REAL *p = y;
    REAL *d = dy;
    for (size_t r = 0; r < rows; r++, p += cols, d += cols) {
        REAL sum = NAME(dot)(cols, p, d);
        EACH
        for (size_t c = 0; c < cols; c++)
            d[c] = p[c] * (d[c] - sum);
    }
}

#undef NORM_EPSILON
