/* The values that a stage of a pipeline takes from other stages and gives to them. */
#ifndef GY_NN_EDGES_H
#define GY_NN_EDGES_H

#include <gyre/nn.h>

struct gy_edge {
    size_t value, size; /* elements a sample */
    size_t peer;        /* the stage at its other end */
};

struct gy_edges {
    struct gy_edge *in, *out; /* in the order of their values; those out of one value in the order of the stages */
    size_t nin, nout;
    bool input;   /* the stage takes the model's input, which every rank has */
    size_t level; /* stages that a value of this one still goes through, at most */
};

/* Of stage `stage` of places[0 … stages]. */
gyre_status gy_edges_make(const gyre_nn_model *model, const size_t *places, size_t stages, size_t stage,
                          struct gy_edges *edges_p);
void gy_edges_free(struct gy_edges *edges);

#endif
