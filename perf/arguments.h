/* gyre-perf's command line. */
#ifndef GYRE_PERF_ARGUMENTS_H
#define GYRE_PERF_ARGUMENTS_H

#include "collective.h"

/* In the environment of the ranks that gyre-perf --ranks started: they run, instead of starting others. */
#define GY_ARGUMENTS_STARTED "GYRE_TEST_PERF_STARTED"

struct gy_arguments {
    enum gy_kind kind;
    int ranks; /* to start; 0: this process is a rank */
    size_t least, most;
    long factor;
    int iterations, warm_up;
    gyre_dtype dtype;
    gyre_op op;
    int root;
    bool check, gyre_memory, streaming, pin;
    const char *transport; /* NULL: gyre's own choice */
    const char *json;      /* NULL: none */
};

/* Or ends the program with status 2 and a line. Puts --algorithm and --transport into the environment, where gyre finds
 * them. */
void gy_arguments_parse(int argc, char **argv, struct gy_arguments *arguments_p);

#endif
