/* How the ranks of a communicator lie on processes and devices, and which way their calls on streams take:
 *
 *   fused    all ranks are in one process, on one device, and its kernels are there: meeting.h
 *   staged   any other arrangement: stream_job.h
 *
 * The choice follows from facts that every rank has of all, so all choose the same. */
#ifndef GY_COLLECTIVES_DEVICE_ARRANGEMENT_H
#define GY_COLLECTIVES_DEVICE_ARRANGEMENT_H

#include "collectives/comm/communicator.h"
#include "cuda/device.h"

/* What every rank tells all others about itself. */
struct gy_device_fact {
    int32_t status; /* gyre_status: whether it can use its device */
    int32_t has_device, has_image;
    uint64_t process[4]; /* no two processes have the same, on any host */
    struct gy_cu_uuid uuid;
    uint64_t meeting; /* the first rank's; 0: it has none */
    char why[248];    /* what has failed; why there is no image */
};

/* Fills what is known without a device. */
void gy_device_fact_begin(struct gy_device_fact *fact);
/* Returns the number of the meeting of all ranks; 0: calls are staged, and `why` says why. */
uint64_t gy_arrangement_meeting(const struct gyre_comm *comm, const struct gy_device_fact *all, char *why,
                                size_t why_bytes);

#endif
