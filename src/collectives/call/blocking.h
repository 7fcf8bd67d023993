/* Blocking calls. */
#ifndef GY_COLLECTIVES_CALL_BLOCKING_H
#define GY_COLLECTIVES_CALL_BLOCKING_H

#include "collectives/engine/request.h"

/* Runs a blocking call by the shortest path that is open to it. */
gyre_status gy_run(struct gyre_comm *comm, const struct gy_call *call);
/* The same for a call that gyre itself makes (split.c, grow.c, rma/window.c). Forced choices apply to the user's
 * calls only. An internal call uses gyre's own choice, the same on all ranks, so that no setting makes it impossible
 * or irrevocable. */
gyre_status gy_run_own(struct gyre_comm *comm, const struct gy_call *call);

#endif
