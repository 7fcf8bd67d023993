/* Blocking calls. */
#ifndef GY_COLLECTIVES_CALL_BLOCKING_H
#define GY_COLLECTIVES_CALL_BLOCKING_H

#include "collectives/engine/request.h"

/* Runs a blocking call by the shortest path that is open to it. */
gyre_status gy_run(struct gyre_comm *comm, const struct gy_call *call);
/* The same for a call that gyre itself makes (split.c, grow.c, rma/window.c, device/attachment.c). Forced choices apply
 * to the user's calls only. An internal call uses gyre's own choice, the same on all ranks, so that no setting makes it
 * impossible or irrevocable. A rank that has no memory for it ends the world. */
gyre_status gy_run_own(struct gyre_comm *comm, const struct gy_call *call);
/* For a rank that leaves a collective operation of gyre's with `status`, while the others wait for it: if it lacked
 * memory, descriptors or another resource of the system, ends the world with the sentence of `comm`. */
void gy_report_shortage(const struct gyre_comm *comm, gyre_status status);

#endif
