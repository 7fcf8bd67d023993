/* Listeners of a join address, and the file that leads to them.
 *
 *   own     a port of this process's own, in every member            reported by gyre_comm_get(comm, "meeting")
 *   known   the port of the address at which the world bootstrapped  rank 0, where the address is one of its host
 *   file    the line of the file:// at which the world bootstrapped  rank 0: leads to its `own`
 *
 * Rank 0 of an epoch takes over `known` and the file when the previous rank 0 is gone: its port is free when its
 * process has ended, and the file is replaced atomically (rendezvous_file.c). Without a secret a listener is a Unix
 * socket named after the TCP address that represents it (world.c), and only this user's processes get through. */
#include "membership/join_address.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bootstrap/messages.h"
#include "core/log.h"
#include "core/mem.h"
#include "core/secret_memory.h"

#define NAMES 8 /* tries for a free name of a Unix socket */

static uint8_t *copy_key(const uint8_t key[GY_KEY_BYTES])
{
    uint8_t *copy = gy_secret_alloc(GY_KEY_BYTES, GY_SECRET_WIPED);

    return copy ? memcpy(copy, key, GY_KEY_BYTES) : NULL;
}

struct gy_join_address *gy_join_address_make(const struct gy_identity *identity, const struct gy_config *config)
{
    struct gy_join_address *join_address = gy_alloc_zero(1, sizeof(*join_address));

    if (join_address)
        join_address->key = copy_key(identity->key);
    if (!join_address || !join_address->key) {
        gy_free(join_address);
        return NULL;
    }
    join_address->label = identity->label;
    join_address->local_only = !identity->has_secret && !identity->insecure;
    join_address->address = identity->address;
    join_address->own.fd = join_address->known.fd = -1;
    join_address->settings_bytes = gy_config_shared(config, join_address->settings);
    gy_random(&join_address->nonce, sizeof(join_address->nonce));
    if (join_address->address.kind == GY_ADDRESS_NONE && !identity->exchange && *config->address)
        gy_address_parse(config->address,
                         &join_address->address); /* of a world of one rank, which has not bootstrapped: it may be
                                                   * wrong */
    return join_address;
}

bool gy_join_listener_dup(const struct gy_join_listener *listener, struct gy_join_listener *listener_p)
{
    *listener_p = *listener;
    if (listener->fd >= 0)
        listener_p->fd = fcntl(listener->fd, F_DUPFD_CLOEXEC, 0);
    return listener->fd < 0 || listener_p->fd >= 0;
}

struct gy_join_address *gy_join_address_inherit(const struct gy_join_address *join_address)
{
    struct gy_join_address *heir = gy_alloc(sizeof(*heir));
    uint8_t *key = copy_key(join_address->key);

    errno = ENOMEM;
    if (!heir || !key) {
        gy_free(heir);
        gy_secret_free(key);
        return NULL;
    }
    *heir = *join_address;
    heir->key = key;
    heir->own.fd = heir->known.fd = -1;
    heir->handed = false;
    if (gy_join_listener_dup(&join_address->own, &heir->own) &&
        gy_join_listener_dup(&join_address->known, &heir->known))
        return heir;
    gy_join_address_abandon(heir);
    return NULL;
}

void gy_join_address_abandon(struct gy_join_address *join_address)
{
    if (!join_address)
        return;
    if (join_address->own.fd >= 0)
        close(join_address->own.fd);
    if (join_address->known.fd >= 0)
        close(join_address->known.fd);
    gy_secret_free(join_address->key);
    gy_free(join_address);
}

void gy_join_address_free(struct gy_join_address *join_address)
{
    if (join_address && !join_address->handed && join_address->own.fd >= 0 &&
        join_address->address.kind == GY_ADDRESS_FILE)
        gy_rendezvous_remove(join_address->address.path, join_address->nonce);
    gy_join_address_abandon(join_address);
}

gyre_status gy_join_address_find(const struct gy_world *world, struct sockaddr_storage *own_p, struct gy_error *error)
{
    const struct gy_member *own = &world->members[world->rank];
    const struct gy_address *address = &world->join_address->address;
    struct gy_error ignored = {.rank = -1, .quiet = true};
    struct sockaddr_storage towards;
    bool there;

    if (own->address.ss_family == AF_INET || own->address.ss_family == AF_INET6) {
        *own_p = own->address;
        gy_address_set_port(own_p, 0);
        return GYRE_SUCCESS;
    }
    /* a world of one, which has no listener yet */
    there = address->kind == GY_ADDRESS_TCP &&
            gy_address_resolve(address->host, address->port, &towards, &ignored) == GYRE_SUCCESS &&
            !(gy_address_is_name(address->host) && gy_address_is_loopback(&towards));
    if (!there && world->join_address->local_only && !*world->config->interface) {
        *own_p = (struct sockaddr_storage){.ss_family = AF_INET};
        ((struct sockaddr_in *)own_p)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        return GYRE_SUCCESS;
    }
    return gy_address_own(there ? &towards : NULL, world->config->interface, own_p, error);
}

