/* A communicator's attachment to a GPU: the device of this rank, the pinned memory that its operands pass through, and
 * the worker that makes the calls which streams order. */
#ifndef GY_COLLECTIVES_DEVICE_ATTACHMENT_H
#define GY_COLLECTIVES_DEVICE_ATTACHMENT_H

#include "collectives/device/stream_worker.h"

struct gy_device_request;
struct gy_image;
struct gy_host_meeting;
struct gy_ready_event;

struct gy_attachment {
    /* A duplicate of the communicator. It carries what streams order; the worker alone drives it, or, on a rank
     * without a device, the caller. */
    struct gyre_comm *traffic;
    bool has_device;
    struct gy_device device;
    struct gy_staging staging;
    gy_cu_stream copies; /* of calls that the host waits for */
    struct gy_stream_worker worker;
    struct gy_device_request *requests; /* of calls without a stream: device_request.h */
    struct gy_image *image;             /* of kernels; NULL: there is none */
    struct gy_host_meeting *meeting;    /* of ranks of this process on one device; NULL: calls are staged */
    struct gy_ready_event *ready;       /* events of this rank: fused_call.h */
};

enum { GY_DEFAULT_DEVICE = -3, GY_NO_DEVICE = -2, GY_CURRENT_DEVICE = -1 };

/* Attaches a communicator to device `number`, to that of this thread's current context, to the default one (cuda.h), or
 * to none. Collective; every rank gets the same status. The caller is not inside. */
gyre_status gy_attach(struct gyre_comm *comm, int number);
/* Ends the attachment, if there is one, and calls that are under way on it. The caller is not inside. */
void gy_detach(struct gyre_comm *comm);

#endif
