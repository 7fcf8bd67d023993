/* One rank's part of a call that a kernel executes for all ranks. In a meeting (meeting.h) it lies in memory of the
 * rank, and the meeting accesses it until it has stored the outcome. */
#ifndef GY_COLLECTIVES_DEVICE_ARRIVAL_H
#define GY_COLLECTIVES_DEVICE_ARRIVAL_H

#include <stdatomic.h>

#include "collectives/engine/request.h"
#include "cuda/driver.h"

struct gy_launch;

enum gy_outcome {
    GY_OUTCOME_NONE,    /* other ranks have not arrived yet */
    GY_OUTCOME_FUSED,   /* the kernel is launched: the stream waits for `launch` */
    GY_OUTCOME_STAGED,  /* no kernel can execute the call: each rank stages it */
    GY_OUTCOME_DIFFERS, /* ranks have made different calls */
    GY_OUTCOME_FAILED,  /* the meeting has ended with an error */
};

struct gy_arrival {
    struct gy_arrival *next;   /* next arrival of the same list */
    struct gy_arrival *placed; /* next arrival whose outcome is about to be stored */
    const struct gyre_comm *comm;
    const struct gy_call *call;
    gy_cu_event ready; /* event on the stream, recorded before the call */
    bool reachable;    /* kernels can access all operands of this rank */
    uint64_t scalar;   /* scalar of a pre-multiplied sum */
    int kernel;        /* kernel of a reduction (gy_kernel_find); −1: there is none */
    struct gy_call_signature shape;
    /* Set by the meeting. `outcome` is stored last, with release order. */
    _Atomic int outcome;
    struct gy_launch *launch;
    int other; /* GY_OUTCOME_DIFFERS: a rank whose call is `theirs` */
    struct gy_call_signature theirs;
};

/* Sets all fields that follow from the call, but for the sequence number of the shape. */
void gy_arrival_open(struct gy_arrival *arrival, const struct gyre_comm *comm, const struct gy_call *call);
/* Returns the kernel that executes the call; −1: there is none. */
int gy_arrival_kernel(const struct gy_arrival *arrival);

#endif
