/* Agreements among the members of a communicator that are left. */
#ifndef GY_COLLECTIVES_LIFECYCLE_AGREE_H
#define GY_COLLECTIVES_LIFECYCLE_AGREE_H

#include "collectives/comm/communicator.h"
#include "membership/agreement.h"

#define GY_AGREE_GROWS (UINT64_C(1) << 32) /* in the count of a proposal to grow */
/* What a proposal of another epoch says besides, by bits that are cleared where it holds. */
#define GY_AGREE_PENDING (UINT64_C(1) << 61) /* operations with uniform completion are under way here */
#define GY_AGREE_FAILED (UINT64_C(1) << 62)  /* the world has failed, as far as is known here */
#define GY_AGREE_AGAIN (UINT64_C(1) << 63)   /* the second time, because of these */
#define GY_AGREE_SAYS (GY_AGREE_PENDING | GY_AGREE_FAILED | GY_AGREE_AGAIN)

/* Polls for news without blocking, in a failed world too. */
void gy_recovery_poll(struct gy_context *ctx);
/* One agreement. Blocks until its outcome is there. MISMATCH: the ranks made different calls. The caller frees the outcome of a
 * success. */
gyre_status gy_agree_on(struct gyre_comm *comm, const struct gy_agreement_input *input, struct gy_outcome *outcome_p,
                        struct gy_error *error);
/* The bits that all who take part have in common. Blocks; works whatever has failed, except after an abort. */
gyre_status gy_agree(struct gyre_comm *comm, uint64_t bits, uint64_t *bits_p);

#endif
