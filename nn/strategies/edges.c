/* A value is made in one stage. Every other stage with a module that takes it is at the end of an edge. In a chain
 * each stage has one edge below and one above. Two branches side by side have one edge above each, to the stage that
 * joins them. */
#include "strategies/edges.h"

#include <stdlib.h>

static size_t maker_of(const size_t *places, size_t value)
{
    size_t stage = 0;
    while (places[stage + 1] < value)
        stage++;
    return stage;
}

static bool takes(const gyre_nn_model *model, const size_t *places, size_t stage, size_t value)
{
    return gyre_nn_value_used(model, value, places[stage], places[stage + 1]);
}

/* Returns the distance from a stage to the last one. */
static size_t level_of(const gyre_nn_model *model, const size_t *places, size_t stages, size_t stage)
{
    size_t level = 0;
    for (size_t s = stage + 1; s < stages; s++)
        for (size_t v = places[stage] + 1; v <= places[stage + 1]; v++)
            if (takes(model, places, s, v)) {
                size_t beyond = 1 + level_of(model, places, stages, s);
                level = beyond > level ? beyond : level;
                break;
            }
    return level;
}

gyre_status gy_edges_make(const gyre_nn_model *model, const size_t *places, size_t stages, size_t stage,
                          struct gy_edges *edges_p)
{
    size_t first = places[stage], last = places[stage + 1];
    struct gy_edges edges = {.input = takes(model, places, stage, 0), .level = level_of(model, places, stages, stage)};
    edges.in = calloc(first + 1, sizeof(*edges.in));
    edges.out = calloc((last - first) * stages + 1, sizeof(*edges.out));
    if (!edges.in || !edges.out) {
        gy_edges_free(&edges);
        return gyre_nn_fail(GYRE_NO_MEMORY, NULL, "no memory for the edges of a pipeline");
    }
    for (size_t v = 1; v <= first; v++)
        if (takes(model, places, stage, v))
            edges.in[edges.nin++] = (struct gy_edge){v, gyre_nn_value_size(model, v), maker_of(places, v)};
    for (size_t v = first + 1; v <= last; v++)
        for (size_t s = stage + 1; s < stages; s++)
            if (takes(model, places, s, v))
                edges.out[edges.nout++] = (struct gy_edge){v, gyre_nn_value_size(model, v), s};
    *edges_p = edges;
    return GYRE_SUCCESS;
}

void gy_edges_free(struct gy_edges *edges)
{
    free(edges->in);
    free(edges->out);
    *edges = (struct gy_edges){0};
}
