/* The table of transports, in order of preference. Every slot of every table is filled (tests/transport/table_test.c
 * asserts it), so no caller tests for NULL. */
#include "transport/transport.h"

const struct gy_transport_ops *const gy_transports[] = {
    &gy_transport_self,
    &gy_transport_shm,
    &gy_transport_tcp,
    NULL,
};
