/* A rank's part of calls on streams whose ranks are threads of this process and share its GPU: meeting.h. */
#ifndef GY_COLLECTIVES_DEVICE_FUSED_CALL_H
#define GY_COLLECTIVES_DEVICE_FUSED_CALL_H

#include "collectives/device/attachment.h"

/* Begins a call whose arguments have been checked: nothing is done on its stream yet. Returns false if out of
 * memory. */
bool gy_fused_call_begin(struct gy_stream_job *job, const struct gy_call *call);
/* Arrives in the calls of a list, for all their ranks, and waits for the others. Jobs that are over are taken off the
 * list and freed; those that are left have to be staged. Returns the status of the first failure, which is also that
 * of its attachment. */
gyre_status gy_fused_calls_end(struct gy_stream_job **jobs);
/* Frees jobs that no rank has arrived with, and takes them off the list. */
void gy_fused_calls_drop(struct gy_stream_job **jobs);

/* The attachment's events, when no job is left; the device is entered. */
void gy_ready_events_free(struct gy_attachment *attachment);

#endif
