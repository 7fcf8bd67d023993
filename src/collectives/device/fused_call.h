/* A rank's part of fused calls: calls on streams, with ranks that are threads of this process and share its GPU. One
 * kernel executes a call for all ranks: meeting.h. */
#ifndef GY_COLLECTIVES_DEVICE_FUSED_CALL_H
#define GY_COLLECTIVES_DEVICE_FUSED_CALL_H

#include "collectives/device/attachment.h"

/* Begins a call whose arguments have been checked, without any work on its stream. Returns false if out of memory. */
bool gy_fused_call_begin(struct gy_stream_job *job, const struct gy_call *call);
/* Arrives in the calls of a list, for the ranks of all its jobs, and waits until their outcomes are decided. Frees the
 * jobs that have been launched or have failed. The jobs that remain in the list have to be staged. Returns the status
 * of the first failure, with which its attachment ends, too. */
gyre_status gy_fused_calls_end(struct gy_stream_job **jobs);
/* Frees jobs that have not arrived, and removes them from the list. */
void gy_fused_calls_drop(struct gy_stream_job **jobs);

/* Frees the attachment's events, which no job uses any more; the device's context is current. */
void gy_ready_events_free(struct gy_attachment *attachment);

#endif
