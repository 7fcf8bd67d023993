#include "collectives/engine/spin.h"

#include <sched.h>

#include "core/clock.h"

struct gy_patience gy_patience_yield(struct gy_patience patience)
{
    if (patience.since == 0)
        patience.since = gy_now_coarse();
    sched_yield();
    patience.yields = gy_now_coarse() == patience.since ? patience.yields - 1 : 0;
    return patience;
}
