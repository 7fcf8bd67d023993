/* Blocking calls. */
#ifndef GY_COLLECTIVES_CALL_BLOCKING_H
#define GY_COLLECTIVES_CALL_BLOCKING_H

#include "collectives/engine/request.h"

/* The whole of a blocking call, by the shortest way there is. */
gyre_status gy_run(struct gyre_comm *comm, const struct gy_call *call);
/* The same of a call that gyre itself makes (split.c, grow.c, rma/window.c). What the user forces is for the user's calls: one of
 * these goes by gyre's choice, on all ranks alike, so that no setting keeps it from being possible, or from being taken back. */
gyre_status gy_run_own(struct gyre_comm *comm, const struct gy_call *call);

#endif
