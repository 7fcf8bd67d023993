/* The order of sources: gyre_config, then GYRE_ADDRESS / GYRE_SECRET / GYRE_SECRET_FILE, then MASTER_ADDR, then the
 * variables of the launcher that started this process (launcher.h). Every error message here names the variable to
 * set. */
#include "bootstrap/identity.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bootstrap/launcher.h"
#include "core/log.h"
#include "core/secret_memory.h"
#include "core/secret_variable.h"
#include "net/handshake.h"

#define SECRET_MOST (GY_SECRET_MOST - 1) /* bytes of a file */
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
    if (!identity->launcher) /* the identity is in gyre_config: there may be no launcher at all */
        return gy_launcher_torchrun.place(identity, config, error);
    if (identity->launcher != &gy_launcher_slurm && gy_launcher_text("MASTER_ADDR"))
        return gy_launcher_torchrun.place(identity, config, error);
    return identity->launcher->place(identity, config, error);
}

static gyre_status no_memory(struct gy_error *error)
{
    return gy_error_set(error, GYRE_NO_MEMORY, -1, "no memory for the job's secret");
}

/* True if a secret cannot hold 128 bits of randomness. Its source cannot be seen in a text, but a text that is too
 * short or has too few different characters can. */
static bool is_weak(const char *text, size_t bytes)
{
    bool seen[256] = {false}, digits = true;
    size_t different = 0;

    for (size_t i = 0; i < bytes; i++) {
        digits &= isxdigit((unsigned char)text[i]) != 0;
        different += !seen[(unsigned char)text[i]];
        seen[(unsigned char)text[i]] = true;
    }
    return bytes < (digits ? GY_SECRET_DIGITS : GY_SECRET_LEAST) || different < GY_SECRET_DIFFERENT;
}

static gyre_status use_secret(struct gy_identity *identity, const char *text, size_t bytes, const char *from,
                              struct gy_error *error)
{
    if (is_weak(text, bytes))
        return gy_error_set(error, GYRE_BAD_CONFIGURATION, -1,
                            "%s, %zu bytes, can be guessed: a secret is a random text of at least %d characters, or %d "
                            "hexadecimal digits, as \"openssl rand -hex 32\" makes one",
                            from, bytes, GY_SECRET_LEAST, GY_SECRET_DIGITS);
    gy_handshake_key_of_secret(text, bytes, identity->key);
    identity->has_secret = true;
    return GYRE_SUCCESS;
}

/* As ssh does with a private key: a file that other users may read or write is no secret. A file owned by root is
 * accepted if a group of this user may read it (Kubernetes provides secrets so). */
static gyre_status check_secret_file(const char *path, int fd, struct gy_error *error)
{
    struct stat about;
    uid_t own = geteuid();

    if (fstat(fd, &about))
        return gy_error_system(error, errno, "GYRE_SECRET_FILE: cannot look at %s", path);
    if (!S_ISREG(about.st_mode) && !S_ISFIFO(about.st_mode))
        return gy_error_set(error, GYRE_BAD_CONFIGURATION, -1, "GYRE_SECRET_FILE %s is no file", path);
    if (about.st_uid != own && about.st_uid != 0)
        return gy_error_set(
            error, GYRE_BAD_CONFIGURATION, -1,
            "GYRE_SECRET_FILE %s belongs to another user (%u), who knows the secret: make one of your own", path,
            (unsigned)about.st_uid);
    if (about.st_mode & (about.st_uid == own ? S_IRWXG | S_IRWXO : S_IRWXO | S_IWGRP))
        return gy_error_set(
            error, GYRE_BAD_CONFIGURATION, -1,
            "GYRE_SECRET_FILE %s can be read or written by other users (mode %04o): make a new secret, and "
            "chmod 600 its file",
            path, (unsigned)about.st_mode & 07777);
    return GYRE_SUCCESS;
}

/* Up to the end of the file, or `room` bytes. −1: errno. */
static ssize_t read_whole(int fd, char *text_p, size_t room)
{
    size_t got = 0;

    while (got < room) {
        ssize_t more = read(fd, text_p + got, room - got);

        if (more < 0 && errno == EINTR)
            continue;
        if (more < 0)
            return -1;
        if (more == 0)
            break;
        got += (size_t)more;
    }
    return (ssize_t)got;
}

