/* Messages between two ranks: latency as osu_latency has it, bandwidth as osu_bw, in both directions as osu_bibw. */
#ifndef GYRE_PERF_SENDRECV_H
#define GYRE_PERF_SENDRECV_H

#include "arguments.h"

enum gy_messages { GY_LATENCY = 1, GY_BANDWIDTH = 2, GY_BIBANDWIDTH = 4 };

/* What a name of the command line measures, bits of enum gy_messages: sendrecv is all, and latency, bandwidth (bw) and
 * bibandwidth (bibw) are one each, also with "osu_" before. 0: it is none of these names. */
unsigned gy_sendrecv_find(const char *name);
/* The program of a rank: its exit status. */
int gy_sendrecv_run(const struct gy_arguments *arguments);

#endif
