/* CLOCK_MONOTONIC in nanoseconds, and deadlines made of it. */
#ifndef GY_CORE_CLOCK_H
#define GY_CORE_CLOCK_H

#include "base.h"

#define GY_MILLISECOND INT64_C(1000000)
#define GY_SECOND INT64_C(1000000000)

int64_t gy_now(void); /* vDSO, no system call */
/* The same as of the kernel's last tick, some milliseconds ago at most; costs a fifth. */
int64_t gy_now_coarse(void);

#endif
