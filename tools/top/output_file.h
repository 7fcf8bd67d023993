/* A file that readers find whole: the old one or the new one. */
#ifndef GYRE_TOOLS_TOP_OUTPUT_FILE_H
#define GYRE_TOOLS_TOP_OUTPUT_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* Replaces a file by a text: writes PATH.PID.tmp and renames it. What is no regular file, as a pipe, is written to
 * directly. False after a line on stderr. */
bool top_output_file(const char *path, const char *text, size_t length);

#endif
