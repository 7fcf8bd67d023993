/* A call on device memory, with its operands in a block of pinned memory:
 *
 *   input on the device -> block -> the call on host memory -> block -> output on the device
 *
 * Calls with a count per rank have packed blocks in the staged operands; gaps in the caller's operands are neither read
 * nor written. */
#ifndef GY_COLLECTIVES_DEVICE_STAGED_CALL_H
#define GY_COLLECTIVES_DEVICE_STAGED_CALL_H

#include "collectives/device/kept_call.h"
#include "collectives/device/staging.h"

struct gy_staged_call {
    struct gy_kept_call user; /* the call of the caller */
    struct gy_call staged;    /* the same call on the block */
    struct gy_staging_block *block;
};

/* Takes a block for a call whose arguments have been checked; the device's context is current. After an error of the
 * driver, which is returned, the call holds nothing. */
gy_cu_result gy_staged_open(struct gy_staged_call *call, struct gy_staging *staging, const struct gyre_comm *comm,
                            const struct gy_call *user);
/* Frees the lists, but not the block. */
void gy_staged_close(struct gy_staged_call *call);
/* Copies on a stream: this rank's input to the block, or the output from it. */
gy_cu_result gy_staged_copy_in(const struct gy_staged_call *call, const struct gy_staging *staging,
                               const struct gyre_comm *comm, gy_cu_stream stream);
gy_cu_result gy_staged_copy_out(const struct gy_staged_call *call, const struct gy_staging *staging,
                                const struct gyre_comm *comm, gy_cu_stream stream);

#endif
