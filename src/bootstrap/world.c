/* From a configuration to a world: identity, rendezvous, listener, bootstrap, hosts.
 *
 *   secret or GYRE_INSECURE=1:  tcp://H:P   rank 0 listens there            file://F  rank 0 listens at any port and
 *                                           writes F
 *   neither:                    the same, but on an abstract Unix socket named after the address, for processes of this
 *                               user only
 *   exchange callback:          no socket at all: the callback carries the records
 *
 * The world's key is derived from the secret, the random job number and a random salt that rank 0 distributes. Without
 * a secret the salt is the secret, and travels only over the Unix socket or the callback. On failure nothing is
 * left. */
#include "bootstrap/world.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bootstrap/messages.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "core/secret_memory.h"
#include "core/topology.h"
#include "net/interface.h"

#define BIND_TIMEOUT (2 * GY_SECOND)
#define NAME_TIMEOUT (60 * GY_SECOND)

void gy_member_know_myself(struct gy_member *own, const struct gy_config *config)
{
    own->host_key = gy_topology_host_key(config->host_id);
    own->pid = (int32_t)getpid();
    bool numa = strcmp(config->hierarchy, "numa") == 0, caches = strcmp(config->hierarchy, "cache") == 0;
    own->cores = (uint16_t)gy_min_size((size_t)gy_topology_host_cores(), UINT16_MAX);
    own->binding = numa || caches ? (uint16_t)gy_topology_binding(caches) : 0;
    own->fabrics = config->fabrics;
    own->fabric_links = (uint32_t)config->fabric_links;
    gy_random(&own->nonce, sizeof(own->nonce));
}

/* Dense host numbers in order of lowest rank; quadratic only in the number of hosts. world->locals is allocated already
 * and temporarily lists each host's first rank: nothing may fail between bootstrap and the overlay. */
static void find_hosts(struct gy_world *world)
{
    int *first = world->locals;

    for (int rank = 0; rank < world->size; rank++) {
        struct gy_member *member = &world->members[rank], *same;
        int host = 0;

        while (host < world->hosts && world->members[first[host]].host_key != member->host_key)
            host++;
        if (host == world->hosts)
            first[world->hosts++] = rank;
        same = &world->members[first[host]];
        member->host = host;
        member->local = same == member ? 1 : same->local++; /* the first of a host counts all, */
    }
    for (int host = 0; host < world->hosts; host++)
        world->members[first[host]].local = 0; /* and is number 0 itself */
    for (int rank = 0; rank < world->size; rank++) {
        if (world->members[rank].host == world->members[world->rank].host)
            world->locals[world->nlocals++] = rank;
    }
    world->local = world->members[world->rank].local;
}

/* Scope numbers of link-local addresses are those of the rank that wrote the table: sets those of this host. */
static void number_links(struct gy_world *world)
{
    const struct sockaddr_storage *own = &world->members[world->rank].address;

    gy_interface_scope(&world->members[world->rank].address);
    for (int rank = 0; rank < world->size; rank++)
        gy_address_take_scope(&world->members[rank].address, own);
}

