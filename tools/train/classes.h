/* The classes of the data: their names, and labels that are probably mistyped. */
#ifndef GYRE_TRAIN_CLASSES_H
#define GYRE_TRAIN_CLASSES_H

#include <gyre/nn.h>

/* Prints a line on stderr if most classes below the largest label do not occur. */
void classes_warn(const gyre_nn_dataset *data);
/* "classes: 0 = setosa, 1 = versicolor" on stdout, where labels are names. */
void classes_print(const gyre_nn_dataset *data);

#endif
