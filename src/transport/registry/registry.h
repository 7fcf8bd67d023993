/* The transports that there are. */
#ifndef GY_TRANSPORT_REGISTRY_REGISTRY_H
#define GY_TRANSPORT_REGISTRY_REGISTRY_H

#include "transport/transport.h"

/* NULL-terminated, in order of preference. */
extern const struct gy_transport_ops *const gy_transports[];

/* BAD_CONFIGURATION where a list of GYRE_TRANSPORT names one that does not exist. */
gyre_status gy_transports_check(const char *list, struct gy_error *error);
/* Fills config->reach for the meeting, where GYRE_TRANSPORT names a transport that depends on it. BAD_CONFIGURATION when
 * it names one that does not exist, or a setting a device that is not there. */
gyre_status gy_transports_reach(struct gy_config *config, struct gy_error *error);
/* What choosing looked at, a line each: for gyre-info. */
void gy_transports_describe(const struct gy_config *config, gyre_print_func print, void *user);
/* tcp/striping.c: the interfaces of GYRE_INTERFACE with their addresses, a line each. */
void gy_tcp_describe(const struct gy_config *config, gyre_print_func print, void *user);

#endif
