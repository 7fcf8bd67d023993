/* A staged call on a stream. The stream copies the input to pinned memory and the output from it; between the copies
 * the worker's thread makes the call on host memory:
 *
 *   stream   copy in | write ready |            wait done | copy out | write freed
 *   worker             wait ready  | the call | write done
 *
 * The jobs of a communicator are executed in the order of the calls. The calls of one group are a batch: the worker
 * starts all of them before it waits for one, and their streams begin to wait at the end of the group. */
#ifndef GY_COLLECTIVES_DEVICE_STREAM_JOB_H
#define GY_COLLECTIVES_DEVICE_STREAM_JOB_H

#include "collectives/device/arrival.h"
#include "collectives/device/staged_call.h"

struct gy_ready_event;
struct gy_stream_worker;

struct gy_stream_job {
    struct gy_stream_job *next;
    struct gyre_comm *comm; /* the communicator of the call */
    struct gy_staged_call call;
    gy_cu_stream stream;
    struct gyre_request *request;
    bool more; /* the next job belongs to the same batch */
    /* Makes the call on the worker's thread; NULL: the call is a request on the staged operands. */
    void (*run)(struct gy_stream_worker *worker, struct gy_stream_job *job);
    struct gy_arrival arrival; /* of fused and mapped calls */
    /* For fused calls (fused_call.h), until the call is launched or has to be staged: */
    bool meets, arrived;
    struct gy_kept_call kept;
    struct gy_ready_event *ready;
};

#endif
