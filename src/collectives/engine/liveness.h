/* Signs of life between ranks. */
#ifndef GY_COLLECTIVES_ENGINE_LIVENESS_H
#define GY_COLLECTIVES_ENGINE_LIVENESS_H

#include "collectives/engine/request.h"

/* What a rank that leaves handed to shared memory is there when its leave message is heard. It may still have to be taken, and
 * called gone where its communicator alone was destroyed. */
#define GY_LEFT_GRACE (10 * GY_MILLISECOND)
#define GY_ACQUAINT_AFTER (20 * GY_MILLISECOND)

/* This rank was away (computing, stopped): nobody could answer it, so its clocks stood still. */
void gy_liveness_restart(struct gy_context *ctx, int64_t now);
/* From one question or sign of life to the next. */
int64_t gy_liveness_interval(const struct gy_context *ctx);
/* Returns true if the peer shows its heartbeat in shared memory to this rank, and this rank its own to it. */
bool gy_liveness_is_seen(const struct gy_context *ctx, int peer);
/* To the ranks of this host: this one runs inside gyre, and waits. */
void gy_liveness_show(struct gy_context *ctx);
/* To those elsewhere, once in a while: the same, by whom cannot look at its links and so answers no question. */
void gy_liveness_call(struct gyre_comm *comm, int64_t now);
/* Has the rank of the world left, and all been read that it may have sent before? by_memory: what is missing comes through
 * shared memory and not by its link; since: when it began to be missed. */
bool gy_liveness_has_gone(struct gy_context *ctx, int peer, bool by_memory, int64_t since, int64_t now);
/* Asks a member, once in a while, whether it still has its part of the region of that number; the answer is a PONG, when it is inside gyre. since:
 * when the wait for it began; *asked: then at first, and this function's own. */
void gy_liveness_ask(struct gyre_comm *comm, uint32_t window, int rank, int64_t since, int64_t now, int64_t *asked);
/* Tells the rank of the world, unasked, that this one has destroyed the communicator, or else the region, that the frame is for. */
void gy_liveness_disown(struct gy_context *ctx, int peer, const struct gy_frame *frame);
/* Values of a PONG that are no count of operations: its sender has destroyed the communicator, or its part of the region whose number is
 * its `count`, or takes no more part in the communicator, which has ended there. `root`: because of whom. */
#define GY_PONG_DESTROYED UINT64_MAX
#define GY_PONG_WITHDRAWN (UINT64_MAX - 1)
#define GY_PONG_ENDED (UINT64_MAX - 2)

#endif
