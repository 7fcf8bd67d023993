/* The arrangement of a communicator's ranks on processes and devices. It decides how calls on streams are executed:
 *
 *   fused    all ranks are in one process and on one device, and there are kernels: meeting.h
 *   mapped   ranks are processes of one host, which can map each other's memory, and there are kernels: mapped_call.h
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
enum gy_way { GY_WAY_STAGED, GY_WAY_MAPPED, GY_WAY_FUSED };

/* Returns how calls on streams are executed. GY_WAY_STAGED: the reason is in `why`. */
enum gy_way gy_arrangement_way(const struct gyre_comm *comm, const struct gy_device_fact *all, char *why,
                               size_t why_bytes);
/* Numbers the devices of the ranks in the order of their lowest ranks; writes that of each rank. Returns how many there
 * are. */
int gy_arrangement_devices(const struct gy_device_fact *all, int size, int *device_of);
/* Writes the lowest rank whose `can` is false, or the size of the communicator. Collective; the caller holds the
 * progress lock. */
gyre_status gy_arrangement_agree(struct gyre_comm *comm, bool can, int *lowest_p);

#endif
