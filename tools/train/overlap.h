/* What --measure-overlap found, for people. */
#ifndef GYRE_TRAIN_OVERLAP_H
#define GYRE_TRAIN_OVERLAP_H

#include <gyre/nn.h>

/* Prints both shares, or why neither can be given, and the times that they are made of. */
void overlap_print(const struct gyre_nn_overlap *overlap);

/* The share of what could be hidden: (serial − overlapped) / min(communication, serial − communication). */
double overlap_of_possible(const struct gyre_nn_overlap *overlap);

/* Why the shares mean nothing; NULL where they do. */
const char *overlap_doubt(const struct gyre_nn_overlap *overlap);

#endif
