/* Authenticated connections to the doors of others, begun without blocking, and the end of a world, which ends them
 * too.
 *
 * A visitor that a crowded door sent away, or that nobody answered, tries again twice; a refused connection is final, because a door is
 * open from the meeting until its process ends. A door that waited for a while before it closed is there, and it was this rank that did
 * not go on greeting, as one that computes and looks seldom: that is no attempt. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "boot/door.h"
#include "boot/house.h"
#include "boot/overlay.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"

#define ATTEMPTS 3
#define WAITED GY_SECOND

struct gy_dial {
    struct gy_world *world;
    struct gy_dial *next;
    struct gy_greeting greeting;
    int rank, attempts;
    int64_t begun;         /* the last attempt */
    struct gy_route route; /* of no family: to the member's address, from any of ours */
    enum gy_purpose purpose;
    gy_door_func callback;
    void *user;
};

static int dial_start(struct gy_dial *dial);

/* Its greeting has keys in it from the first moment. */
static void dial_free(struct gy_dial *dial)
{
    gy_handshake_forget(&dial->greeting.handshake);
    gy_free(dial);
}

static void dial_end(struct gy_dial *dial, int fd, int errnum)
{
    struct gy_seal_keys keys = dial->greeting.handshake.keys;
    struct gy_dial **at = &dial->world->dials;
    gy_door_func callback = dial->callback;
    void *user = dial->user;
    int rank = dial->rank;

    while (*at && *at != dial)
        at = &(*at)->next;
    if (*at)
        *at = dial->next;
    dial->world->dial_errnum = errnum;
    dial_free(dial);
    callback(user, rank, fd, fd >= 0 ? &keys : NULL);
    explicit_bzero(&keys, sizeof(keys));
}

static bool may_try_again(struct gy_dial *dial, int errnum)
{
    bool closed = errnum == ECONNRESET || errnum == EPIPE;
    if (closed && dial->purpose != GY_PURPOSE_OVERLAY && gy_now() - dial->begun > WAITED)
        dial->attempts--;
    return (closed || errnum == ETIMEDOUT) && dial->attempts < ATTEMPTS;
}

static void on_greeted(void *user, struct gy_greeting *greeting, int errnum)
{
    struct gy_dial *dial = user;
    const struct gy_handshake *handshake = &greeting->handshake;
    bool refused = handshake->state == GY_HANDSHAKE_REFUSED;
    char text[GY_REFUSAL_TEXT];

    if (greeting->fd >= 0) {
        dial_end(dial, greeting->fd, 0);
        return;
    }
    if (!refused && may_try_again(dial, errnum)) {
        errnum = dial_start(dial);
        if (errnum == 0)
            return;
    }
    gy_log(GY_LOG_INFO, "the connection to rank %d failed: %s", dial->rank,
           refused ? gy_refusal_print(handshake->refusal, handshake->peer_version, handshake->version, text)
                   : strerror(errnum));
    dial_end(dial, -1, refused ? EPROTO : errnum ? errnum : ECONNRESET);
}

/* 0, or an errno. */
static int dial_start(struct gy_dial *dial)
{
    struct gy_world *world = dial->world;
    const struct gy_route *route = &dial->route;
    bool routed = route->to.ss_family != AF_UNSPEC;
    struct gy_place place = {.address = routed ? route->to : world->members[dial->rank].address};
    int fd = routed ? gy_socket_connect_from(&place, &route->from) : gy_socket_connect(&place);

    if (fd < 0)
        return errno;
    dial->attempts++;
    dial->begun = gy_now();
    world->counters.sockets_opened++;
    gy_socket_tune(fd, world->config->peer_timeout_ns);
    memset(&dial->greeting, 0, sizeof(dial->greeting));
    gy_handshake_dial(&dial->greeting.handshake, world->key, world->job, dial->purpose, (uint32_t)world->rank,
                      (uint32_t)dial->rank, (enum gy_integrity)world->config->integrity);
    return gy_greeting_start(&dial->greeting, world->poller, fd, true, on_greeted, dial) ? 0 : ENOMEM;
}

