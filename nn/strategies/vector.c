/* One loop per operation and type. */
#include "strategies/vector.h"

#include <math.h>
#include <string.h>

#define BLEND(type)                                                                             \
    do {                                                                                        \
        const type *in = (const type *)gy_vector_at(x, first);                                  \
        type *out = (type *)gy_vector_at(y, first), p = (type)a, q = (type)b;                   \
        for (size_t i = 0; i < count; i++)                                                      \
            out[i] = q == 0 ? p * in[i] : q == 1 ? out[i] + p * in[i] : p * in[i] + q * out[i]; \
    } while (0)

void gy_vector_blend(size_t first, size_t count, double a, struct gy_vector x, double b, struct gy_vector y)
{
    if (x.dtype == GYRE_FLOAT64)
        BLEND(double);
    else
        BLEND(float);
}

void gy_vector_scale(size_t first, size_t count, double a, struct gy_vector x, struct gy_vector y)
{
    gy_vector_blend(first, count, a, x, 0, y);
}

void gy_vector_add(size_t first, size_t count, double a, struct gy_vector x, struct gy_vector y)
{
    gy_vector_blend(first, count, a, x, 1, y);
}

void gy_vector_copy(size_t first, size_t count, struct gy_vector x, struct gy_vector y)
{
    memcpy(gy_vector_at(y, first), gy_vector_at(x, first), count * gyre_dtype_size(x.dtype));
}

double gy_vector_clip(size_t count, struct gy_vector grads, double scale, double clip_norm)
{
    double sum = 0;
    if (clip_norm <= 0)
        return scale;
    for (size_t i = 0; i < count; i++) {
        double value = gy_vector_get(grads, i);
        sum += value * value;
    }
    double norm = sqrt(sum) * scale;
    return norm > clip_norm ? scale * (clip_norm / norm) : scale;
}
