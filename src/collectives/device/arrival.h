/* One rank's part of a call in which ranks of one process meet: meeting.h. It lies in the rank's own memory, and
 * belongs to the meeting until its outcome is decided. */
#ifndef GY_COLLECTIVES_DEVICE_ARRIVAL_H
#define GY_COLLECTIVES_DEVICE_ARRIVAL_H

#include <stdatomic.h>

#include "collectives/engine/request.h"
#include "cuda/driver.h"

struct gy_launch;

enum gy_outcome {
    GY_OUTCOME_NONE,    /* ranks are missing */
    GY_OUTCOME_FUSED,   /* launched: the stream waits for `launch` */
    GY_OUTCOME_STAGED,  /* each rank stages its part */
    GY_OUTCOME_DIFFERS, /* ranks have made different calls */
    GY_OUTCOME_FAILED,  /* the meeting has ended: its error says why */
};

struct gy_arrival {
    struct gy_arrival *next;   /* of the same group */
    struct gy_arrival *placed; /* the next one whose outcome is about to be decided */
    const struct gyre_comm *comm;
    const struct gy_call *call;
    gy_cu_event ready; /* recorded on the stream */
    bool reachable;    /* by kernels: all operands of this rank */
    uint64_t scalar;   /* of a pre-multiplied sum */
    int kernel;        /* of a reduction: gy_kernel_find; −1: there is none */
    struct gy_call_signature shape;
    /* Decided by the meeting. `outcome` is stored last. */
    _Atomic int outcome;
    struct gy_launch *launch;
    int other; /* differs: a rank whose call is `theirs` */
    struct gy_call_signature theirs;
};

#endif
