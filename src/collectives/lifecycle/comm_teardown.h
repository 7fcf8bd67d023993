/* The end of a communicator before all of its members have destroyed it, in a world that continues.
 *
 *   a member destroys it   tells all others, after all that it has sent, and shows it in shared memory
 *   another one needs it   uses what has arrived. If that is not enough, the communicator ends here: what is in flight
 *                          on it, and every later call, is PEER_LEFT
 *                          ──▶ it tells the others likewise, and then the communicator ends on all of them, whatever
 *                          they wait for
 *
 * A rank that needs no departed member is not told. In the last operation of a communicator, the first rank that
 * completes may destroy it while messages are in flight between others. But once it has ended on a rank, that rank
 * can serve no others, and which of them need it is unknown.
 *
 * A request then releases its buffers when no other party uses them any more:
 *
 *   what a link stores to them            it stores elsewhere from now on: gy_context_take_back
 *   frames that a link sends from them    continue from a copy: orphan_sends.c
 *   what peers use in place               memory of gyre_mem_alloc: when each peer has ended it, too, or is complete;
 *                                         private memory: its exposure is withdrawn: zero_copy.h
 *
 * Uniform completion (uniform_completion.h) and compared results (result_check.h) concern the whole world: there the
 * world ends instead. */
#ifndef GY_COLLECTIVES_LIFECYCLE_COMM_TEARDOWN_H
#define GY_COLLECTIVES_LIFECYCLE_COMM_TEARDOWN_H

#include "collectives/engine/request.h"

/* Ends the communicator here and tells the others. If it cannot end alone, the failure of the world is reported,
 * which ends at the next progress. `cause`: the rank of the world that has destroyed it. May be called anywhere
 * inside: no request completes before this returns. Idempotent. */
void gy_comm_end(struct gyre_comm *comm, gyre_status status, int cause, const char *text);
/* This rank destroys it: tells the others, and waits for none. */
void gy_comm_announce_end(struct gyre_comm *comm);
/* Call before that: ends what is in flight with GYRE_ABORTED, and waits for it, but not for long. Returns false if
 * something is left. */
bool gy_comm_end_settle(struct gyre_comm *comm);
/* Handles what members have announced by gy_overlay_announce; `user` is the context. */
void gy_comm_end_announced(void *user, int world, uint32_t word, int cause);
/* A member reports that it takes no more part because of `cause`: it has destroyed the communicator, or the
 * communicator has ended there. */
void gy_comm_end_heard(struct gyre_comm *comm, int rank, int cause, bool destroyed);
/* Returns the rank because of which the member takes no more part; -1: it takes part. */
int gy_comm_end_cause(const struct gyre_comm *comm, int rank);
/* Progresses a request whose communicator has ended. */
bool gy_comm_end_advance(struct gyre_request *request);
/* The slow progress: ends here what has ended on other ranks of this host. */
void gy_comm_end_check(struct gy_context *ctx);
/* Refuses a call on an ended communicator: sets its error message again, and returns the status. */
gyre_status gy_comm_end_refuse(struct gyre_comm *comm);

#endif
