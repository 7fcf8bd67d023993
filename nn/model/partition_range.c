/* A part of a model between two places. A place may be cut if the modules above it use from below only the last
 * value, the model's input, and the ends of earlier branches. So a residual connection stays inside a stage, and so
 * does a branch from its beginning at the input. The caller arranges which values go from stage to stage. */
#include "base/error.h"
#include "base/require.h"
#include "model/model.h"

#include <math.h>
#include <stdlib.h>

struct gyre_nn_tape {
    gyre_nn_model *model;
    size_t first, last;
    const void **inputs; /* of each value: what set_input gave */
    struct gy_nn_tape tape;
};

size_t gyre_nn_module_count(const gyre_nn_model *model)
{
    GY_NN_REQUIRE_OR(0, model);
    return model->nmodules;
}

/* True if value `value` is the end of a branch: the module above it begins anew at the model's input, and none up to
 * `place` takes anything from below it. */
static bool branch_ended(const gyre_nn_model *model, size_t value, size_t place)
{
    for (size_t i = value; i < place; i++)
        for (size_t k = 0; k < model->modules[i].ninputs; k++)
            if (model->modules[i].from[k] > 0 && model->modules[i].from[k] <= value)
                return false;
    return model->modules[value].from[0] == 0;
}

size_t gyre_nn_cut_values(const gyre_nn_model *model, size_t place)
{
    GY_NN_REQUIRE_OR(0, model);
    if (place > model->nmodules)
        return 0;
    for (size_t i = place; i < model->nmodules; i++)
        for (size_t k = 0; k < model->modules[i].ninputs; k++)
            if (model->modules[i].from[k] > 0 && model->modules[i].from[k] < place &&
                !branch_ended(model, model->modules[i].from[k], place))
                return 0;
    return gy_nn_shape_size(gy_nn_shape_of(model, place));
}

size_t gyre_nn_cut_offset(const gyre_nn_model *model, size_t place)
{
    GY_NN_REQUIRE_OR(0, model);
    return place < model->nmodules ? model->modules[place].offset : model->count;
}

/* Each parameter is multiplied once a step, and each output has some work beside. */
double gyre_nn_cut_work(const gyre_nn_model *model, size_t place)
{
    GY_NN_REQUIRE_OR(NAN, model);
    double work = 0;
    for (size_t i = 0; i < place && i < model->nmodules; i++)
        work += (double)model->modules[i].params * (double)model->modules[i].in.time +
                8 * (double)gy_nn_shape_size(model->modules[i].out);
    return work;
}

double gyre_nn_cut_memory(const gyre_nn_model *model, size_t place)
{
    GY_NN_REQUIRE_OR(NAN, model);
    double memory = 0;
    for (size_t i = 0; i < place && i < model->nmodules; i++)
        memory += (double)gy_nn_shape_size(model->modules[i].out) + (double)model->modules[i].state;
    return memory;
}

size_t gyre_nn_value_size(const gyre_nn_model *model, size_t value)
{
    GY_NN_REQUIRE_OR(0, model);
    return value <= model->nmodules ? gy_nn_shape_size(gy_nn_shape_of(model, value)) : 0;
}

bool gyre_nn_value_used(const gyre_nn_model *model, size_t value, size_t first, size_t last)
{
    GY_NN_REQUIRE_OR(false, model);
    return gy_nn_value_used(model, value, first, last < model->nmodules ? last : model->nmodules);
}

gyre_status gyre_nn_tape_create(gyre_nn_model *model, size_t first, size_t last, gyre_nn_tape **tape_p)
{
    GY_NN_REQUIRE(model, tape_p);
    if (first >= last || !gyre_nn_cut_values(model, first) || !gyre_nn_cut_values(model, last))
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "the model cannot be cut before its modules %zu and %zu", first, last);
    gyre_nn_tape *tape = calloc(1, sizeof(*tape));
    if (tape)
        tape->inputs = calloc(model->nmodules + 1, sizeof(*tape->inputs));
    if (!tape || !tape->inputs) {
        free(tape);
        return gy_nn_fail(GYRE_NO_MEMORY, "no memory for a tape");
    }
    tape->model = model;
    tape->first = first;
    tape->last = last;
    *tape_p = tape;
    return GYRE_SUCCESS;
}

