#include "meddler.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define EACH 3
#define REFUSALS 5
#define LENGTH_AT 12 /* in a frame */

struct meddler meddler = {.fd = -1};
struct meddler_naps meddler_naps;

static _Atomic int link_fd = -1;    /* meddler.fd, for threads that sleep */
static _Atomic unsigned int asleep; /* threads */

static bool meddling;
static unsigned calls, refusals;

void meddle(bool on)
{
    meddling = on;
}

static bool is_frame(const void *bytes, size_t count)
{
    return count >= 2 && memcmp(bytes, "gy", 2) == 0;
}

/* See frame.c. */
static void note_length(const struct iovec *header)
{
    uint32_t bytes;
    if (header->iov_len < LENGTH_AT + sizeof bytes)
        return;
    memcpy(&bytes, (const char *)header->iov_base + LENGTH_AT, sizeof bytes);
    bytes = le32toh(bytes);
    meddler.longest = bytes > meddler.longest ? bytes : meddler.longest;
}

static ssize_t really_send(int fd, const struct msghdr *message, int flags)
{
    return syscall(SYS_sendmsg, fd, message, flags);
}

static size_t length_of(const struct msghdr *message)
{
    size_t length = 0;
    for (size_t i = 0; i < message->msg_iovlen; i++)
        length += message->msg_iov[i].iov_len;
    return length;
}

/* The rest of a frame that was begun goes before anything else. */
static ssize_t send_rest(int fd, const struct msghdr *message, int flags)
{
    if (refusals > 0) {
        refusals--;
        errno = EAGAIN;
        return -1;
    }
    ssize_t sent = really_send(fd, message, flags);
    if (sent > 0)
        meddler.owed -= (size_t)sent < meddler.owed ? (size_t)sent : meddler.owed;
    return sent;
}

/* No more than its first bytes. */
static ssize_t send_part(int fd, const struct msghdr *message, int flags)
{
    size_t length = length_of(message), first = message->msg_iov[0].iov_len;
    size_t most = calls % 2 && first < length ? first + (length - first) / 2 : first / 2 + 1;
    struct iovec pieces[2] = {message->msg_iov[0], {NULL, 0}};
    struct msghdr part = {.msg_iov = pieces, .msg_iovlen = 1};
    if (most < first) {
        pieces[0].iov_len = most;
    } else if (message->msg_iovlen > 1) {
        pieces[1] = message->msg_iov[1];
        pieces[1].iov_len = most - first < pieces[1].iov_len ? most - first : pieces[1].iov_len;
        part.msg_iovlen = 2;
    }
    ssize_t sent = really_send(fd, &part, flags);
    if (sent > 0 && (size_t)sent < length) {
        meddler.owed = length - (size_t)sent;
        meddler.parts++;
        refusals = calls % REFUSALS;
    }
    return sent;
}

static ssize_t send_any(int fd, const struct msghdr *message, int flags)
{
    ssize_t sent;
    if (meddler.owed > 0 && fd == meddler.fd) {
        sent = send_rest(fd, message, flags);
    } else if (message->msg_iovlen > 0 && is_frame(message->msg_iov[0].iov_base, message->msg_iov[0].iov_len)) {
        meddler.fd = fd;
        link_fd = fd;
        note_length(message->msg_iov);
        sent = meddling && ++calls % EACH
        == 0 ? send_part(fd, message, flags) : really_send(fd, message, flags);
    } else {
        return really_send(fd, message, flags);
    }
    meddler.sends += sent > 0;
    return sent;
}

int meddler_wakes_at(void)
{
    int bytes = 0;
    socklen_t room = sizeof bytes;
    return getsockopt(link_fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, &room) == 0 ? bytes : 0;
}

/* The setter looks for sleepers afterwards, and a rank that falls asleep counts as one before it looks: of two that
 * meet one sees it. */
static void fall_asleep(void)
{
    asleep++;
    meddler_naps.begun++;
    meddler_naps.deaf += meddler_wakes_at() > QUIET_BYTES;
}

static int awake(int result)
{
    int error = errno, bytes = 0;
    asleep--;
    meddler_naps.heard += result > 0 && ioctl(link_fd, FIONREAD, &bytes) == 0 && bytes > 0;
    errno = error;
    return result;
}

static ssize_t counted(int fd, ssize_t got)
{
    meddler.receives += fd == meddler.fd && got > 0;
    meddler.misses += fd == meddler.fd && got < 0 && errno == EAGAIN;
    return got;
}

#pragma GCC visibility push(default) /* libgyre must find these */

ssize_t send(int fd, const void *bytes, size_t count, int flags)
{
    struct iovec piece = {(void *)(uintptr_t)bytes, count};
    return send_any(fd, &(struct msghdr){.msg_iov = &piece, .msg_iovlen = 1}, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    return send_any(fd, message, flags);
}

ssize_t recv(int fd, void *bytes, size_t count, int flags)
{
    return counted(fd, syscall(SYS_recvfrom, fd, bytes, count, flags, NULL, NULL));
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    return counted(fd, syscall(SYS_recvmsg, fd, message, flags));
}

int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    struct timespec timeout = {timeout_ms / 1000, (long)(timeout_ms % 1000) * 1000000};
    meddler.sleeps++;
    return (int)syscall(SYS_ppoll, fds, count, timeout_ms < 0 ? NULL : &timeout, NULL, 0);
}

int epoll_wait(int fd, struct epoll_event *events, int count, int timeout_ms)
{
    meddler.sleeps++;
    if (timeout_ms == 0)
        return (int)syscall(SYS_epoll_pwait, fd, events, count, 0, NULL, 0);
    fall_asleep();
    return awake((int)syscall(SYS_epoll_pwait, fd, events, count, timeout_ms, NULL, 0));
}

int epoll_pwait2(int fd, struct epoll_event *events, int count, const struct timespec *timeout, const sigset_t *mask)
{
    fall_asleep();
    return awake((int)syscall(SYS_epoll_pwait2, fd, events, count, timeout, mask, _NSIG / 8));
}

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
    struct timespec left = timeout ? *timeout : (struct timespec){0};
    fall_asleep();
    return awake((int)syscall(SYS_ppoll, fds, count, timeout ? &left : NULL, mask, _NSIG / 8));
}

int setsockopt(int fd, int level, int option, const void *value, socklen_t bytes)
{
    int result = (int)syscall(SYS_setsockopt, fd, level, option, value, bytes);
    if (level == SOL_SOCKET && option == SO_RCVLOWAT)
        meddler_naps.deaf += asleep > 0 && fd == link_fd && meddler_wakes_at() > QUIET_BYTES;
    return result;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    meddler.clocks++;
    return (int)syscall(SYS_clock_gettime, clock, time);
}

#pragma GCC visibility pop
