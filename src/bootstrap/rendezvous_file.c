/* The file of a file:// rendezvous: one line that rank 0 writes atomically.
 *
 *   gyre 1 tcp IP PORT NONCE        with a secret
 *   gyre 1 unix NAME 0 NONCE        without: an abstract Unix socket, so the same host
 *
 * Invariant: a reader sees a whole line or none (written to a temporary file, then renamed). A line left by an earlier
 * job leads to no listener, and rank 0 replaces it: readers read again before every attempt. Rank 0 removes the file
 * only while it holds its own nonce. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bootstrap/messages.h"

#define LINE_MOST 256

/* 0, or an errno. */
static int write_line(int fd, const char *line, size_t bytes)
{
    while (bytes > 0) {
        ssize_t written = write(fd, line, bytes);

        if (written < 0 && errno != EINTR)
            return errno;
        line += written > 0 ? written : 0;
        bytes -= written > 0 ? (size_t)written : 0;
    }
    return 0;
}

gyre_status gy_rendezvous_write(const char *path, const struct gy_endpoint *endpoint, uint64_t nonce,
                                struct gy_error *error)
{
    char aside[sizeof(((struct gy_address *)0)->path) + 32], line[LINE_MOST], host[INET6_ADDRSTRLEN] = "";
    const struct sockaddr_storage *address = &endpoint->address;
    int fd, length, errnum;

    if (endpoint->is_unix) {
        length = snprintf(line, sizeof(line), "gyre 1 unix %s 0 %" PRIx64 "\n", endpoint->name, nonce);
    } else {
        if (address->ss_family == AF_INET6)
            inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)address)->sin6_addr, host, sizeof(host));
        else
            inet_ntop(AF_INET, &((const struct sockaddr_in *)address)->sin_addr, host, sizeof(host));
        length = snprintf(line, sizeof(line), "gyre 1 tcp %s %u %" PRIx64 "\n", host, gy_address_port(address), nonce);
    }
    snprintf(aside, sizeof(aside), "%s.%" PRIx64, path, nonce);
    fd = open(aside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return gy_error_system(error, errno, "cannot create %s beside the meeting file", aside);
    errnum = write_line(fd, line, (size_t)length);
    if (close(fd) < 0 && !errnum) /* a network file system may report a full disk only here */
        errnum = errno;
    if (!errnum && rename(aside, path) < 0)
        errnum = errno;
    if (!errnum)
        return GYRE_SUCCESS;
    unlink(aside);
    return gy_error_system(error, errnum, "cannot write the meeting file %s", path);
}

static bool read_line(const char *path, bool own_only, char line[LINE_MOST], char *why_p, size_t why_bytes)
{
    struct stat about;
    ssize_t got;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0) {
        snprintf(why_p, why_bytes, "%s: %s", path, strerror(errno));
        return false;
    }
    if (own_only && (fstat(fd, &about) < 0 || about.st_uid != geteuid())) {
        snprintf(why_p, why_bytes, "%s belongs to another user, and there is no secret", path);
        close(fd);
        return false;
    }
    got = read(fd, line, LINE_MOST - 1);
    close(fd);
    if (got <= 0 || line[got - 1] != '\n') {
        snprintf(why_p, why_bytes, "%s holds no meeting address", path);
        return false;
    }
    line[got] = '\0';
    return true;
}

bool gy_rendezvous_read(const char *path, bool local_only, struct gy_endpoint *endpoint_p, uint64_t *nonce_p,
                        char *why_p, size_t why_bytes)
{
    char line[LINE_MOST], kind[8], where[64];
    struct gy_endpoint endpoint = {0};
    struct in_addr in;
    unsigned port;

    if (!read_line(path, local_only, line, why_p, why_bytes))
        return false;
    if (sscanf(line, "gyre 1 %7s %63s %u %" SCNx64, kind, where, &port, nonce_p) != 4 || port > 65535)
        goto garbage;
    endpoint.is_unix = strcmp(kind, "unix") == 0;
    if (endpoint.is_unix != local_only) {
        snprintf(why_p, why_bytes, "%s was written by a rank 0 that has %s secret, this rank has %s", path,
                 endpoint.is_unix ? "no" : "a", endpoint.is_unix ? "one" : "none");
        return false;
    }
    if (endpoint.is_unix) {
        memcpy(endpoint.name, where, sizeof(endpoint.name));
    } else if (inet_pton(AF_INET, where, &in) == 1) {
        endpoint.address.ss_family = AF_INET;
        ((struct sockaddr_in *)&endpoint.address)->sin_addr = in;
    } else if (inet_pton(AF_INET6, where, &((struct sockaddr_in6 *)&endpoint.address)->sin6_addr) == 1) {
        endpoint.address.ss_family = AF_INET6;
    } else {
        goto garbage;
    }
    if (!endpoint.is_unix)
        gy_address_set_port(&endpoint.address, (uint16_t)port);
    *endpoint_p = endpoint;
    return true;
garbage:
    snprintf(why_p, why_bytes, "%s holds no meeting address", path);
    return false;
}

bool gy_rendezvous_moved(const char *path, bool local_only, const struct gy_endpoint *endpoint)
{
    char why[320];
    struct gy_endpoint now;
    uint64_t nonce;

    if (!gy_rendezvous_read(path, local_only, &now, &nonce, why, sizeof(why)))
        return false;
    return now.is_unix ? strncmp(now.name, endpoint->name, sizeof(now.name)) != 0
                       : !gy_address_same_host(&now.address, &endpoint->address) ||
                             gy_address_port(&now.address) != gy_address_port(&endpoint->address);
}

void gy_rendezvous_remove(const char *path, uint64_t nonce)
{
    char line[LINE_MOST], why[320];
    uint64_t found = 0;

    if (read_line(path, true, line, why, sizeof(why)) && sscanf(line, "gyre 1 %*7s %*63s %*u %" SCNx64, &found) == 1 &&
        found == nonce)
        unlink(path);
}