socklen_t gy_world_unix_name(const struct gy_world *world, int rank, const char *prefix, struct sockaddr_un *name_p)
{
    uint64_t numbers[2] = {world->job, world->members[rank].nonce};
    uint8_t hash[16];
    char text[2 * sizeof(hash) + 1];

    crypto_generichash(hash, sizeof(hash), (const uint8_t *)numbers, sizeof(numbers), NULL, 0);
    sodium_bin2hex(text, sizeof(text), hash, sizeof(hash));
    *name_p = (struct sockaddr_un){.sun_family = AF_UNIX};
    int length = snprintf(name_p->sun_path + 1, sizeof(name_p->sun_path) - 1, "gyre-%s%s", prefix, text);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

void gy_world_know_members(struct gy_world *world)
{
    number_links(world);
    find_hosts(world);
    for (int rank = 0; rank < world->size; rank++)
        if (world->members[rank].fabric_links < (uint32_t)world->size - 1)
            world->members[rank].fabrics = 0;
}

static gyre_status make_listener(struct gy_world *world, const struct sockaddr_storage *own, struct gy_error *error)
{
    struct sockaddr_storage at = *own;
    int fd;
    gyre_status status = gy_interface_listen(world->config, &at, &fd, error);

    if (status != GYRE_SUCCESS)
        return status;
    world->members[world->rank].address = at;
    return gy_listener_create(fd, &world->listener, error);
}

/* A name may be newer than its resolver's data: a pod that is just being started has one only when it has an
 * address. */
static gyre_status resolve(const struct gy_world *world, const struct gy_address *address,
                           struct sockaddr_storage *resolved_p, struct gy_error *error)
{
    int64_t timeout = world->config->meet_timeout_ns < NAME_TIMEOUT ? world->config->meet_timeout_ns : NAME_TIMEOUT;
    int64_t deadline = gy_now() + timeout;

    for (bool told = false;; told = true) {
        struct gy_error attempt = {.rank = -1, .quiet = true};

        if (gy_address_resolve(address->host, address->port, resolved_p, &attempt) == GYRE_SUCCESS)
            return GYRE_SUCCESS;
        if (attempt.status != GYRE_MEETING_FAILED || gy_now() >= deadline)
            return gy_error_set(error, attempt.status, -1, "rank %d: %s", world->rank, attempt.text);
        if (!told)
            gy_log(GY_LOG_WARN, "%.300s; trying for %.0f s", attempt.text, (double)timeout / (double)GY_SECOND);
        gy_poller_poll(world->poller, GY_SECOND / 4);
    }
}

/* The endpoint of a tcp:// address, and the address of our own listener.
 *
 * A name may mean loopback to rank 0 alone (Debian gives the own host name 127.0.1.1) and another family to each rank.
 * So rank 0 listens on every interface for a name, and no rank's listener is on loopback because of one. */
static gyre_status place_tcp(const struct gy_world *world, const struct gy_identity *identity,
                             struct gy_rendezvous_endpoint *where, struct sockaddr_storage *own_p,
                             struct gy_error *error)
{
    struct sockaddr_storage *address = &where->endpoint.address;
    gyre_status status = resolve(world, &identity->address, address, error);
    bool named = gy_address_is_name(identity->address.host), outward;
    char text[GY_ADDRESS_TEXT];

    snprintf(where->what, sizeof(where->what), "tcp://%s:%u (%.40s)", identity->address.host, identity->address.port,
             identity->address_from);
    if (status != GYRE_SUCCESS)
        return status;
    gy_address_format(address, text);
    if (named && gy_address_is_loopback(address))
        snprintf(
            where->hint, sizeof(where->hint),
            " %.40s is %.*s here, which is this host itself: give it its address in /etc/hosts, or set MASTER_ADDR or "
            "GYRE_ADDRESS to a number",
            identity->address.host, (int)strcspn(text, ":"), text);
    if (where->local_only) {
        if (!gy_address_is_local(address))
            return gy_error_set(error, GYRE_BAD_CONFIGURATION, world->rank,
                                "rank %d would meet on another host (%s) without a secret: set GYRE_SECRET or "
                                "GYRE_SECRET_FILE to the same text on every rank, or GYRE_INSECURE=1 to insist",
                                world->rank, where->what);
        gy_endpoint_of_user(address, &where->endpoint);
        return gy_address_own(address, world->config->interface, own_p, error);
    }
    outward = named && gy_address_is_loopback(address);
    status = gy_address_own(outward ? NULL : address, world->config->interface, own_p, error);
    if (status == GYRE_SUCCESS && outward) {
        char own[GY_ADDRESS_TEXT];

        gy_log(GY_LOG_INFO, "%s is %s to this host; others are told %s (GYRE_INTERFACE decides otherwise)",
               identity->address.host, text, gy_address_format(own_p, own));
    }
    if (status == GYRE_SUCCESS && named && world->rank == 0) {
        if (!gy_address_is_local(address))
            gy_log(GY_LOG_WARN, "%s is %s, which is no address of this host; rank 0 listens on every interface",
                   identity->address.host, text);
        gy_address_any(identity->address.port, address);
    }
    return status;
}

static gyre_status place_file(const struct gy_world *world, const struct gy_identity *identity,
                              struct gy_rendezvous_endpoint *where, struct sockaddr_storage *own_p,
                              struct gy_error *error)
{
    where->path = identity->address.path;
    snprintf(where->what, sizeof(where->what), "file://%s", where->path);
    if (where->local_only) {
        where->endpoint.is_unix = true;
        snprintf(where->endpoint.name, sizeof(where->endpoint.name), "gyre-%u-%016llx", (unsigned)geteuid(),
                 (unsigned long long)world->members[world->rank].nonce);
    }
    if (!where->local_only || *world->config->interface)
        return gy_address_own(NULL, world->config->interface, own_p, error);
    *own_p = (struct sockaddr_storage){.ss_family = AF_INET};
    ((struct sockaddr_in *)own_p)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return GYRE_SUCCESS;
}

/* An earlier job may still hold the address for a moment. */
static gyre_status listen_at(struct gy_rendezvous *meeting, struct gy_rendezvous_endpoint *where,
                             const struct sockaddr_storage *own, struct gy_error *error)
{
    struct gy_world *world = meeting->world;
    int64_t deadline = gy_now() + BIND_TIMEOUT;

    if (where->path && !where->local_only)
        where->endpoint.address = *own;
    while ((meeting->listen_fd = gy_socket_listen(&where->endpoint)) < 0) {
        int errnum = errno;

        if (errnum == EADDRINUSE && gy_now() < deadline && gy_now() < meeting->deadline) {
            gy_poller_poll(world->poller, 20 * GY_MILLISECOND);
            continue;
        }
        if (errnum == EADDRINUSE)
            return gy_error_set(
                error, GYRE_MEETING_FAILED, 0,
                "rank 0 cannot listen at %s: the address is in use, by another rank 0 or another program; "
                "set GYRE_ADDRESS=tcp://HOST:PORT to a free port on every rank",
                where->what);
        return gy_error_system(error, errnum, "rank 0 cannot listen at %s; it must be an address of rank 0's host",
                               where->what);
    }
    if (!where->path)
        return GYRE_SUCCESS;
    if (gy_rendezvous_write(where->path, &where->endpoint, world->members[0].nonce, error) == GYRE_SUCCESS)
        return GYRE_SUCCESS;
    close(meeting->listen_fd);
    return error->status;
}

static gyre_status bootstrap_by_socket(struct gy_rendezvous *meeting, struct gy_error *error)
{
    struct gy_world *world = meeting->world;
    const struct gy_identity *identity = meeting->identity;
    struct gy_rendezvous_endpoint where = {.local_only = !identity->has_secret && !identity->insecure};
    struct sockaddr_storage own;
    gyre_status status;

    if (identity->address.kind == GY_ADDRESS_TCP)
        status = place_tcp(world, identity, &where, &own, error);
    else
        status = place_file(world, identity, &where, &own, error);
    if (status == GYRE_SUCCESS)
        status = make_listener(world, &own, error);
    if (status != GYRE_SUCCESS)
        return status;
    meeting->endpoint = &where; /* for as long as this function runs */
    if (world->rank != 0) {
        status = gy_bootstrap_as_member(meeting, error);
        goto forget_place;
    }
    status = gy_bootstrap_open_listener(world, error);
    if (status == GYRE_SUCCESS)
        status = listen_at(meeting, &where, &own, error);
    if (status == GYRE_SUCCESS) {
        status = gy_bootstrap_as_root(meeting, error);
        if (where.path)
            gy_rendezvous_remove(where.path, world->members[0].nonce);
    }
forget_place:
    meeting->endpoint = NULL;
    return status;
}

static gyre_status bootstrap_by_exchange(struct gy_rendezvous *meeting, struct gy_error *error)
{
    struct gy_world *world = meeting->world;
    struct sockaddr_storage own;
    gyre_status status = gy_address_own(NULL, world->config->interface, &own, error);

    if (status == GYRE_SUCCESS)
        status = make_listener(world, &own, error);
    return status == GYRE_SUCCESS ? gy_bootstrap_by_exchange(meeting, error) : status;
}

static gyre_status bootstrap(struct gy_world *world, const struct gy_identity *identity, struct gy_error *error)
{
    struct gy_rendezvous meeting = {
        .world = world, .identity = identity, .listen_fd = -1, .deadline = gy_now() + world->config->meet_timeout_ns};
    gyre_status status = GYRE_SUCCESS;

    meeting.settings_bytes = gy_config_shared(world->config, meeting.settings);
    gy_random(meeting.salt, sizeof(meeting.salt));
    while (world->job == 0)
        gy_random(&world->job, sizeof(world->job));
    gy_handshake_derive(identity->key, "gyre session", world->job, meeting.salt, world->key);
    if (world->size > 1)
        status = identity->exchange ? bootstrap_by_exchange(&meeting, error) : bootstrap_by_socket(&meeting, error);
    explicit_bzero(meeting.salt, sizeof(meeting.salt));
    return status;
}

gyre_status gy_world_bootstrap(struct gy_world *world, const struct gy_identity *identity, struct gy_error *error)
{
    gyre_status status;

    gy_member_know_myself(&world->members[world->rank], world->config);
    status = bootstrap(world, identity, error);
    if (status != GYRE_SUCCESS && world->complete) {
        /* Others may have finished bootstrap. If our listener closed now, this rank would look dead to them. */
        world->bootstrap_failure = *error;
        gy_error_clear(error);
        status = GYRE_SUCCESS;
    }
    if (status == GYRE_SUCCESS)
        gy_world_know_members(world);
    return status;
}

struct gy_world *gy_world_make(int rank, int size, uint32_t epoch, struct gy_config *config, struct gy_poller *poller)
{
    struct gy_world *world = gy_alloc_zero(1, sizeof(*world));

    if (!world)
        return NULL;
    world->rank = rank;
    world->size = size;
    world->epoch = epoch;
    world->config = config;
    world->poller = poller;
    world->members = gy_alloc_zero((size_t)size, sizeof(*world->members));
    world->locals = gy_alloc_zero((size_t)size, sizeof(*world->locals));
    world->key = gy_secret_alloc(GY_KEY_BYTES, GY_SECRET_WIPED);
    if (world->members && world->locals && world->key)
        return world;
    gy_world_release(world, false);
    return NULL;
}

void gy_world_release(struct gy_world *world, bool forked)
{
    gy_world_end_connectors(world, forked);
    if (forked)
        gy_listener_abandon(world->listener);
    else
        gy_listener_free(world->listener);
    while (world->helds > 0)
        close(world->held[--world->helds]);
    gy_free(world->locals);
    gy_free(world->members);
    gy_secret_free(world->key);
    gy_free(world);
}
