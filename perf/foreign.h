/* Options of nccl-tests and of the OSU benchmarks that have one legal value in gyre-perf: they describe what it does
 * anyway, and are accepted so that a command line can be taken over. */
#ifndef GYRE_PERF_FOREIGN_H
#define GYRE_PERF_FOREIGN_H

#include "arguments.h"

enum { GY_FOREIGN_CYCLES = 512, GY_FOREIGN_CTAS };
#define GY_FOREIGN(name, letter)                      \
    {                                                 \
        name, letter, "VALUE", OPTION_HIDDEN, NULL, 0 \
    }
/* Rows of an argp table. */
#define GY_FOREIGN_OPTIONS                                                                                          \
    GY_FOREIGN("nthreads", 't'), GY_FOREIGN("ngpus", 'g'), GY_FOREIGN("agg_iters", 'm'),                            \
        GY_FOREIGN("parallel_init", 'p'), GY_FOREIGN("blocking", 'z'), GY_FOREIGN("stream_null", 'y'),              \
        GY_FOREIGN("timeout", 'T'), GY_FOREIGN("cudagraph", 'G'), GY_FOREIGN("report_cputime", 'C'),                \
        GY_FOREIGN("report_timestamps", 'S'), GY_FOREIGN("average", 'a'), GY_FOREIGN("local_register", 'R'),        \
        GY_FOREIGN("memory", 'M'), GY_FOREIGN("memory_report", 'M'), GY_FOREIGN("device_implementation", 'D'),      \
        GY_FOREIGN("device_cta_count", GY_FOREIGN_CTAS), GY_FOREIGN("cta_policy", 'x'), GY_FOREIGN("unalign", 'u'), \
        GY_FOREIGN("per_iter_timing", 'I'), GY_FOREIGN("per_iter_skip", 'K'),                                       \
        GY_FOREIGN("run_cycles", GY_FOREIGN_CYCLES)

/* False: the option is none of them. A value that is not the legal one ends the program with a line that says why. */
bool gy_foreign_parse(int key, const char *text, struct gy_arguments *to);

#endif
