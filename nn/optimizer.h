/* An optimiser: how parameters move, and what it remembers of the steps before. */
#ifndef GY_NN_OPTIMIZER_H
#define GY_NN_OPTIMIZER_H
#include "model.h"
/* State arrays lie beside the parameters: element i of a slot belongs to parameter first + i. */
struct gyre_nn_optimizer {
    gyre_nn_model *model;
    struct gyre_nn_optimizer_config config;
    size_t first; /* of its parameters */
    void *slots[2];
    uint64_t steps;
};
#endif
