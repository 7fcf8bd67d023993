/* powersgd: a matrix of gradients as a product of two thin ones, by one step of the power method that starts from where
 * the step before ended (Vogels, Karimireddy and Jaggi, 2019). With M of each rank n × m, and Q common, m × r:
 *
 *     P = Σ M·Q (all_reduce),  orthogonal columns,   Q ← Σ Mᵀ·P (all_reduce),   Σ M ≈ P·Qᵀ
 *
 * Each rank keeps M − P·Qᵀ/ranks. A matrix that would not shrink, and every vector, is sent as it is, with the first of
 * the two. A rank sends r·(n + m) floats for n·m. P and Q are float32 for models of either type. */
#include "strategies/compress.h"

#include <math.h>
#include <stdlib.h>

struct matrix {
    size_t offset, rows, cols; /* in the gradients */
    size_t r, p, q;            /* rank (0: sent as it is), and where its P and Q begin */
};

struct power {
    struct matrix *matrices;
    size_t nmatrices, np, nq, nplain;
    float *p, *q;
    struct gy_vector plain;
};

static void plan(const struct gy_nn_compress *self, struct power *power)
{
    size_t r = (size_t)self->run.settings[GY_NN_RANK];
    for (size_t i = 0; i < power->nmatrices; i++) {
        const struct gyre_nn_tensor *tensor = gyre_nn_tensor(self->run.model, i);
        struct matrix *m = &power->matrices[i];
        bool shrinks = tensor->rank == 2 && r * (tensor->rows + tensor->cols) < tensor->rows * tensor->cols;
        *m = (struct matrix){.offset = tensor->offset, .rows = tensor->rows, .cols = tensor->cols};
        m->r = shrinks ? r : 0;
        m->p = power->np;
        m->q = power->nq;
        power->np += m->r * m->rows;
        power->nq += m->r * m->cols;
        power->nplain += shrinks ? 0 : m->rows * m->cols;
    }
}

/* The first Q is any that has full rank, the same on every rank. */
static void fill(float *q, size_t count)
{
    uint64_t state = 1;
    for (size_t i = 0; i < count; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        q[i] = (float)(int32_t)(state >> 32) * 0x1p-31f;
    }
}

static gyre_status open(struct gy_nn_compress *self)
{
    struct power *power = calloc(1, sizeof(*power));
    if (!power)
        return GYRE_NO_MEMORY;
    self->work = power;
    power->nmatrices = gyre_nn_tensor_count(self->run.model);
    power->matrices = calloc(power->nmatrices, sizeof(*power->matrices));
    if (!power->matrices)
        return GYRE_NO_MEMORY;
    plan(self, power);
    power->p = calloc(power->np + 1, sizeof(*power->p));
    power->q = calloc(power->nq + 1, sizeof(*power->q));
    power->plain.dtype = self->grads.dtype;
    power->plain.data = calloc(power->nplain + 1, gyre_dtype_size(self->grads.dtype));
    if (!power->p || !power->q || !power->plain.data)
        return GYRE_NO_MEMORY;
    fill(power->q, power->nq);
    return GYRE_SUCCESS;
}

static void close(struct gy_nn_compress *self)
{
    struct power *power = self->work;
    if (!power)
        return;
    free(power->matrices);
    free(power->p);
    free(power->q);
    free(power->plain.data);
    free(power);
}

/* P = M·Q. */
static void multiply(const struct matrix *m, struct gy_vector x, const float *q, float *p)
{
    for (size_t i = 0; i < m->rows; i++)
        for (size_t k = 0; k < m->r; k++) {
            double sum = 0;
            for (size_t j = 0; j < m->cols; j++)
                sum += gy_vector_get(x, m->offset + i * m->cols + j) * (double)q[j * m->r + k];
            p[i * m->r + k] = (float)sum;
        }
}

/* Q = Mᵀ·P. */
static void multiply_transposed(const struct matrix *m, struct gy_vector x, const float *p, float *q)
{
    for (size_t j = 0; j < m->cols; j++)
        for (size_t k = 0; k < m->r; k++) {
            double sum = 0;
            for (size_t i = 0; i < m->rows; i++)
                sum += gy_vector_get(x, m->offset + i * m->cols + j) * (double)p[i * m->r + k];
            q[j * m->r + k] = (float)sum;
        }
}

