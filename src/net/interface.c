/* From a name to an address, by the kernel's list of interfaces. Of several addresses of an interface, one of the
 * wanted family is taken, else IPv4. A link-local address is taken after all others. Without a named interface,
 * loopback is taken last.
 *
 * Where several interfaces are named, peers connect to a listener through each of them, so it listens on all. A peer is
 * identified by the handshake, not by the interface (handshake.h). */
#include "net/interface.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "net/address.h"
#include "net/socket.h"

const char *gy_interface_name(const char *interfaces, int index, char name_p[GY_INTERFACE_NAME])
{
    for (; index > 0; index--) {
        interfaces += strcspn(interfaces, ",");
        interfaces += *interfaces == ',';
    }
    snprintf(name_p, GY_INTERFACE_NAME, "%.*s", (int)strcspn(interfaces, ","), interfaces);
    return name_p;
}

static bool is_link_local(const struct ifaddrs *entry)
{
    struct sockaddr_storage address = {0};

    if (entry->ifa_addr->sa_family == AF_INET6)
        memcpy(&address, entry->ifa_addr, sizeof(struct sockaddr_in6));
    return gy_address_is_link_local(&address);
}

/* How well it serves; 0: not at all. */
static int merit(const struct ifaddrs *entry, const char *name, int family)
{
    if (!entry->ifa_addr || !(entry->ifa_flags & IFF_UP))
        return 0;
    if (entry->ifa_addr->sa_family != AF_INET && entry->ifa_addr->sa_family != AF_INET6)
        return 0;
    if (*name && strcmp(entry->ifa_name, name) != 0)
        return 0;
    return (family != AF_UNSPEC && entry->ifa_addr->sa_family == family ? 16 : 0) +
           (entry->ifa_flags & IFF_LOOPBACK ? 0 : 8) + (is_link_local(entry) ? 0 : 4) +
           (entry->ifa_addr->sa_family == AF_INET ? 2 : 1);
}

/* The best address of the interface `name` ("" any). */
static bool find(const char *name, int family, struct sockaddr_storage *address_p, unsigned *flags_p)
{
    struct ifaddrs *list = NULL, *best = NULL;

    if (getifaddrs(&list) < 0)
        return false;
    for (struct ifaddrs *entry = list; entry; entry = entry->ifa_next) {
        if (merit(entry, name, family) > (best ? merit(best, name, family) : 0))
            best = entry;
    }
    if (best) {
        memset(address_p, 0, sizeof(*address_p));
        memcpy(address_p, best->ifa_addr,
               best->ifa_addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
        *flags_p = best->ifa_flags;
    }
    freeifaddrs(list);
    return best != NULL;
}

/* An address instead of a name; false: it is none, or not ours. */
static bool find_number(const char *name, struct sockaddr_storage *address_p)
{
    struct sockaddr_storage address = {0};

    if (inet_pton(AF_INET, name, &((struct sockaddr_in *)&address)->sin_addr) == 1)
        address.ss_family = AF_INET;
    else if (inet_pton(AF_INET6, name, &((struct sockaddr_in6 *)&address)->sin6_addr) == 1)
        address.ss_family = AF_INET6;
    if (address.ss_family == AF_UNSPEC || !gy_address_is_local(&address))
        return false;
    *address_p = address;
    return true;
}

gyre_status gy_interface_address(const char *interfaces, int index, int family, struct sockaddr_storage *address_p,
                                 struct gy_error *error)
{
    struct sockaddr_storage address;
    char name[GY_INTERFACE_NAME];
    unsigned flags;

    errno = 0;
    gy_interface_name(interfaces, index, name);
    if (!find(name, family, &address, &flags) && !find_number(name, &address)) {
        if (gy_error_is_shortage(errno))
            return gy_error_system(error, errno, "cannot find out which address %s of GYRE_INTERFACE has", name);
        return gy_error_set(error, GYRE_BAD_CONFIGURATION, -1,
                            "GYRE_INTERFACE=%s: no such interface, or it is down or has no address", name);
    }
    gy_address_set_port(&address, 0);
    *address_p = address;
    return GYRE_SUCCESS;
}

bool gy_interface_any(struct sockaddr_storage *address_p)
{
    unsigned flags;

    return find("", AF_UNSPEC, address_p, &flags);
}

void gy_interface_scope(struct sockaddr_storage *own)
{
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)own;
    const struct ifaddrs *first = NULL, *same = NULL;
    struct ifaddrs *list = NULL;

    if (!gy_address_is_link_local(own) || getifaddrs(&list) < 0)
        return;
    for (const struct ifaddrs *entry = list; entry; entry = entry->ifa_next) {
        const struct sockaddr_in6 *candidate = (const struct sockaddr_in6 *)entry->ifa_addr;

        if (!candidate || candidate->sin6_family != AF_INET6 ||
            memcmp(&candidate->sin6_addr, &in6->sin6_addr, sizeof(in6->sin6_addr)) != 0)
            continue;
        first = first ? first : entry;
        if (candidate->sin6_scope_id == in6->sin6_scope_id)
            same = entry;
    }
    if (first && !same) /* several interfaces may have one address */
        in6->sin6_scope_id = ((const struct sockaddr_in6 *)first->ifa_addr)->sin6_scope_id;
    freeifaddrs(list);
}

