/* Selects the launcher's row.
 *
 *   GYRE_LAUNCHER is set                                            that one; its variables must be there
 *   no launcher's variables are there                               error: how to start the program
 *   one launcher's                                                  that one
 *   several with the same rank and size                             the first row
 *   several that differ, one of them inside a step of Slurm         the inner one: Slurm starts launchers too
 *   several that differ otherwise                                   error: one of them is stale, and which one cannot
 *                                                                   be told
 *
 * A launcher with only one of rank and size is an error, because a partial environment is a damaged one. */
#include "bootstrap/launcher.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE_MOST 65536

/* In the order in which they are taken where several agree. */
static const struct gy_launcher *const launchers[] = {&gy_launcher_torchrun, &gy_launcher_openmpi, &gy_launcher_pmix,
                                                      &gy_launcher_pmi, &gy_launcher_slurm};

/* The values of a launcher's variables. */
struct claim {
    const struct gy_launcher *launcher;
    long rank, size, local; /* size 0: to be asked; local −1: not known */
    bool has_rank, has_size;
};

static bool is_there(const struct gy_launcher *launcher)
{
    if (launcher == &gy_launcher_slurm) /* SLURM_PROCID alone is a batch script, not one of a step's tasks */
        return gy_launcher_text(launcher->size) != NULL;
    return gy_launcher_text(launcher->rank) || (launcher->size && gy_launcher_text(launcher->size));
}

static gyre_status missing(const struct gy_launcher *launcher, const char *lost, const char *there,
                           struct gy_error *error)
{
    if (!there)
        return gy_error_set(error, GYRE_MEETING_FAILED, -1,
                            "GYRE_LAUNCHER=%s, but %s is not set: start the program with %s, or unset GYRE_LAUNCHER",
                            launcher->name, lost, launcher->program);
    return gy_error_set(error, GYRE_MEETING_FAILED, -1,
                        "%s is not set, but %s is: one of the variables of %s is missing; set it, or GYRE_LAUNCHER to "
                        "another launcher",
                        lost, there, launcher->program);
}

static gyre_status read_claim(const struct gy_launcher *launcher, struct claim *claim_p, struct gy_error *error)
{
    struct claim claim = {.launcher = launcher, .local = -1};
    bool has_local;

    if ((launcher->size && !gy_launcher_number(launcher->size, 1, SIZE_MOST, &claim.size, &claim.has_size, error)) ||
        !gy_launcher_number(launcher->rank, 0, SIZE_MOST - 1, &claim.rank, &claim.has_rank, error) ||
        !gy_launcher_number(launcher->local, 0, SIZE_MOST - 1, &claim.local, &has_local, error))
        return GYRE_BAD_CONFIGURATION;
    if (launcher->size && !claim.has_size)
        return missing(launcher, launcher->size, claim.has_rank ? launcher->rank : NULL, error);
    if (!claim.has_rank && claim.size != 1) /* a world of one has one rank only */
        return missing(launcher, launcher->rank, claim.has_size ? launcher->size : NULL, error);
    if (claim.has_size && claim.rank >= claim.size)
        return gy_error_set(error, GYRE_BAD_CONFIGURATION, -1,
                            "%s=%ld with %s=%ld is impossible: ranks go from 0 to world size - 1, at most %d of them",
                            launcher->rank, claim.rank, launcher->size, claim.size, SIZE_MOST);
    *claim_p = claim;
    return GYRE_SUCCESS;
}

static bool agree(const struct claim *a, const struct claim *b)
{
    return a->rank == b->rank && (!a->has_size || !b->has_size || a->size == b->size);
}

static void print_claim(const struct claim *claim, char *text_p, size_t bytes)
{
    if (claim->has_size)
        snprintf(text_p, bytes, "%s=%ld and %s=%ld (%s)", claim->launcher->rank, claim->rank, claim->launcher->size,
                 claim->size, claim->launcher->name);
    else
        snprintf(text_p, bytes, "%s=%ld (%s)", claim->launcher->rank, claim->rank, claim->launcher->name);
}

static gyre_status contradiction(const struct claim *a, const struct claim *b, struct gy_error *error)
{
    char first[200], second[200];

    print_claim(a, first, sizeof(first));
    print_claim(b, second, sizeof(second));
    return gy_error_set(error, GYRE_BAD_CONFIGURATION, -1,
                        "two launchers have left their variables here, and they contradict each other: %s, %s; set "
                        "GYRE_LAUNCHER=%s or GYRE_LAUNCHER=%s, or unset those of the other",
                        first, second, a->launcher->name, b->launcher->name);
}

/* Of all that are there; claim_p->launcher NULL: none. */
static gyre_status choose(struct claim *claim_p, struct gy_error *error)
{
    struct claim chosen = {0}, other = {0};

    for (size_t i = 0; i < GY_ARRAY_LENGTH(launchers); i++) {
        if (!is_there(launchers[i]))
            continue;
        if (read_claim(launchers[i], &other, error) != GYRE_SUCCESS)
            return error->status;
        if (!chosen.launcher) {
            chosen = other;
            continue;
        }
        bool inside = other.launcher == &gy_launcher_slurm && chosen.launcher->inner &&
                      gy_launcher_text(chosen.launcher->inner);
        if (!inside && !agree(&chosen, &other))
            return contradiction(&chosen, &other, error);
    }
    *claim_p = chosen;
    return GYRE_SUCCESS;
}

static gyre_status none(struct gy_error *error)
{
    return gy_error_set(error, GYRE_MEETING_FAILED, -1,
                        "WORLD_SIZE is not set and gyre_config gives no world_size: start the program with gyre-run "
                        "-n N, torchrun, mpirun, mpiexec or srun, set RANK and WORLD_SIZE, or fill rank and "
                        "world_size of gyre_config");
}

gyre_status gy_launcher_find(const struct gy_config *config, struct gy_identity *identity, struct gy_error *error)
{
    struct claim claim = {0};
    gyre_status status = GYRE_SUCCESS;

    if (*config->launcher) {
        for (size_t i = 0; i < GY_ARRAY_LENGTH(launchers); i++) {
            if (strcmp(launchers[i]->name, config->launcher) == 0)
                status = read_claim(launchers[i], &claim, error);
        }
    } else {
        status = choose(&claim, error);
    }
    if (status != GYRE_SUCCESS)
        return status;
    if (!claim.launcher)
        return none(error);
    identity->launcher = claim.launcher;
    identity->rank = (int)claim.rank;
    identity->size = (int)claim.size;
    identity->local_rank = (int)claim.local;
    if (claim.launcher->ask)
        status = claim.launcher->ask(identity, config, error);
    if (status == GYRE_SUCCESS &&
        (identity->size < 1 || identity->size > SIZE_MOST || identity->rank >= identity->size))
        status = gy_error_set(error, GYRE_BAD_CONFIGURATION, -1, "%s says rank %d of %d, which is impossible",
                              claim.launcher->program, identity->rank, identity->size);
    return status;
}

uint64_t gy_launcher_run(const struct gy_launcher *launcher)
{
    uint8_t hash[crypto_generichash_BYTES_MIN] = {0};
    char text[512] = "";
    size_t used = 0;
    uint64_t label;

    for (size_t i = 0; i < GY_ARRAY_LENGTH(launcher->run) && launcher->run[i]; i++) {
        const char *part = gy_launcher_text(launcher->run[i]);

        if (part && used < sizeof(text))
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i ? "." : "", part);
    }
    if (*text)
        crypto_generichash(hash, sizeof(hash), (const unsigned char *)text, strlen(text), NULL, 0);
    memcpy(&label, hash, sizeof(label));
    return label;
}
