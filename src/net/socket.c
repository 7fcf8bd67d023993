/* TCP and abstract Unix sockets behind one interface.
 *
 * The loss of a host is detected in two ways: keep-alive probes an idle connection, and TCP_USER_TIMEOUT bounds
 * unacknowledged data; both use peer_timeout. But the kernel counts data behind a closed TCP receive window as
 * unacknowledged, even if the peer's host answers, and a computing rank reads nothing. So on connections that carry
 * more than control messages TCP_USER_TIMEOUT is disabled, and the sender checks now and then whether its data are
 * acknowledged. An abstract Unix socket has no file and no permissions, so both ends check the other's user
 * (SO_PEERCRED). */
#include "net/socket.h"

#include <errno.h>
#include <limits.h>
#include <linux/tcp.h> /* the C library's own has an older tcp_info */
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/clock.h"
#include "net/address.h"

#define STATE_CLOSED 7  /* tcpi_state after a reset: TCP_CLOSE of <netinet/tcp.h> */
#define BACKLOG 4096    /* ranks that knock while this one computes; the kernel knows its own bound */
#define IDLE_MOST 32767 /* seconds: the kernel refuses more */
#define PROBES 3        /* unanswered probes after which the host is gone */

const char *gy_endpoint_format(const struct gy_endpoint *endpoint, char *text_p, size_t bytes)
{
    char text[GY_ADDRESS_TEXT];

    if (endpoint->is_unix)
        snprintf(text_p, bytes, "the local socket %s", endpoint->name);
    else
        snprintf(text_p, bytes, "tcp://%s", gy_address_format(&endpoint->address, text));
    return text_p;
}

void gy_endpoint_of_user(const struct sockaddr_storage *address, struct gy_endpoint *endpoint_p)
{
    char text[GY_ADDRESS_TEXT];

    endpoint_p->is_unix = true;
    snprintf(endpoint_p->name, sizeof(endpoint_p->name), "gyre-%u-%.48s", (unsigned)geteuid(),
             gy_address_format(address, text));
}

static socklen_t place_encode(const struct gy_endpoint *endpoint, struct sockaddr_storage *address_p)
{
    struct sockaddr_un *un = (struct sockaddr_un *)address_p;
    size_t length = strnlen(endpoint->name, sizeof(endpoint->name) - 1);

    if (!endpoint->is_unix) {
        *address_p = endpoint->address;
        return gy_address_bytes(address_p);
    }
    memset(address_p, 0, sizeof(*address_p));
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path + 1, endpoint->name, length); /* the leading zero makes it abstract */
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

static int socket_of(const struct gy_endpoint *endpoint)
{
    return socket(endpoint->is_unix ? AF_UNIX : endpoint->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
                  0);
}

static int close_with(int fd, int errnum)
{
    close(fd);
    errno = errnum;
    return -1;
}

int gy_socket_listen(struct gy_endpoint *endpoint)
{
    struct sockaddr_storage address;
    socklen_t bytes = place_encode(endpoint, &address), own = sizeof(address);
    int fd = socket_of(endpoint), on = 1, off = 0;

    if (fd < 0)
        return -1;
    if (!endpoint->is_unix)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (address.ss_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)); /* the wildcard is meant for IPv4 too */
    if (bind(fd, (struct sockaddr *)&address, bytes) < 0 || listen(fd, BACKLOG) < 0)
        return close_with(fd, errno);
    if (!endpoint->is_unix && getsockname(fd, (struct sockaddr *)&address, &own) == 0)
        gy_address_set_port(&endpoint->address, gy_address_port(&address));
    return fd;
}

int gy_socket_connect(const struct gy_endpoint *endpoint)
{
    return gy_socket_connect_from(endpoint, NULL);
}

int gy_socket_connect_from(const struct gy_endpoint *endpoint, const struct sockaddr_storage *from)
{
    struct sockaddr_storage address;
    socklen_t bytes = place_encode(endpoint, &address);
    int fd = socket_of(endpoint);

    if (fd < 0)
        return -1;
    if (from && bind(fd, (const struct sockaddr *)from, gy_address_bytes(from)) < 0)
        return close_with(fd, errno);
    if (connect(fd, (struct sockaddr *)&address, bytes) < 0 && errno != EINPROGRESS)
        return close_with(fd, errno);
    return fd;
}