static gyre_status take_secret(const char *path, int fd, struct gy_identity *identity, struct gy_error *error)
{
    gyre_status status = check_secret_file(path, fd, error);
    char *text;
    ssize_t got;

    if (status != GYRE_SUCCESS)
        return status;
    text = gy_secret_alloc(SECRET_MOST + 1, GY_SECRET_COPIED);
    if (!text)
        return no_memory(error);
    got = read_whole(fd, text, SECRET_MOST + 1);
    if (got < 0)
        status = gy_error_system(error, errno, "GYRE_SECRET_FILE: cannot read %s", path);
    else if (got > SECRET_MOST)
        status = gy_error_set(error, GYRE_BAD_CONFIGURATION, -1, "GYRE_SECRET_FILE %s is longer than %d bytes", path,
                              SECRET_MOST);
    while (got > 0 && (text[got - 1] == '\n' || text[got - 1] == '\r'))
        got--;
    if (status == GYRE_SUCCESS)
        status = use_secret(identity, text, (size_t)got, "the text in GYRE_SECRET_FILE", error);
    gy_secret_free(text);
    return status;
}

static gyre_status read_secret_file(const char *path, struct gy_identity *identity, struct gy_error *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    gyre_status status;

    if (fd < 0)
        return gy_error_system(error, errno, "GYRE_SECRET_FILE: cannot open %s", path);
    status = take_secret(path, fd, identity, error);
    close(fd);
    return status;
}

static gyre_status take_variable(struct gy_identity *identity, struct gy_error *error)
{
    char *text = gy_secret_alloc(GY_SECRET_TEXT, GY_SECRET_COPIED);
    gyre_status status;

    if (!text)
        return no_memory(error);
    status = use_secret(identity, text, gy_secret_variable_take(text), GY_SECRET_VARIABLE, error);
    gy_secret_free(text);
    return status;
}

static gyre_status read_secret(const gyre_config *user, const struct gy_config *config, struct gy_identity *identity,
                               struct gy_error *error)
{
    static const char no_secret[] = "gyre without a secret";

    if (user && user->secret)
        return use_secret(identity, user->secret, strlen(user->secret), "gyre_config.secret", error);
    if (gy_secret_variable_is_set() && *config->secret_file)
        return gy_error_set(error, GYRE_BAD_CONFIGURATION, -1,
                            "GYRE_SECRET and GYRE_SECRET_FILE are both set, and may differ: set one of them");
    if (gy_secret_variable_is_set())
        return take_variable(identity, error);
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
    sodium_memzero(identity->key, sizeof(identity->key));
}

gyre_status gy_identity_read(const gyre_config *user, const struct gy_config *config, struct gy_identity *identity_p,
                             struct gy_error *error)
{
    struct gy_identity *identity = identity_p;
    gyre_status status;

    memset(identity, 0, sizeof(*identity));
    status = read_rank(user, config, identity, error);
    if (status == GYRE_SUCCESS)
        status = read_address(user, config, identity, error);
    if (status == GYRE_SUCCESS)
        status = read_secret(user, config, identity, error);
    if (status != GYRE_SUCCESS) {
        gy_identity_end(identity);
        return status;
    }
    identity->label = gy_launcher_run(identity->launcher ? identity->launcher : &gy_launcher_torchrun);
    if (identity->launcher)
        gy_log(GY_LOG_INFO, "rank %d of %d, local rank %d, by %s (GYRE_LAUNCHER=%s)", identity->rank, identity->size,
               identity->local_rank, identity->launcher->program, identity->launcher->name);
    return GYRE_SUCCESS;
}

gyre_status gy_identity_read_joiner(const gyre_config *user, const struct gy_config *config,
                                    struct gy_identity *identity_p, struct gy_error *error)
{
    struct gy_identity *identity = identity_p;
    gyre_status status = GYRE_SUCCESS;

    memset(identity, 0, sizeof(*identity));
    identity->local_rank = -1;
    if (user && user->address)
        status = parse_address(user->address, "gyre_config.address", identity, error);
    else if (*config->address)
        status = parse_address(config->address, "GYRE_ADDRESS", identity, error);
    else if (gy_launcher_text("MASTER_ADDR"))
        status = gy_launcher_torchrun.place(identity, config, error);
    if (status == GYRE_SUCCESS)
        status = read_secret(user, config, identity, error);
    if (status == GYRE_SUCCESS)
        identity->label = gy_launcher_run(&gy_launcher_torchrun);
    return status;
}