static double product_of_columns(const float *p, size_t rows, size_t r, size_t a, size_t b)
{
    double sum = 0;
    for (size_t i = 0; i < rows; i++)
        sum += (double)p[i * r + a] * (double)p[i * r + b];
    return sum;
}

/* Gram and Schmidt, column by column. A column that has no direction of its own becomes 0. */
static void orthogonalise(const struct matrix *m, float *p)
{
    for (size_t a = 0; a < m->r; a++) {
        for (size_t b = 0; b < a; b++) {
            double along = product_of_columns(p, m->rows, m->r, a, b);
            for (size_t i = 0; i < m->rows; i++)
                p[i * m->r + a] -= (float)(along * (double)p[i * m->r + b]);
        }
        double norm = sqrt(product_of_columns(p, m->rows, m->r, a, a));
        double scale = norm > 1e-20 ? 1 / norm : 0;
        for (size_t i = 0; i < m->rows; i++)
            p[i * m->r + a] = (float)((double)p[i * m->r + a] * scale);
    }
}

/* grads = P·Qᵀ, which is of all ranks; each keeps its M less its share. */
static void restore(struct gy_nn_compress *self, const struct matrix *m, const float *p, const float *q)
{
    for (size_t i = 0; i < m->rows; i++)
        for (size_t j = 0; j < m->cols; j++) {
            size_t at = m->offset + i * m->cols + j;
            double sum = 0;
            for (size_t k = 0; k < m->r; k++)
                sum += (double)p[i * m->r + k] * (double)q[j * m->r + k];
            gy_vector_set(self->grads, at, sum);
            sum = gy_vector_get(self->grads, at); /* as rounded */
            gy_vector_set(self->residual, at, gy_vector_get(self->residual, at) - sum / self->run.ranks);
        }
}

/* What is sent as it is: to and from its place behind one another. */
static void pack(struct gy_nn_compress *self, const struct power *power, bool back)
{
    size_t at = 0;
    for (size_t i = 0; i < power->nmatrices; i++) {
        const struct matrix *m = &power->matrices[i];
        for (size_t k = 0; k < m->rows * m->cols && m->r == 0; k++, at++) {
            gy_vector_set(back ? self->grads : power->plain, back ? m->offset + k : at,
                          back ? gy_vector_get(power->plain, at) : gy_vector_get(self->residual, m->offset + k));
            gy_vector_set(self->residual, m->offset + k, 0);
        }
    }
}

static gyre_status sum(gyre_comm *comm, void *x, size_t count, gyre_dtype dtype)
{
    return comm && count ? gyre_all_reduce(comm, x, x, count, dtype, GYRE_SUM) : GYRE_SUCCESS;
}

static gyre_status exchange(struct gy_nn_compress *self)
{
    struct power *power = self->work;
    gyre_comm *comm = self->run.comm;
    const struct matrix *m = power->matrices, *end = m + power->nmatrices;
    for (; m < end; m++)
        multiply(m, self->residual, power->q + m->q, power->p + m->p);
    pack(self, power, false);
    gyre_status status = sum(comm, power->plain.data, power->nplain, power->plain.dtype);
    status = status ? status : sum(comm, power->p, power->np, GYRE_FLOAT32);
    if (status != GYRE_SUCCESS)
        return status;
    for (m = power->matrices; m < end; m++) {
        orthogonalise(m, power->p + m->p);
        multiply_transposed(m, self->residual, power->p + m->p, power->q + m->q);
    }
    status = sum(comm, power->q, power->nq, GYRE_FLOAT32);
    if (status != GYRE_SUCCESS)
        return status;
    pack(self, power, true);
    for (m = power->matrices; m < end; m++)
        if (m->r > 0)
            restore(self, m, power->p + m->p, power->q + m->q);
    return GYRE_SUCCESS;
}

static void arrays(struct gy_nn_compress *self, struct gyre_nn_array *arrays_p, size_t *count_p)
{
    struct power *power = self->work;
    arrays_p[(*count_p)++] = (struct gyre_nn_array){.name = "powersgd.q",
                                                    .data = power->q,
                                                    .count = power->nq + 1,
                                                    .dtype = GYRE_FLOAT32,
                                                    .placement = GYRE_NN_REPLICATED};
}

const struct gy_nn_codec gy_nn_codec_powersgd = {
    .name = "powersgd", .open = open, .close = close, .exchange = exchange, .arrays = arrays};