static bool met_itself(int fd)
{
    struct sockaddr_storage own, peer;
    socklen_t own_bytes = sizeof(own), peer_bytes = sizeof(peer);

    memset(&own, 0, sizeof(own));
    memset(&peer, 0, sizeof(peer));
    return getsockname(fd, (struct sockaddr *)&own, &own_bytes) == 0 &&
           getpeername(fd, (struct sockaddr *)&peer, &peer_bytes) == 0 && own.ss_family != AF_UNIX &&
           own_bytes == peer_bytes && memcmp(&own, &peer, own_bytes) == 0;
}

int gy_socket_check(int fd)
{
    int errnum = 0, domain = 0;
    socklen_t bytes = sizeof(errnum), domain_bytes = sizeof(domain);
    struct ucred peer;
    socklen_t peer_bytes = sizeof(peer);

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &errnum, &bytes) < 0)
        return errno;
    if (errnum)
        return errnum;
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &domain_bytes) < 0)
        return errno;
    if (domain != AF_UNIX)
        return met_itself(fd) ? ECONNREFUSED : 0; /* a port of our own range may connect to itself before rank 0
                                                   * listens */
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_bytes) < 0)
        return errno;
    return peer.uid == geteuid() ? 0 : EPERM;
}

void gy_socket_tune(int fd, int64_t peer_timeout_ns)
{
    int64_t quarter = peer_timeout_ns / GY_SECOND / 4, silence = peer_timeout_ns / GY_MILLISECOND;
    int on = 1, probes = PROBES, seconds = (int)(quarter < IDLE_MOST ? quarter : IDLE_MOST);
    int milliseconds = (int)(silence < INT_MAX ? silence : INT_MAX);

    if (seconds < 1)
        seconds = 1;
    /* Failures are harmless here: on a Unix socket the options do not exist, and death is an end of file. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof(seconds));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof(seconds));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof(milliseconds));
}

void gy_socket_await_readers(int fd)
{
    int none = 0;

    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &none, sizeof(none));
}

bool gy_socket_is_unanswered(int fd, int64_t ns)
{
    struct tcp_info info;
    socklen_t bytes = sizeof(info);

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0 ||
        bytes < offsetof(struct tcp_info, tcpi_last_ack_recv) + sizeof(info.tcpi_last_ack_recv))
        return false;
    /* Probes of a closed TCP receive window may be two minutes apart: there their number counts. */
    bool waits = info.tcpi_unacked > 0 || info.tcpi_probes >= PROBES;
    return waits && (int64_t)info.tcpi_last_ack_recv * GY_MILLISECOND > ns;
}

bool gy_socket_delivered(int fd)
{
    struct tcp_info info;
    socklen_t bytes = sizeof(info), room = sizeof(int);
    int errnum = 0;

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &errnum, &room) != 0 || errnum != 0)
        return false;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0)
        return true;
    return info.tcpi_state != STATE_CLOSED && info.tcpi_unacked == 0;
}

bool gy_socket_is_stuck(int fd, int64_t now, int64_t ns, struct gy_socket_progress *seen)
{
    struct tcp_info info;
    socklen_t bytes = sizeof(info);

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0 ||
        bytes < offsetof(struct tcp_info, tcpi_bytes_acked) + sizeof(info.tcpi_bytes_acked))
        return false;
    if (info.tcpi_unacked == 0 || info.tcpi_backoff == 0) {
        seen->since = 0;
        return false;
    }
    if (seen->since == 0 || seen->acked != info.tcpi_bytes_acked)
        *seen = (struct gy_socket_progress){info.tcpi_bytes_acked, now};
    /* A host that answers nothing at all is unanswered, and not stuck. */
    return now - seen->since > ns && (int64_t)info.tcpi_last_ack_recv * GY_MILLISECOND <= ns;
}
