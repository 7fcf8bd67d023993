/* Groups of calls: what this thread has started between gyre_group_begin and gyre_group_end. */
#ifndef GY_API_CALL_GROUP_H
#define GY_API_CALL_GROUP_H

#include "collectives/request.h"

bool gy_call_group_open(void);
/* Room for one more, before it is started: what has been started cannot be waited for alone, since its other half may
 * come later in the group. False: no memory. */
bool gy_call_group_reserve(void);
void gy_call_group_add(gyre_request *request);

#endif
