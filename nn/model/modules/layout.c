/* What a module's plan says about its parameters. */
#include "model/modules/module.h"

#include <stdio.h>

void gy_nn_layout_tensor(struct gy_nn_layout *layout, const char *name, size_t rows, size_t cols, double limit,
                         double constant)
{
    struct gyre_nn_tensor *tensor = &layout->tensors[layout->ntensors];
    *tensor = (struct gyre_nn_tensor){
        .rank = rows ? 2 : 1, .rows = rows ? rows : 1, .cols = cols, .offset = layout->count};
    snprintf(tensor->name, sizeof(tensor->name), "%zu.%s", layout->number, name);
    layout->starts[layout->ntensors++] = (struct gy_nn_start){.limit = limit, .constant = constant};
    layout->count += tensor->rows * tensor->cols;
    layout->module->params += tensor->rows * tensor->cols;
}

void gy_nn_layout_statistic(struct gy_nn_layout *layout, const char *name, size_t cols, double constant)
{
    gy_nn_layout_tensor(layout, name, 0, cols, 0, constant);
    layout->starts[layout->ntensors - 1].statistic = true;
}

void gy_nn_layout_packed(struct gy_nn_layout *layout, size_t n, size_t k)
{
    size_t size = layout->backend->packed_size(n, k);
    if (size > layout->module->packed)
        layout->module->packed = size;
}

gyre_status gy_nn_plan_same(struct gy_nn_module *module, struct gy_nn_layout *layout)
{
    (void)layout;
    module->out = module->in;
    return GYRE_SUCCESS;
}
