/* Uniform ends (GYRE_ENDS=uniform): a collective in which a rank fails ends on all ranks that are left with success, or on
 * all of them with an error.
 *
 * Operations that end so are numbered on their communicator, from 1, in the order of their launches: the same on every
 * rank. Every rank has one number that only grows, `complete`: all operations up to it have run through their plans
 * here, so that their output is whole.
 *
 *   all is well    the ranks tell each other their numbers; who knows that all have come to n returns from operation n.
 *                  Ranks of one host: each writes its number to shared memory and reads the others'. Elsewhere they
 *                  spread the minimum by dissemination, in log2 N rounds of one frame (ENDS):
 *
 *                      rank r, round k:  v_0 = complete        v_k ──▶ rank r + 2^k
 *                                        v_k+1 = min(v_k, what has come from rank r − 2^k)
 *
 *                  All of it only grows, so a frame may tell of several operations at once, and none is repeated.
 *   a failure      each rank's `complete` stays as it is, and so do the operations under way. The agreement (membership/agreement.h)
 *                  agrees on D, the least `complete` of those who are left; operations up to D succeed, others fail.
 *
 * Why all who are left say the same. Who succeeded before the failure was told in operation n knew that all ranks had come
 * to n. Then D is at least n, whoever is left, and nobody else fails in n; this holds for one who died or left after its
 * success, too, and needs no word of it. Nobody comes to n after it has failed, as its number does not change any more,
 * and so nobody learns that all have come to an n above D, if any of those who agreed on D had not. D itself is the same
 * for all: that is what the agreement is for. And up to D the output of every rank that took part is whole, because its own
 * number is at least D.
 *
 * All ranks of the world take part in the agreement on a communicator, members or not. Who has nothing under way there is
 * called by the chair. One that has no such communicator (it is no member, or it has destroyed it, which it does after its
 * last operation there has ended) has nothing against any number. Communicators that share no rank may have one number,
 * as those of one split do, and agree each for itself: their lowest ranks tell them apart.
 *
 * Who is waited for, and how long. A rank that is not inside gyre may be computing: it is waited for until GYRE_TIMEOUT,
 * whether it has not come yet, has only started or tested an operation, or has everything that is missed of it but for its
 * word that it is through. One that waits inside, in a call that blocks, and says nothing for GYRE_STALL_TIMEOUT is
 * stopped. Shrinking ends what is under way first: who shrinks next answers here no more. Should the world fail when some are
 * inside it with operations under way, all stay there until these have ended (shrink.c). What fails later waits for those who
 * have gone on until they call the old communicator again or destroy it, or GYRE_TIMEOUT.
 *
 * Where there is no agreement there is no uniform end: after an abort, and on a rank that is excluded, or on the lesser
 * side of a world that is cut in two; these fail. */
#ifndef GY_COLLECTIVES_LIFECYCLE_UNIFORM_COMPLETION_H
#define GY_COLLECTIVES_LIFECYCLE_UNIFORM_COMPLETION_H

#include "collectives/engine/request.h"

/* Links and channels that the exchange needs; a status with a sentence in comm->error. */
gyre_status gy_uniform_prepare(struct gyre_comm *comm);
/* A request is launched on a communicator with uniform ends. */
void gy_uniform_launch(struct gyre_request *request);
/* Its plan is done: it ends when all ranks have said so. */
void gy_uniform_confirm(struct gyre_request *request);
/* The turn of a request that is being confirmed; true if it has ended. */
bool gy_uniform_advance(struct gyre_request *request);
/* The peer has spread this number. */
static inline void gy_uniform_heard(struct gy_channel *channel, uint64_t number)
{
    if (number > channel->completion.heard)
        channel->completion.heard = number;
}

/* After the failure of the world. Is the request's end agreed on? Then it stays active until it is. */
bool gy_uniform_judges(const struct gyre_request *request);
/* Is there such a request? Also before the failure. */
bool gy_uniform_pending(const struct gy_context *ctx);
/* Takes part in agreements, its own and others', without blocking; nothing while all is well. step: after a look. */
void gy_uniform_step(struct gy_context *ctx);
void gy_uniform_attend(struct gy_context *ctx);
/* The same, and then sleeps until something may have happened. */
void gy_uniform_wait(struct gy_context *ctx);
/* This rank returns to its program, in a world that has failed. */
void gy_uniform_return(struct gy_context *ctx);
/* In a world that has failed: until nothing is under way here whose end is agreed on. */
void gy_uniform_settle(struct gy_context *ctx);
/* A collective of `comm` is refused because the world has failed: how the others end is not to depend on whether this rank
 * stays. `block`: until it is agreed on. */
void gy_uniform_refuse(struct gyre_comm *comm, bool block);
/* The communicator of a failed world goes. Waits a little for what is not agreed on, and then ends it with ABORTED. */
void gy_uniform_leave(struct gyre_comm *comm);

#endif
