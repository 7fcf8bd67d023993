/* The output of a trained model: predictions, and the inputs on which they rest. */
#ifndef GYRE_TRAIN_ANSWERS_H
#define GYRE_TRAIN_ANSWERS_H

#include <gyre/nn.h>

/* Writes a line for each output row of the test samples: "sample,row,label,answer,probability"; of a reconstruction
 * "sample,error". Returns NULL or an error message. */
const char *answers_predict(gyre_nn_model *model, const gyre_nn_dataset *data, const char *path);

/* Prints, for the first `count` test samples, the three items that a recommender ranks first, and the weight of each
 * part of the input. */
const char *answers_explain(gyre_nn_model *model, const gyre_nn_dataset *data, size_t count);

#endif
