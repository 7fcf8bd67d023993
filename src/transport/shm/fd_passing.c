/* Passes the descriptors of the memory and of the wakeup sockets down a binomial tree of Unix sockets. Each local
 * rank asks once and answers at most log2 n times.
 *
 *        0                     parent(i) = i without its lowest set bit
 *      / | \
 *     1  2  4                  child --- connect, 8 bytes: its local index ---> parent
 *        |  | \                parent --- struct gy_segment_offer + descriptors --> child
 *        3  5  6 ...
 *
 * Abstract names need no file system. Both ends check SO_PEERCRED: another user's process can neither obtain the
 * memory nor offer one. Every wait runs the world's poller, so a failure meanwhile ends it with the failed rank's
 * name. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "membership/overlay.h"
#include "transport/shm/internal.h"

#define RETRY_NS (1 * GY_MILLISECOND)
#define SLICE_NS (50 * GY_MILLISECOND)
#define NEWS_NS (200 * GY_MILLISECOND) /* for a failure report to arrive */

struct request {
    uint64_t job;
    int32_t local;
    int32_t zero;
};

void gy_segment_fds_none(struct gy_segment_fds *fds_p)
{
    fds_p->memory = -1;
    for (int i = 0; i < GY_SENDERS; i++)
        fds_p->sender[i] = -1;
}

void gy_segment_fds_close(struct gy_segment_fds *fds)
{
    if (fds->memory >= 0)
        close(fds->memory);
    for (int i = 0; i < GY_SENDERS; i++)
        if (fds->sender[i] >= 0)
            close(fds->sender[i]);
    gy_segment_fds_none(fds);
}

static int parent_of(int local)
{
    return local & (local - 1);
}

/* Returns the children of `local`: local + 2^k below its lowest set bit (any for 0). */
static int children_of(int local, int locals)
{
    int count = 0;
    for (int step = 1; local + step < locals && (local == 0 || step < (local & -local)); step *= 2)
        count++;
    return count;
}

static bool same_user(int fd)
{
    struct ucred credentials;
    socklen_t bytes = sizeof(credentials);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) == 0 && credentials.uid == geteuid();
}

static void on_ready(void *owner, uint32_t events)
{
    (void)events;
    *(bool *)owner = true;
}

/* Returns the world's failure, or success. */
static gyre_status check_world(struct gy_world *world, struct gy_error *error)
{
    return world->overlay ? gy_overlay_check(world->overlay, error) : GYRE_SUCCESS;
}

/* Waits until `fd` (−1: none) is readable. GYRE_IN_PROGRESS: not before the deadline; any other failure is the
 * world's. */
static gyre_status await(struct gy_world *world, int fd, int64_t deadline, struct gy_error *error)
{
    bool ready = false;
    struct gy_watch watch = {.fd = fd, .events = EPOLLIN, .callback = on_ready, .owner = &ready};
    gyre_status status = fd >= 0 ? gy_poller_add(world->poller, &watch, error) : GYRE_SUCCESS;
    while (status == GYRE_SUCCESS && !ready) {
        int64_t left = deadline - gy_now();
        gy_poller_poll(world->poller, left < 0 ? 0 : left < SLICE_NS ? left : SLICE_NS);
        status = check_world(world, error);
        if (status == GYRE_SUCCESS && !ready && left <= 0)
            status = GYRE_IN_PROGRESS;
    }
    gy_poller_remove(world->poller, &watch);
    return status;
}

/* ---- child ---- */

static gyre_status ask_connect(struct gy_world *world, int64_t deadline, int *fd_p, struct gy_error *error)
{
    int parent = parent_of(world->local);
    struct sockaddr_un name;
    socklen_t bytes = gy_world_unix_name(world, world->locals[parent], "", &name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return gy_error_system(error, errno, "rank %d: socket for the shared memory of this host", world->rank);
    while (connect(fd, (struct sockaddr *)&name, bytes)) {
        int reason = errno;
        bool early = reason == ECONNREFUSED || reason == EAGAIN || reason == ENOENT || reason == EINTR;
        if (early && gy_now() < deadline) { /* the parent does not listen yet */
            gy_poller_poll(world->poller, RETRY_NS);
            gyre_status status = check_world(world, error);
            if (status == GYRE_SUCCESS)
                continue;
            close(fd);
            return status;
        }
        close(fd);
        if (!early)
            return gy_error_system(error, reason, "rank %d: connect to rank %d for shared memory", world->rank,
                                   world->locals[parent]);
        return gy_error_set(
            error, GYRE_PEER_UNREACHABLE, world->locals[parent],
            "rank %d did not offer its shared memory to rank %d in time; if these ranks are in different network "
            "namespaces, give each its own GYRE_HOST_ID",
            world->locals[parent], world->rank);
    }
    if (!same_user(fd)) {
        close(fd);
        return gy_error_set(
            error, GYRE_REFUSED, world->locals[parent],
            "the shared memory of rank %d is offered by a process of another user; run all ranks as one user, or give "
            "each its own GYRE_HOST_ID",
            world->locals[parent]);
    }
    *fd_p = fd;
    return GYRE_SUCCESS;
}

/* Room for one host's descriptors. */
union control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE((1 + GY_SENDERS) * sizeof(int))];
};

