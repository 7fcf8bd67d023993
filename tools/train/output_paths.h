/* The files that a run reads and writes: whether they are distinct, and whether those written at its end can be
 * written. */
#ifndef GYRE_TRAIN_FILES_H
#define GYRE_TRAIN_FILES_H

#include "train/arguments.h"

#define FILES_TEXT 512

/* Exits with status 2 and one line if two options name one file and the run would write over its input, or mix its
 * outputs. A checkpoint may replace the one from which the run continues. */
void files_refuse_shared(const struct arguments *arguments);
/* Checks before the training that the files written at its end can be written. False: the message is in `text_p`. */
bool files_can_be_written(const struct arguments *arguments, char text_p[FILES_TEXT]);

#endif