gyre_status gy_interface_addresses(const struct gy_config *config, const struct sockaddr_storage *first,
                                   struct sockaddr_storage own_p[GY_RAILS_MOST], struct gy_error *error)
{
    const char *names = config->interface;
    char name[GY_INTERFACE_NAME], other[GY_INTERFACE_NAME];

    own_p[0] = *first;
    gy_address_set_port(&own_p[0], 0);
    for (int i = 1; i < gy_config_rails(config); i++) {
        gyre_status status = gy_interface_address(names, i, first->ss_family, &own_p[i], error);

        if (status != GYRE_SUCCESS)
            return status;
        gy_interface_name(names, i, name);
        if (first->ss_family != AF_UNSPEC &&
            own_p[i].ss_family != first->ss_family) /* a world of one has no listener */
            return gy_error_set(error, GYRE_BAD_CONFIGURATION, -1,
                                "GYRE_INTERFACE=%s: %s has no address of %s, as %s has, by which all meet", names, name,
                                first->ss_family == AF_INET ? "IPv4" : "IPv6", gy_interface_name(names, 0, other));
        for (int j = 0; j < i; j++)
            if (gy_address_same_host(&own_p[i], &own_p[j]))
                return gy_error_set(error, GYRE_BAD_CONFIGURATION, -1,
                                    "GYRE_INTERFACE=%s: %s and %s are the same interface; name each one once", names,
                                    gy_interface_name(names, j, other), name);
    }
    return GYRE_SUCCESS;
}

bool gy_interface_serves(const char *interfaces, int index, const struct sockaddr_storage *address)
{
    struct sockaddr_storage now;
    char name[GY_INTERFACE_NAME];
    unsigned flags = 0;

    gy_interface_name(interfaces, index, name);
    if (find(name, address->ss_family, &now, &flags))
        return (flags & IFF_RUNNING) && gy_address_same_host(&now, address);
    return find_number(name, &now);
}

gyre_status gy_interface_listen(const struct gy_config *config, struct sockaddr_storage *own, int *fd_p,
                                struct gy_error *error)
{
    struct gy_endpoint endpoint = {.address = *own};
    struct sockaddr_storage all[GY_RAILS_MOST];
    char text[GY_ADDRESS_TEXT];
    int fd;

    if (gy_config_rails(config) > 1) {
        gyre_status status = gy_interface_addresses(config, own, all, error);

        if (status != GYRE_SUCCESS)
            return status;
        gy_address_any(gy_address_port(own), &endpoint.address);
    }
    fd = gy_socket_listen(&endpoint);
    if (fd < 0)
        return gy_error_system(error, errno, "process %d cannot listen at %s", (int)getpid(),
                               gy_address_format(own, text));
    gy_address_set_port(own, gy_address_port(&endpoint.address));
    *fd_p = fd;
    return GYRE_SUCCESS;
}
