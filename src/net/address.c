/* Parsing is pure; the rest asks the kernel or the resolver and changes nothing.
 *
 * The address that this rank publishes is found with a UDP socket connected towards the rendezvous. It sends nothing,
 * but makes the kernel choose route and source address. The other side would see that source, so it is reachable. */
#include "net/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/byte_codec.h"
#include "net/interface.h"

static bool parse_port(const char *text, uint16_t *port_p)
{
    unsigned long port = 0;

    if (!*text || strlen(text) > 5)
        return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return false;
        port = port * 10 + (unsigned long)(*text - '0');
    }
    if (port == 0 || port > 65535)
        return false;
    *port_p = (uint16_t)port;
    return true;
}

static bool parse_tcp(const char *text, struct gy_address *address)
{
    const char *host = text, *end, *port;

    if (*text == '[') {
        host = text + 1;
        end = strchr(host, ']');
        if (!end || end[1] != ':')
            return false;
        port = end + 2;
    } else {
        end = strrchr(text, ':');
        if (!end || memchr(text, ':', (size_t)(end - text))) /* two colons: a V6 address needs brackets */
            return false;
        port = end + 1;
    }
    if (end == host || (size_t)(end - host) >= sizeof(address->host))
        return false;
    memcpy(address->host, host, (size_t)(end - host));
    address->kind = GY_ADDRESS_TCP;
    return parse_port(port, &address->port);
}

bool gy_address_parse(const char *text, struct gy_address *address_p)
{
    struct gy_address address = {0};

    if (strncmp(text, "tcp://", 6) == 0) {
        if (!parse_tcp(text + 6, &address))
            return false;
    } else if (strncmp(text, "file:///", 8) == 0) {
        const char *path = text + 7;

        if (!path[1] || path[strlen(path) - 1] == '/' || strlen(path) + 32 > sizeof(address.path))
            return false; /* room for the suffix of the file that is renamed */
        memcpy(address.path, path, strlen(path));
        address.kind = GY_ADDRESS_FILE;
    } else {
        return false;
    }
    *address_p = address;
    return true;
}

const char *gy_address_print(const struct gy_address *address, char text_p[GY_ADDRESS_PLACE])
{
    bool brackets = strchr(address->host, ':') != NULL;

    text_p[0] = '\0';
    if (address->kind == GY_ADDRESS_TCP)
        snprintf(text_p, GY_ADDRESS_PLACE, "tcp://%s%s%s:%u", brackets ? "[" : "", address->host, brackets ? "]" : "",
                 address->port);
    else if (address->kind == GY_ADDRESS_FILE)
        snprintf(text_p, GY_ADDRESS_PLACE, "file://%s", address->path);
    return text_p;
}

gyre_status gy_address_resolve(const char *host, uint16_t port, struct sockaddr_storage *address_p,
                               struct gy_error *error)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *found = NULL;
    int code;

    errno = 0;
    code = getaddrinfo(host, NULL, &hints, &found);
    if (code != 0 && gy_error_is_shortage(errno))
        return gy_error_system(error, errno, "the meeting address \"%s\" cannot be resolved", host);
    if (code != 0)
        return gy_error_set(error, GYRE_MEETING_FAILED, -1, "the meeting address \"%s\" cannot be resolved: %s", host,
                            gai_strerror(code));
    memset(address_p, 0, sizeof(*address_p));
    memcpy(address_p, found->ai_addr, found->ai_addrlen);
    /* "localhost" and friends often give both families; all ranks must take the same one: IPv4 where there is one. */
    for (struct addrinfo *info = found; info; info = info->ai_next) {
        if (info->ai_family == AF_INET) {
            memset(address_p, 0, sizeof(*address_p));
            memcpy(address_p, info->ai_addr, info->ai_addrlen);
            break;
        }
    }
    freeaddrinfo(found);
    gy_address_set_port(address_p, port);
    return GYRE_SUCCESS;
}

