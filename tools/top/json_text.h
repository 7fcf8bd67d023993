/* Texts in JSON. */
#ifndef GYRE_TOOLS_TOP_JSON_TEXT_H
#define GYRE_TOOLS_TOP_JSON_TEXT_H

#include <stdio.h>

/* Writes a text with its quotes. Bytes that are not UTF-8 become '?'. */
void top_json_text(FILE *stream, const char *text);

#endif
