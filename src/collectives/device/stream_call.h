/* Calls on streams, which are fused (fused_call.h) or staged (stream_job.h). */
#ifndef GY_COLLECTIVES_DEVICE_STREAM_CALL_H
#define GY_COLLECTIVES_DEVICE_STREAM_CALL_H

#include "collectives/device/attachment.h"

/* Begins a call whose arguments have been checked. If the call is staged, the stream copies its input. The caller does
 * not hold the progress lock. */
gyre_status gy_stream_call_begin(struct gyre_comm *comm, const struct gy_call *call, gy_cu_stream stream,
                                 struct gy_stream_job **job_p);
/* Ends the calls that one thread has begun, in order. Kernels or the workers execute them, and their streams wait for
 * the results. The jobs of one communicator become a batch. A failure ends its attachment; the first one that this
 * thread finds is returned. Frees the jobs or passes them to the workers. */
gyre_status gy_stream_calls_end(struct gy_stream_job *jobs);
/* Removes a communicator's jobs from a list. Returns them, in order. */
struct gy_stream_job *gy_stream_jobs_take(struct gy_stream_job **jobs, const struct gyre_comm *comm);
/* Ends jobs of a communicator that is about to be destroyed, without making their calls. */
void gy_stream_calls_drop(struct gy_stream_job *jobs);

#endif
