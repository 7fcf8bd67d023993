/* What is measured: one row per collective. A new one is a kind in driver.h, a row here, and a function per library. */
#ifndef GYRE_COMPARE_COLLECTIVE_H
#define GYRE_COMPARE_COLLECTIVE_H

#include <stdbool.h>
#include <stddef.h>

#include "driver.h"

struct gy_collective {
    const char *name;
    bool input_is_all, output_is_all; /* count times the number of ranks */
    bool output_at_root;              /* alone */
    /* What nccl-tests' busbw multiplies bytes/time by; 0: has none. */
    double (*bus_factor)(int ranks);
    /* The least that all ranks together must send, in vectors of `bytes`: the proof that a transport is really used. */
    double (*sent)(int ranks);
    float (*expect)(size_t i, size_t count, struct gy_world world);
};

extern const struct gy_collective gy_collectives[GY_KINDS];

bool gy_collective_find(const char *name, enum gy_kind *kind_p);

/* The count for `bytes` bytes of vector (all ranks' together where one side is), at least 1; a barrier has none. */
size_t gy_collective_count(enum gy_kind kind, size_t bytes, int ranks);
size_t gy_collective_bytes(enum gy_kind kind, size_t count, int ranks);
size_t gy_collective_input(enum gy_kind kind, size_t count, int ranks);  /* elements */
size_t gy_collective_output(enum gy_kind kind, size_t count, int ranks); /* elements */

/* Small integers, so that a sum in any order is exact. */
float gy_collective_value(int rank, size_t i);

/* Elements of the output that are not what they must be. */
size_t gy_collective_wrong(enum gy_kind kind, const struct gy_call *call, struct gy_world world);

#endif
