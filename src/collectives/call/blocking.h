/* Blocking calls. */
#ifndef GY_COLLECTIVES_CALL_BLOCKING_H
#define GY_COLLECTIVES_CALL_BLOCKING_H

#include "collectives/engine/request.h"

/* The whole of a blocking call, by the shortest way there is. */
gyre_status gy_run(struct gyre_comm *comm, const struct gy_call *call);
/* The same of a call that gyre itself makes (split.c, grow.c, rma/region.c). What the user forces is for the user's calls: one of
 * these goes by gyre's choice, on all ranks alike, so that no setting keeps it from being possible, or from being taken back. */
gyre_status gy_run_own(struct gyre_comm *comm, const struct gy_call *call);
/* The whole of a blocking call that is a repeat (of a start: call_cache_inline.h); false: it is none, or something is unusual, and nothing has
 * happened yet. */
bool gy_call_cache_call(struct gyre_comm *comm, const struct gy_call *call, gyre_status *status_p);

#endif
