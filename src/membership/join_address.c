/* Listeners of a house, and the file that leads to them.
 *
 *   own     a port of this process's own, in every member          what gyre_comm_get(comm, "meeting") says
 *   known   the port of the address at which the world first met   rank 0, where the address is one of its host
 *   file    the line of the file:// at which the world first met   rank 0: leads to its `own`
 *
 * Rank 0 of an epoch takes over `known` and file when the one before it is gone: a port is free when its process has ended,
 * and the file is replaced in one piece (rendezvous_file.c). Without a secret a listener is a Unix socket that is named after
 * the TCP address that stands for it (world.c), and only this user's processes get through. */
#include "membership/join_address.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bootstrap/messages.h"
#include "core/log.h"
#include "core/mem.h"

#define NAMES 8 /* tries for a free name of a Unix socket */

struct gy_house *gy_house_make(const struct gy_identity *identity, const struct gy_config *config)
{
    struct gy_house *house = gy_alloc_zero(1, sizeof(*house));

    if (!house)
        return NULL;
    memcpy(house->key, identity->key, sizeof(house->key));
    house->label = identity->label;
    house->local_only = !identity->has_secret && !identity->insecure;
    house->address = identity->address;
    house->own.fd = house->known.fd = -1;
    house->settings_bytes = gy_config_shared(config, house->settings);
    gy_random(&house->nonce, sizeof(house->nonce));
    if (house->address.kind == GY_ADDRESS_NONE && !identity->exchange && *config->address)
        gy_address_parse(config->address, &house->address); /* of a world of one, which has not met: it may be wrong */
    return house;
}

bool gy_house_door_again(const struct gy_house_door *door, struct gy_house_door *door_p)
{
    *door_p = *door;
    if (door->fd >= 0)
        door_p->fd = fcntl(door->fd, F_DUPFD_CLOEXEC, 0);
    return door->fd < 0 || door_p->fd >= 0;
}

struct gy_house *gy_house_inherit(const struct gy_house *house)
{
    struct gy_house *heir = gy_alloc(sizeof(*heir));

    errno = ENOMEM;
    if (!heir)
        return NULL;
    *heir = *house;
    heir->own.fd = heir->known.fd = -1;
    heir->handed = false;
    if (gy_house_door_again(&house->own, &heir->own) && gy_house_door_again(&house->known, &heir->known))
        return heir;
    gy_house_abandon(heir);
    return NULL;
}

void gy_house_abandon(struct gy_house *house)
{
    if (!house)
        return;
    if (house->own.fd >= 0)
        close(house->own.fd);
    if (house->known.fd >= 0)
        close(house->known.fd);
    explicit_bzero(house->key, sizeof(house->key));
    gy_free(house);
}

void gy_house_free(struct gy_house *house)
{
    if (house && !house->handed && house->own.fd >= 0 && house->address.kind == GY_ADDRESS_FILE)
        gy_rendezvous_remove(house->address.path, house->nonce);
    gy_house_abandon(house);
}

gyre_status gy_house_address(const struct gy_world *world, struct sockaddr_storage *own_p, struct gy_error *error)
{
    const struct gy_member *own = &world->members[world->rank];
    const struct gy_address *address = &world->house->address;
    struct gy_error ignored = {.rank = -1, .quiet = true};
    struct sockaddr_storage towards;
    bool there;

    if (own->address.ss_family == AF_INET || own->address.ss_family == AF_INET6) {
        *own_p = own->address;
        gy_address_set_port(own_p, 0);
        return GYRE_SUCCESS;
    }
    /* a world of one, which has no door yet */
    there = address->kind == GY_ADDRESS_TCP &&
            gy_address_resolve(address->host, address->port, &towards, &ignored) == GYRE_SUCCESS &&
            !(gy_address_is_name(address->host) && gy_address_is_loopback(&towards));
    if (!there && world->house->local_only && !*world->config->interface) {
        *own_p = (struct sockaddr_storage){.ss_family = AF_INET};
        ((struct sockaddr_in *)own_p)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        return GYRE_SUCCESS;
    }
    return gy_address_own(there ? &towards : NULL, world->config->interface, own_p, error);
}

/* A free port gives the Unix socket its name. */
static int listen_local(struct gy_place *place)
{
    int fd = -1;

    errno = EADDRINUSE;
    for (int i = 0; i < NAMES && fd < 0 && errno == EADDRINUSE; i++) {
        struct gy_place port = {.address = place->address};
        int reserved = gy_socket_listen(&port);

        if (reserved < 0)
            return -1;
        gy_place_of_user(&port.address, place);
        fd = gy_socket_listen(place);
        if (fd >= 0)
            place->address = port.address;
        int errnum = errno;
        close(reserved);
        errno = errnum;
    }
    return fd;
}

gyre_status gy_house_open(struct gy_world *world, struct gy_error *error)
{
    struct gy_house *house = world->house;
    struct gy_place place = {0};
    gyre_status status;
    int fd;

    house->used = true;
    if (house->own.fd >= 0)
        return GYRE_SUCCESS;
    status = gy_house_address(world, &place.address, error);
    if (status != GYRE_SUCCESS)
        return status;
    fd = house->local_only ? listen_local(&place) : gy_socket_listen(&place);
    if (fd < 0)
        return gy_error_system(error, errno, "rank %d cannot listen for newcomers", world->rank);
    house->own = (struct gy_house_door){fd, place};
    return GYRE_SUCCESS;
}

static void announce_port(struct gy_house *house)
{
    struct gy_error ignored = {.rank = -1, .quiet = true};
    struct gy_place place = {0};
    const struct gy_address *address = &house->address;
    int fd;

    if (house->known.fd >= 0 || address->port == 0 ||
        gy_address_resolve(address->host, address->port, &place.address, &ignored) != GYRE_SUCCESS)
        return;
    if (!gy_address_is_local(&place.address)) {
        gy_log(GY_LOG_INFO, "newcomers do not find this world at tcp://%s:%u, which is no address of rank 0's host now",
               address->host, address->port);
        return;
    }
    if (house->local_only)
        gy_place_of_user(&place.address, &place);
    else if (gy_address_is_name(address->host))
        gy_address_any(address->port, &place.address);
    fd = gy_socket_listen(&place);
    if (fd < 0)
        gy_log(GY_LOG_INFO, "newcomers do not find this world at tcp://%s:%u: %s", address->host, address->port,
               strerror(errno));
    else
        house->known = (struct gy_house_door){fd, place};
}

static void announce_file(const struct gy_house *house)
{
    struct gy_error error = {.rank = -1, .quiet = true};
    struct gy_place place;
    uint64_t nonce;
    char why[320];

    if (gy_rendezvous_read(house->address.path, house->local_only, &place, &nonce, why, sizeof(why)) &&
        nonce == house->nonce)
        return;
    if (gy_rendezvous_write(house->address.path, &house->own.place, house->nonce, &error) != GYRE_SUCCESS)
        gy_log(GY_LOG_WARN, "newcomers do not find this world: %.300s", error.text);
}

void gy_house_announce(struct gy_world *world)
{
    struct gy_house *house = world->house;

    if (house->own.fd < 0)
        return;
    if (house->address.kind == GY_ADDRESS_TCP)
        announce_port(house);
    else if (house->address.kind == GY_ADDRESS_FILE)
        announce_file(house);
}

const char *gy_house_text(const struct gy_house *house, char text_p[GY_HOUSE_TEXT])
{
    char text[GY_ADDRESS_TEXT];

    snprintf(text_p, GY_HOUSE_TEXT, "tcp://%s", gy_address_format(&house->own.place.address, text));
    return text_p;
}
