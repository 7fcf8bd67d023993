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

/* The part of a tensor that is in [*low_p, *high_p). */
static bool find_part(const struct gyre_nn_tensor *tensor, size_t *low_p, size_t *high_p)
{
    size_t low = tensor->offset, high = low + tensor->rows * tensor->cols;
    *low_p = low > *low_p ? low : *low_p;
    *high_p = high < *high_p ? high : *high_p;
    return *low_p < *high_p;
}

double gy_vector_add_squares(const gyre_nn_model *model, struct gy_vector grads, size_t first, size_t count, double sum)
{
    for (size_t t = 0; t < gyre_nn_tensor_count(model); t++) {
        size_t low = first, high = first + count;
        if (gyre_nn_tensor_is_statistic(model, t) || !find_part(gyre_nn_tensor(model, t), &low, &high))
            continue;
        for (size_t i = low; i < high; i++) {
            double value = gy_vector_get(grads, i);
            sum += value * value;
        }
    }
    return sum;
}

double gy_vector_clip_part(const gyre_nn_model *model, struct gy_vector grads, size_t first, size_t count, double scale,
                           double sum, double clip_norm)
{
    double norm = sqrt(sum) * scale;
    if (!(norm > clip_norm))
        return scale;
    for (size_t t = 0; t < gyre_nn_tensor_count(model); t++) {
        size_t low = first, high = first + count;
        if (gyre_nn_tensor_is_statistic(model, t) && find_part(gyre_nn_tensor(model, t), &low, &high))
            gy_vector_scale(low, high - low, norm / clip_norm, grads, grads);
    }
    return scale * (clip_norm / norm);
}

double gy_vector_clip(const gyre_nn_model *model, struct gy_vector grads, double scale, double clip_norm)
{
    size_t count = gyre_nn_param_count(model);
    if (clip_norm <= 0)
        return scale;
    return gy_vector_clip_part(model, grads, 0, count, scale, gy_vector_add_squares(model, grads, 0, count, 0),
                               clip_norm);
}
