/* torchrun, and every program that sets torchrun's variables: gyre-run, a Kubernetes Job, a shell script. The
 * rendezvous is MASTER_ADDR and MASTER_PORT.
 *
 * With TORCHELASTIC_USE_AGENT_STORE=True torchrun's agent itself listens at MASTER_PORT, so the rendezvous is the port
 * after it. */
#include <stdio.h>
#include <string.h>

#include "bootstrap/launcher.h"

/* True if the agent already listens at MASTER_PORT. */
static bool read_agent(bool *agent_p, struct gy_error *error)
{
    const char *store = gy_launcher_text("TORCHELASTIC_USE_AGENT_STORE");

    *agent_p = store && strcmp(store, "True") == 0;
    if (*agent_p || !store || strcmp(store, "False") == 0)
        return true;
    gy_error_set(
        error, GYRE_BAD_CONFIGURATION, -1,
        "TORCHELASTIC_USE_AGENT_STORE=\"%.40s\" is neither True nor False, so it is not clear whether MASTER_PORT "
        "is taken; set GYRE_ADDRESS",
        store);
    return false;
}

static gyre_status place(struct gy_identity *identity, const struct gy_config *config, struct gy_error *error)
{
    bool agent, has_port;
    long port;

    (void)config;
    if (!read_agent(&agent, error) ||
        !gy_launcher_number("MASTER_PORT", 1, agent ? 65534 : 65535, &port, &has_port, error) ||
        gy_launcher_master(identity, 0, error) != GYRE_SUCCESS)
        return error->status;
    if (agent) {
        identity->address.port++;
        snprintf(identity->address_from, sizeof(identity->address_from), "MASTER_ADDR and MASTER_PORT+1");
    }
    return GYRE_SUCCESS;
}

const struct gy_launcher gy_launcher_torchrun = {
    .name = "torchrun",
    .program = "torchrun or gyre-run",
    .rank = "RANK",
    .size = "WORLD_SIZE",
    .local = "LOCAL_RANK",
    .run = {"TORCHELASTIC_RUN_ID"},
    .inner = "TORCHELASTIC_RUN_ID",
    .place = place,
};
