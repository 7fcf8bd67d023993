/* Messages between two ranks: latency as osu_latency has it, bandwidth as osu_bw. */
#ifndef GYRE_PERF_SENDRECV_H
#define GYRE_PERF_SENDRECV_H

#include "arguments.h"

/* The program of a rank: its exit status. */
int gy_sendrecv_run(const struct gy_arguments *arguments);

#endif
