/* The one clock that deadlines are made of. */
#include "clock.h"

#include <time.h>

int64_t gy_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * GY_SECOND + now.tv_nsec;
}
