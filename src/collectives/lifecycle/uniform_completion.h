/* Uniform completion (GYRE_ENDS=uniform): a collective in which a rank fails ends on all remaining ranks with
 * success, or on all of them with an error.
 *
 * Such operations are numbered on their communicator, from 1, in the order of their launches: the same on every
 * rank. Every rank has one number that only grows, `complete`: all operations up to it have run through their schedules
 * here, so that their output is complete.
 *
 *   no failure     the ranks tell each other their numbers. A rank returns from operation n when it knows that all have
 *                  reached n. Ranks of one host: each writes its number to shared memory and reads the others'.
 *                  Elsewhere they spread the minimum by dissemination, in log2 N rounds of one UNIFORM frame:
 *
 *                      rank r, round k:  v_0 = complete        v_k ──▶ rank r + 2^k
 *                                        v_k+1 = min(v_k, what has come from rank r − 2^k)
 *
 *                  All numbers only grow, so a frame may confirm several operations at once, and none is repeated.
 *   a failure      each rank's `complete` stays as it is, and so do the operations in flight. The agreement
 *                  (membership/agreement.h) agrees on D, the least `complete` of the remaining ranks; operations up to
 *                  D succeed, others fail.
 *
 * Why all remaining ranks have the same result. A rank that succeeded in operation n before the failure knew that
 * all ranks had reached n. Then D is at least n, whichever ranks remain, and no other rank fails in n. This holds
 * for a rank that died or left after its success, too, and needs no message from it. No rank reaches n after it has
 * failed, as its number does not change any more. So no rank learns that all have reached an n above D, if any of
 * those that agreed on D had not. D itself is the same for all: the agreement ensures that. And up to D the output
 * of every participant is complete, because its own number is at least D.
 *
 * All ranks of the world take part in the agreement on a communicator, members or not. The coordinator calls those
 * that have nothing in flight there. A rank without the communicator accepts any number (it is no member, or it has
 * destroyed it, after its last operation there). Communicators that share no rank may have one number, as those of
 * one split do, and agree each for itself: their lowest ranks tell them apart.
 *
 * Timeouts. A rank that is not inside gyre may be computing, and is waited for until GYRE_TIMEOUT. This holds if it
 * has not entered yet, if it has only started or tested an operation, and if only its confirmation is missing. A
 * rank that waits inside, in a blocking call, and shows no life for GYRE_STALL_TIMEOUT is stopped. Shrinking first
 * ends what is in flight: a rank that shrinks does not answer here afterwards. If the world fails while some are in
 * a shrink with operations in flight, all stay there until these have ended (shrink.c). Later failures wait for the
 * ranks that have continued, until they call the old communicator again or destroy it, or until GYRE_TIMEOUT.
 *
 * Without an agreement there is no uniform completion: after an abort, on an excluded rank, and on the smaller side
 * of a partitioned world; these fail. */
#ifndef GY_COLLECTIVES_LIFECYCLE_UNIFORM_COMPLETION_H
#define GY_COLLECTIVES_LIFECYCLE_UNIFORM_COMPLETION_H

#include "collectives/engine/request.h"

/* Makes the links and channels that the exchange needs. Returns a status with a message in comm->error. */
gyre_status gy_uniform_prepare(struct gyre_comm *comm);
/* Call when a request is launched on a communicator with uniform completion. */
void gy_uniform_launch(struct gyre_request *request);
/* Its schedule is complete: it ends when all ranks have confirmed that. */
void gy_uniform_confirm(struct gyre_request *request);
/* Progresses a request that is being confirmed. Returns true if it has ended. */
bool gy_uniform_advance(struct gyre_request *request);
/* The peer has spread this number. */
static inline void gy_uniform_heard(struct gy_channel *channel, uint64_t number)
{
    if (number > channel->completion.heard)
        channel->completion.heard = number;
}

/* True, after the failure of the world, if the request's end is decided by agreement. Then it stays active until it
 * is. */
bool gy_uniform_decides(const struct gyre_request *request);
/* True if there is such a request; also before the failure. */
bool gy_uniform_pending(const struct gy_context *ctx);
/* attend: takes part in agreements, this rank's and others', without blocking; nothing before a failure. step: the
 * same, after a poll. */
void gy_uniform_step(struct gy_context *ctx);
void gy_uniform_attend(struct gy_context *ctx);
/* The same, and then sleeps until something may have happened. */
void gy_uniform_wait(struct gy_context *ctx);
/* This rank returns to its program, in a failed world. */
void gy_uniform_return(struct gy_context *ctx);
/* In a failed world: waits until nothing is in flight here whose end is decided by agreement. */
void gy_uniform_settle(struct gy_context *ctx);
/* A collective of `comm` is refused because the world has failed: the result of the others must not depend on
 * whether this rank stays. `block`: waits until it is agreed on. */
void gy_uniform_refuse(struct gyre_comm *comm, bool block);
/* The communicator of a failed world is destroyed. Waits a little for what is not agreed on, and then ends it with
 * ABORTED. */
void gy_uniform_leave(struct gyre_comm *comm);

#endif
