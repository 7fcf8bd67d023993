/* connecting ──writable──► handshake ──handshake done──► callback(fd)
 *     └────────error────────┴──────refused, EOF──────► callback(errnum)
 *
 * Never reads more than the handshake wants, since what follows belongs to the next user of the socket. Ends exactly
 * once, and as its last action, because the callback may free it. */
#include "net/handshake_io.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "core/clock.h"

#define UNANSWERED_LEAST 3
#define UNANSWERED_TIMEOUT (GY_SECOND / 5)

static void finish(struct gy_handshake_io *handshake_io, int errnum)
{
    gy_poller_remove(handshake_io->poller, &handshake_io->watch);
    if (errnum != 0 || handshake_io->handshake.state != GY_HANDSHAKE_DONE) {
        close(handshake_io->fd);
        handshake_io->fd = -1;
    }
    handshake_io->done(handshake_io->user, handshake_io, errnum);
}

/* Sends the handshake's output. Returns an errno, or 0; EAGAIN if some is left. */
static int speak(struct gy_handshake_io *handshake_io)
{
    const uint8_t *bytes;
    size_t count;

    while ((count = gy_handshake_take(&handshake_io->handshake, &bytes)) > 0) {
        ssize_t sent = send(handshake_io->fd, bytes, count, MSG_NOSIGNAL);

        if (sent < 0)
            return errno == EINTR ? EAGAIN : errno;
        gy_handshake_taken(&handshake_io->handshake, (size_t)sent);
    }
    return 0;
}

/* Reads what the handshake wants now. 0: some came; EAGAIN: nothing there. */
static int listen_once(struct gy_handshake_io *handshake_io)
{
    uint8_t bytes[GY_HANDSHAKE_BYTES_MAX];
    size_t want = gy_min_size(gy_handshake_wants(&handshake_io->handshake), sizeof(bytes));
    ssize_t got = recv(handshake_io->fd, bytes, want, 0);

    if (got < 0)
        return errno == EINTR ? EAGAIN : errno;
    if (got == 0) {
        const struct gy_handshake *handshake = &handshake_io->handshake;

        handshake_io->unanswered = handshake->initiator && handshake->step == 2 && handshake->in_bytes == 0 &&
                                   gy_socket_delivered(handshake_io->fd);
        return ECONNRESET;
    }
    gy_handshake_feed(&handshake_io->handshake, bytes, (size_t)got);
    return 0;
}

static void on_event(void *owner, uint32_t events)
{
    struct gy_handshake_io *handshake_io = owner;
    int errnum;

    if (handshake_io->connecting) {
        if (!(events & (EPOLLOUT | EPOLLERR | EPOLLHUP)))
            return;
        errnum = gy_socket_check(handshake_io->fd);
        if (errnum) {
            finish(handshake_io, errnum);
            return;
        }
        handshake_io->connecting = false;
    }
    for (;;) {
        errnum = speak(handshake_io);
        if (errnum == EAGAIN) {
            gy_poller_change(handshake_io->poller, &handshake_io->watch, EPOLLIN | EPOLLOUT);
            return;
        }
        if (errnum || handshake_io->handshake.state != GY_HANDSHAKE_RUNNING)
            break;
        errnum = listen_once(handshake_io);
        if (errnum == EAGAIN) {
            gy_poller_change(handshake_io->poller, &handshake_io->watch, EPOLLIN);
            return;
        }
        if (errnum)
            break;
    }
    finish(handshake_io, handshake_io->handshake.state == GY_HANDSHAKE_REFUSED ? 0 : errnum);
}

bool gy_handshake_io_start(struct gy_handshake_io *handshake_io, struct gy_poller *poller, int fd, bool connecting,
                           gy_handshake_io_func done, void *user)
{
    handshake_io->poller = poller;
    handshake_io->fd = fd;
    handshake_io->connecting = connecting;
    handshake_io->started = gy_now();
    handshake_io->done = done;
    handshake_io->user = user;
    handshake_io->watch = (struct gy_watch){
        .fd = fd, .events = EPOLLIN | EPOLLOUT, .callback = on_event, .owner = handshake_io};
    if (gy_poller_add(poller, &handshake_io->watch, NULL) == GYRE_SUCCESS)
        return true;
    close(fd);
    handshake_io->fd = -1;
    return false;
}

void gy_handshake_io_introduce(int fd, struct gy_handshake *handshake)
{
    const uint8_t *bytes;
    size_t count = gy_handshake_take(handshake, &bytes);
    ssize_t sent = count > 0 ? send(fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;

    gy_handshake_taken(handshake, sent > 0 ? (size_t)sent : 0);
}

void gy_handshake_io_cancel(struct gy_handshake_io *handshake_io)
{
    if (handshake_io->fd < 0)
        return;
    if (handshake_io->handshake.initiator && handshake_io->handshake.state == GY_HANDSHAKE_RUNNING)
        gy_handshake_io_introduce(handshake_io->fd, &handshake_io->handshake);
    gy_poller_remove(handshake_io->poller, &handshake_io->watch);
    close(handshake_io->fd);
    handshake_io->fd = -1;
}

bool gy_handshake_io_is_of_another_secret(const struct gy_handshake_io *handshake_io, struct gy_unanswered *unanswered)
{
    if (!handshake_io->unanswered) {
        unanswered->attempts = 0;
        return false;
    }
    if (unanswered->attempts++ == 0)
        unanswered->since = gy_now();
    return unanswered->attempts >= UNANSWERED_LEAST && gy_now() - unanswered->since >= UNANSWERED_TIMEOUT;
}
