/* Calls on streams of ranks that are processes of one host. The host orders what no event can order:
 *
 *   stream   ready |                                                                        waits for done | ...
 *   worker         | facts of all ranks | leaders: map | agreement | kernels | agreement | done
 *
 * "ready" and "done" are words of a staging block (staging.h), which holds no data here. If the leaders can map the
 * operands and have a kernel, each one launches its part of the call, and no byte passes through host memory. Otherwise
 * all ranks stage the call on their workers, since the streams wait. The first agreement decides that; with one leader
 * it is left out, since the second one does. */
#ifndef GY_COLLECTIVES_DEVICE_MAPPED_CALL_H
#define GY_COLLECTIVES_DEVICE_MAPPED_CALL_H

#include "collectives/device/attachment.h"

/* Begins a call whose arguments have been checked: its stream writes a word when the operands are ready. The device's
 * context is current. Returns an error of the driver. */
gy_cu_result gy_mapped_call_begin(struct gy_stream_job *job, const struct gy_call *call);
/* Makes the stream wait until the call is done. The device's context is current. */
gy_cu_result gy_mapped_call_end(struct gy_stream_job *job);

#endif
