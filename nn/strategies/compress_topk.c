/* topk: of its gradient each rank sends the k elements of largest magnitude, and keeps the others for later (Aji and
 * Heafield, 2017). Places and values of all ranks are gathered, and added in rank order. A rank receives k·(ranks − 1)
 * pairs: with many ranks or a large share more than all_reduce moves. */
#include "strategies/compress.h"

#include <math.h>
#include <stdlib.h>

struct topk {
    size_t k;
    double *sizes;
    uint32_t *places, *all_places;
    struct gy_vector values, all_values;
};

static gyre_status open(struct gy_nn_compress *self)
{
    struct topk *top = calloc(1, sizeof(*top));
    size_t ranks = (size_t)self->run.ranks, element = gyre_dtype_size(self->grads.dtype);
    if (!top)
        return GYRE_NO_MEMORY;
    self->work = top;
    if (self->count > UINT32_MAX)
        return GYRE_UNSUPPORTED;
    top->k = (size_t)ceil(self->run.settings[GY_NN_SHARE] * (double)self->count);
    top->k = top->k > self->count ? self->count : top->k;
    top->sizes = calloc(self->count, sizeof(*top->sizes));
    top->places = calloc(top->k, sizeof(*top->places));
    top->all_places = calloc(ranks * top->k, sizeof(*top->all_places));
    top->values = (struct gy_vector){self->grads.dtype, calloc(top->k, element)};
    top->all_values = (struct gy_vector){self->grads.dtype, calloc(ranks * top->k, element)};
    return top->sizes && top->places && top->all_places && top->values.data && top->all_values.data ? GYRE_SUCCESS
                                                                                                    : GYRE_NO_MEMORY;
}

static void close(struct gy_nn_compress *self)
{
    struct topk *top = self->work;
    if (!top)
        return;
    free(top->sizes);
    free(top->places);
    free(top->all_places);
    free(top->values.data);
    free(top->all_values.data);
    free(top);
}

/* The k-th largest of x[0 … n−1], which are reordered (Hoare's selection). 0 < k <= n. */
static double kth_largest(double *x, size_t n, size_t k)
{
    size_t low = 0, high = n - 1, wanted = k - 1;
    while (low < high) {
        double pivot = x[low + (high - low) / 2];
        size_t i = low, j = high;
        for (;;) {
            while (x[i] > pivot)
                i++;
            while (x[j] < pivot)
                j--;
            if (i >= j)
                break;
            double held = x[i];
            x[i++] = x[j];
            x[j--] = held;
        }
        if (wanted <= j)
            high = j;
        else
            low = j + 1;
    }
    return x[wanted];
}

static double size_of(struct gy_vector x, size_t i)
{
    double size = fabs(gy_vector_get(x, i));
    return isnan(size) ? INFINITY : size; /* a NaN is not kept back */
}

static void take(struct gy_nn_compress *self, struct topk *top, size_t at, size_t place)
{
    top->places[at] = (uint32_t)place;
    gy_vector_set(top->values, at, gy_vector_get(self->residual, place));
    gy_vector_set(self->residual, place, 0);
}

/* What is above the threshold; then, in their order, as many of those that equal it as there is room for. */
static void pick(struct gy_nn_compress *self, struct topk *top)
{
    size_t taken = 0;
    for (size_t i = 0; i < self->count; i++)
        top->sizes[i] = size_of(self->residual, i);
    double threshold = kth_largest(top->sizes, self->count, top->k);
    for (size_t i = 0; i < self->count; i++)
        if (size_of(self->residual, i) > threshold)
            take(self, top, taken++, i);
    for (size_t i = 0; i < self->count && taken < top->k; i++)
        if (size_of(self->residual, i) == threshold)
            take(self, top, taken++, i);
    for (; taken < top->k; taken++) /* a threshold of 0: those taken above are 0 now, and may be taken again */
        take(self, top, taken, 0);
}

static gyre_status exchange(struct gy_nn_compress *self)
{
    struct topk *top = self->work;
    struct gy_vector values = top->values;
    const uint32_t *places = top->places;
    gyre_comm *comm = self->run.comm;
    pick(self, top);
    if (comm) {
        gyre_status status = gyre_all_gather(comm, places, top->all_places, top->k, GYRE_UINT32);
        status = status ? status : gyre_all_gather(comm, values.data, top->all_values.data, top->k, values.dtype);
        if (status != GYRE_SUCCESS)
            return status;
        values = top->all_values;
        places = top->all_places;
    }
    gyre_nn_zero_grads(self->run.model);
    for (size_t i = 0; i < (size_t)self->run.ranks * top->k; i++)
        gy_vector_set(self->grads, places[i], gy_vector_get(self->grads, places[i]) + gy_vector_get(values, i));
    return GYRE_SUCCESS;
}

const struct gy_nn_codec gy_nn_codec_topk = {.name = "topk", .open = open, .close = close, .exchange = exchange};
