/* What a library must offer to be measured: a table of functions. The core (measure.c) owns everything else:
 * buffers, pinning, the barrier, the clock, the check of results. A function that fails calls gy_die and does not
 * return. */
#ifndef GYRE_COMPARE_DRIVER_H
#define GYRE_COMPARE_DRIVER_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum gy_kind {
    GY_ALL_REDUCE,
    GY_REDUCE_SCATTER,
    GY_ALL_GATHER,
    GY_BROADCAST,
    GY_REDUCE,
    GY_ALL_TO_ALL,
    GY_BARRIER,
    GY_KINDS
};

/* One call: float32, sum, root 0, out of place. Count as in MPI: reduce_scatter counts its output, all_gather its
 * input, all_to_all a block of either. Only broadcast is in place, as in MPI: it has one buffer, the output, and the
 * root's is filled. */
struct gy_call {
    const float *input;
    float *output;
    size_t count;
};

struct gy_world {
    int rank, size;
};

struct gy_driver {
    const char *name;
    const char *rank_variable; /* of the environment: this rank's number, since a rank is pinned before `init` */
    /* Joins `world.size` ranks; returns what the library says of itself. The core asserts that they are equal. */
    struct gy_world (*init)(struct gy_world world);
    const char *(*version)(void);                       /* after init; static */
    void (*call[GY_KINDS])(const struct gy_call *call); /* NULL: not offered */
    void *(*alloc)(size_t bytes); /* NULL: has no memory of its own, or it is the only kind it takes */
    void (*finish)(void);
};

/* The one library of this program. */
extern const struct gy_driver gy_driver;

/* Ends this rank with a line on standard error that names the library and the rank; the launcher ends the others. */
void gy_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* The memory that the ranks of this launch share; a library never needs it, the yardsticks of perf/limits do. */
struct gy_arena;
const struct gy_arena *gy_launch_arena(void);

/* Where ranks may meet: a folder of this launch alone. */
const char *gy_store(void);

#ifdef __cplusplus
}
#endif
#endif
