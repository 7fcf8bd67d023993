/* Checks that a program's output has been written. A table that a full disk has cut short, with exit status 0, would
 * be taken for a complete one. */
#ifndef GYRE_TOOLS_OUTPUT_H
#define GYRE_TOOLS_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

/* Returns false, after one line on stderr, if output to `stream` since it was opened is lost. `name`: of the output. */
bool gy_output_arrived(const char *tool, FILE *stream, const char *name);
/* Flushes, and keeps the reason of a failure for gy_output_arrived. For programs that show their lines one by one. */
void gy_output_flush(FILE *stream);
/* As gy_output_arrived, and closes the stream; standard output stays open. NULL: no stream. */
bool gy_output_close(const char *tool, FILE *stream, const char *name);

#endif
