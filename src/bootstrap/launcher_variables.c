/* Variables of the environment, as launchers set them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "bootstrap/launcher.h"

const char *gy_launcher_text(const char *name)
{
    const char *text = getenv(name);

    return text && *text ? text : NULL;
}

bool gy_launcher_number(const char *name, long least, long most, long *value_p, bool *present_p, struct gy_error *error)
{
    const char *text = gy_launcher_text(name);
    char *end;
    long value;

    *present_p = text != NULL;
    if (!text)
        return true;
    errno = 0;
    value = strtol(text, &end, 10);
    if (errno || *end || *text < '0' || *text > '9' || value < least || value > most) {
        gy_error_set(error, GYRE_BAD_CONFIGURATION, -1, "%s=\"%.60s\" is not a number from %ld to %ld", name, text,
                     least, most);
        return false;
    }
    *value_p = value;
    return true;
}

gyre_status gy_launcher_master(struct gy_identity *identity, uint16_t otherwise, struct gy_error *error)
{
    const char *host = gy_launcher_text("MASTER_ADDR");
    bool has_port;
    long port = otherwise;

    if (!gy_launcher_number("MASTER_PORT", 1, 65535, &port, &has_port, error))
        return GYRE_BAD_CONFIGURATION;
    if (!host || port == 0)
        return gy_error_set(error, GYRE_MEETING_FAILED, -1,
                            "rank %d of %d does not know where to meet, for %s is not set: set GYRE_ADDRESS="
                            "tcp://HOST:PORT (or file:///PATH), or MASTER_ADDR and MASTER_PORT",
                            identity->rank, identity->size, host ? "MASTER_PORT" : "MASTER_ADDR");
    if (strlen(host) >= sizeof(identity->address.host))
        return gy_error_set(error, GYRE_BAD_CONFIGURATION, -1, "MASTER_ADDR is longer than %zu characters",
                            sizeof(identity->address.host) - 1);
    identity->address.kind = GY_ADDRESS_TCP;
    memcpy(identity->address.host, host, strlen(host) + 1);
    identity->address.port = (uint16_t)port;
    snprintf(identity->address_from, sizeof(identity->address_from), "MASTER_ADDR%s",
             has_port ? " and MASTER_PORT" : "");
    return GYRE_SUCCESS;
}
