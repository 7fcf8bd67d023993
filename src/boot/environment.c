/* The order: gyre_config, then GYRE_ADDRESS / GYRE_SECRET / GYRE_SECRET_FILE, then MASTER_ADDR, then what the launcher that
 * started this process offers (launcher.h). Every sentence here says which variable to set. */
#include "boot/environment.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "boot/handshake.h"
#include "boot/launcher.h"
#include "core/log.h"

#define SECRET_MOST 4096
#define SIZE_MOST 65536

static gyre_status read_rank(const gyre_config *user, const struct gy_config *config, struct gy_identity *identity,
                             struct gy_error *error)
{
    if (!user || user->world_size == 0)
        return gy_launcher_find(config, identity, error);
    if (user->world_size < 1 || user->world_size > SIZE_MOST || user->rank < 0 || user->rank >= user->world_size)
        return gy_error_set(
            error, GYRE_BAD_CONFIGURATION, -1,
            "gyre_config.rank=%d with gyre_config.world_size=%d is impossible: ranks go from 0 to world "
            "size - 1, at most %d of them",
            user->rank, user->world_size, SIZE_MOST);
    identity->rank = user->rank;
    identity->size = user->world_size;
    identity->local_rank = -1;
    return GYRE_SUCCESS;
}

static gyre_status parse_address(const char *text, const char *from, struct gy_identity *identity,
                                 struct gy_error *error)
{
    snprintf(identity->address_from, sizeof(identity->address_from), "%s", from);
    if (gy_address_parse(text, &identity->address))
        return GYRE_SUCCESS;
    return gy_error_set(error, GYRE_BAD_CONFIGURATION, -1,
                        "%s: \"%s\" is no meeting address; use tcp://HOST:PORT, tcp://[IPV6]:PORT or file:///PATH",
                        from, text);
}

static gyre_status read_address(const gyre_config *user, const struct gy_config *config, struct gy_identity *identity,
                                struct gy_error *error)
{
    if (user && user->address)
        return parse_address(user->address, "gyre_config.address", identity, error);
    if (user && user->exchange) {
        identity->exchange = user->exchange;
        identity->exchange_user = user->exchange_user;
        return GYRE_SUCCESS;
    }
    if (identity->size == 1)
        return GYRE_SUCCESS;
    if (*config->address)
        return parse_address(config->address, "GYRE_ADDRESS", identity, error);
    if (!identity->launcher) /* gyre_config says who we are: there may be no launcher at all */
        return gy_launcher_torchrun.place(identity, config, error);
    if (identity->launcher != &gy_launcher_slurm && gy_launcher_text("MASTER_ADDR"))
        return gy_launcher_torchrun.place(identity, config, error);
    return identity->launcher->place(identity, config, error);
}

static gyre_status use_secret(struct gy_identity *identity, const char *text, size_t bytes, const char *from,
                              struct gy_error *error)
{
    if (bytes < GY_SECRET_LEAST)
        return gy_error_set(error, GYRE_BAD_CONFIGURATION, -1, "%s holds %zu bytes; a secret has at least %d", from,
                            bytes, GY_SECRET_LEAST);
    gy_handshake_key_of_secret(text, bytes, identity->key);
    identity->has_secret = true;
    return GYRE_SUCCESS;
}

static gyre_status read_secret_file(const char *path, struct gy_identity *identity, struct gy_error *error)
{
    char text[SECRET_MOST + 1];
    struct stat about;
    ssize_t got;
    gyre_status status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return gy_error_system(error, errno, "GYRE_SECRET_FILE: cannot open %s", path);
    if (fstat(fd, &about) == 0 && (about.st_mode & (S_IRWXG | S_IRWXO)))
        gy_log(GY_LOG_WARN, "GYRE_SECRET_FILE %s can be read by other users; chmod 600 it", path);
    got = read(fd, text, sizeof(text));
    if (got < 0) {
        status = gy_error_system(error, errno, "GYRE_SECRET_FILE: cannot read %s", path);
        close(fd);
        return status;
    }
    close(fd);
    if (got > SECRET_MOST)
        return gy_error_set(error, GYRE_BAD_CONFIGURATION, -1, "GYRE_SECRET_FILE %s is longer than %d bytes", path,
                            SECRET_MOST);
    while (got > 0 && (text[got - 1] == '\n' || text[got - 1] == '\r'))
        got--;
    status = use_secret(identity, text, (size_t)got, "GYRE_SECRET_FILE", error);
    sodium_memzero(text, sizeof(text));
    return status;
}

static gyre_status read_secret(const gyre_config *user, const struct gy_config *config, struct gy_identity *identity,
                               struct gy_error *error)
{
    static const char no_secret[] = "gyre without a secret";

    if (user && user->secret)
        return use_secret(identity, user->secret, strlen(user->secret), "gyre_config.secret", error);
    if (*config->secret && *config->secret_file)
        return gy_error_set(error, GYRE_BAD_CONFIGURATION, -1,
                            "GYRE_SECRET and GYRE_SECRET_FILE are both set, and may differ: set one of them");
    if (*config->secret)
        return use_secret(identity, config->secret, strlen(config->secret), "GYRE_SECRET", error);
    if (*config->secret_file)
        return read_secret_file(config->secret_file, identity, error);
    gy_handshake_key_of_secret(no_secret, sizeof(no_secret), identity->key);
    identity->insecure = config->insecure;
    return GYRE_SUCCESS;
}

void gy_identity_end(struct gy_identity *identity)
{
    if (identity->exchange_end)
        identity->exchange_end(identity->exchange_user);
    identity->exchange_end = NULL;
}

gyre_status gy_identity_read(const gyre_config *user, const struct gy_config *config, struct gy_identity *identity_p,
                             struct gy_error *error)
{
    struct gy_identity identity = {0};
    gyre_status status;

    status = read_rank(user, config, &identity, error);
    if (status == GYRE_SUCCESS)
        status = read_address(user, config, &identity, error);
    if (status == GYRE_SUCCESS)
        status = read_secret(user, config, &identity, error);
    if (status != GYRE_SUCCESS) {
        gy_identity_end(&identity);
        return status;
    }
    identity.label = gy_launcher_run(identity.launcher ? identity.launcher : &gy_launcher_torchrun);
    if (identity.launcher)
        gy_log(GY_LOG_INFO, "rank %d of %d, local rank %d, by %s (GYRE_LAUNCHER=%s)", identity.rank, identity.size,
               identity.local_rank, identity.launcher->program, identity.launcher->name);
    *identity_p = identity;
    return GYRE_SUCCESS;
}

gyre_status gy_identity_read_newcomer(const gyre_config *user, const struct gy_config *config,
                                      struct gy_identity *identity_p, struct gy_error *error)
{
    struct gy_identity identity = {.local_rank = -1};
    gyre_status status = GYRE_SUCCESS;

    if (user && user->address)
        status = parse_address(user->address, "gyre_config.address", &identity, error);
    else if (*config->address)
        status = parse_address(config->address, "GYRE_ADDRESS", &identity, error);
    else if (gy_launcher_text("MASTER_ADDR"))
        status = gy_launcher_torchrun.place(&identity, config, error);
    if (status == GYRE_SUCCESS)
        status = read_secret(user, config, &identity, error);
    if (status != GYRE_SUCCESS)
        return status;
    identity.label = gy_launcher_run(&gy_launcher_torchrun);
    *identity_p = identity;
    return GYRE_SUCCESS;
}
