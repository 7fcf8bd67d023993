/* A call that a stream orders. The stream copies the input out and the output in; the worker makes the call between:
 *
 *   stream   copy in | write ready |            wait done | copy out | write freed
 *   worker             wait ready  | the call | write done
 *
 * Jobs of a communicator run in the order of the calls. Calls of one group are a batch: the worker starts all of them
 * before it waits for one, and the stream's second half follows at the end of the group. */
#ifndef GY_COLLECTIVES_DEVICE_STREAM_JOB_H
#define GY_COLLECTIVES_DEVICE_STREAM_JOB_H

#include "collectives/device/arrival.h"
#include "collectives/device/staged_call.h"

struct gy_ready_event;

struct gy_stream_job {
    struct gy_stream_job *next;
    struct gyre_comm *comm; /* the caller's */
    struct gy_staged_call call;
    gy_cu_stream stream;
    struct gyre_request *request;
    bool more; /* the next job is of the same batch */
    /* Of a call in which ranks of this process meet (fused_call.h), until it is launched or has to be staged: */
    bool meets, arrived;
    struct gy_kept_call kept;
    struct gy_arrival arrival;
    struct gy_ready_event *ready;
};

#endif
