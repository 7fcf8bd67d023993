/* A communicator that ends before all of its members have destroyed it, in a world that goes on.
 *
 *   a member destroys it       it says so to all others, behind all that it has sent, and shows it in shared memory
 *   another one needs it       it takes what has come, and where that is not enough the communicator ends here: what is under way on
 *                              it, and every later call, is PEER_LEFT
 *                              ──▶ it says so, likewise, and then the communicator ends on all others, whomever they wait for
 *
 * Who needs nobody that has gone hears nothing: in the last operation of a communicator, the first to be through may destroy it while
 * messages are under way between others. But once it has ended somewhere, nobody can tell whom that rank would still have served.
 *
 * A request then gives its buffers back when nobody touches them any more:
 *
 *   what a link stores to them              it stores elsewhere from now on: gy_context_take_back
 *   frames that a link sends from them      go on from a copy: orphan_sends.c
 *   what others use where it lies           in memory of gyre_mem_alloc: when each of them has ended it, too, or is through; in
 *                                           private memory the offer is withdrawn: zero_copy.h
 *
 * What ends alike on all ranks (uniform_completion.h) or is compared (result_check.h) is the whole world's affair: there it is the world that ends. */
#ifndef GY_COLLECTIVES_LIFECYCLE_COMM_TEARDOWN_H
#define GY_COLLECTIVES_LIFECYCLE_COMM_TEARDOWN_H

#include "collectives/engine/request.h"

/* It ends here, and the others are told. Where it cannot end alone the world is told, and ends at the next turn. `cause`: the rank of
 * the world that has destroyed it. From anywhere inside: no request is over when this returns. Idempotent. */
void gy_comm_end(struct gyre_comm *comm, gyre_status status, int cause, const char *text);
/* This rank destroys it, and has no more to say on it: tells the others, and waits for nobody. */
void gy_comm_announce_end(struct gyre_comm *comm);
/* Before that: ends what is still under way with GYRE_ABORTED, and waits for it, not for long. False: something is left. */
bool gy_comm_end_settle(struct gyre_comm *comm);
/* What members have said to this rank by gy_overlay_announce; `user` is the context. */
void gy_comm_end_announced(void *user, int world, uint32_t word, int cause);
/* A member says that it takes no more part because of `cause`: as it has destroyed it, or it has ended there. */
void gy_comm_end_heard(struct gyre_comm *comm, int rank, int cause, bool destroyed);
/* Because of whom does the member take no more part? −1: it does. */
int gy_comm_end_cause(const struct gyre_comm *comm, int rank);
/* The turn of a request whose communicator has ended. */
bool gy_comm_end_advance(struct gyre_request *request);
/* The slow turn: what has ended on other ranks of this host ends here. */
void gy_comm_end_look(struct gy_context *ctx);
/* A call on one that has ended: the sentence again, and the status. */
gyre_status gy_comm_end_refuse(struct gyre_comm *comm);

#endif
