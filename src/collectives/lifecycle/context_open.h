/* Opens and closes contexts. */
#ifndef GY_COLLECTIVES_LIFECYCLE_CONTEXT_OPEN_H
#define GY_COLLECTIVES_LIFECYCLE_CONTEXT_OPEN_H

#include "collectives/comm/context.h"

struct gy_next_plan;
struct gy_next_world;

/* `up`: what lower layers call of higher ones, for this context and those of later epochs. */
gyre_status gy_context_create(const gyre_config *user, const struct gy_upcalls *up, struct gy_context **ctx_p,
                              struct gy_error *error);
/* Makes the context of the next epoch, with the members of `plan`. If some of them have failed again already, it is
 * a failed one. Uses `next` up. `operations`: the number of operations of the user's own so far, on any member. */
gyre_status gy_context_next(struct gy_context *old, struct gy_next_world *next, const struct gy_next_plan *plan,
                            int operations, struct gy_context **ctx_p, struct gy_error *error);
/* Frees a context in order: sends the leave message, and does not wait for peers. */
void gy_context_free(struct gy_context *ctx);

#endif
