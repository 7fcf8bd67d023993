/* Jobs as one line of JSON, for programs. */
#ifndef GYRE_TOOLS_TOP_REPORT_JSON_H
#define GYRE_TOOLS_TOP_REPORT_JSON_H

#include <stdio.h>

#include "top/diagnose.h"

/* {"jobs": [...], "other_versions": N} and a newline. */
void top_json(FILE *stream, const struct top_job *jobs, size_t count, size_t strange);

#endif
