/* Authenticated non-blocking connections to the listeners of other ranks.
 *
 * If an oversubscribed listener closes a connection, or does not answer, it is retried twice. A refused connection is
 * final, because a listener is open from bootstrap until its process ends. If the listener closed the connection only
 * after its timeout, the peer is alive and this rank was too slow to continue the handshake (it was computing). Such a
 * failure does not count as a retry.
 *
 * If more ranks connect than fit into the backlog of a computing rank, its kernel drops their packets, as a dead
 * network does. Probing the host tells the two apart: while the host answers, the attempts go on. Ranks that wait for
 * the peer have their own timeouts, and the death of the peer or its host is reported over the overlay. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "bootstrap/world.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "net/host_probe.h"

#define ATTEMPTS 3
#define WAITED GY_SECOND

struct gy_dial {
    struct gy_world *world;
    struct gy_dial *next;
    struct gy_handshake_io handshake_io;
    struct gy_ping ping; /* used when all attempts were unanswered */
    int rank, attempts;
    int64_t begun;         /* the last attempt */
    struct gy_route route; /* of no family: to the member's address, from any of ours */
    enum gy_purpose purpose;
    gy_listener_func callback;
    void *user;
};

static int dial_start(struct gy_dial *dial);

static bool is_routed(const struct gy_dial *dial)
{
    return dial->route.to.ss_family != AF_UNSPEC;
}

static struct gy_place place_of(const struct gy_dial *dial)
{
    return (struct gy_place){.address = is_routed(dial) ? dial->route.to : dial->world->members[dial->rank].address};
}

/* Its handshake has keys in it from the first moment. */
static void dial_free(struct gy_dial *dial)
{
    gy_handshake_forget(&dial->handshake_io.handshake);
    gy_free(dial);
}

static void dial_end(struct gy_dial *dial, int fd, int errnum)
{
    struct gy_seal_keys keys = dial->handshake_io.handshake.keys;
    struct gy_dial **at = &dial->world->dials;
    gy_listener_func callback = dial->callback;
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

static void dial_fail(struct gy_dial *dial, const char *why, int errnum)
{
    gy_log(GY_LOG_INFO, "the connection to rank %d failed: %s", dial->rank, why);
    dial_end(dial, -1, errnum);
}

static void on_pinged(void *user, bool answered)
{
    struct gy_dial *dial = user;
    int errnum = ETIMEDOUT;

    if (answered) {
        gy_log(GY_LOG_INFO, "rank %d takes no connection yet, but its host answers: trying on", dial->rank);
        dial->attempts = 0;
        errnum = dial_start(dial);
    }
    if (errnum != 0)
        dial_fail(dial, strerror(errnum), errnum);
}

/* All attempts were unanswered: probes the host of the peer. */
static void ask_host(struct gy_dial *dial)
{
    struct gy_world *world = dial->world;
    struct sockaddr_storage to = place_of(dial).address;
    enum gy_ping_outcome outcome = gy_ping_start(&dial->ping, world->poller, &to,
                                                 is_routed(dial) ? &dial->route.from : NULL,
                                                 world->config->peer_timeout_ns, on_pinged, dial);

    if (outcome != GY_PING_UNDER_WAY)
        on_pinged(dial, outcome == GY_PING_ANSWERED);
}

static void on_greeted(void *user, struct gy_handshake_io *handshake_io, int errnum)
{
    struct gy_dial *dial = user;
    const struct gy_handshake *handshake = &handshake_io->handshake;
    char text[GY_REFUSAL_TEXT];

    if (handshake_io->fd >= 0) {
        dial_end(dial, handshake_io->fd, 0);
        return;
    }
    if (handshake->state == GY_HANDSHAKE_REFUSED) {
        gy_refusal_print(handshake->refusal, handshake->peer_version, handshake->version, text);
        dial_fail(dial, text, EPROTO);
        return;
    }
    if (may_try_again(dial, errnum)) {
        errnum = dial_start(dial);
        if (errnum == 0)
            return;
    } else if (errnum == ETIMEDOUT) {
        ask_host(dial);
        return;
    }
    errnum = errnum ? errnum : ECONNRESET;
    dial_fail(dial, strerror(errnum), errnum);
}

/* 0, or an errno. */
static int dial_start(struct gy_dial *dial)
{
    struct gy_world *world = dial->world;
    struct gy_place place = place_of(dial);
    int fd = gy_socket_connect_from(&place, is_routed(dial) ? &dial->route.from : NULL);

    if (fd < 0)
        return errno;
    dial->attempts++;
    dial->begun = gy_now();
    world->counters.sockets_opened++;
    gy_socket_tune(fd, world->config->peer_timeout_ns);
    memset(&dial->handshake_io, 0, sizeof(dial->handshake_io));
    gy_handshake_dial(&dial->handshake_io.handshake, world->key, world->job, dial->purpose, (uint32_t)world->rank,
                      (uint32_t)dial->rank, (enum gy_integrity)world->config->integrity);
    return gy_handshake_io_start(&dial->handshake_io, world->poller, fd, true, on_greeted, dial) ? 0 : ENOMEM;
}

static gyre_status dial_begin(struct gy_world *world, int rank, const struct gy_route *route, enum gy_purpose purpose,
                              gy_listener_func callback, void *user, struct gy_error *error)
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

gyre_status gy_world_dial(struct gy_world *world, int rank, gy_listener_func callback, void *user,
                          struct gy_error *error)
{
    return dial_begin(world, rank, NULL, GY_PURPOSE_LINK, callback, user, error);
}

gyre_status gy_world_dial_along(struct gy_world *world, int rank, const struct gy_route *route,
                                gy_listener_func callback, void *user, struct gy_error *error)
{
    return dial_begin(world, rank, route, GY_PURPOSE_LINK, callback, user, error);
}

gyre_status gy_world_dial_overlay(struct gy_world *world, int rank, gy_listener_func callback, void *user,
                                  struct gy_error *error)
{
    return dial_begin(world, rank, NULL, GY_PURPOSE_OVERLAY, callback, user, error);
}

gyre_status gy_world_dial_rdma(struct gy_world *world, int rank, gy_listener_func callback, void *user,
                               struct gy_error *error)
{
    return dial_begin(world, rank, NULL, GY_PURPOSE_RDMA, callback, user, error);
}

void gy_world_on_rdma(struct gy_world *world, gy_listener_func callback, void *user)
{
    if (world->listener)
        gy_listener_on(world->listener, GY_PURPOSE_RDMA, callback, user);
}

void gy_world_on_link(struct gy_world *world, gy_listener_func callback, void *user)
{
    if (world->listener)
        gy_listener_on(world->listener, GY_PURPOSE_LINK, callback, user);
}

void gy_world_on_no_memory(struct gy_world *world, gy_listener_no_memory_func callback, void *user)
{
    if (world->listener)
        gy_listener_on_no_memory(world->listener, callback, user);
}

void gy_world_on_overlay(struct gy_world *world, gy_listener_func callback, void *user)
{
    if (world->listener)
        gy_listener_on(world->listener, GY_PURPOSE_OVERLAY, callback, user);
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
        gy_handshake_io_cancel(&dial->handshake_io);
        gy_ping_cancel(&dial->ping, false);
        dial_free(dial);
    }
}

void gy_world_end_dials(struct gy_world *world, bool forked)
{
    struct gy_dial *dial;

    while ((dial = world->dials)) {
        world->dials = dial->next;
        if (forked)
            close(dial->handshake_io.fd);
        else
            gy_handshake_io_cancel(&dial->handshake_io);
        gy_ping_cancel(&dial->ping, forked);
        dial_free(dial);
    }
}
