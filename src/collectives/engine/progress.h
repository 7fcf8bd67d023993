/* Progress and waiting. */
#ifndef GY_COLLECTIVES_ENGINE_PROGRESS_H
#define GY_COLLECTIVES_ENGINE_PROGRESS_H

#include "collectives/engine/request.h"

bool gy_progress(struct gy_context *ctx);
void gy_wait(struct gyre_request *request);
/* Drives until `done` says so; it is asked after every turn. When the world fails all its requests complete. */
void gy_wait_until(struct gy_context *ctx, bool (*done)(const void *), const void *what);
/* The progress thread's part: until nothing is under way, or a caller waits and drives. */
void gy_drive(struct gy_context *ctx);
/* For calls that are over without a wait, once in a while: links and clocks, which nobody else gives a busy caller. */
#define GY_LOOK_EVERY 64 /* a power of two */
void gy_progress_occasional(struct gy_context *ctx);
void gy_progress_links(struct gy_context *ctx, bool all, bool *moved_p);
/* The slow turn: descriptors, the verdict, clocks. True if something moved. */
bool gy_progress_slow(struct gy_context *ctx, int64_t now);

#endif
