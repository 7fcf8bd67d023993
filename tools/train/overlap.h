/* The result of --measure-overlap as text. */
#ifndef GYRE_TRAIN_OVERLAP_H
#define GYRE_TRAIN_OVERLAP_H

#include <gyre/nn.h>

/* Prints both shares, or why neither can be given, and the times from which they are computed. */
void overlap_print(const struct gyre_nn_overlap *overlap);

/* Returns the share of what could be hidden: (serial − overlapped) / min(communication, serial − communication). */
double overlap_of_possible(const struct gyre_nn_overlap *overlap);

/* Returns why the shares have no meaning; NULL if they have. */
const char *overlap_doubt(const struct gyre_nn_overlap *overlap);

#endif
