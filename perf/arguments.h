/* gyre-perf's command line. */
#ifndef GYRE_PERF_ARGUMENTS_H
#define GYRE_PERF_ARGUMENTS_H

#include "collective.h"

/* In the environment of the ranks that gyre-perf --ranks started: they run, instead of starting others. */
#define GY_ARGUMENTS_STARTED "GYRE_TEST_PERF_STARTED"

#define GY_REGION_MOST 4096
#define GY_ALL (-1) /* of dtype, op, root: one after the other */

struct gy_arguments {
    enum gy_kind kind;
    unsigned messages; /* bits of enum gy_messages: messages between two ranks instead of a collective */
    int ranks;         /* to start; 0: this process is a rank */
    size_t least, most;
    long factor;
    size_t step;             /* bytes between sizes, instead of the factor; 0: the factor */
    int iterations, warm_up; /* −1: by size (sendrecv) */
    int window;              /* messages under way at once (sendrecv) */
    int dtype, op, root;     /* gyre_dtype, gyre_op, rank, or GY_ALL */
    char accepted[256];      /* options of other benchmarks that say what gyre-perf does anyway */
    bool check, gyre_memory, streaming, pin;
    bool on_device;        /* buffers are memory of a GPU */
    int ranks_per_gpu;     /* 0: ranks of a host take turns */
    const char *transport; /* NULL: gyre's own choice */
    const char *json;      /* NULL: none */
};

/* Or ends the program with status 2 and a line. Puts --algorithm and --transport into the environment, where gyre finds
 * them. */
void gy_arguments_parse(int argc, char **argv, struct gy_arguments *arguments_p);

#endif