/* Takes the descriptors of a message; false: not the expected number, and those received are closed. */
static bool take_fds(struct msghdr *message, int senders, struct gy_segment_fds *fds_p)
{
    struct cmsghdr *header = CMSG_FIRSTHDR(message);
    gy_segment_fds_none(fds_p);
    if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
        return false;
    size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
        int *fd_p = i == 0 ? &fds_p->memory : &fds_p->sender[i - 1];
        memcpy(fd_p, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
    }
    if (count == 1 + (size_t)senders)
        return true;
    gy_segment_fds_close(fds_p);
    return false;
}

/* Reads the offer and its descriptors. None of them, and *cut_p, if this process had no room for all. Returns false
 * if the parent closed, or sent invalid data. */
static bool ask_receive(int socket, int senders, struct gy_segment_offer *offer_p, struct gy_segment_fds *fds_p,
                        bool *cut_p)
{
    union control control;
    struct iovec piece = {offer_p, sizeof(*offer_p)};
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
    ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    *cut_p = got >= 0 && (message.msg_flags & MSG_CTRUNC);
    if (got < 0)
        return false;
    (void)take_fds(&message, senders, fds_p);
    return got == (ssize_t)sizeof(*offer_p);
}

/* The parent has no segment. If another rank is the cause, the parent may say so before the world knows. The parent
 * must not be named for it: the failure report is on its way, or this rank reports the same one. */
static gyre_status refused(struct gy_world *world, int parent, const struct gy_segment_offer *offer,
                           struct gy_error *error)
{
    gyre_status status = gy_status_is_failure((uint32_t)offer->status) ? (gyre_status)offer->status : GYRE_PROTOCOL;
    if (offer->culprit < 0 || offer->culprit >= world->size || offer->culprit == parent)
        return gy_error_set(error, status, parent,
                            "rank %d has no shared memory for this host (%s); its own message says more", parent,
                            gyre_status_text(status));
    gyre_status heard = await(world, -1, gy_now() + NEWS_NS, error);
    if (heard != GYRE_IN_PROGRESS)
        return heard;
    return gy_error_set(error, status, offer->culprit,
                        "rank %d has no shared memory for this host because of rank %d (%s); its own message says more",
                        parent, offer->culprit, gyre_status_text(status));
}

/* One request and its answer. GYRE_IN_PROGRESS: the parent closed, or sent invalid data. */
static gyre_status ask_once(struct gy_world *world, int64_t deadline, struct gy_segment_offer *offer_p,
                            struct gy_segment_fds *fds_p, struct gy_error *error)
{
    int parent = world->locals[parent_of(world->local)];
    struct request request = {.job = world->job, .local = world->local};
    int socket = -1;
    bool cut = false, answered = false;
    gyre_status status = ask_connect(world, deadline, &socket, error);
    if (status != GYRE_SUCCESS)
        return status;
    if (send(socket, &request, sizeof(request), MSG_NOSIGNAL) == (ssize_t)sizeof(request) &&
        (status = await(world, socket, deadline, error)) == GYRE_SUCCESS)
        answered = ask_receive(socket, gy_segment_senders(world->nlocals), offer_p, fds_p, &cut) &&
                   offer_p->magic == GY_OFFER_MAGIC && offer_p->job == world->job &&
                   offer_p->local == parent_of(world->local);
    close(socket);
    if (!answered)
        return status == GYRE_SUCCESS ? GYRE_IN_PROGRESS : status;
    if (cut && offer_p->status == GYRE_SUCCESS)
        return gy_error_system(error, EMFILE, "rank %d cannot take the shared memory of this host from rank %d",
                               world->rank, parent);
    if (offer_p->status == GYRE_SUCCESS && fds_p->memory >= 0)
        return GYRE_SUCCESS;
    return refused(world, parent, offer_p, error);
}

/* A parent that closed took this slow rank for an unknown process, and is asked again. Or it has failed, and the
 * world's failure report, which may come later, names the failed rank. */
