/* The table of transports, in order of preference, and queries over all of them. Every operation of every table is
 * filled (tests/transport/table_test.c asserts it), so no caller tests for NULL. */
#include "transport/registry/registry.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "core/log.h"
#include "transport/rdma/devices.h"

const struct gy_transport_ops *const gy_transports[] = {
    &gy_transport_self, &gy_transport_shm, &gy_transport_rdma, &gy_transport_tcp, NULL,
};

static bool exists(const char *name, size_t length)
{
    for (size_t i = 0; gy_transports[i]; i++)
        if (strlen(gy_transports[i]->name) == length && !strncmp(name, gy_transports[i]->name, length))
            return true;
    return false;
}

gyre_status gy_transports_check(const char *list, struct gy_error *error)
{
    char there[64] = "";

    for (const char *item = list; *item; item += strcspn(item, ","), item += *item == ',') {
        int length = (int)strcspn(item, ",");

        if (exists(item, (size_t)length))
            continue;
        for (size_t i = 0, used = 0; gy_transports[i] && used < sizeof(there); i++)
            used += (size_t)snprintf(there + used, sizeof(there) - used, "%s%s", i ? ", " : "", gy_transports[i]->name);
        return gy_error_set(error, GYRE_BAD_CONFIGURATION, -1,
                            "GYRE_TRANSPORT=%s: there is no transport %.*s; there are %s", list, length, item, there);
    }
    return GYRE_SUCCESS;
}

gyre_status gy_transports_survey(struct gy_config *config, struct gy_error *error)
{
    struct gy_rdma_fabrics fabrics = {0};
    char why[GY_RDMA_WHY] = "";

    if (gy_transports_check(config->transports, error) != GYRE_SUCCESS)
        return error->status;

    config->fabrics = 0;
    config->fabric_links = INT_MAX;
    if (!gy_transport_wanted(config->transports, gy_transport_rdma.name))
        return GYRE_SUCCESS;
    gyre_status status = gy_rdma_survey(config, &fabrics, why, sizeof(why), error);
    config->fabrics = fabrics.bits;
    config->fabric_links = fabrics.links;
    return status;
}

void gy_transports_describe(const struct gy_config *config, gyre_print_func print, void *user)
{
    gy_rdma_describe(config, print, user);
    gy_tcp_describe(config, print, user);
}
