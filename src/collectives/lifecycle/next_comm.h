/* The communicator of the next epoch. */
#ifndef GY_COLLECTIVES_LIFECYCLE_NEXT_COMM_H
#define GY_COLLECTIVES_LIFECYCLE_NEXT_COMM_H

#include "collectives/comm/communicator.h"
#include "membership/agreement.h"
#include "membership/epoch.h"

/* Returns the members that took part in `outcome`, in the order of the ranks of `comm`, with room for `more`;
 * *rank_p: this rank's place. The caller frees it. NULL on failure, with the error set. */
struct gy_member *gy_next_members(const struct gyre_comm *comm, const struct gy_outcome *outcome, int more, int *rank_p,
                                  struct gy_error *error);
/* Makes the new context and its communicator, with the attributes of `comm`. Consumes `next`. */
gyre_status gy_next_comm(struct gyre_comm *comm, struct gy_next_world *next, const struct gy_next_plan *plan,
                         int operations, struct gyre_comm **comm_p, struct gy_error *error);

#endif
