/* What --measure-overlap found, for people. */
#ifndef GYRE_TRAIN_OVERLAP_H
#define GYRE_TRAIN_OVERLAP_H

#include <gyre/nn.h>

/* Prints it, and what keeps the hidden fraction from being read as it stands. */
void overlap_print(const struct gyre_nn_overlap *overlap);

/* What a reader has to know before he believes the fraction: why it is above 1 or below 0, or that the machine was too
 * busy to tell. NULL where it can be read as it stands. */
const char *overlap_doubt(const struct gyre_nn_overlap *overlap);

#endif
