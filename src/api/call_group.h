/* Groups of calls: what this thread has started between gyre_group_begin and gyre_group_end. */
#ifndef GY_API_CALL_GROUP_H
#define GY_API_CALL_GROUP_H

#include "collectives/engine/request.h"

/* Threads of this process that have begun a group: where there are none, as nearly always, nobody looks for his own. */
extern _Atomic unsigned gy_call_groups;

bool gy_call_group_begun(void);

static inline bool gy_call_group_open(void)
{
    return atomic_load_explicit(&gy_call_groups, memory_order_relaxed) > 0 && gy_call_group_begun();
}

/* Room for one more, before it is started: what has been started cannot be waited for alone, since its other half may
 * come later in the group. False: no memory. */
bool gy_call_group_reserve(void);
void gy_call_group_add(gyre_request *request);

#endif