gyre_status gy_segment_ask(struct gy_world *world, int64_t deadline, struct gy_segment_offer *offer_p,
                           struct gy_segment_fds *fds_p, struct gy_error *error)
{
    int parent = world->locals[parent_of(world->local)];
    gy_segment_fds_none(fds_p);
    gyre_status status = ask_once(world, deadline, offer_p, fds_p, error);
    while (status == GYRE_IN_PROGRESS && gy_now() < deadline) {
        gy_segment_fds_close(fds_p);
        status = await(world, -1, gy_now() + RETRY_NS, error);
        if (status == GYRE_IN_PROGRESS)
            status = ask_once(world, deadline, offer_p, fds_p, error);
    }
    if (status == GYRE_IN_PROGRESS)
        status = gy_error_set(error, GYRE_PEER_UNREACHABLE, parent,
                              "rank %d did not hand the shared memory of this host to rank %d: it died, or is stuck",
                              parent, world->rank);
    if (status != GYRE_SUCCESS)
        gy_segment_fds_close(fds_p);
    return status;
}

/* ---- parent ---- */

gyre_status gy_segment_listen(struct gy_world *world, int *listener_p, struct gy_error *error)
{
    if (children_of(world->local, world->nlocals) == 0) {
        *listener_p = -1;
        return GYRE_SUCCESS;
    }
    struct sockaddr_un name;
    socklen_t bytes = gy_world_unix_name(world, world->rank, "", &name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return gy_error_system(error, errno, "rank %d: socket for the shared memory of this host", world->rank);
    if (bind(fd, (struct sockaddr *)&name, bytes) || listen(fd, 64)) {
        int reason = errno;
        close(fd);
        return gy_error_system(error, reason, "rank %d: bind of the socket that hands on shared memory", world->rank);
    }
    *listener_p = fd;
    return GYRE_SUCCESS;
}

/* Returns 0, or an errno. */
static int offer_send(int socket, const struct gy_segment_fds *fds, int senders, const struct gy_segment_offer *offer)
{
    union control control;
    struct gy_segment_offer copy = *offer;
    struct iovec piece = {&copy, sizeof(copy)};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    if (fds) {
        size_t bytes = (1 + (size_t)senders) * sizeof(int);
        memset(&control, 0, sizeof(control));
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(bytes);
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(bytes);
        memcpy(CMSG_DATA(&control.header), &fds->memory, sizeof(int));
        memcpy(CMSG_DATA(&control.header) + sizeof(int), fds->sender, bytes - sizeof(int));
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL) == (ssize_t)sizeof(copy) ? 0 : errno;
}

/* Serves one caller: sends the offer if it is the child that it claims to be. Returns its local index. −1: an
 * unknown process; or a child whose kernel refused the descriptors (*errnum_p), which asks again. A child's failure
 * is detected by the overlay. */
static int serve_one(struct gy_world *world, int socket, const struct gy_segment_fds *fds,
                     const struct gy_segment_offer *offer, int64_t deadline, int *errnum_p)
{
    struct request request;
    struct gy_error ignored = {.rank = -1, .quiet = true};
    int64_t timeout = gy_now() + GY_SECOND; /* children send at once */
    if (!same_user(socket) || await(world, socket, timeout < deadline ? timeout : deadline, &ignored) != GYRE_SUCCESS ||
        recv(socket, &request, sizeof(request), MSG_DONTWAIT) != (ssize_t)sizeof(request) ||
        request.job != world->job || request.local <= 0 || request.local >= world->nlocals ||
        parent_of(request.local) != world->local)
        return -1;
    *errnum_p = offer_send(socket, fds, gy_segment_senders(world->nlocals), offer);
    return *errnum_p ? -1 : request.local;
}

gyre_status gy_segment_serve(struct gy_world *world, int listener, const struct gy_segment_fds *fds,
                             const struct gy_segment_offer *offer, int64_t deadline, struct gy_error *error)
{
    int children = children_of(world->local, world->nlocals), errnum = 0;
    uint64_t served = 0; /* bit k: child local + 2^k */
    while (__builtin_popcountll(served) < children) {
        gyre_status status = await(world, listener, deadline, error);
        if (status != GYRE_SUCCESS && status != GYRE_IN_PROGRESS)
            return status;
        if (status == GYRE_IN_PROGRESS) {
            int missing = world->locals[world->local + (1 << __builtin_ctzll(~served))];
            if (errnum && errnum != EPIPE && errnum != ECONNRESET)
                return gy_error_system(error, errnum, "rank %d cannot hand on the shared memory of this host",
                                       world->rank);
            return gy_error_set(
                error, GYRE_PEER_UNREACHABLE, missing,
                "rank %d did not ask rank %d for the shared memory of this host in time: it died, or is stuck", missing,
                world->rank);
        }
        int socket = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (socket < 0) {
            if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
                continue;
            return gy_error_system(error, errno, "rank %d: accept of a local rank that wants shared memory",
                                   world->rank);
        }
        int child = serve_one(world, socket, fds, offer, deadline, &errnum);
        if (child > 0)
            served |= UINT64_C(1) << __builtin_ctz((unsigned)(child - world->local));
        close(socket);
    }
    return GYRE_SUCCESS;
}