void gyre_nn_tape_free(gyre_nn_tape *tape)
{
    if (!tape)
        return;
    gy_nn_tape_free(tape->model, &tape->tape);
    free(tape->inputs);
    free(tape);
}

void gyre_nn_tape_set_input(gyre_nn_tape *tape, size_t value, const void *x)
{
    GY_NN_REQUIRE_VOID(tape);
    if (value > tape->first) {
        (void)gy_nn_fail(GYRE_INVALID_ARGUMENT, "gyre_nn_tape_set_input: value %zu is not at or below place %zu", value,
                         tape->first);
        return;
    }
    tape->inputs[value] = x;
}

/* Everything that modules of the stage take from below is there. */
static gyre_status check_inputs(const gyre_nn_tape *tape, const void *x)
{
    for (size_t v = 0; v <= tape->first; v++)
        if (!(v == tape->first ? x : NULL) && !tape->inputs[v] &&
            gy_nn_value_used(tape->model, v, tape->first, tape->last))
            return gy_nn_fail(GYRE_INVALID_ARGUMENT, "modules %zu to %zu need value %zu", tape->first, tape->last - 1,
                              v);
    return GYRE_SUCCESS;
}

gyre_status gyre_nn_tape_forward(gyre_nn_tape *tape, const void *x, size_t samples, const void **y_p)
{
    GY_NN_REQUIRE(tape);
    gyre_status status = samples > 0 ? check_inputs(tape, x) : GYRE_SUCCESS;
    if (status == GYRE_SUCCESS)
        status = gy_nn_tape_reserve(tape->model, &tape->tape, tape->first, tape->last, samples ? samples : 1);
    if (status != GYRE_SUCCESS)
        return status;
    for (size_t v = 0; v <= tape->first; v++)
        tape->tape.outside[v] = tape->inputs[v];
    return gy_nn_range_forward(tape->model, &tape->tape, tape->first, tape->last, x, samples, y_p);
}

static bool has_run(const gyre_nn_tape *tape, const char *function)
{
    if (!tape->tape.ready)
        gy_nn_fail(GYRE_INVALID_ARGUMENT, "%s comes after gyre_nn_tape_forward", function);
    return tape->tape.ready;
}

const void *gyre_nn_tape_output(const gyre_nn_tape *tape, size_t value)
{
    GY_NN_REQUIRE_OR(NULL, tape);
    if (!has_run(tape, __func__))
        return NULL;
    return value > tape->first && value <= tape->last ? tape->tape.y[value - 1] : NULL;
}

void gyre_nn_tape_add_gradient(gyre_nn_tape *tape, size_t value, const void *dy)
{
    GY_NN_REQUIRE_VOID(tape, dy);
    if (!tape->tape.ready || value <= tape->first || value > tape->last) {
        (void)gy_nn_fail(GYRE_INVALID_ARGUMENT,
                         "gyre_nn_tape_add_gradient: no forward of this stage has made value %zu", value);
        return;
    }
    gy_nn_range_gradient(tape->model, &tape->tape, value, dy);
}

const void *gyre_nn_tape_input_gradient(const gyre_nn_tape *tape, size_t value)
{
    GY_NN_REQUIRE_OR(NULL, tape);
    if (!has_run(tape, __func__))
        return NULL;
    return value > 0 && value <= tape->first ? tape->model->work.slots[tape->model->slot_of[value]] : NULL;
}

double gyre_nn_tape_side_cost(const gyre_nn_tape *tape)
{
    GY_NN_REQUIRE_OR(NAN, tape);
    return gy_nn_range_side_cost(tape->model, &tape->tape);
}

gyre_status gyre_nn_tape_evaluate(gyre_nn_tape *tape, const int32_t *labels, const void *targets, double *cost_p)
{
    GY_NN_REQUIRE(tape);
    if (tape->last != tape->model->nmodules || (tape->first > 0 && tape->model->cost->of_input && !targets))
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "this stage does not know what the model's cost asks for");
    return gy_nn_range_evaluate(tape->model, &tape->tape, labels, targets, cost_p, NULL);
}

gyre_status gyre_nn_tape_backward(gyre_nn_tape *tape, const void *dy, const void **dx_p)
{
    GY_NN_REQUIRE(tape);
    return gy_nn_range_backward(tape->model, &tape->tape, dy, NULL, NULL, dx_p);
}