static gyre_status dial_begin(struct gy_world *world, int rank, const struct gy_route *route, enum gy_purpose purpose,
                              gy_door_func callback, void *user, struct gy_error *error)
{
    struct gy_dial *dial = gy_alloc_zero(1, sizeof(*dial));
    int errnum;

    if (!dial)
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "rank %d has no memory to connect to rank %d", world->rank,
                            rank);
    dial->world = world;
    dial->rank = rank;
    if (route)
        dial->route = *route;
    dial->purpose = purpose;
    dial->callback = callback;
    dial->user = user;
    errnum = dial_start(dial);
    if (errnum) {
        dial_free(dial);
        return gy_error_system(error, errnum, "rank %d cannot connect to rank %d", world->rank, rank);
    }
    dial->next = world->dials;
    world->dials = dial;
    return GYRE_SUCCESS;
}

gyre_status gy_world_dial(struct gy_world *world, int rank, gy_door_func callback, void *user, struct gy_error *error)
{
    return dial_begin(world, rank, NULL, GY_PURPOSE_LINK, callback, user, error);
}

gyre_status gy_world_dial_along(struct gy_world *world, int rank, const struct gy_route *route, gy_door_func callback,
                                void *user, struct gy_error *error)
{
    return dial_begin(world, rank, route, GY_PURPOSE_LINK, callback, user, error);
}

gyre_status gy_world_dial_overlay(struct gy_world *world, int rank, gy_door_func callback, void *user,
                                  struct gy_error *error)
{
    return dial_begin(world, rank, NULL, GY_PURPOSE_OVERLAY, callback, user, error);
}

gyre_status gy_world_dial_rdma(struct gy_world *world, int rank, gy_door_func callback, void *user,
                               struct gy_error *error)
{
    return dial_begin(world, rank, NULL, GY_PURPOSE_RDMA, callback, user, error);
}

void gy_world_on_rdma(struct gy_world *world, gy_door_func callback, void *user)
{
    if (world->door)
        gy_door_on(world->door, GY_PURPOSE_RDMA, callback, user);
}

void gy_world_on_link(struct gy_world *world, gy_door_func callback, void *user)
{
    if (world->door)
        gy_door_on(world->door, GY_PURPOSE_LINK, callback, user);
}

void gy_world_on_starved(struct gy_world *world, gy_door_starved_func callback, void *user)
{
    if (world->door)
        gy_door_on_starved(world->door, callback, user);
}

void gy_world_on_overlay(struct gy_world *world, gy_door_func callback, void *user)
{
    if (world->door)
        gy_door_on(world->door, GY_PURPOSE_OVERLAY, callback, user);
}

void gy_world_cancel_dials(struct gy_world *world, const void *user)
{
    for (struct gy_dial **at = &world->dials; *at;) {
        struct gy_dial *dial = *at;

        if (dial->user != user) {
            at = &dial->next;
            continue;
        }
        *at = dial->next;
        gy_greeting_cancel(&dial->greeting);
        dial_free(dial);
    }
}

static void world_end(struct gy_world *world, bool forked)
{
    struct gy_dial *dial;

    if (!world)
        return;
    while ((dial = world->dials)) {
        world->dials = dial->next;
        if (forked)
            close(dial->greeting.fd);
        else
            gy_greeting_cancel(&dial->greeting);
        dial_free(dial);
    }
    gy_overlay_abandon(world->spare); /* only memory, nothing is open */
    if (forked)
        gy_door_abandon(world->door);
    else
        gy_door_free(world->door);
    if (forked)
        gy_house_abandon(world->house);
    else
        gy_house_free(world->house);
    while (world->helds > 0)
        close(world->held[--world->helds]);
    gy_free(world->locals);
    gy_free(world->members);
    explicit_bzero(world->key, sizeof(world->key));
    gy_free(world);
}

void gy_world_free(struct gy_world *world)
{
    world_end(world, false);
}

void gy_world_abandon(struct gy_world *world)
{
    world_end(world, true);
}
