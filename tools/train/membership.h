/* The memberships of an elastic run, as a file: "STEP RANKS" a line, from step STEP on that many ranks. */
#ifndef GYRE_TRAIN_MEMBERSHIP_H
#define GYRE_TRAIN_MEMBERSHIP_H

#include <gyre/nn.h>

/* Writes a new file with this line, or adds a line. False: errno says why. */
bool membership_write(const char *path, const struct gyre_nn_membership *now, bool first);

/* NULL, or what is wrong with the file, valid until the next call. *list_p is the caller's to free. */
const char *membership_read(const char *path, struct gyre_nn_membership **list_p, size_t *count_p);

#endif
