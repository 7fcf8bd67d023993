/* The interfaces of this host that GYRE_INTERFACE names, between commas: each by its name, or by an address of ours. */
#ifndef GY_NET_INTERFACE_H
#define GY_NET_INTERFACE_H

#include <sys/socket.h>

#include "core/config.h"
#include "core/error.h"

#define GY_INTERFACE_NAME 64

/* The name of number `index`. Returns `name_p`. */
const char *gy_interface_name(const char *interfaces, int index, char name_p[GY_INTERFACE_NAME]);
/* The address (port 0) of number `index`, of `family` if it has one. BAD_CONFIGURATION. */
gyre_status gy_interface_address(const char *interfaces, int index, int family, struct sockaddr_storage *address_p,
                                 struct gy_error *error);
/* The address of any interface, loopback last; false: there is none. */
bool gy_interface_any(struct sockaddr_storage *address_p);
/* An address of ours that has been elsewhere and is on one link alone: its scope becomes ours again. */
void gy_interface_scope(struct sockaddr_storage *own);
/* The addresses of all that are named, where there are several: the first is `first` (its port does not count), and the
 * others are of its family. BAD_CONFIGURATION where one is not there, or two are the same. */
gyre_status gy_interface_addresses(const struct gy_config *config, const struct sockaddr_storage *first,
                                   struct sockaddr_storage own_p[GY_RAILS_MOST], struct gy_error *error);
/* True if interface number `index` is up, has a carrier, and its address is still `address`. */
bool gy_interface_serves(const char *interfaces, int index, const struct sockaddr_storage *address);
/* Creates a listener for connections to `own`, whose port becomes the one that the kernel chose. If several interfaces
 * are named, it listens on every interface. BAD_CONFIGURATION as above, SYSTEM, NO_DESCRIPTORS. */
gyre_status gy_interface_listen(const struct gy_config *config, struct sockaddr_storage *own, int *fd_p,
                                struct gy_error *error);

#endif
