/* Liveness between ranks. */
#ifndef GY_COLLECTIVES_ENGINE_LIVENESS_H
#define GY_COLLECTIVES_ENGINE_LIVENESS_H

#include "collectives/engine/request.h"

/* All that a leaving rank has stored in shared memory is visible when its leave message arrives. This rank may still
 * have to read it, and is given this time. The same time passes before a rank that has destroyed only its
 * communicator counts as gone. */
#define GY_LEFT_GRACE (10 * GY_MILLISECOND)
#define GY_CONNECT_AFTER (20 * GY_MILLISECOND)

/* This rank was not running (computing, stopped). No answer of a peer could reach it, so its clocks are moved on by
 * the pause. */
void gy_liveness_restart(struct gy_context *ctx, int64_t now);
/* The time between two questions or signs of life. */
int64_t gy_liveness_interval(const struct gy_context *ctx);
/* Returns true if the peer's heartbeat in shared memory is visible to this rank, and this rank's to the peer. */
bool gy_liveness_is_seen(const struct gy_context *ctx, int peer);
/* Beats for the ranks of this host: this rank runs inside gyre, and waits. */
void gy_liveness_show(struct gy_context *ctx);
/* Sends the same, once in a while, to ranks elsewhere. Used by a rank that cannot progress its links and so answers
 * no question. */
void gy_liveness_call(struct gyre_comm *comm, int64_t now);
/* True if the rank of the world has left, and all that it may have sent before has been read. by_memory: the missing
 * data comes through shared memory and not by its link. since: when the wait for it began. */
bool gy_liveness_has_gone(struct gy_context *ctx, int peer, bool by_memory, int64_t since, int64_t now);
/* Asks a member, once in a while, whether it still has its part of the one-sided window of that number. The member
 * answers with a PONG when it is inside gyre. since: when the wait for it began; *asked: initially the same, then
 * this function's own. */
void gy_liveness_ask(struct gyre_comm *comm, uint32_t window, int rank, int64_t since, int64_t now, int64_t *asked);
/* Tells the rank of the world, unasked, that this rank has destroyed the communicator, or else the window, that the
 * frame addresses. */
void gy_liveness_disown(struct gy_context *ctx, int peer, const struct gy_frame *frame);
/* Values of a PONG that are no operation counts. Its sender has destroyed the communicator, or its part of the
 * window whose number is its `count`, or takes no more part in the communicator, which has ended there. `root`: the
 * rank that caused it. */
#define GY_PONG_DESTROYED UINT64_MAX
#define GY_PONG_WITHDRAWN (UINT64_MAX - 1)
#define GY_PONG_ENDED (UINT64_MAX - 2)

#endif
