/* Addresses: the text of a rendezvous, socket addresses, and the own addresses that a peer can reach. */
#ifndef GY_NET_ADDRESS_H
#define GY_NET_ADDRESS_H

#include <sys/socket.h>

#include "core/base.h"
#include "core/error.h"

#define GY_ADDRESS_TEXT 96
#define GY_ADDRESS_WIRE 23 /* family 1, port 2, scope 4, address 16 */

enum gy_address_kind { GY_ADDRESS_NONE, GY_ADDRESS_TCP, GY_ADDRESS_FILE };

/* "tcp://HOST:PORT", "tcp://[V6]:PORT" or "file:///PATH", taken apart. */
struct gy_address {
    enum gy_address_kind kind;
    uint16_t port;
    char host[256]; /* without brackets */
    char path[256]; /* absolute */
};

/* Pure. false: not understood; *address_p untouched. */
bool gy_address_parse(const char *text, struct gy_address *address_p);
/* What parse understands; empty where the kind is NONE. Returns `text_p`. */
#define GY_ADDRESS_PLACE 288
const char *gy_address_print(const struct gy_address *address, char text_p[GY_ADDRESS_PLACE]);
/* Name or number to a socket address; may ask the resolver, which has its own time limits. */
gyre_status gy_address_resolve(const char *host, uint16_t port, struct sockaddr_storage *address_p,
                               struct gy_error *error);
socklen_t gy_address_bytes(const struct sockaddr_storage *address);
uint16_t gy_address_port(const struct sockaddr_storage *address);
void gy_address_set_port(struct sockaddr_storage *address, uint16_t port);
/* "10.0.0.1:29500", "[::1]:29500" */
const char *gy_address_format(const struct sockaddr_storage *address, char text_p[GY_ADDRESS_TEXT]);
/* "10.0.0.1", mapped into IPv6 or not; "::1" */
const char *gy_address_format_host(const struct sockaddr_storage *address, char text_p[GY_ADDRESS_TEXT]);
/* True if it is one of this host's own addresses. */
bool gy_address_is_local(const struct sockaddr_storage *address);
bool gy_address_is_loopback(const struct sockaddr_storage *address);
/* True if it is an IPv6 link-local address. The link is given by the scope, a number that each host chooses by
 * itself. */
bool gy_address_is_link_local(const struct sockaddr_storage *address);
/* A link-local address that came from another host is on the link of `peer`, if that is one, too: the scope number of
 * this host replaces the other's. */
void gy_address_take_scope(struct sockaddr_storage *address, const struct sockaddr_storage *peer);
/* A name that hosts may resolve differently: neither a number nor localhost. */
bool gy_address_is_name(const char *host);
/* Every interface, IPv6 and IPv4 at once; where there is no IPv6, IPv4. */
void gy_address_any(uint16_t port, struct sockaddr_storage *address_p);
/* The same host, whatever the ports, and whether IPv4 is written as it is or mapped into IPv6. */
bool gy_address_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b);
/* Our own address (port 0) on the first of `interfaces` if they are not empty, else on the interface that routes to
 * `towards`. With NULL: the interface of the default route, or loopback if there is none. */
gyre_status gy_address_own(const struct sockaddr_storage *towards, const char *interfaces,
                           struct sockaddr_storage *address_p, struct gy_error *error);
void gy_address_encode(const struct sockaddr_storage *address, uint8_t wire_p[GY_ADDRESS_WIRE]);
bool gy_address_decode(const uint8_t wire[GY_ADDRESS_WIRE], struct sockaddr_storage *address_p);

#endif
