/* Calls from lower layers to higher ones: a table of functions set when a context is made (defined in
 * events/upcalls.c). */
#ifndef GY_COLLECTIVES_COMM_UPCALLS_H
#define GY_COLLECTIVES_COMM_UPCALLS_H

#include "transport/transport.h"

struct gy_context;
struct gy_lane_state;
struct gy_step;
struct gyre_comm;
struct gyre_request;

struct gy_upcalls {
    const struct gy_receive_handler *handler; /* receives from links; without `user` */
    /* Of a context. */
    void (*failed)(struct gy_context *ctx);             /* the context is closed: ends every request, once */
    void (*drive)(struct gy_context *ctx);              /* the progress thread's loop */
    void (*returned)(struct gy_context *ctx);           /* no thread is inside any more, in a failed world */
    void (*agree)(struct gy_context *ctx);              /* failed world: waits once for the agreement on completion */
    void (*answer)(struct gy_context *ctx);             /* windows owe answers that had no room */
    bool (*compare)(struct gy_context *ctx);            /* compares results (GYRE_VERIFY); true: something moved */
    void (*watch)(struct gy_context *ctx, int64_t now); /* checks the timeouts of all waits */
    /* Of a request. */
    bool (*advance)(struct gyre_request *request); /* one iteration; true: something moved */
    void (*step_begins)(struct gyre_request *request, int lane, const struct gy_step *step); /* over a link */
    /* True if all ranks of the host have reached `target` on the lane, as far as the step needs it. */
    bool (*everyone)(struct gyre_request *request, int lane, const struct gy_step *step, int region_lane,
                     uint64_t target);
    bool (*needs_nobody)(const struct gyre_request *request,
                         const struct gy_step *step);                 /* of the readers of its slot */
    void (*ending)(struct gyre_request *request, gyre_status status); /* complete: final changes to the output */
    void (*ended)(struct gyre_request *request);                      /* off the lists: releases resources */
    void (*launched)(struct gyre_request *request);                   /* with uniform completion or result check */
    void (*confirm)(struct gyre_request *request); /* complete locally: starts the agreement on completion */
    /* Of a communicator. */
    gyre_status (*prepare)(struct gyre_comm *comm); /* prepares uniform completion; an error message in comm->error */
    gyre_status (*settle)(struct gyre_comm *comm);  /* returns whether the results compared so far are equal */
    gyre_status (*refuse)(struct gyre_comm *comm);  /* the communicator has ended, or its world has failed */
};

#endif
