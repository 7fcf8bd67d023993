/* exp, tanh, the logistic function and the normal distribution for float, as arithmetic without branches or calls, so
 * that a loop over them is vectorised; libm needs a call per element. The coefficients are least-maximum fits of the
 * named functions, made for these intervals.
 * Guarantee: within 3e-7 of the value, relatively (tests/nn/backend_test.c); NaN gives NaN; the same bits whatever the
 * width of the vectors, as contraction is off. */
#ifndef GY_NN_BACKEND_CPU_FLOAT_H
#define GY_NN_BACKEND_CPU_FLOAT_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* e^x = 2^n · e^r, |r| <= ln(2)/2. n is found by a sum whose last place is 1, so that its bits hold n. The argument
 * is clamped to the range of normal results: 1.2e-38 to 1.7e38. */
static inline float gy_nn_float_exp(float x)
{
    const float shift = 12582912; /* 1.5 · 2^23 */
    float kept = x > 88 ? 88 : x;
    kept = kept < -87 ? -87 : kept;
    float shifted = kept * 1.44269504f + shift, n = shifted - shift;
    float r = kept - n * 0.693359375f + n * 2.12194440e-4f; /* ln 2 in two parts: n times the first is exact */
    float tail = 0.0013813142f;
    tail = tail * r + 0.00836941879f;
    tail = tail * r + 0.0416684560f;
    tail = tail * r + 0.166665152f;
    tail = tail * r + 0.499999940f;
    float value = tail * r * r + r + 1;
    uint32_t bits;
    memcpy(&bits, &shifted, sizeof(bits));
    bits = (bits + 127) << 23;
    float power;
    memcpy(&power, &bits, sizeof(power));
    return value * power;
}

static inline float gy_nn_float_logistic(float x)
{
    return 1 / (1 + gy_nn_float_exp(-x));
}

/* Near zero an odd polynomial, or cancellation would take the digits. */
static inline float gy_nn_float_tanh(float x)
{
    float size = x < 0 ? -x : x, square = x * x;
    float far = 1 - 2 / (gy_nn_float_exp(2 * size) + 1);
    float near = -0.00570499059f;
    near = near * square + 0.0206390899f;
    near = near * square - 0.0537397154f;
    near = near * square + 0.133314416f;
    near = near * square - 0.333332807f;
    near = near * square * size + size;
    float value = size < 0.625f ? near : far;
    return x < 0 ? -value : value;
}

/* The share of the normal distribution below x, (1 + erf(x/√2))/2, and *bell_p = e^(−x²/2). With z = |x|/√2 the tail is
 * erfc(z) = e^(−z²)·t·Q(t), t = 1/(1 + 0.3275911·z): the form of Abramowitz and Stegun, 7.1.26, with more terms. */
static inline float gy_nn_float_normal(float x, float *bell_p)
{
    float size = x < 0 ? -x : x, bell = gy_nn_float_exp(-0.5f * x * x);
    float t = 1 / (1 + 0.231641888f * size);
    float q = -0.143816918f;
    q = q * t + 0.507840633f;
    q = q * t - 0.424998134f;
    q = q * t + 0.470643789f;
    q = q * t + 0.0163721144f;
    q = q * t + 0.208556369f;
    q = q * t + 0.180325553f;
    q = q * t + 0.185076565f;
    float tail = 0.5f * bell * t * q;
    *bell_p = bell;
    return x < 0 ? tail : 1 - tail;
}

/* The same for double, by libm: it is for checks, and must be exact rather than quick. */
static inline double gy_nn_double_normal(double x, double *bell_p)
{
    *bell_p = exp(-0.5 * x * x);
    return 0.5 * (1 + erf(x * M_SQRT1_2));
}

static inline double gy_nn_double_logistic(double x)
{
    return 1 / (1 + exp(-x));
}

#endif
