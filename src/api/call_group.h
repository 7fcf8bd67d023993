/* Groups of calls: those that this thread has started between gyre_group_begin and gyre_group_end. */
#ifndef GY_API_CALL_GROUP_H
#define GY_API_CALL_GROUP_H

#include "collectives/engine/request.h"

struct gy_stream_job;

/* The number of threads of this process that have begun a group. It is nearly always 0, and then no thread looks up
 * its own group. */
extern _Atomic unsigned gy_call_groups;

bool gy_call_group_begun(void);

static inline bool gy_call_group_open(void)
{
    return atomic_load_explicit(&gy_call_groups, memory_order_relaxed) > 0 && gy_call_group_begun();
}

/* Makes room for one more call, before it is started: a started call cannot be waited for alone, since its other
 * half may come later in the group. Returns false if out of memory. */
bool gy_call_group_reserve(void);
void gy_call_group_add(gyre_request *request);
/* Keeps a call that a stream orders, whose second half follows at the end of the group. */
void gy_call_group_defer(struct gy_stream_job *job);
/* Ends those of a communicator that is about to be destroyed inside the group. */
void gy_call_group_end_deferred(const struct gyre_comm *comm);

#endif
