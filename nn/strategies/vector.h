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

/* Over [first, first + count): y = a·x; y = y + a·x; y = a·x + b·y; y = x. */
void gy_vector_scale(size_t first, size_t count, double a, struct gy_vector x, struct gy_vector y);
void gy_vector_add(size_t first, size_t count, double a, struct gy_vector x, struct gy_vector y);
void gy_vector_blend(size_t first, size_t count, double a, struct gy_vector x, double b, struct gy_vector y);
void gy_vector_copy(size_t first, size_t count, struct gy_vector x, struct gy_vector y);
/* Σ x², in double. */
double gy_vector_sum_squares(size_t first, size_t count, struct gy_vector x);

#endif
