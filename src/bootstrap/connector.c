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
#include "core/secret_memory.h"
#include "net/host_probe.h"

#define ATTEMPTS 3
#define WAITED GY_SECOND

struct gy_connector {
    struct gy_world *world;
    struct gy_connector *next;
    struct gy_handshake_io handshake_io;
    struct gy_ping ping; /* used when all attempts were unanswered */
    int rank, attempts;
    int64_t begun;         /* the last attempt */
    struct gy_route route; /* of no family: to the member's address, from any of ours */
    enum gy_purpose purpose;
    gy_listener_func callback;
    void *user;
};

_Static_assert(sizeof(struct gy_connector) <= GY_SECRET_MOST, "a piece of secret memory");

static int connector_start(struct gy_connector *connector);

static bool is_routed(const struct gy_connector *connector)
{
    return connector->route.to.ss_family != AF_UNSPEC;
}

static struct gy_endpoint endpoint_of(const struct gy_connector *connector)
{
    return (struct gy_endpoint){.address = is_routed(connector) ? connector->route.to
                                                                : connector->world->members[connector->rank].address};
}

static void connector_end(struct gy_connector *connector, int fd, int errnum)
{
    struct gy_connector **at = &connector->world->connectors;

    while (*at && *at != connector)
        at = &(*at)->next;
    if (*at)
        *at = connector->next;
    connector->world->connect_errnum = errnum;
    connector->callback(connector->user, connector->rank, fd, fd >= 0 ? &connector->handshake_io.handshake.keys : NULL);
    gy_secret_free(connector);
}

static bool may_try_again(struct gy_connector *connector, int errnum)
{
    bool closed = errnum == ECONNRESET || errnum == EPIPE;
    if (closed && connector->purpose != GY_PURPOSE_OVERLAY && gy_now() - connector->begun > WAITED)
        connector->attempts--;
    return (closed || errnum == ETIMEDOUT) && connector->attempts < ATTEMPTS;
}

static void connector_fail(struct gy_connector *connector, const char *why, int errnum)
{
    gy_log(GY_LOG_INFO, "the connection to rank %d failed: %s", connector->rank, why);
    connector_end(connector, -1, errnum);
}

static void on_pinged(void *user, bool answered)
{
    struct gy_connector *connector = user;
    int errnum = ETIMEDOUT;

    if (answered) {
        gy_log(GY_LOG_INFO, "rank %d takes no connection yet, but its host answers: trying on", connector->rank);
        connector->attempts = 0;
        errnum = connector_start(connector);
    }
    if (errnum != 0)
        connector_fail(connector, strerror(errnum), errnum);
}

/* All attempts were unanswered: probes the host of the peer. */
static void ask_host(struct gy_connector *connector)
{
    struct gy_world *world = connector->world;
    struct sockaddr_storage to = endpoint_of(connector).address;
    enum gy_ping_outcome outcome = gy_ping_start(&connector->ping, world->poller, &to,
                                                 is_routed(connector) ? &connector->route.from : NULL,
                                                 world->config->peer_timeout_ns, on_pinged, connector);

    if (outcome != GY_PING_UNDER_WAY)
        on_pinged(connector, outcome == GY_PING_ANSWERED);
}

static void on_handshake(void *user, struct gy_handshake_io *handshake_io, int errnum)
{
    struct gy_connector *connector = user;
    const struct gy_handshake *handshake = &handshake_io->handshake;
    char text[GY_REFUSAL_TEXT];

    if (handshake_io->fd >= 0) {
        connector_end(connector, handshake_io->fd, 0);
        return;
    }
    if (handshake->state == GY_HANDSHAKE_REFUSED) {
        gy_refusal_print(handshake->refusal, handshake->peer_version, handshake->version, text);
        connector_fail(connector, text, EPROTO);
        return;
    }
    if (may_try_again(connector, errnum)) {
        errnum = connector_start(connector);
        if (errnum == 0)
            return;
    } else if (errnum == ETIMEDOUT) {
        ask_host(connector);
        return;
    }
    errnum = errnum ? errnum : ECONNRESET;
    connector_fail(connector, strerror(errnum), errnum);
}

