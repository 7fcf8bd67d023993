/* Groups of calls: what this thread has started between gyre_group_begin and gyre_group_end. */
#ifndef GY_API_CALL_GROUP_H
#define GY_API_CALL_GROUP_H

#include "collectives/request.h"

bool gy_call_group_open(void);
/* Notes the outcome of a start inside the group; returns it. A call that is refused because the group is out of memory
 * is waited for at once. */
gyre_status gy_call_group_add(gyre_status status, gyre_request *request);

#endif
