/* connecting ──writable──► greeting ──handshake done──► callback(fd)
 *      └────────error────────┴──────refused, EOF──────► callback(errnum)
 *
 * Reads never more than the handshake wants, since what follows belongs to whoever gets the socket. Ends exactly once,
 * and as the last thing it does, because the callback may free it. */
#include "net/handshake_io.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "core/clock.h"

#define UNANSWERED_LEAST 3
#define UNANSWERED_PATIENCE (GY_SECOND / 5)

static void finish(struct gy_greeting *greeting, int errnum)
{
    gy_poller_remove(greeting->poller, &greeting->watch);
    if (errnum != 0 || greeting->handshake.state != GY_HANDSHAKE_DONE) {
        close(greeting->fd);
        greeting->fd = -1;
    }
    greeting->done(greeting->user, greeting, errnum);
}

/* Sends what the handshake says. An errno, or 0; EAGAIN if some is left. */
static int speak(struct gy_greeting *greeting)
{
    const uint8_t *bytes;
    size_t count;

    while ((count = gy_handshake_take(&greeting->handshake, &bytes)) > 0) {
        ssize_t sent = send(greeting->fd, bytes, count, MSG_NOSIGNAL);

        if (sent < 0)
            return errno == EINTR ? EAGAIN : errno;
        gy_handshake_taken(&greeting->handshake, (size_t)sent);
    }
    return 0;
}

/* Reads what the handshake wants now. 0: some came; EAGAIN: nothing there. */
static int listen_once(struct gy_greeting *greeting)
{
    uint8_t bytes[GY_HANDSHAKE_BYTES_MAX];
    size_t want = gy_min_size(gy_handshake_wants(&greeting->handshake), sizeof(bytes));
    ssize_t got = recv(greeting->fd, bytes, want, 0);

    if (got < 0)
        return errno == EINTR ? EAGAIN : errno;
    if (got == 0) {
        const struct gy_handshake *handshake = &greeting->handshake;

        greeting->unanswered = handshake->dialer && handshake->step == 2 && handshake->in_bytes == 0 &&
                               gy_socket_delivered(greeting->fd);
        return ECONNRESET;
    }
    gy_handshake_feed(&greeting->handshake, bytes, (size_t)got);
    return 0;
}

static void on_event(void *owner, uint32_t events)
{
    struct gy_greeting *greeting = owner;
    int errnum;

    if (greeting->connecting) {
        if (!(events & (EPOLLOUT | EPOLLERR | EPOLLHUP)))
            return;
        errnum = gy_socket_check(greeting->fd);
        if (errnum) {
            finish(greeting, errnum);
            return;
        }
        greeting->connecting = false;
    }
    for (;;) {
        errnum = speak(greeting);
        if (errnum == EAGAIN) {
            gy_poller_change(greeting->poller, &greeting->watch, EPOLLIN | EPOLLOUT);
            return;
        }
        if (errnum || greeting->handshake.state != GY_HANDSHAKE_RUNNING)
            break;
        errnum = listen_once(greeting);
        if (errnum == EAGAIN) {
            gy_poller_change(greeting->poller, &greeting->watch, EPOLLIN);
            return;
        }
        if (errnum)
            break;
    }
    finish(greeting, greeting->handshake.state == GY_HANDSHAKE_REFUSED ? 0 : errnum);
}

bool gy_greeting_start(struct gy_greeting *greeting, struct gy_poller *poller, int fd, bool connecting,
                       gy_greeting_func done, void *user)
{
    greeting->poller = poller;
    greeting->fd = fd;
    greeting->connecting = connecting;
    greeting->started = gy_now();
    greeting->done = done;
    greeting->user = user;
    greeting->watch = (struct gy_watch){
        .fd = fd, .events = EPOLLIN | EPOLLOUT, .callback = on_event, .owner = greeting};
    if (gy_poller_add(poller, &greeting->watch, NULL) == GYRE_SUCCESS)
        return true;
    close(fd);
    greeting->fd = -1;
    return false;
}

void gy_greeting_introduce(int fd, struct gy_handshake *handshake)
{
    const uint8_t *bytes;
    size_t count = gy_handshake_take(handshake, &bytes);
    ssize_t sent = count > 0 ? send(fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;

    gy_handshake_taken(handshake, sent > 0 ? (size_t)sent : 0);
}

void gy_greeting_cancel(struct gy_greeting *greeting)
{
    if (greeting->fd < 0)
        return;
    if (greeting->handshake.dialer && greeting->handshake.state == GY_HANDSHAKE_RUNNING)
        gy_greeting_introduce(greeting->fd, &greeting->handshake);
    gy_poller_remove(greeting->poller, &greeting->watch);
    close(greeting->fd);
    greeting->fd = -1;
}

bool gy_greeting_is_of_another_secret(const struct gy_greeting *greeting, struct gy_unanswered *unanswered)
{
    if (!greeting->unanswered) {
        unanswered->attempts = 0;
        return false;
    }
    if (unanswered->attempts++ == 0)
        unanswered->since = gy_now();
    return unanswered->attempts >= UNANSWERED_LEAST && gy_now() - unanswered->since >= UNANSWERED_PATIENCE;
}
