/* The one clock that deadlines are made of. */
#include "clock.h"

#include <time.h>

static int64_t read_clock(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * GY_SECOND + now.tv_nsec;
}

int64_t gy_now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t gy_now_coarse(void)
{
    return read_clock(CLOCK_MONOTONIC_COARSE);
}