socklen_t gy_address_bytes(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

uint16_t gy_address_port(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)address)->sin6_port);
    return ntohs(((const struct sockaddr_in *)address)->sin_port);
}

void gy_address_set_port(struct sockaddr_storage *address, uint16_t port)
{
    if (address->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)address)->sin6_port = htons(port);
    else
        ((struct sockaddr_in *)address)->sin_port = htons(port);
}

/* As 16 bytes. */
static struct in6_addr mapped(const struct sockaddr_storage *address)
{
    struct in6_addr all = {.s6_addr = {[10] = 0xff, [11] = 0xff}};

    if (address->ss_family == AF_INET6)
        return ((const struct sockaddr_in6 *)address)->sin6_addr;
    memcpy(all.s6_addr + 12, &((const struct sockaddr_in *)address)->sin_addr, 4);
    return all;
}

const char *gy_address_format(const struct sockaddr_storage *address, char text_p[GY_ADDRESS_TEXT])
{
    char host[INET6_ADDRSTRLEN] = "?";

    if (address->ss_family == AF_INET6) {
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)address)->sin6_addr, host, sizeof(host));
        snprintf(text_p, GY_ADDRESS_TEXT, "[%s]:%u", host, gy_address_port(address));
    } else if (address->ss_family == AF_INET) {
        inet_ntop(AF_INET, &((const struct sockaddr_in *)address)->sin_addr, host, sizeof(host));
        snprintf(text_p, GY_ADDRESS_TEXT, "%s:%u", host, gy_address_port(address));
    } else {
        snprintf(text_p, GY_ADDRESS_TEXT, "a local socket");
    }
    return text_p;
}

const char *gy_address_format_host(const struct sockaddr_storage *address, char text_p[GY_ADDRESS_TEXT])
{
    struct in6_addr all = mapped(address);

    if (IN6_IS_ADDR_V4MAPPED(&all))
        inet_ntop(AF_INET, all.s6_addr + 12, text_p, GY_ADDRESS_TEXT);
    else
        inet_ntop(AF_INET6, &all, text_p, GY_ADDRESS_TEXT);
    return text_p;
}

bool gy_address_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    struct in6_addr one = mapped(a), other = mapped(b);

    return memcmp(&one, &other, sizeof(one)) == 0;
}