/* A free port gives the Unix socket its name. */
static int listen_local(struct gy_endpoint *endpoint)
{
    int fd = -1;

    errno = EADDRINUSE;
    for (int i = 0; i < NAMES && fd < 0 && errno == EADDRINUSE; i++) {
        struct gy_endpoint port = {.address = endpoint->address};
        int reserved = gy_socket_listen(&port);

        if (reserved < 0)
            return -1;
        gy_endpoint_of_user(&port.address, endpoint);
        fd = gy_socket_listen(endpoint);
        if (fd >= 0)
            endpoint->address = port.address;
        int errnum = errno;
        close(reserved);
        errno = errnum;
    }
    return fd;
}

gyre_status gy_join_address_open(struct gy_world *world, struct gy_error *error)
{
    struct gy_join_address *join_address = world->join_address;
    struct gy_endpoint endpoint = {0};
    gyre_status status;
    int fd;

    join_address->used = true;
    if (join_address->own.fd >= 0)
        return GYRE_SUCCESS;
    status = gy_join_address_find(world, &endpoint.address, error);
    if (status != GYRE_SUCCESS)
        return status;
    fd = join_address->local_only ? listen_local(&endpoint) : gy_socket_listen(&endpoint);
    if (fd < 0)
        return gy_error_system(error, errno, "rank %d cannot listen for joining processes", world->rank);
    join_address->own = (struct gy_join_listener){fd, endpoint};
    return GYRE_SUCCESS;
}

static void announce_port(struct gy_join_address *join_address)
{
    struct gy_error ignored = {.rank = -1, .quiet = true};
    struct gy_endpoint endpoint = {0};
    const struct gy_address *address = &join_address->address;
    int fd;

    if (join_address->known.fd >= 0 || address->port == 0 ||
        gy_address_resolve(address->host, address->port, &endpoint.address, &ignored) != GYRE_SUCCESS)
        return;
    if (!gy_address_is_local(&endpoint.address)) {
        gy_log(GY_LOG_INFO,
               "joining processes do not find this world at tcp://%s:%u, which is no address of rank 0's host now",
               address->host, address->port);
        return;
    }
    if (join_address->local_only)
        gy_endpoint_of_user(&endpoint.address, &endpoint);
    else if (gy_address_is_name(address->host))
        gy_address_any(address->port, &endpoint.address);
    fd = gy_socket_listen(&endpoint);
    if (fd < 0)
        gy_log(GY_LOG_INFO, "joining processes do not find this world at tcp://%s:%u: %s", address->host, address->port,
               strerror(errno));
    else
        join_address->known = (struct gy_join_listener){fd, endpoint};
}

static void announce_file(const struct gy_join_address *join_address)
{
    struct gy_error error = {.rank = -1, .quiet = true};
    struct gy_endpoint endpoint;
    uint64_t nonce;
    char why[320];

    if (gy_rendezvous_read(join_address->address.path, join_address->local_only, &endpoint, &nonce, why, sizeof(why)) &&
        nonce == join_address->nonce)
        return;
    if (gy_rendezvous_write(join_address->address.path, &join_address->own.endpoint, join_address->nonce, &error) !=
        GYRE_SUCCESS)
        gy_log(GY_LOG_WARN, "joining processes do not find this world: %.300s", error.text);
}

void gy_join_address_announce(struct gy_world *world)
{
    struct gy_join_address *join_address = world->join_address;

    if (join_address->own.fd < 0)
        return;
    if (join_address->address.kind == GY_ADDRESS_TCP)
        announce_port(join_address);
    else if (join_address->address.kind == GY_ADDRESS_FILE)
        announce_file(join_address);
}

const char *gy_join_address_text(const struct gy_join_address *join_address, char text_p[GY_JOIN_ADDRESS_TEXT])
{
    char text[GY_ADDRESS_TEXT];

    snprintf(text_p, GY_JOIN_ADDRESS_TEXT, "tcp://%s", gy_address_format(&join_address->own.endpoint.address, text));
    return text_p;
}
