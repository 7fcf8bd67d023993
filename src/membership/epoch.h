/* The first world of a process and its next epochs: a world with all its parts, which are the join address, overlay and
 * agreement. */
#ifndef GY_MEMBERSHIP_EPOCH_H
#define GY_MEMBERSHIP_EPOCH_H

#include "bootstrap/world.h"

struct gy_join_address;

/* Determines the identity of this process and bootstraps. Blocks at most config->meet_timeout_ns. `user` may be NULL.
 * On failure nothing is left. A failure after others may already have finished is stored in world->bootstrap_failure,
 * and gy_overlay_create then fails with it. config and poller stay the caller's and outlive the world. */
gyre_status gy_world_open(const gyre_config *user, struct gy_config *config, struct gy_poller *poller,
                          struct gy_world **world_p, struct gy_error *error);
void gy_world_free(struct gy_world *world);    /* closes the listener; NULL is allowed */
void gy_world_abandon(struct gy_world *world); /* the same in a forked child, where the poller is the parent's */
/* Allocates overlay and agreement before bootstrap, as nothing may fail between bootstrap and the overlay. */
gyre_status gy_epoch_prepare(struct gy_world *world, struct gy_error *error);

/* next_epoch.c: the next epoch of a world, made by some of its members. First each member opens a listener for it,
 * whose address is part of `own`. When all know all records and the input of the key, the world is created. */
struct gy_next_world {
    struct gy_listener *listener;
    struct gy_member own;
};
gyre_status gy_world_next_prepare(const struct gy_world *old, struct gy_next_world *next_p, struct gy_error *error);
/* The same with a listener in any case, at `own` (port 0): for a rank that may be alone now and will get joiners. */
gyre_status gy_world_next_prepare_at(const struct gy_member *own, const struct sockaddr_storage *at,
                                     const struct gy_config *config, struct gy_next_world *next_p,
                                     struct gy_error *error);
void gy_world_next_cancel(struct gy_next_world *next);
/* The members of `members` are as they shall be; `next` is used up. */
struct gy_next_plan {
    int rank, size;
    uint64_t job;
    const uint8_t *salt; /* [GY_KEY_BYTES] */
    const struct gy_member *members;
    bool grown; /* joiners are among them: the key is of the secret, which they know, and not of the old epoch's */
    int64_t known_running; /* as in struct gy_world */
};
gyre_status gy_world_next(const struct gy_world *old, struct gy_next_world *next, const struct gy_next_plan *plan,
                          struct gy_config *config, struct gy_poller *poller, struct gy_world **world_p,
                          struct gy_error *error);
/* The same for a joiner, which has no old world. Takes over `join address`. */
gyre_status gy_world_enter(struct gy_join_address *join_address, uint32_t epoch, struct gy_next_world *next,
                           const struct gy_next_plan *plan, struct gy_config *config, struct gy_poller *poller,
                           struct gy_world **world_p, struct gy_error *error);

#endif
