/* Calls without a stream on device memory. The operands are copied to pinned memory before the call, and from it at its
 * end; the host waits for both copies. The call itself is the same as on host memory, so ranks without a GPU may take
 * part. The caller holds the progress lock, except in gy_device_call_begin and _end. */
#ifndef GY_COLLECTIVES_DEVICE_DEVICE_REQUEST_H
#define GY_COLLECTIVES_DEVICE_DEVICE_REQUEST_H

#include "collectives/device/attachment.h"

/* True if an operand lies in memory that only a device can read or write. */
bool gy_device_call_is(const struct gyre_comm *comm, const struct gy_call *call);

/* begin copies the input of a call whose arguments have been checked; `call->staged` is the call to make. end copies
 * the output if `status` is success. It returns `status`, or the error of the copy. */
gyre_status gy_device_call_begin(struct gyre_comm *comm, const struct gy_call *user, struct gy_staged_call *call);
gyre_status gy_device_call_end(struct gyre_comm *comm, struct gy_staged_call *call, gyre_status status);

/* Binds a request to its staged call, which is copied. Returns false if out of memory. */
bool gy_device_request_add(struct gyre_comm *comm, const struct gyre_request *request,
                           const struct gy_staged_call *call);
/* Starts a persistent request: copies its input. */
gyre_status gy_device_request_start(struct gyre_comm *comm, const struct gyre_request *request);
/* Ends a request: copies its output. Returns `status`, or the error of the copy. */
gyre_status gy_device_request_end(struct gyre_comm *comm, const struct gyre_request *request, gyre_status status);
/* Frees a persistent request. */
void gy_device_request_free(struct gyre_comm *comm, const struct gyre_request *request);
/* Frees all requests of the attachment. */
void gy_device_requests_free(struct gy_attachment *attachment);

#endif
