/* The command line of every driver; `run` writes it. */
#ifndef GYRE_COMPARE_OPTIONS_H
#define GYRE_COMPARE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "driver.h"

enum gy_mode {
    GY_ISOLATED,  /* every call after a barrier of the harness; latest start to latest end, the median */
    GY_STREAMING, /* back to back; the mean */
    GY_OSU        /* as the OSU benchmarks: the library's own barrier between calls, the mean of the ranks' own times */
};

enum gy_wire { GY_SHM, GY_TCP, GY_RDMA };

struct gy_options {
    const char *arena, *store;
    int ranks;
    enum gy_kind kinds[GY_KINDS]; /* measured one after the other */
    size_t kinds_count;
    enum gy_mode mode;
    enum gy_wire wire; /* the transport that must be used */
    bool own_memory;   /* the library's memory instead of the heap */
    size_t least, most, factor;
    double budget_ms; /* measured time per size */
    size_t calls_least, calls_most;
};

void gy_options_parse(int argc, char **argv, struct gy_options *options_p);
const char *gy_options_mode(enum gy_mode mode);
const char *gy_options_wire(enum gy_wire wire);

#endif
