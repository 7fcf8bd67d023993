/* What a trained model says: predictions, and what they rest on. */
#ifndef GYRE_TRAIN_ANSWERS_H
#define GYRE_TRAIN_ANSWERS_H

#include <gyre/nn.h>

/* Writes a line for each output row of the test samples: "sample,row,label,answer,probability"; of a reconstruction
 * "sample,error". NULL or a sentence of what went wrong. */
const char *answers_predict(gyre_nn_model *model, const gyre_nn_dataset *data, const char *path);

/* Prints, for the first `count` test samples, the three items that a recommender puts first, and what each part of the
 * input weighed. */
const char *answers_explain(gyre_nn_model *model, const gyre_nn_dataset *data, size_t count);

#endif
