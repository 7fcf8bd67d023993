/* The example of a transport that connects. */
#ifndef GY_TESTS_TRANSPORT_PLAIN_H
#define GY_TESTS_TRANSPORT_PLAIN_H

#include "transport/transport.h"

extern const struct gy_transport_ops gy_transport_plain;

#endif
