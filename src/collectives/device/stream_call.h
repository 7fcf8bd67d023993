/* Calls that a stream orders: stream_job.h. */
#ifndef GY_COLLECTIVES_DEVICE_STREAM_CALL_H
#define GY_COLLECTIVES_DEVICE_STREAM_CALL_H

#include "collectives/device/attachment.h"

/* Begins a call whose arguments have been checked: the stream copies the input out, unless ranks meet in the call. The
 * caller is not inside. */
gyre_status gy_stream_call_begin(struct gyre_comm *comm, const struct gy_call *call, gy_cu_stream stream,
                                 struct gy_stream_job **job_p);
/* Ends the calls that one thread has begun, in order: their streams wait for the results, and kernels or the workers
 * make them. Jobs of one communicator become a batch. A failure is that of the attachment; the first one that this
 * thread finds is returned. Uses the jobs up. */
gyre_status gy_stream_calls_end(struct gy_stream_job *jobs);
/* Takes a communicator's jobs off a list. Returns them, in order. */
struct gy_stream_job *gy_stream_jobs_take(struct gy_stream_job **jobs, const struct gyre_comm *comm);
/* Ends jobs of a communicator that is about to be destroyed: it arrives in no call. */
void gy_stream_calls_drop(struct gy_stream_job *jobs);

#endif
