/* The mask that the scheduler reports already respects cgroups, taskset and the process that started this one. */
#include "run/affinity.h"

#include <sched.h>
#include <stddef.h>

int gy_cores_count(void)
{
    cpu_set_t usable;
    if (sched_getaffinity(0, sizeof usable, &usable) || CPU_COUNT(&usable) == 0)
        return 1;
    return CPU_COUNT(&usable);
}

void gy_cores_bind(int turn)
{
    cpu_set_t usable, mine;
    if (sched_getaffinity(0, sizeof usable, &usable) || CPU_COUNT(&usable) == 0)
        return;
    int skip = turn % CPU_COUNT(&usable);
    size_t core = 0;
    while (!CPU_ISSET(core, &usable) || skip-- > 0)
        core++;
    CPU_ZERO(&mine);
    CPU_SET(core, &mine);
    sched_setaffinity(0, sizeof mine, &mine);
}
