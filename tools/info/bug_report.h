/* What a maintainer needs to know about a machine and an environment, without any secret. */
#ifndef GYRE_TOOLS_BUG_REPORT_H
#define GYRE_TOOLS_BUG_REPORT_H

#include <stdio.h>

/* Writes the report as text. */
void gy_bug_report(FILE *stream);

#endif
