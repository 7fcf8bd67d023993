/* Whether a model and data fit. */
#ifndef GY_NN_EVALUATE_H
#define GY_NN_EVALUATE_H

#include <gyre/nn.h>

/* A reconstruction needs no labels. */
bool gy_nn_labelled(const gyre_nn_model *model);
gyre_status gy_nn_check_data(const gyre_nn_model *model, const gyre_nn_dataset *data);

#endif
