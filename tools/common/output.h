/* Whether what a program has printed came to its place: a table that a full disk has cut short, and that ends with status 0, is
 * taken for a whole one. */
#ifndef GYRE_TOOLS_OUTPUT_H
#define GYRE_TOOLS_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

/* False, after one line on stderr, where something printed to `stream` since it was opened is lost. `name`: of what it is. */
bool gy_output_arrived(const char *tool, FILE *stream, const char *name);
/* Flushes and keeps the reason of a failure, which gy_output_arrived then gives. For what shows its lines one by one. */
void gy_output_flush(FILE *stream);
/* The same at the end of a stream of one's own; standard output stays open. NULL: there is none. */
bool gy_output_close(const char *tool, FILE *stream, const char *name);

#endif
