/* The order: gyre_config, then GYRE_ADDRESS / GYRE_SECRET / GYRE_SECRET_FILE, then torchrun's RANK, WORLD_SIZE,
 * MASTER_ADDR, MASTER_PORT.
 *
 * Under torchrun with TORCHELASTIC_USE_AGENT_STORE=True the agent itself holds MASTER_PORT, so the ranks meet at the
 * port after it. Every sentence here says which variable to set. */
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
#include "core/log.h"

#define SECRET_MOST 4096
#define SIZE_MOST 65536

static bool read_number(const char *name, long least, long most, long *value_p, bool *present_p, struct gy_error *error)
{
    const char *text = getenv(name);
    char *end;
    long value;

    *present_p = text && *text;
    if (!*present_p)
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

static gyre_status read_rank(const gyre_config *user, struct gy_identity *identity, struct gy_error *error)
{
    long size = 0, rank = 0;
    bool has_size, has_rank, given = user && user->world_size != 0;

    if (given) {
        size = user->world_size;
        rank = user->rank;
    } else {
        if (!read_number("WORLD_SIZE", 1, SIZE_MOST, &size, &has_size, error) ||
            !read_number("RANK", 0, SIZE_MOST - 1, &rank, &has_rank, error))
            return GYRE_BAD_CONFIGURATION;
        if (!has_size || (!has_rank && size > 1))
            return gy_error_set(
                error, GYRE_MEETING_FAILED, -1,
                "%s is not set and gyre_config gives no world_size: start the program with gyre-run -n N, "
                "torchrun or another launcher that sets RANK and WORLD_SIZE, or fill rank and world_size "
                "of gyre_config",
                has_size ? "RANK" : "WORLD_SIZE");
    }
    if (size < 1 || size > SIZE_MOST || rank < 0 || rank >= size)
        return gy_error_set(error, GYRE_BAD_CONFIGURATION, -1,
                            "%s=%ld with %s=%ld is impossible: ranks go from 0 to world size - 1, at most %d of them",
                            given ? "gyre_config.rank" : "RANK", rank, given ? "gyre_config.world_size" : "WORLD_SIZE",
                            size, SIZE_MOST);
    identity->rank = (int)rank;
    identity->size = (int)size;
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

/* torchrun: does its agent hold MASTER_PORT already? */
static bool read_agent(bool *agent_p, struct gy_error *error)
{
    const char *store = getenv("TORCHELASTIC_USE_AGENT_STORE");

    *agent_p = store && strcmp(store, "True") == 0;
    if (*agent_p || !store || !*store || strcmp(store, "False") == 0)
        return true;
    gy_error_set(
        error, GYRE_BAD_CONFIGURATION, -1,
        "TORCHELASTIC_USE_AGENT_STORE=\"%.40s\" is neither True nor False, so it is not clear whether MASTER_PORT "
        "is taken; set GYRE_ADDRESS",
        store);
    return false;
}

static gyre_status read_master(struct gy_identity *identity, struct gy_error *error)
{
    const char *host = getenv("MASTER_ADDR");
    bool agent, has_port;
    long port = 0;

    if (!read_agent(&agent, error) || !read_number("MASTER_PORT", 1, agent ? 65534 : 65535, &port, &has_port, error))
        return GYRE_BAD_CONFIGURATION;
    if (!host || !*host || !has_port)
        return gy_error_set(error, GYRE_MEETING_FAILED, -1,
                            "rank %d of %d does not know where to meet, for %s is not set: set GYRE_ADDRESS="
                            "tcp://HOST:PORT (or file:///PATH), or MASTER_ADDR and MASTER_PORT",
                            identity->rank, identity->size, host && *host ? "MASTER_PORT" : "MASTER_ADDR");
    if (strlen(host) >= sizeof(identity->address.host))
        return gy_error_set(error, GYRE_BAD_CONFIGURATION, -1, "MASTER_ADDR is longer than %zu characters",
                            sizeof(identity->address.host) - 1);
    identity->address.kind = GY_ADDRESS_TCP;
    memcpy(identity->address.host, host, strlen(host) + 1);
    identity->address.port = (uint16_t)(agent ? port + 1 : port); /* the agent of torchrun holds MASTER_PORT */
    snprintf(identity->address_from, sizeof(identity->address_from), "MASTER_ADDR and MASTER_PORT%s",
             agent ? "+1" : "");
    return GYRE_SUCCESS;
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
    return read_master(identity, error);
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

static uint64_t run_label(void)
{
    const char *id = getenv("TORCHELASTIC_RUN_ID");
    uint8_t hash[crypto_generichash_BYTES_MIN] = {0};
    uint64_t label;

    if (id && *id)
        crypto_generichash((unsigned char *)&hash, sizeof(hash), (const unsigned char *)id, strlen(id), NULL, 0);
    memcpy(&label, hash, sizeof(label));
    return label;
}

gyre_status gy_identity_read(const gyre_config *user, const struct gy_config *config, struct gy_identity *identity_p,
                             struct gy_error *error)
{
    struct gy_identity identity = {0};
    gyre_status status;

    status = read_rank(user, &identity, error);
    if (status == GYRE_SUCCESS)
        status = read_address(user, config, &identity, error);
    if (status == GYRE_SUCCESS)
        status = read_secret(user, config, &identity, error);
    if (status != GYRE_SUCCESS)
        return status;
    identity.label = run_label();
    *identity_p = identity;
    return GYRE_SUCCESS;
}
