/* The next epoch of a world: the same processes, or some of them, in a world that shares nothing with the old one.
 *
 * It has its own ranks, door, job number, key and nonces, and whatever stands on it has its own sockets, segment and
 * counters. So nothing of the old epoch can reach it: a frame that is still under way, a rank that was stopped and wakes,
 * one that was taken for dead, all speak to a door, a ring or a window that belongs to the old world only. The new key is
 * of the old one and of a salt that only those were told who go on.
 *
 * A door that is refused is the proof that its process has ended (overlay_fate.c). So the doors of the last epochs stay as
 * bare listeners, at which nobody answers: a rank that was cut off while the others went on, and closed their old doors,
 * must not take them for dead when the network is whole again. */
#include "boot/overlay.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "boot/meet.h"
#include "boot/socket.h"
#include "core/log.h"
#include "core/mem.h"

static void set_port(struct sockaddr_storage *address, in_port_t port)
{
    if (address->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)address)->sin6_port = port;
    else
        ((struct sockaddr_in *)address)->sin_port = port;
}

gyre_status gy_world_next_prepare(const struct gy_world *old, struct gy_next_world *next_p, struct gy_error *error)
{
    struct gy_next_world next = {.own = old->members[old->rank]};
    struct gy_place place = {.address = next.own.address};
    int fd;

    gy_random(&next.own.nonce, sizeof(next.own.nonce));
    if (old->size > 1) {
        gyre_status status;

        set_port(&place.address, 0);
        fd = gy_socket_listen(&place);
        if (fd < 0)
            return gy_error_system(error, errno, "rank %d cannot listen for the next epoch of its world", old->rank);
        next.own.address = place.address;
        status = gy_door_create(fd, &next.door, error);
        if (status != GYRE_SUCCESS)
            return status;
    }
    *next_p = next;
    return GYRE_SUCCESS;
}

void gy_world_next_cancel(struct gy_next_world *next)
{
    gy_door_free(next->door);
    next->door = NULL;
}

static gyre_status hold_doors(const struct gy_world *old, struct gy_world *world, struct gy_error *error)
{
    for (int i = 0; i < GY_EPOCHS_HELD; i++) {
        int fd;

        if (i > old->helds || (i == 0 && !old->door))
            return GYRE_SUCCESS;
        fd = i == 0 ? gy_door_hold(old->door) : fcntl(old->held[i - 1], F_DUPFD_CLOEXEC, 0);
        if (fd < 0)
            return gy_error_system(error, errno, "rank %d cannot keep the address of its last epoch", old->rank);
        world->held[world->helds++] = fd;
    }
    return GYRE_SUCCESS;
}

gyre_status gy_world_next(const struct gy_world *old, struct gy_next_world *next, const struct gy_next_plan *plan,
                          struct gy_config *config, struct gy_poller *poller, struct gy_world **world_p,
                          struct gy_error *error)
{
    struct gy_world *world = gy_alloc_zero(1, sizeof(*world));
    gyre_status status;

    if (!world) {
        gy_world_next_cancel(next);
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "no memory for the next epoch of a world");
    }
    world->rank = plan->rank;
    world->size = plan->size;
    world->epoch = old->epoch + 1;
    world->job = plan->job;
    world->config = config;
    world->poller = poller;
    world->door = next->door;
    next->door = NULL;
    world->members = gy_alloc((size_t)plan->size * sizeof(*world->members));
    world->locals = gy_alloc_zero((size_t)plan->size, sizeof(*world->locals));
    if (!world->members || !world->locals) {
        status = gy_error_set(error, GYRE_NO_MEMORY, -1, "no memory for %d members", plan->size);
        goto free_world;
    }
    memcpy(world->members, plan->members, (size_t)plan->size * sizeof(*world->members));
    for (int rank = 0; rank < plan->size; rank++)
        world->members[rank].host = world->members[rank].local = 0;
    gy_handshake_derive(old->key, "gyre epoch", world->job, plan->salt, world->key);
    gy_world_find_hosts(world);
    gy_log_set_rank(world->rank);
    status = hold_doors(old, world, error);
    if (status == GYRE_SUCCESS)
        status = gy_overlay_prepare(world, error);
    if (status == GYRE_SUCCESS && world->door)
        status = gy_meet_open_door(world, error);
    if (status != GYRE_SUCCESS)
        goto free_world;
    *world_p = world;
    return GYRE_SUCCESS;

free_world:
    gy_world_free(world);
    return status;
}
