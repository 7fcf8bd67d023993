/* Slurm's srun, without other help: it gives every task the list of the step's hosts. So the rendezvous is the first
 * host, where rank 0 is unless the tasks were distributed otherwise, at a port derived from job and step.
 *
 * Two steps with the same port are told apart by job and step number, and by their secrets; GYRE_ADDRESS or MASTER_PORT
 * choose another. A step on one host uses loopback, however the host's name resolves. */
#include <stdio.h>
#include <string.h>

#include "bootstrap/launcher.h"

#define FIRST_PORT 10000u
#define PORTS 20000u

bool gy_slurm_first_host(const char *list, char *host_p, size_t bytes)
{
    size_t used = 0;

    for (const char *at = list; *at && *at != ','; at++) {
        const char *end;

        if (*at == '[') { /* its first number, then what follows the bracket */
            size_t digits = strspn(at + 1, "0123456789");

            end = strchr(at, ']');
            if (digits == 0 || !end || used + digits >= bytes)
                return false;
            memcpy(host_p + used, at + 1, digits);
            used += digits;
            at = end;
            continue;
        }
        if (*at == ']' || *at <= ' ' || *at > '~' || used + 1 >= bytes)
            return false;
        host_p[used++] = *at;
    }
    if (used == 0)
        return false;
    host_p[used] = '\0';
    return true;
}

uint16_t gy_slurm_port(const char *job, const char *step)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    const char *const parts[] = {job, ".", step};

    for (size_t i = 0; i < GY_ARRAY_LENGTH(parts); i++) {
        for (const char *at = parts[i]; *at; at++)
            hash = (hash ^ (uint8_t)*at) * 16777619u;
    }
    return (uint16_t)(FIRST_PORT + hash % PORTS);
}

static gyre_status place(struct gy_identity *identity, const struct gy_config *config, struct gy_error *error)
{
    const char *list = gy_launcher_text("SLURM_STEP_NODELIST"), *nodes = gy_launcher_text("SLURM_STEP_NUM_NODES");
    const char *job = gy_launcher_text("SLURM_JOB_ID"), *step = gy_launcher_text("SLURM_STEP_ID");
    uint16_t port = job && step ? gy_slurm_port(job, step) : 0;
    bool has_port, alone = nodes && strcmp(nodes, "1") == 0;
    long chosen = 0;

    (void)config;
    if (gy_launcher_text("MASTER_ADDR"))
        return gy_launcher_master(identity, port, error);
    if (!gy_launcher_number("MASTER_PORT", 1, 65535, &chosen, &has_port, error))
        return GYRE_BAD_CONFIGURATION;
    if ((!list && !alone) || (!port && !has_port))
        return gy_error_set(error, GYRE_MEETING_FAILED, -1,
                            "rank %d of %d does not know where to meet, for %s is not set: set GYRE_ADDRESS="
                            "tcp://HOST:PORT on every rank",
                            identity->rank, identity->size,
                            !list && !alone ? "SLURM_STEP_NODELIST"
                            : job           ? "SLURM_STEP_ID"
                                            : "SLURM_JOB_ID");
    if (alone)
        list = "127.0.0.1";
    if (!gy_slurm_first_host(list, identity->address.host, sizeof(identity->address.host)))
        return gy_error_set(error, GYRE_BAD_CONFIGURATION, -1,
                            "SLURM_STEP_NODELIST=\"%.80s\" is not understood: set GYRE_ADDRESS=tcp://HOST:PORT", list);
    identity->address.kind = GY_ADDRESS_TCP;
    identity->address.port = has_port ? (uint16_t)chosen : port;
    snprintf(identity->address_from, sizeof(identity->address_from), "%s, %s",
             alone ? "SLURM_STEP_NUM_NODES=1" : "SLURM_STEP_NODELIST", has_port ? "MASTER_PORT" : "job and step");
    return GYRE_SUCCESS;
}

const struct gy_launcher gy_launcher_slurm = {
    .name = "slurm",
    .program = "Slurm's srun",
    .rank = "SLURM_PROCID",
    .size = "SLURM_STEP_NUM_TASKS",
    .local = "SLURM_LOCALID",
    .run = {"SLURM_JOB_ID", "SLURM_STEP_ID"},
    .place = place,
};
