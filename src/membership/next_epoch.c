/* The next epoch of a world: the same processes, or some of them, in a world that shares nothing with the old one.
 *
 * It has its own ranks, listener, job number, key and nonces, and all its parts have their own sockets, segment and
 * counters. So nothing of the old epoch can reach it. A frame in flight, a rank that was stopped and resumes, and a
 * rank wrongly declared dead all reach only a listener, a ring or a region of the old world. The new key is derived
 * from the old key and a salt that only the continuing ranks know. If there are joiners, which never had the old key,
 * it is derived from the secret and the salt.
 *
 * A refused listener confirms that its process has ended (failed_ranks.c). So the listeners of the last epochs stay as
 * bare listeners that never answer. A rank that was cut off while the others went on and closed their old listeners
 * must not take them for dead when the network works again. */
#include "membership/epoch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "bootstrap/messages.h"
#include "core/log.h"
#include "core/mem.h"
#include "membership/join_address.h"
#include "net/interface.h"

gyre_status gy_world_next_prepare_at(const struct gy_member *own, const struct sockaddr_storage *at,
                                     const struct gy_config *config, struct gy_next_world *next_p,
                                     struct gy_error *error)
{
    struct gy_next_world next = {.own = *own};
    gyre_status status;
    int fd;

    gy_random(&next.own.nonce, sizeof(next.own.nonce));
    next.own.address = *at;
    status = gy_interface_listen(config, &next.own.address, &fd, error);
    if (status == GYRE_SUCCESS)
        status = gy_listener_create(fd, &next.listener, error);
    if (status == GYRE_SUCCESS)
        *next_p = next;
    return status;
}

gyre_status gy_world_next_prepare(const struct gy_world *old, struct gy_next_world *next_p, struct gy_error *error)
{
    const struct gy_member *own = &old->members[old->rank];
    struct sockaddr_storage at = own->address;

    if (old->size > 1) {
        gy_address_set_port(&at, 0);
        return gy_world_next_prepare_at(own, &at, old->config, next_p, error);
    }
    *next_p = (struct gy_next_world){.own = *own};
    gy_random(&next_p->own.nonce, sizeof(next_p->own.nonce));
    return GYRE_SUCCESS;
}

void gy_world_next_cancel(struct gy_next_world *next)
{
    gy_listener_free(next->listener);
    next->listener = NULL;
}

static gyre_status hold_listeners(const struct gy_world *old, struct gy_world *world, struct gy_error *error)
{
    for (int i = 0; i < GY_EPOCHS_HELD; i++) {
        int fd;

        if (i > old->helds || (i == 0 && !old->listener))
            return GYRE_SUCCESS;
        fd = i == 0 ? gy_listener_hold(old->listener) : fcntl(old->held[i - 1], F_DUPFD_CLOEXEC, 0);
        if (fd < 0)
            return gy_error_system(error, errno, "rank %d cannot keep the address of its last epoch", old->rank);
        world->held[world->helds++] = fd;
    }
    return GYRE_SUCCESS;
}

/* Takes over the join address and the listener of `next`, whatever comes of it. */
static gyre_status make(struct gy_join_address *join_address, uint32_t epoch, struct gy_next_world *next,
                        const struct gy_next_plan *plan, struct gy_config *config, struct gy_poller *poller,
                        struct gy_world **world_p, struct gy_error *error)
{
    struct gy_world *world = gy_world_make(plan->rank, plan->size, epoch, config, poller);

    if (!world) {
        gy_world_next_cancel(next);
        gy_join_address_abandon(join_address);
        gy_error_set(error, GYRE_NO_MEMORY, -1, "no memory for the %d members of the next epoch", plan->size);
        return GYRE_NO_MEMORY;
    }
    world->known_running = plan->known_running;
    world->job = plan->job;
    world->join_address = join_address;
    world->listener = next->listener;
    next->listener = NULL;
    memcpy(world->members, plan->members, (size_t)plan->size * sizeof(*world->members));
    for (int rank = 0; rank < plan->size; rank++)
        world->members[rank].host = world->members[rank].local = 0;
    gy_world_know_members(world);
    gy_log_set_rank(world->rank);
    *world_p = world;
    return GYRE_SUCCESS;
}

/* The key is there: lets the others in. */
static gyre_status open_world(struct gy_world *world, struct gy_world **world_p, struct gy_error *error)
{
    gyre_status status = gy_epoch_prepare(world, error);

    if (status == GYRE_SUCCESS && world->listener)
        status = gy_bootstrap_open_listener(world, error);
    if (status == GYRE_SUCCESS)
        *world_p = world;
    else
        gy_world_free(world);
    return status;
}

gyre_status gy_world_next(const struct gy_world *old, struct gy_next_world *next, const struct gy_next_plan *plan,
                          struct gy_config *config, struct gy_poller *poller, struct gy_world **world_p,
                          struct gy_error *error)
{
    struct gy_join_address *join_address = gy_join_address_inherit(old->join_address);
    struct gy_world *world;
    gyre_status status;

    if (!join_address) {
        gy_world_next_cancel(next);
        return gy_error_system(error, errno, "rank %d cannot keep the address of its world", old->rank);
    }
    status = make(join_address, old->epoch + 1, next, plan, config, poller, &world, error);
    if (status != GYRE_SUCCESS)
        return status;
    gy_handshake_derive(plan->grown ? join_address->key : old->key, plan->grown ? "gyre grow" : "gyre epoch",
                        world->job, plan->salt, world->key);
    status = hold_listeners(old, world, error);
    if (status != GYRE_SUCCESS) {
        gy_world_free(world);
        return status;
    }
    status = open_world(world, world_p, error);
    if (status == GYRE_SUCCESS)
        old->join_address->handed = true;
    return status;
}

gyre_status gy_world_enter(struct gy_join_address *join_address, uint32_t epoch, struct gy_next_world *next,
                           const struct gy_next_plan *plan, struct gy_config *config, struct gy_poller *poller,
                           struct gy_world **world_p, struct gy_error *error)
{
    struct gy_world *world;
    gyre_status status = make(join_address, epoch, next, plan, config, poller, &world, error);

    if (status != GYRE_SUCCESS)
        return status;
    gy_handshake_derive(join_address->key, "gyre grow", world->job, plan->salt, world->key);
    return open_world(world, world_p, error);
}
