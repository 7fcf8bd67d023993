/* Jobs in Prometheus' text format (version 0.0.4). */
#ifndef GYRE_TOOLS_TOP_REPORT_PROMETHEUS_H
#define GYRE_TOOLS_TOP_REPORT_PROMETHEUS_H

#include <stdio.h>

#include "top/diagnose.h"

void top_prometheus(FILE *stream, const struct top_job *jobs, size_t count);

#endif
