/* The arrangement of a communicator's ranks on processes and devices. It decides how calls on streams are executed:
 *
 *   fused    all ranks are in one process and on one device, and there are kernels: meeting.h
 *   staged   any other arrangement: stream_job.h
 *
 * The decision follows from facts that every rank has about all ranks, so it is the same on all ranks. */
#ifndef GY_COLLECTIVES_DEVICE_ARRANGEMENT_H
#define GY_COLLECTIVES_DEVICE_ARRANGEMENT_H

#include "collectives/comm/communicator.h"
#include "cuda/device.h"

/* The facts about a rank, which all ranks exchange. */
struct gy_device_fact {
    int32_t status; /* gyre_status of opening its device */
    int32_t has_device, has_image;
    uint64_t process[4]; /* unique number of the process, on all hosts */
    struct gy_cu_uuid uuid;
    uint64_t meeting; /* key of the meeting that rank 0 has created; 0: none */
    char why[248];    /* the reason of a failure, or of a missing image */
};

/* Sets the facts that do not depend on a device. */
void gy_device_fact_begin(struct gy_device_fact *fact);
/* Returns the key of the meeting of all ranks; 0: calls are staged, with the reason in `why`. */
uint64_t gy_arrangement_meeting(const struct gyre_comm *comm, const struct gy_device_fact *all, char *why,
                                size_t why_bytes);

#endif
