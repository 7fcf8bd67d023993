/* Sockets as gyre wants them: close-on-exec, non-blocking, no delay, dead hosts noticed by the kernel. */
#ifndef GY_NET_SOCKET_H
#define GY_NET_SOCKET_H

#include <sys/socket.h>

#include "core/base.h"
#include "core/error.h"

/* Where a listener is: a TCP address, or an abstract Unix socket that only processes of the same user may use. */
struct gy_endpoint {
    bool is_unix;                    /* abstract Unix socket `name` */
    struct sockaddr_storage address; /* TCP */
    char name[64];
};

/* "tcp://10.0.0.1:5" or "the local socket gyre-…". */
const char *gy_endpoint_format(const struct gy_endpoint *endpoint, char *text_p, size_t bytes);
/* The Unix socket that represents a TCP address where there is no secret: of this user. */
void gy_endpoint_of_user(const struct sockaddr_storage *address, struct gy_endpoint *endpoint_p);
/* Listens; a port 0 is replaced by the one that the kernel chose. −1 and errno. */
int gy_socket_listen(struct gy_endpoint *endpoint);
/* Begins to connect: the descriptor, or −1 and errno. */
int gy_socket_connect(const struct gy_endpoint *endpoint);
/* The same from `from`, an address of ours (port 0); NULL: from any. */
int gy_socket_connect_from(const struct gy_endpoint *endpoint, const struct sockaddr_storage *from);
/* After the connection is made: 0, or an errno. A TCP socket connected to itself is ECONNREFUSED; a Unix peer of
 * another user EPERM. */
int gy_socket_check(int fd);
/* Returns true if no error is pending and, for TCP, the peer's host has acknowledged all data sent. A process that
 * closes its socket before all data have arrived answers them with a reset instead. */
bool gy_socket_delivered(int fd);
/* No delay, keep-alive, user timeout. Harmless on Unix sockets. */
void gy_socket_tune(int fd, int64_t peer_timeout_ns);
/* From here on the peer may leave what is sent unread as long as it likes: no user timeout. */
void gy_socket_await_readers(int fd);
/* Returns true if the peer's host has answered nothing for `ns`, although an answer is due. Trust it only if it is true
 * twice: a machine that was suspended could not receive. */
bool gy_socket_is_unanswered(int fd, int64_t ns);
/* What gy_socket_is_stuck has seen of a connection; zeros at first. */
struct gy_socket_progress {
    uint64_t acked; /* bytes */
    int64_t since;  /* when they were seen to be so many first; 0: nothing is stuck */
};
/* Returns true if the kernel retransmits the oldest unacknowledged byte again and again and no byte has been
 * acknowledged for `ns`. The peer's host may still answer keep-alive probes and short packets: the path drops long
 * packets. A peer that keeps its TCP receive window closed is not stuck. */
bool gy_socket_is_stuck(int fd, int64_t now, int64_t ns, struct gy_socket_progress *seen);

#endif