/* 0, or an errno. */
static int connector_start(struct gy_connector *connector)
{
    struct gy_world *world = connector->world;
    struct gy_endpoint endpoint = endpoint_of(connector);
    int fd = gy_socket_connect_from(&endpoint, is_routed(connector) ? &connector->route.from : NULL);

    if (fd < 0)
        return errno;
    connector->attempts++;
    connector->begun = gy_now();
    world->counters.sockets_opened++;
    gy_socket_tune(fd, world->config->peer_timeout_ns);
    memset(&connector->handshake_io, 0, sizeof(connector->handshake_io));
    gy_handshake_initiate(&connector->handshake_io.handshake, world->key, world->job, connector->purpose,
                          (uint32_t)world->rank, (uint32_t)connector->rank,
                          (enum gy_integrity)world->config->integrity);
    return gy_handshake_io_start(&connector->handshake_io, world->poller, fd, true, on_handshake, connector) ? 0
                                                                                                             : ENOMEM;
}

gyre_status gy_world_connect(struct gy_world *world, int rank, enum gy_purpose purpose, const struct gy_route *route,
                             gy_listener_func callback, void *user, struct gy_error *error)
{
    struct gy_connector *connector = gy_secret_alloc(sizeof(*connector), GY_SECRET_COPIED); /* a handshake has keys */
    int errnum;

    if (!connector)
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "rank %d has no memory to connect to rank %d", world->rank,
                            rank);
    connector->world = world;
    connector->rank = rank;
    if (route)
        connector->route = *route;
    connector->purpose = purpose;
    connector->callback = callback;
    connector->user = user;
    errnum = connector_start(connector);
    if (errnum) {
        gy_secret_free(connector);
        return gy_error_system(error, errnum, "rank %d cannot connect to rank %d", world->rank, rank);
    }
    connector->next = world->connectors;
    world->connectors = connector;
    return GYRE_SUCCESS;
}

/* A world of one rank has no listener, and nothing connects to it. */
gyre_status gy_world_on(struct gy_world *world, enum gy_purpose purpose, gy_listener_func callback, void *user,
                        struct gy_error *error)
{
    if (!world->listener)
        return GYRE_SUCCESS;
    if (gy_listener_owner(world->listener, purpose))
        return gy_error_set(error, GYRE_INTERNAL, -1, "connections of purpose %d have an owner already", (int)purpose);
    gy_listener_on(world->listener, purpose, callback, user);
    return GYRE_SUCCESS;
}

void gy_world_off(struct gy_world *world, enum gy_purpose purpose, const void *user)
{
    if (world->listener && gy_listener_owner(world->listener, purpose) == user)
        gy_listener_on(world->listener, purpose, NULL, NULL);
}

void gy_world_on_no_memory(struct gy_world *world, gy_listener_no_memory_func callback, void *user)
{
    if (world->listener)
        gy_listener_on_no_memory(world->listener, callback, user);
}

void gy_world_cancel_connectors(struct gy_world *world, const void *user)
{
    for (struct gy_connector **at = &world->connectors; *at;) {
        struct gy_connector *connector = *at;

        if (connector->user != user) {
            at = &connector->next;
            continue;
        }
        *at = connector->next;
        gy_handshake_io_cancel(&connector->handshake_io);
        gy_ping_cancel(&connector->ping, false);
        gy_secret_free(connector);
    }
}

void gy_world_end_connectors(struct gy_world *world, bool forked)
{
    struct gy_connector *connector;

    while ((connector = world->connectors)) {
        world->connectors = connector->next;
        if (forked)
            close(connector->handshake_io.fd);
        else
            gy_handshake_io_cancel(&connector->handshake_io);
        gy_ping_cancel(&connector->ping, forked);
        gy_secret_free(connector);
    }
}
