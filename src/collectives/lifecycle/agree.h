/* Agreements among the remaining members of a communicator. */
#ifndef GY_COLLECTIVES_LIFECYCLE_AGREE_H
#define GY_COLLECTIVES_LIFECYCLE_AGREE_H

#include "collectives/comm/communicator.h"
#include "membership/agreement.h"

#define GY_AGREE_GROWS (UINT64_C(1) << 32) /* in the count of a proposal to grow */
/* Further statements of a proposal that is no agree, as bits that are cleared if they hold. */
#define GY_AGREE_PENDING (UINT64_C(1) << 61) /* operations with uniform completion are in flight here */
#define GY_AGREE_FAILED (UINT64_C(1) << 62)  /* the world has failed, as far as this rank knows */
#define GY_AGREE_AGAIN (UINT64_C(1) << 63)   /* the second round, because of these */
#define GY_AGREE_SAYS (GY_AGREE_PENDING | GY_AGREE_FAILED | GY_AGREE_AGAIN)

/* Polls for failures without blocking, also in a failed world. */
void gy_recovery_poll(struct gy_context *ctx);
/* Runs one agreement. Blocks until its outcome is there. MISMATCH: the ranks made different calls. The caller frees
 * the outcome of a success. */
gyre_status gy_agree_on(struct gyre_comm *comm, const struct gy_agreement_input *input, struct gy_outcome *outcome_p,
                        struct gy_error *error);
/* Sets *bits_p to the bits that all participants have in common. Blocks; works whatever has failed, except after an
 * abort. */
gyre_status gy_agree(struct gyre_comm *comm, uint64_t bits, uint64_t *bits_p);

#endif
