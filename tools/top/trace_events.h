/* The flight recorders of all ranks in the trace event format of Chrome, which Perfetto (ui.perfetto.dev) reads. */
#ifndef GYRE_TOOLS_TOP_TRACE_EVENTS_H
#define GYRE_TOOLS_TOP_TRACE_EVENTS_H

#include <stdio.h>

#include "top/diagnose.h"

/* One process for each rank, tracks for each communicator, one event for each operation whose beginning is known. */
void top_trace(FILE *stream, const struct top_job *jobs, size_t count);

#endif
