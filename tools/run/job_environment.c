#include "run/job_environment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/rendezvous_env.h"

/* GYRE_HOST_ID says which ranks share a host, and differs between hosts. */
static bool is_passed(const char *variable, size_t length, char *const *names, size_t count)
{
    static const char *const never[] = {"GYRE_SECRET", "GYRE_SECRET_FILE"}, *const own[] = {"GYRE_HOST_ID"};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (strlen(never[i]) == length && memcmp(never[i], variable, length) == 0)
            return false;
    for (size_t i = 0; i < count; i++)
        if (strlen(names[i]) == length && memcmp(names[i], variable, length) == 0)
            return true;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strlen(own[i]) == length && memcmp(own[i], variable, length) == 0)
            return false;
    return length > 5 && memcmp(variable, "GYRE_", 5) == 0;
}

const char **gy_job_environment(char *const *names, size_t count)
{
    size_t all = 0, kept = 0;
    while (environ[all])
        all++;
    const char **list = calloc(all + 1, sizeof *list);
    for (size_t i = 0; list && i < all; i++) {
        const char *equals = strchr(environ[i], '=');
        if (equals && is_passed(environ[i], (size_t)(equals - environ[i]), names, count))
            list[kept++] = environ[i];
    }
    return list;
}

/* The file has to satisfy what a rank asks of it: it belongs to this user or root, and others have no access. */
static int read_secret(const char *path, char *secret, size_t secret_bytes, char *why, size_t bytes)
{
    struct stat about;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = 0;
    size_t held = 0;
    *why = '\0';
    if (fd < 0 || fstat(fd, &about))
        snprintf(why, bytes, "GYRE_SECRET_FILE %.150s: %s", path, strerror(errno));
    else if ((about.st_uid != geteuid() && about.st_uid != 0) ||
             about.st_mode & (about.st_uid == geteuid() ? S_IRWXG | S_IRWXO : S_IRWXO | S_IWGRP))
        snprintf(why, bytes, "GYRE_SECRET_FILE %.150s belongs to another user or can be accessed by others", path);
    while (!*why && held < secret_bytes - 1 && (got = read(fd, secret + held, secret_bytes - 1 - held)) > 0)
        held += (size_t)got;
    secret[held] = '\0';
    if (!*why && (got < 0 || held == 0 || held == secret_bytes - 1 || strlen(secret) != held))
        snprintf(why, bytes, "GYRE_SECRET_FILE %.150s is no text of 1 to %zu bytes", path, secret_bytes - 2);
    if (fd >= 0)
        close(fd);
    return *why ? -1 : 0;
}

int gy_job_secret(char *secret, size_t secret_bytes, char *why, size_t bytes)
{
    const char *text = getenv("GYRE_SECRET"), *path = getenv("GYRE_SECRET_FILE");
    if (text && *text) {
        if ((size_t)snprintf(secret, secret_bytes, "%s", text) < secret_bytes)
            return 0;
        snprintf(why, bytes, "GYRE_SECRET is longer than %zu characters", secret_bytes - 1);
        return -1;
    }
    if (path && *path)
        return read_secret(path, secret, secret_bytes, why, bytes);
    char drawn[GY_RENDEZVOUS_SECRET_BYTES];
    if (secret_bytes < sizeof drawn || gy_rendezvous_draw_secret(drawn)) {
        snprintf(why, bytes, "cannot make a secret: %s", strerror(errno));
        return -1;
    }
    memcpy(secret, drawn, sizeof drawn);
    explicit_bzero(drawn, sizeof drawn);
    return 0;
}