bool gy_address_is_local(const struct sockaddr_storage *address)
{
    struct sockaddr_storage own = *address;
    int fd = socket(address->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool local;

    if (fd < 0)
        return false;
    gy_address_set_port(&own, 0);
    local = bind(fd, (struct sockaddr *)&own, gy_address_bytes(&own)) == 0;
    close(fd);
    return local;
}

bool gy_address_is_loopback(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
    return address->ss_family == AF_INET &&
           ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

bool gy_address_is_link_local(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

void gy_address_take_scope(struct sockaddr_storage *address, const struct sockaddr_storage *peer)
{
    if (gy_address_is_link_local(address) && gy_address_is_link_local(peer))
        ((struct sockaddr_in6 *)address)->sin6_scope_id = ((const struct sockaddr_in6 *)peer)->sin6_scope_id;
}

bool gy_address_is_name(const char *host)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST}, *found = NULL;

    if (strcmp(host, "localhost") == 0 || strncmp(host, "localhost.", 10) == 0 || strcmp(host, "ip6-localhost") == 0)
        return false;
    if (getaddrinfo(host, NULL, &hints, &found) != 0)
        return true;
    freeaddrinfo(found);
    return false;
}

void gy_address_any(uint16_t port, struct sockaddr_storage *address_p)
{
    struct sockaddr_storage any = {.ss_family = AF_INET6}; /* all zeros: in6addr_any */

    if (!gy_address_is_local(&any))
        any.ss_family = AF_INET; /* zeros again: INADDR_ANY */
    gy_address_set_port(&any, port);
    *address_p = any;
}

/* The source address the kernel would use towards `towards`; false if there is no route. */
static bool own_by_route(const struct sockaddr_storage *towards, struct sockaddr_storage *address_p)
{
    socklen_t bytes = sizeof(*address_p);
    int fd = socket(towards->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool found;

    if (fd < 0)
        return false;
    memset(address_p, 0, sizeof(*address_p));
    found = connect(fd, (const struct sockaddr *)towards, gy_address_bytes(towards)) == 0 &&
            getsockname(fd, (struct sockaddr *)address_p, &bytes) == 0;
    close(fd);
    return found;
}

gyre_status gy_address_own(const struct sockaddr_storage *towards, const char *interfaces,
                           struct sockaddr_storage *address_p, struct gy_error *error)
{
    struct sockaddr_storage address, outside = {.ss_family = AF_INET};
    char text[GY_ADDRESS_TEXT];
    bool found;

    errno = 0;
    /* Any address that is not ours leads through the default route; this one is reserved for documentation. */
    inet_pton(AF_INET, "192.0.2.1", &((struct sockaddr_in *)&outside)->sin_addr);
    gy_address_set_port(&outside, 9);
    if (*interfaces)
        return gy_interface_address(interfaces, 0, towards ? towards->ss_family : AF_UNSPEC, address_p, error);
    if (towards)
        found = own_by_route(towards, &address);
    else
        found = own_by_route(&outside, &address) || gy_interface_any(&address);
    if (!found && gy_error_is_shortage(errno))
        return gy_error_system(error, errno, "cannot find out which address of this host leads to the meeting");
    if (!found)
        return gy_error_set(error, GYRE_PEER_UNREACHABLE, 0,
                            "no route to the meeting address %s: is an interface down? GYRE_INTERFACE chooses one",
                            towards ? gy_address_format(towards, text) : "(any)");
    gy_address_set_port(&address, 0);
    *address_p = address;
    return GYRE_SUCCESS;
}

void gy_address_encode(const struct sockaddr_storage *address, uint8_t wire_p[GY_ADDRESS_WIRE])
{
    struct gy_wire wire = gy_wire_over(wire_p, GY_ADDRESS_WIRE);

    memset(wire_p, 0, GY_ADDRESS_WIRE);
    if (address->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;

        gy_wire_put(&wire, 6, 1);
        gy_wire_put(&wire, ntohs(in6->sin6_port), 2);
        gy_wire_put(&wire, in6->sin6_scope_id, 4);
        gy_wire_put_bytes(&wire, &in6->sin6_addr, 16);
    } else if (address->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)address;

        gy_wire_put(&wire, 4, 1);
        gy_wire_put(&wire, ntohs(in->sin_port), 2);
        gy_wire_put(&wire, 0, 4);
        gy_wire_put_bytes(&wire, &in->sin_addr, 4);
    }
}

bool gy_address_decode(const uint8_t wire_bytes[GY_ADDRESS_WIRE], struct sockaddr_storage *address_p)
{
    uint8_t copy[GY_ADDRESS_WIRE];
    struct gy_wire wire = gy_wire_over(copy, sizeof(copy));
    uint64_t family, port, scope;

    memcpy(copy, wire_bytes, sizeof(copy));
    family = gy_wire_get(&wire, 1);
    port = gy_wire_get(&wire, 2);
    scope = gy_wire_get(&wire, 4);
    memset(address_p, 0, sizeof(*address_p));
    if (family == 6) {
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)address_p;

        in6->sin6_family = AF_INET6;
        in6->sin6_scope_id = (uint32_t)scope;
        gy_wire_get_bytes(&wire, &in6->sin6_addr, 16);
    } else if (family == 4) {
        address_p->ss_family = AF_INET;
        gy_wire_get_bytes(&wire, &((struct sockaddr_in *)address_p)->sin_addr, 4);
    } else {
        return family == 0; /* a world of one has no listener */
    }
    gy_address_set_port(address_p, (uint16_t)port);
    return true;
}
