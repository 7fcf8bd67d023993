/* The mapper of a communicator: all ranks have one, or none. */
#ifndef GY_COLLECTIVES_DEVICE_MAPPER_ATTACH_H
#define GY_COLLECTIVES_DEVICE_MAPPER_ATTACH_H

#include "collectives/device/mapper.h"

/* Creates the mapper of a communicator if the leaders can map memory of all ranks. Otherwise *mapper_p is NULL, with
 * the reason in `why`. Collective; returns a failure of the communicator. The caller holds the progress lock. */
gyre_status gy_mapper_attach(struct gyre_comm *comm, struct gy_device *device, const struct gy_device_fact *facts,
                             struct gy_mapper **mapper_p, char *why, size_t why_bytes);
/* Frees the mapper; NULL is allowed. The communicator of the calls is closed. The device's context is current. */
void gy_mapper_detach(struct gy_mapper *mapper);

#endif
