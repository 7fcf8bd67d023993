/* For programs whose ranks are to think that there are cores for all of them, where fewer is what there is: the library
 * calls the program's own sched_getaffinity (ENABLE_EXPORTS). */
#ifndef GYRE_TESTS_CORES_H
#define GYRE_TESTS_CORES_H

#include <sched.h>

#include "support/launcher.h"

__attribute__((visibility("default"))) int sched_getaffinity(pid_t process, size_t bytes, cpu_set_t *set)
{
    CHECK(process == 0 && bytes * 8 >= RANKS_MOST);
    CPU_ZERO_S(bytes, set);
    for (size_t cpu = 0; cpu < RANKS_MOST; cpu++)
        CPU_SET_S(cpu, bytes, set);
    return 0;
}

#endif
