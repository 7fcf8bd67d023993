/* Where the calls of ranks meet that are threads of one process and share a GPU. The calls of a communicator are
 * numbered; a call is complete when all ranks have arrived in it, a message when both ends have.
 *
 *   rank 0   ready | arrives | waits ........................ | stream waits for done
 *   rank 1           ready | arrives | waits ................ | stream waits for done
 *   rank 2                     ready | arrives, the last one: |
 *                                      compares, launches, done | stream waits for done
 *
 * The last one decides for all. What is complete at the same time is launched together: no rank can have made one of
 * these calls depend on the result of another, since a call returns when it has been launched. Where no kernel can do
 * the call, all ranks stage it. */
#ifndef GY_COLLECTIVES_DEVICE_MEETING_H
#define GY_COLLECTIVES_DEVICE_MEETING_H

#include "collectives/device/arrival.h"
#include "cuda/image.h"

struct gy_host_meeting;

/* Makes the meeting of `size` ranks; its maker is a user. The image belongs to it. NULL with a sentence in `why`. */
struct gy_host_meeting *gy_host_meeting_make(const struct gy_device *device, struct gy_image *image, int size,
                                             unsigned blocks_most, char *why, size_t why_bytes);
/* The number by which other ranks find the meeting; no two of a process are equal, and none is 0. */
uint64_t gy_host_meeting_key(const struct gy_host_meeting *meeting);
/* Returns the meeting, whose user the caller becomes, or NULL. The maker is still its user. */
struct gy_host_meeting *gy_host_meeting_find(uint64_t key);
/* Ends a use. The last one frees the meeting. */
void gy_host_meeting_put(struct gy_host_meeting *meeting);
/* The rank arrives in no more calls. */
void gy_host_meeting_depart(struct gy_host_meeting *meeting, int rank);

/* Ranks arrive in the calls of a list; the device is entered. Calls that are complete now are decided. */
void gy_host_meeting_arrive(struct gy_host_meeting *meeting, struct gy_arrival *arrivals);
/* Waits for the outcome, for at most `ns`. */
void gy_host_meeting_wait(struct gy_host_meeting *meeting, const struct gy_arrival *arrival, int64_t ns);
/* Returns the lowest rank that has not arrived, preferring those that have departed; −1: none is missing. */
int gy_host_meeting_missing(struct gy_host_meeting *meeting, const struct gy_arrival *arrival, bool *departed_p);
/* Ends the meeting: calls that are not decided, and all later ones, fail. The first error stays. */
void gy_host_meeting_fail(struct gy_host_meeting *meeting, const struct gy_error *error);
/* Why it has ended. */
struct gy_error gy_host_meeting_error(struct gy_host_meeting *meeting);

#endif
