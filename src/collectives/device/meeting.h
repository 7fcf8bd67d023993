/* The meeting point, on the host, of ranks that are threads of one process and share a GPU. Each call on a stream
 * *arrives* here; one kernel then executes it for all ranks. The collectives of a communicator are numbered. A
 * collective is complete when all ranks have arrived in it, and a message when sender and receiver have.
 *
 *   rank 0   ready | arrives | waits ........................ | stream waits for done
 *   rank 1           ready | arrives | waits ................ | stream waits for done
 *   rank 2                     ready | arrives, the last one: |
 *                                      compares, launches, done | stream waits for done
 *
 * `ready` is an event that each rank records on its own stream. `done` is an event behind the kernel.
 *
 * The thread whose arrival completes a call decides its outcome for all ranks. Calls that are complete at the same time
 * share launches. This is correct: a call returns only after its launch, so none of them can depend on the result of
 * another one. If no kernel can execute the call, all ranks stage it through host memory. */
#ifndef GY_COLLECTIVES_DEVICE_MEETING_H
#define GY_COLLECTIVES_DEVICE_MEETING_H

#include "collectives/device/arrival.h"
#include "cuda/image.h"

struct gy_host_meeting;

/* Creates the meeting of `size` ranks, with the caller as its user. It owns the image from here on, also after a
 * failure. Returns NULL with the reason in `why`. */
struct gy_host_meeting *gy_host_meeting_make(const struct gy_device *device, struct gy_image *image, int size,
                                             unsigned blocks_most, char *why, size_t why_bytes);
/* Returns the number by which other ranks find the meeting. It is unique in the process and not 0. */
uint64_t gy_host_meeting_key(const struct gy_host_meeting *meeting);
/* Returns the meeting and adds the caller as a user, or NULL. Its creator must be a user during this call. */
struct gy_host_meeting *gy_host_meeting_find(uint64_t key);
/* Removes a user. The last one frees the meeting. */
void gy_host_meeting_put(struct gy_host_meeting *meeting);
/* Notes that the rank will arrive in no more calls. */
void gy_host_meeting_depart(struct gy_host_meeting *meeting, int rank);

/* Arrives in the calls of a list; the device's context is current. Decides the outcomes of all calls that are now
 * complete, and launches them. */
void gy_host_meeting_arrive(struct gy_host_meeting *meeting, struct gy_arrival *arrivals);
/* Waits for the next outcome of any call, but at most `ns`; returns at once if that of `arrival` is decided. */
void gy_host_meeting_wait(struct gy_host_meeting *meeting, const struct gy_arrival *arrival, int64_t ns);
/* Returns the lowest rank that has not arrived in the call; a rank that has departed is preferred. −1: none is
 * missing. */
int gy_host_meeting_missing(struct gy_host_meeting *meeting, const struct gy_arrival *arrival, bool *departed_p);
/* Ends the meeting: all calls without an outcome fail, and all later ones. The first error of a meeting is kept. */
void gy_host_meeting_fail(struct gy_host_meeting *meeting, const struct gy_error *error);
/* Returns the error with which the meeting has ended. */
struct gy_error gy_host_meeting_error(struct gy_host_meeting *meeting);

#endif
