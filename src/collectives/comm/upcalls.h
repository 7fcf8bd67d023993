/* What lower layers call of higher ones: functions in a table, which a context gets when it is made (events/upcalls.c has it). */
#ifndef GY_COLLECTIVES_COMM_UPCALLS_H
#define GY_COLLECTIVES_COMM_UPCALLS_H

#include "transport/transport.h"

struct gy_context;
struct gy_lane_state;
struct gy_step;
struct gyre_comm;
struct gyre_request;

struct gy_upcalls {
    const struct gy_receive_handler *handler; /* what comes over links; without `user` */
    /* Of a context. */
    void (*failed)(struct gy_context *ctx);   /* it is closed: ends every request, once */
    void (*drive)(struct gy_context *ctx);    /* the progress thread's part */
    void (*returned)(struct gy_context *ctx); /* no thread is inside any more, in a world that has failed */
    void (*agree)(struct gy_context *ctx);    /* waits once, in such a world, for how its operations end */
    void (*answer)(struct gy_context *ctx);   /* windows owe answers that had no room */
    bool (*compare)(struct gy_context *ctx);  /* results that are compared (GYRE_VERIFY); true: something moved */
    void (*watch)(struct gy_context *ctx, int64_t now); /* the clocks of everything that waits */
    /* Of a request. */
    bool (*advance)(struct gyre_request *request); /* one turn; true: something moved */
    void (*step_begins)(struct gyre_request *request, int lane, const struct gy_step *step); /* over a link */
    /* Have all ranks of the host come to `target` on a lane of theirs, as far as the step must know? */
    bool (*everyone)(struct gyre_request *request, int lane, const struct gy_step *step, int region_lane,
                     uint64_t target);
    bool (*needs_nobody)(const struct gyre_request *request,
                         const struct gy_step *step);                 /* of the readers of its slot */
    void (*ending)(struct gyre_request *request, gyre_status status); /* it is complete: what it leaves in the output */
    void (*ended)(struct gyre_request *request, gyre_status status); /* it is off the lists: gives back what it holds */
    void (*launched)(
        struct gyre_request *request); /* on a communicator with uniform ends, or whose results are compared */
    void (*confirm)(struct gyre_request *request); /* all that it does here is done: does it end alike everywhere? */
    /* Of a communicator. */
    gyre_status (*prepare)(struct gyre_comm *comm); /* what uniform ends need; a sentence in comm->error */
    gyre_status (*settle)(struct gyre_comm *comm);  /* are the results compared so far right? */
    gyre_status (*refuse)(struct gyre_comm *comm);  /* a call on one that has ended, or whose world has failed */
};

#endif
