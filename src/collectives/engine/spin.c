#include "collectives/engine/spin.h"

#include <sched.h>

#include "core/clock.h"

struct gy_spin gy_spin_yield(struct gy_spin spinning)
{
    if (spinning.since == 0)
        spinning.since = gy_now_coarse();
    sched_yield();
    spinning.yields = gy_now_coarse() == spinning.since ? spinning.yields - 1 : 0;
    return spinning;
}
