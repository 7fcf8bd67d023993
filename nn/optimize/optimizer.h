/* An optimiser: how parameters move, and what it remembers of the steps before. */
#ifndef GY_NN_OPTIMIZER_H
#define GY_NN_OPTIMIZER_H
#include "model/model.h"
/* State arrays lie beside the parameters: element i of a slot belongs to parameter first + i. */
struct gyre_nn_optimizer {
    gyre_nn_model *model;
    struct gyre_nn_optimizer_config config;
    size_t first, count; /* its parameters */
    void *slots[2];
    uint64_t steps;
};

/* True if the state is of all of the model's parameters, as writing, reading or sending it as a whole requires.
 * Otherwise the message says that `what` could not be done. NULL is fine. */
gyre_status gy_nn_optimizer_check_whole(const gyre_nn_optimizer *optimizer, const gyre_nn_model *model,
                                        const char *what);
#endif
