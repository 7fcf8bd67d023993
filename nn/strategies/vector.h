/* Arithmetic on arrays of float or double, for strategies. Counts and offsets are in elements; factors are rounded to
 * the arrays' type. Every result depends on the same index alone. */
#ifndef GY_NN_VECTOR_H
#define GY_NN_VECTOR_H

#include <gyre/nn.h>

struct gy_vector {
    gyre_dtype dtype;
    void *data; /* NULL: there is none */
};

static inline void *gy_vector_at(struct gy_vector x, size_t first)
{
    return (char *)x.data + first * (x.dtype == GYRE_FLOAT64 ? sizeof(double) : sizeof(float));
}

static inline double gy_vector_get(struct gy_vector x, size_t i)
{
    return x.dtype == GYRE_FLOAT64 ? ((const double *)x.data)[i] : (double)((const float *)x.data)[i];
}

static inline void gy_vector_set(struct gy_vector x, size_t i, double value)
{
    if (x.dtype == GYRE_FLOAT64)
        ((double *)x.data)[i] = value;
    else
        ((float *)x.data)[i] = (float)value;
}

/* Over [first, first + count): y = a·x; y = y + a·x; y = a·x + b·y; y = x. */
void gy_vector_scale(size_t first, size_t count, double a, struct gy_vector x, struct gy_vector y);
void gy_vector_add(size_t first, size_t count, double a, struct gy_vector x, struct gy_vector y);
void gy_vector_blend(size_t first, size_t count, double a, struct gy_vector x, double b, struct gy_vector y);
void gy_vector_copy(size_t first, size_t count, struct gy_vector x, struct gy_vector y);
/* Returns the factor that makes gradient sums the mean gradient, and clips its norm: scale, or less. clip_norm 0: no
 * clipping. Statistics of batch norms are not in the norm, and their gradients grow by what the factor takes away. */
double gy_vector_clip(const gyre_nn_model *model, struct gy_vector grads, double scale, double clip_norm);
/* The parts of it, for [first, first + count) of the model's gradients: sum and their squares, added in order; and
 * clipping by the norm that comes of all sums. */
double gy_vector_add_squares(const gyre_nn_model *model, struct gy_vector grads, size_t first, size_t count,
                             double sum);
double gy_vector_clip_part(const gyre_nn_model *model, struct gy_vector grads, size_t first, size_t count, double scale,
                           double sum, double clip_norm);

#endif
