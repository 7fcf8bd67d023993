/* Calls without a stream on memory of a device. The operands are copied to pinned memory before the call and from it
 * at its end, both while the host waits; the call itself is the same as on host memory, so ranks without a GPU may take
 * part. The caller is inside, but for gy_device_call_begin and _end. */
#ifndef GY_COLLECTIVES_DEVICE_DEVICE_REQUEST_H
#define GY_COLLECTIVES_DEVICE_DEVICE_REQUEST_H

#include "collectives/device/attachment.h"

/* True if an operand lies in memory that only a device can read or write. */
bool gy_device_call_is(const struct gyre_comm *comm, const struct gy_call *call);

/* begin: copies the input of a call whose arguments have been checked; `call->staged` is what is to be called. end:
 * copies the output if `status` is success; returns `status`, or what went wrong then. */
gyre_status gy_device_call_begin(struct gyre_comm *comm, const struct gy_call *user, struct gy_staged_call *call);
gyre_status gy_device_call_end(struct gyre_comm *comm, struct gy_staged_call *call, gyre_status status);

/* Binds a request to its staged call, which is copied. Returns false if out of memory. */
bool gy_device_request_add(struct gyre_comm *comm, const struct gyre_request *request,
                           const struct gy_staged_call *call);
/* A persistent request starts: copies its input. */
gyre_status gy_device_request_start(struct gyre_comm *comm, const struct gyre_request *request);
/* A request is collected: copies its output. Returns `status`, or what went wrong then. */
gyre_status gy_device_request_end(struct gyre_comm *comm, const struct gyre_request *request, gyre_status status);
/* A persistent request is freed. */
void gy_device_request_free(struct gyre_comm *comm, const struct gyre_request *request);
/* All requests of the attachment are gone. */
void gy_device_requests_free(struct gy_attachment *attachment);

#endif
