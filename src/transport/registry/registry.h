/* The available transports. */
#ifndef GY_TRANSPORT_REGISTRY_REGISTRY_H
#define GY_TRANSPORT_REGISTRY_REGISTRY_H

#include "transport/transport.h"

/* NULL-terminated, in order of preference. */
extern const struct gy_transport_ops *const gy_transports[];

/* Returns BAD_CONFIGURATION if GYRE_TRANSPORT names a transport that does not exist. */
gyre_status gy_transports_check(const char *list, struct gy_error *error);
/* Fills config->fabrics for the bootstrap if GYRE_TRANSPORT names a transport that depends on it. BAD_CONFIGURATION if
 * it names one that does not exist, or a setting names a missing device. */
gyre_status gy_transports_survey(struct gy_config *config, struct gy_error *error);
/* Prints what the choice is based on, a line each: for gyre-info. */
void gy_transports_describe(const struct gy_config *config, gyre_print_func print, void *user);
/* tcp/striping.c: the interfaces of GYRE_INTERFACE with their addresses, a line each. */
void gy_tcp_describe(const struct gy_config *config, gyre_print_func print, void *user);

#endif
