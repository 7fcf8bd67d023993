/* A communicator's attachment to a GPU: the device of this rank, the pinned memory for staging, and the worker that
 * makes staged calls on streams. */
#ifndef GY_COLLECTIVES_DEVICE_ATTACHMENT_H
#define GY_COLLECTIVES_DEVICE_ATTACHMENT_H

#include "collectives/device/stream_worker.h"

struct gy_device_request;
struct gy_image;
struct gy_host_meeting;
struct gy_mapper;
struct gy_ready_event;

struct gy_attachment {
    /* A duplicate of the communicator, for calls on streams. Only the worker makes calls on it; on a rank without a
     * device the caller does. */
    struct gyre_comm *traffic;
    bool has_device;
    struct gy_device device;
    struct gy_staging staging;
    gy_cu_stream copies; /* stream for the copies of calls without a stream */
    struct gy_stream_worker worker;
    struct gy_device_request *requests; /* requests of calls without a stream: device_request.h */
    struct gy_image *image;             /* image of the kernels; NULL: there is none */
    struct gy_host_meeting *meeting;    /* meeting of ranks of this process on one device; NULL: calls are staged */
    struct gy_mapper *mapper;           /* of ranks that are processes on one device; NULL: calls are not mapped */
    struct gy_ready_event *ready;       /* pool of events of this rank: fused_call.h */
};

enum { GY_DEFAULT_DEVICE = -3, GY_NO_DEVICE = -2, GY_CURRENT_DEVICE = -1 };

/* Attaches a communicator to device `number`, or as one of the constants says. Collective; every rank gets the same
 * status. The caller does not hold the progress lock. */
gyre_status gy_attach(struct gyre_comm *comm, int number);
/* Ends the attachment, if there is one, and its calls in progress. The caller does not hold the progress lock. */
void gy_detach(struct gyre_comm *comm);
/* Returns the message of the failure that has ended the attachment's calls on streams; NULL: there is none. */
const char *gy_attachment_error(const struct gyre_comm *comm);

#endif
