/* The files that a run reads and writes: are they apart, and can those be written that are written at its end? */
#ifndef GYRE_TRAIN_FILES_H
#define GYRE_TRAIN_FILES_H

#include "train/arguments.h"

#define FILES_TEXT 512

/* Ends with status 2 and one line where two options name one file and a run would write over what it reads, or mix what it
 * writes. A checkpoint may take the place of the one that the run goes on from. */
void files_refuse_shared(const struct arguments *arguments);
/* Training is long: what cannot be written at its end is said at its beginning. False: the sentence is in `text_p`. */
bool files_can_be_written(const struct arguments *arguments, char text_p[FILES_TEXT]);

#endif
