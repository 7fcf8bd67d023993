/* Opens and closes communicators. */
#ifndef GY_COLLECTIVES_LIFECYCLE_COMM_OPEN_H
#define GY_COLLECTIVES_LIFECYCLE_COMM_OPEN_H

#include "collectives/comm/communicator.h"

/* The communicator of the whole world. */
gyre_status gy_comm_create_world(struct gy_context *ctx, struct gyre_comm **comm_p, struct gy_error *error);
/* Takes over `group`, on success. `region`: the slot that all members agreed on; -1: none. */
gyre_status gy_comm_create(struct gy_context *ctx, uint32_t id, struct gy_group *group, int region,
                           struct gyre_comm **comm_p, struct gy_error *error);
/* True if these ranks can share a region: all of them are on this host. */
bool gy_comm_together(const struct gy_context *ctx, const struct gy_group *group);
void gy_comm_free(struct gyre_comm *comm);

#endif
