/* Progress and waiting. */
#ifndef GY_COLLECTIVES_ENGINE_PROGRESS_H
#define GY_COLLECTIVES_ENGINE_PROGRESS_H

#include "collectives/engine/request.h"

bool gy_progress(struct gy_context *ctx);
void gy_wait(struct gyre_request *request);
/* Progresses the context until `done` returns true, which is called after every step. When the world fails, all its
 * requests complete. */
void gy_wait_until(struct gy_context *ctx, bool (*done)(const void *), const void *what);
/* The progress thread's loop: until nothing is in flight, or a caller waits and makes the progress itself. */
void gy_drive(struct gy_context *ctx);
/* For calls that complete without a wait, once in a while: progresses links and clocks, which have no other progress
 * while the caller is busy. */
#define GY_POLL_EVERY 64 /* a power of two */
void gy_progress_occasional(struct gy_context *ctx);
void gy_progress_links(struct gy_context *ctx, bool all, bool *moved_p);
/* The slow progress: descriptors, reported failures, clocks. Returns true if something moved. */
bool gy_progress_slow(struct gy_context *ctx, int64_t now);

#endif
