/* A part of a model between two places at which one value goes up and one gradient comes down. A place is clean if no
 * module above it uses a value from below but the last one; a residual connection therefore stays inside a stage. */
#include "error.h"
#include "model.h"

#include <stdlib.h>

struct gyre_nn_tape {
    gyre_nn_model *model;
    size_t first, last;
    struct gy_nn_tape tape;
};

size_t gyre_nn_module_count(const gyre_nn_model *model)
{
    return model->nmodules;
}

size_t gyre_nn_cut_values(const gyre_nn_model *model, size_t place)
{
    if (place > model->nmodules)
        return 0;
    for (size_t i = place; i < model->nmodules; i++)
        for (size_t k = 0; k < model->modules[i].ninputs; k++)
            if (model->modules[i].from[k] < place)
                return 0;
    return gy_nn_shape_size(gy_nn_shape_of(model, place));
}

size_t gyre_nn_cut_offset(const gyre_nn_model *model, size_t place)
{
    return place < model->nmodules ? model->modules[place].offset : model->count;
}

/* Each parameter is multiplied once a step, and each output has some work beside. */
double gyre_nn_cut_work(const gyre_nn_model *model, size_t place)
{
    double work = 0;
    for (size_t i = 0; i < place && i < model->nmodules; i++)
        work += (double)model->modules[i].params * (double)model->modules[i].in.time +
                8 * (double)gy_nn_shape_size(model->modules[i].out);
    return work;
}

gyre_status gyre_nn_tape_create(gyre_nn_model *model, size_t first, size_t last, gyre_nn_tape **tape_p)
{
    if (first >= last || !gyre_nn_cut_values(model, first) || !gyre_nn_cut_values(model, last))
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "the model cannot be cut before its modules %zu and %zu", first, last);
    gyre_nn_tape *tape = calloc(1, sizeof(*tape));
    if (!tape)
        return gy_nn_fail(GYRE_NO_MEMORY, "no memory for a tape");
    tape->model = model;
    tape->first = first;
    tape->last = last;
    *tape_p = tape;
    return GYRE_SUCCESS;
}

void gyre_nn_tape_free(gyre_nn_tape *tape)
{
    if (tape)
        gy_nn_tape_free(tape->model, &tape->tape);
    free(tape);
}

gyre_status gyre_nn_tape_forward(gyre_nn_tape *tape, const void *x, size_t samples, const void **y_p)
{
    return gy_nn_range_forward(tape->model, &tape->tape, tape->first, tape->last, x, samples, y_p);
}

gyre_status gyre_nn_tape_evaluate(gyre_nn_tape *tape, const int32_t *labels, const void *targets, double *cost_p)
{
    if (tape->last != tape->model->nmodules || (tape->first > 0 && tape->model->cost->of_input && !targets))
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "this stage does not know what the model's cost asks for");
    return gy_nn_range_evaluate(tape->model, &tape->tape, labels, targets, cost_p, NULL);
}

gyre_status gyre_nn_tape_backward(gyre_nn_tape *tape, const void *dy, const void **dx_p)
{
    return gy_nn_range_backward(tape->model, &tape->tape, dy, NULL, NULL, dx_p);
}
