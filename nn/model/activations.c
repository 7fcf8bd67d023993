/* Memory that grows with the batch: one allocation for what forward leaves, one for what backward works with. Sizes are
 * products of numbers from outside, so each is checked. */
#include "base/error.h"
#include "model/model.h"

#include <limits.h>
#include <stdlib.h>

#define ALIGN ((size_t)16) /* elements: every part begins at 64 bytes at least */

/* Places a part of `size` elements per sample; false where the sum is beyond a size_t of bytes. */
static bool place(size_t size, size_t samples, size_t *total, size_t *offset_p)
{
    size_t elements;
    *offset_p = *total;
    return !__builtin_mul_overflow(size, samples, &elements) && elements < SIZE_MAX / 16 - *total - ALIGN &&
           (*total += (elements + ALIGN - 1) / ALIGN * ALIGN, true);
}

static void *part(const gyre_nn_model *model, void *memory, size_t offset)
{
    return (char *)memory + offset * model->backend->element;
}

static gyre_status refuse(size_t samples)
{
    return gy_nn_fail(GYRE_NO_MEMORY,
                      "no memory for the activations of %zu samples; use a smaller batch or --accumulate", samples);
}

/* BLAS counts rows in an int. */
static bool fits_blas(const gyre_nn_model *model, size_t samples)
{
    for (size_t i = 0; i < model->nmodules; i++)
        if (samples > INT_MAX / model->modules[i].in.time)
            return false;
    return true;
}

gyre_status gy_nn_tape_reserve(const gyre_nn_model *model, struct gy_nn_tape *tape, size_t first, size_t last,
                               size_t samples)
{
    if (samples <= tape->capacity && tape->first == first && tape->last == last)
        return GYRE_SUCCESS;
    if (!fits_blas(model, samples))
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "a batch of %zu samples: samples times steps are at most %d", samples,
                          INT_MAX);
    gy_nn_tape_free(model, tape);
    size_t n = model->nmodules, total = 0;
    size_t *offsets = calloc(2 * n, sizeof(*offsets));
    tape->y = calloc(n, sizeof(*tape->y));
    tape->state = calloc(n, sizeof(*tape->state));
    tape->outside = calloc(n + 1, sizeof(*tape->outside));
    tape->have = calloc(n + 1, sizeof(*tape->have));
    tape->gathering = calloc(1, sizeof(*tape->gathering));
    bool ok = offsets && tape->y && tape->state && tape->outside && tape->have && tape->gathering;
    for (size_t i = first; ok && i < last; i++)
        ok = place(gy_nn_shape_size(model->modules[i].out), samples, &total, &offsets[2 * i]) &&
             place(model->modules[i].state, samples, &total, &offsets[2 * i + 1]);
    tape->memory = ok ? model->backend->alloc(total * model->backend->element) : NULL;
    for (size_t i = first; ok && tape->memory && i < last; i++) {
        tape->y[i] = part(model, tape->memory, offsets[2 * i]);
        tape->state[i] = part(model, tape->memory, offsets[2 * i + 1]);
    }
    free(offsets);
    if (!tape->memory) {
        gy_nn_tape_free(model, tape);
        return refuse(samples);
    }
    tape->first = first;
    tape->last = last;
    tape->capacity = samples;
    return GYRE_SUCCESS;
}

void gy_nn_tape_free(const gyre_nn_model *model, struct gy_nn_tape *tape)
{
    model->backend->release(tape->memory);
    free(tape->y);
    free(tape->state);
    free(tape->outside);
    free(tape->have);
    gy_nn_gathering_free(tape->gathering);
    *tape = (struct gy_nn_tape){0};
}

gyre_status gy_nn_work_reserve(const gyre_nn_model *model, struct gy_nn_work *work, size_t samples)
{
    if (samples <= work->capacity)
        return GYRE_SUCCESS;
    gy_nn_work_free(model, work);
    size_t n = model->nslots + GY_NN_MOST_INPUTS, total = 0, scratch = 0, packed = 0;
    size_t *offsets = calloc(n, sizeof(*offsets));
    work->slots = calloc(n, sizeof(*work->slots));
    bool ok = offsets && work->slots;
    for (size_t i = 0; ok && i < n; i++)
        ok = place(i < model->nslots ? model->slot_size[i] : model->spare_size, samples, &total, &offsets[i]);
    ok = ok && place(model->scratch_size, samples, &total, &scratch) && place(model->packed_size, 1, &total, &packed);
    work->memory = ok ? model->backend->alloc(total * model->backend->element) : NULL;
    for (size_t i = 0; ok && work->memory && i < n; i++)
        work->slots[i] = part(model, work->memory, offsets[i]);
    free(offsets);
    if (!work->memory) {
        gy_nn_work_free(model, work);
        return refuse(samples);
    }
    work->scratch = part(model, work->memory, scratch);
    work->packed = part(model, work->memory, packed);
    work->capacity = samples;
    return GYRE_SUCCESS;
}

void gy_nn_work_free(const gyre_nn_model *model, struct gy_nn_work *work)
{
    model->backend->release(work->memory);
    free(work->slots);
    *work = (struct gy_nn_work){0};
}
