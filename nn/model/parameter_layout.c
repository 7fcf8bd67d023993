/* From modules to memory: shapes flow from the input upwards, tensors are placed one after the other, and the gradients
 * of values get slots by walking as backward will: a value takes a free slot when its last user is reached, and gives
 * it back when its producer is done. A chain needs two slots. */
#include "base/error.h"
#include "base/random.h"
#include "model/model.h"

#include <stdlib.h>

static gyre_status plan_module(gyre_nn_model *model, size_t index, size_t *number)
{
    struct gy_nn_module *module = &model->modules[index];
    struct gy_nn_layout layout = {.backend = model->backend,
                                  .module = module,
                                  .number = *number,
                                  .tensors = model->tensors,
                                  .starts = model->starts,
                                  .ntensors = model->ntensors,
                                  .count = model->count};
    module->in = gy_nn_shape_of(model, module->from[0]);
    module->offset = model->count;
    module->params = module->state = module->scratch = module->packed = 0;
    for (size_t i = 0; i < module->ninputs; i++) {
        struct gy_nn_shape other = module->others[i] = gy_nn_shape_of(model, module->from[i]);
        if (module->ops->mixed)
            continue;
        if (other.time != module->in.time || other.features != module->in.features)
            return gy_nn_fail(GYRE_INVALID_ARGUMENT, "a %s of %zu steps of %zu values and %zu steps of %zu",
                              module->ops->name, module->in.time, module->in.features, other.time, other.features);
    }
    gyre_status status = module->ops->plan(module, &layout);
    model->ntensors = layout.ntensors;
    model->count = layout.count;
    *number += module->params > 0;
    for (size_t i = 0; i < model->ntensors; i++)
        model->tracks = model->tracks || model->starts[i].statistic;
    if (module->scratch > model->scratch_size)
        model->scratch_size = module->scratch;
    if (module->packed > model->packed_size)
        model->packed_size = module->packed;
    return status;
}

/* A slot that holds no living gradient; a new one where all are taken. */
static size_t take_slot(gyre_nn_model *model, bool *taken, size_t size)
{
    size_t slot = 0;
    while (taken[slot])
        slot++;
    taken[slot] = true;
    model->nslots = slot + 1 > model->nslots ? slot + 1 : model->nslots;
    model->slot_size[slot] = size > model->slot_size[slot] ? size : model->slot_size[slot];
    return slot;
}

#define NO_SLOT SIZE_MAX

static gyre_status assign_slots(gyre_nn_model *model, bool *taken)
{
    for (size_t v = 0; v <= model->nmodules; v++)
        model->slot_of[v] = NO_SLOT;
    model->slot_of[model->nmodules] = take_slot(model, taken, gy_nn_shape_size(model->out));
    for (size_t i = model->nmodules; i-- > 0;) {
        struct gy_nn_module *module = &model->modules[i];
        for (size_t k = 0; k < module->ninputs; k++) {
            size_t value = module->from[k], size = gy_nn_shape_size(gy_nn_shape_of(model, value));
            bool adds = value > 0 && model->slot_of[value] != NO_SLOT;
            if (adds && size > model->spare_size)
                model->spare_size = size;
            else if (value > 0 && !adds)
                model->slot_of[value] = take_slot(model, taken, size);
        }
        if (model->slot_of[i + 1] == NO_SLOT) /* no module uses it */
            return gy_nn_fail(GYRE_INVALID_ARGUMENT, "nothing uses the output of module %zu, a %s", i,
                              model->modules[i].ops->name);
        taken[model->slot_of[i + 1]] = false;
    }
    return GYRE_SUCCESS;
}

gyre_status gy_nn_layout_make(gyre_nn_model *model)
{
    size_t number = 0;
    bool *taken = calloc(model->nmodules + 1, sizeof(*taken));
    if (!taken)
        return gy_nn_fail(GYRE_NO_MEMORY, "no memory to lay out a model of %zu modules", model->nmodules);
    gyre_status status = GYRE_SUCCESS;
    for (size_t i = 0; i < model->nmodules && status == GYRE_SUCCESS; i++)
        status = plan_module(model, i, &number);
    if (status == GYRE_SUCCESS) {
        model->out = model->modules[model->nmodules - 1].out;
        status = assign_slots(model, taken);
    }
    free(taken);
    return status;
}

static void draw(const gyre_nn_model *model, const struct gyre_nn_tensor *tensor, struct gy_nn_start start,
                 uint64_t *state)
{
    void *at = gy_nn_at(model, model->params, tensor->offset);
    for (size_t i = 0; i < tensor->rows * tensor->cols; i++) {
        double value = start.limit > 0 ? (2 * gy_nn_random_unit(state) - 1) * start.limit : start.constant;
        if (model->backend->dtype == GYRE_FLOAT32)
            ((float *)at)[i] = (float)value;
        else
            ((double *)at)[i] = value;
    }
}

void gy_nn_layout_initialize(const gyre_nn_model *model, uint64_t seed)
{
    uint64_t state = seed;
    for (size_t i = 0; i < model->ntensors; i++)
        draw(model, &model->tensors[i], model->starts[i], &state);
}
