/* Going on after a failure: agreement among those who are left, and a communicator of them. */
#ifndef GY_COLLECTIVES_LIFECYCLE_SHRINK_H
#define GY_COLLECTIVES_LIFECYCLE_SHRINK_H

#include "collectives/comm/communicator.h"
#include "membership/agreement.h"
#include "membership/epoch.h"

/* The bits that all who take part have in common. Blocks; works whatever has failed, but after an abort. */
gyre_status gy_recover_agree(struct gyre_comm *comm, uint64_t bits, uint64_t *bits_p);
/* A communicator in a context of its own, of those who take part. */
gyre_status gy_recover_shrink(struct gyre_comm *comm, struct gyre_comm **comm_p);
/* Parts of both ways into a next epoch, shrinking and growing (grow.h). hold: one agreement, until its outcome is there;
 * MISMATCH where others want something else. table: those who took part, in the order of the communicator's ranks, and room
 * for `more`; NULL and the error. go_on: the new context and its communicator; uses `next` up. */
#define GY_RECOVER_GROWS (UINT64_C(1) << 32) /* in the count of a word that wants to grow */
/* What a word that wants another epoch says besides, by bits that are cleared where it holds. */
#define GY_RECOVER_PENDING (UINT64_C(1) << 61) /* operations are under way here whose ends are uniform */
#define GY_RECOVER_FAILED (UINT64_C(1) << 62)  /* the world has failed, as far as is known here */
#define GY_RECOVER_AGAIN (UINT64_C(1) << 63)   /* the second time, because of these */
#define GY_RECOVER_SAYS (GY_RECOVER_PENDING | GY_RECOVER_FAILED | GY_RECOVER_AGAIN)
gyre_status gy_recover_hold(struct gyre_comm *comm, const struct gy_word *word, struct gy_outcome *outcome_p,
                            struct gy_error *error);
struct gy_member *gy_recover_table(const struct gyre_comm *comm, const struct gy_outcome *outcome, int more,
                                   int *rank_p, struct gy_error *error);
gyre_status gy_recover_go_on(struct gyre_comm *comm, struct gy_next_world *next, const struct gy_next_plan *plan,
                             int operations, struct gyre_comm **comm_p, struct gy_error *error);
/* Looks for news without blocking, in a failed world too. */
void gy_recover_look(struct gy_context *ctx);

#endif
