/* Contexts are opened and closed. */
#ifndef GY_COLLECTIVES_LIFECYCLE_CONTEXT_OPEN_H
#define GY_COLLECTIVES_LIFECYCLE_CONTEXT_OPEN_H

#include "collectives/comm/context.h"

struct gy_next_plan;
struct gy_next_world;

/* `up`: what lower layers call of higher ones, for the context and those of later epochs. */
gyre_status gy_context_create(const gyre_config *user, const struct gy_upcalls *up, struct gy_context **ctx_p,
                              struct gy_error *error);
/* The next epoch: a context of its own with the members of `plan`, of whom some may have failed again already; then it is
 * one that has failed. Uses `next` up. `operations`: how many of the user's own there have been, on any of them. */
gyre_status gy_context_next(struct gy_context *old, struct gy_next_world *next, const struct gy_next_plan *plan,
                            int operations, struct gy_context **ctx_p, struct gy_error *error);
/* An orderly end: the leave message, no waiting for peers. */
void gy_context_free(struct gy_context *ctx);

#endif
