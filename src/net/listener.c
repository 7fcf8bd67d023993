/* backlog ──accept──► handshake (<= 64, <= 5 s each) ──authenticated──► callback of its purpose, or kept for it
 *                         └── refused, late, gone: closed, and one line in the log; at most 8 lines a minute, so that
 *                             unauthenticated peers cannot fill a disk
 *
 * With 64 handshakes in progress (or `most` connections, held ones included), a handshake older than half a second is
 * dropped to free a slot. Otherwise new inbound connections wait in the kernel's backlog.
 *
 * `most` is set at bootstrap. There a rank waits for this listener only, sends message 1 as soon as it is connected,
 * and reconnects if it is dropped. So an inbound connection without a whole, authenticated message 1 after a tenth of a
 * second is dropped for another. Unauthenticated peers then cannot keep a rank from bootstrap, however many precede it
 * in the backlog.
 *
 * A timer runs only during a handshake, or while a connection could not be accepted for want of a descriptor. Kept
 * inbound connections are authenticated; of each (rank, purpose) only the newest is kept. */
#include "net/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "core/secret_memory.h"

#define TICK_NS 250000000L
#define TICK_OVERSUBSCRIBED_NS 40000000L /* where the unproved make room */
#define UNPROVED (100 * GY_MILLISECOND)
#define SILENCE (GY_SECOND / 2)
#define TICKS_LEAST 3 /* an inbound connection's time is over only when so many have found it waiting, */
#define TICKED_LEAST (TICKS_LEAST * TICK_NS) /* for so long, after message 1: a rank that was paused received nothing */
#define NOTES 8                              /* log lines about unauthenticated peers, per ... */
#define NOTES_EVERY (60 * GY_SECOND)
#define STARVATION GY_SECOND /* descriptors may be scarce for a moment */

struct gy_listener {
    struct gy_listener_env env;
    uint8_t *key; /* secret memory, like the handshakes */
    int fd, timer;
    long tick; /* nanoseconds from one to the next of the timer's; 0: it does not run */
    struct gy_watch watch, timer_watch;
    struct gy_handshake_io *handshakes; /* newest first */
    int handshake_count;
    int held; /* connections whose callback has not released them; counted only if env.most is set */
    struct gy_handshake_io *kept; /* handshake done, and no callback for their purpose yet */
    gy_listener_func on[GY_PURPOSES];
    void *user[GY_PURPOSES];
    gy_listener_refused_func refused;
    void *refused_user;
    gy_listener_no_memory_func no_memory;
    void *no_memory_user;
    int64_t noted_since; /* the minute of `notes` lines; `unnoted` were too many for it */
    unsigned notes, unnoted;
    int64_t no_memory_since; /* when accept first failed for want of something, 0: it did not */
};

gyre_status gy_listener_create(int fd, struct gy_listener **listener_p, struct gy_error *error)
{
    struct gy_listener *listener = gy_alloc_zero(1, sizeof(*listener));

    if (listener)
        listener->key = gy_secret_alloc(GY_HANDSHAKE_KEY_BYTES, GY_SECRET_WIPED);
    if (!listener || !listener->key) {
        close(fd);
        gy_free(listener);
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "no memory for a listener");
    }
    listener->fd = fd;
    listener->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (listener->timer < 0) {
        int errnum = errno;

        close(fd);
        gy_secret_free(listener->key);
        gy_free(listener);
        return gy_error_system(error, errnum, "cannot create a timer for the listener");
    }
    *listener_p = listener;
    return GYRE_SUCCESS;
}

static bool oversubscribed(const struct gy_listener *listener)
{
    return listener->env.most ? listener->handshake_count + listener->held >= listener->env.most
                              : listener->handshake_count >= GY_LISTENER_HANDSHAKES;
}

/* The timer runs during a handshake, or while a connection could not be accepted. */
static long wanted_tick(const struct gy_listener *listener)
{
    if (listener->handshake_count == 0 && !listener->no_memory_since)
        return 0;
    return listener->env.most && oversubscribed(listener) ? TICK_OVERSUBSCRIBED_NS : TICK_NS;
}

static void timer_set(struct gy_listener *listener, long ns)
{
    struct itimerspec every = {.it_value.tv_nsec = ns, .it_interval.tv_nsec = ns};

    if (ns == listener->tick)
        return;
    listener->tick = ns;
    timerfd_settime(listener->timer, 0, &every, NULL);
}

/* A new or closed connection may shorten the timer, but never lengthens it: a tick that is postponed again and again
 * would never come. */
static void timer_run(struct gy_listener *listener)
{
    long ns = wanted_tick(listener);

    if (listener->tick == 0 || ns < listener->tick)
        timer_set(listener, ns);
}

static void unlink_handshake(struct gy_listener *listener, struct gy_handshake_io *handshake_io)
{
    for (struct gy_handshake_io **at = &listener->handshakes; *at; at = &(*at)->next) {
        if (*at != handshake_io)
            continue;
        *at = handshake_io->next;
        listener->handshake_count--;
        break;
    }
    gy_poller_change(listener->env.poller, &listener->watch, EPOLLIN);
    timer_run(listener);
}

/* True if one more line about an unauthenticated peer may be logged. When logging resumes, reports how many were
 * suppressed. */
static bool may_note(struct gy_listener *listener)
{
    int64_t now = gy_now();

    if (listener->notes && now - listener->noted_since < NOTES_EVERY) {
        listener->unnoted += listener->notes >= NOTES;
        return listener->notes++ < NOTES;
    }
    if (listener->unnoted)
        gy_log(GY_LOG_WARN, "%u more connections like those were refused", listener->unnoted);
    listener->noted_since = now;
    listener->notes = 1;
    listener->unnoted = 0;
    return true;
}

/* It went, or broke off. `from` of an inbound connection is unproven in everything but its address. */
static void note_gone(struct gy_listener *listener, const struct gy_handshake_io *handshake_io)
{
    bool silent = handshake_io->handshake.step <= 1 && handshake_io->handshake.in_bytes == 0;

    if (!gy_handshake_is_unproved(
            &handshake_io->handshake)) /* a member: it only looked whether this rank listens, or has ended */
        gy_log(GY_LOG_DEBUG, "rank %u at %s ended its connection during the handshake", handshake_io->handshake.from,
               handshake_io->from);
    else if (may_note(listener))
        gy_log(GY_LOG_WARN, "a connection from %s ended %s", handshake_io->from,
               silent ? "before it sent anything" : "during its handshake");
}

static void note_refused(struct gy_listener *listener, const struct gy_handshake_io *handshake_io)
{
    const struct gy_handshake *handshake = &handshake_io->handshake;
    char text[GY_REFUSAL_TEXT];

    if (!may_note(listener))
        return;
    gy_refusal_print(handshake->refusal, handshake->peer_version, handshake->version, text);
    if (handshake->refusal == GY_REFUSAL_GARBAGE)
        gy_log(GY_LOG_WARN, "a connection from %s was refused: %s", handshake_io->from, text);
    else if (handshake->purpose == GY_PURPOSE_JOIN)
        gy_log(GY_LOG_WARN, "a joining process from %s was refused: %s", handshake_io->from, text);
    else
        gy_log(GY_LOG_WARN, "a connection from %s that says it is rank %u was refused: %s", handshake_io->from,
               handshake->from, text);
}

/* A peer that sends a byte now and then has authenticated no more than one that sends nothing. */
static bool is_over(const struct gy_handshake_io *handshake_io, int64_t age, int64_t unproved)
{
    int64_t here = gy_now() - handshake_io->started;

    if (handshake_io->ticks < TICKS_LEAST)
        return false;
    return gy_handshake_is_unproved(&handshake_io->handshake) ? here >= unproved
                                                              : here >= age && handshake_io->ticked >= TICKED_LEAST;
}

/* Drops handshakes older than `age`; those without an authenticated message 1, older than `unproved`. */
static void drop_older_than(struct gy_listener *listener, int64_t age, int64_t unproved)
{
    struct gy_handshake_io *next;

    for (struct gy_handshake_io *handshake_io = listener->handshakes; handshake_io; handshake_io = next) {
        next = handshake_io->next;
        if (!is_over(handshake_io, age, unproved))
            continue;
        if (may_note(listener))
            gy_log(GY_LOG_WARN, "a connection from %s did not finish its handshake in time", handshake_io->from);
        gy_handshake_io_cancel(handshake_io);
        unlink_handshake(listener, handshake_io);
        gy_secret_free(handshake_io);
    }
}

static void make_room(struct gy_listener *listener)
{
    if (oversubscribed(listener))
        drop_older_than(listener, SILENCE, listener->env.most ? UNPROVED : SILENCE);
}

/* Takes over the handshake, so that keeping asks for no memory. */
static void keep(struct gy_listener *listener, struct gy_handshake_io *handshake_io)
{
    struct gy_handshake_io **at = &listener->kept;

    while (*at && ((*at)->handshake.from != handshake_io->handshake.from ||
                   (*at)->handshake.purpose != handshake_io->handshake.purpose))
        at = &(*at)->next;
    handshake_io->next = *at ? (*at)->next : NULL;
    if (*at) {
        close((*at)->fd);
        gy_secret_free(*at);
    }
    *at = handshake_io;
}

/* Handles an inbound connection whose handshake has ended. Returns true if it is kept. The callback may close the
 * listener, which is not used afterwards. */
static bool receive(struct gy_listener *listener, struct gy_handshake_io *handshake_io, int errnum)
{
    const struct gy_handshake *handshake = &handshake_io->handshake;
    int fd = handshake_io->fd;
    bool refused = handshake->state == GY_HANDSHAKE_REFUSED;

    if (refused) {
        note_refused(listener, handshake_io);
        if (listener->refused)
            listener->refused(listener->refused_user, handshake);
        return false;
    }
    if (errnum || fd < 0) {
        note_gone(listener, handshake_io);
        return false;
    }
    listener->held += listener->env.most > 0;
    if (!listener->on[handshake->purpose]) {
        keep(listener, handshake_io);
        return true;
    }
    listener->on[handshake->purpose](listener->user[handshake->purpose], (int)handshake->from, fd, &handshake->keys);
    return false;
}

static void on_handshake(void *user, struct gy_handshake_io *handshake_io, int errnum)
{
    unlink_handshake(user, handshake_io);
    if (!receive(user, handshake_io, errnum))
        gy_secret_free(handshake_io);
}

static void begin_handshake(struct gy_listener *listener, int fd, const struct sockaddr_storage *from)
{
    struct gy_handshake_io *handshake_io;

    if (gy_socket_check(fd) != 0) { /* a Unix peer of another user */
        if (may_note(listener))
            gy_log(GY_LOG_WARN, "a connection of another user was refused");
        close(fd);
        return;
    }
    gy_socket_tune(fd, listener->env.peer_timeout_ns);
    handshake_io = gy_secret_alloc(sizeof(*handshake_io), GY_SECRET_COPIED);
    if (!handshake_io) {
        close(fd);
        return;
    }
    if (from->ss_family == AF_INET || from->ss_family == AF_INET6)
        gy_address_format(from, handshake_io->from);
    else
        snprintf(handshake_io->from, sizeof(handshake_io->from), "this host");
    gy_handshake_accept(&handshake_io->handshake, listener->key, listener->env.job, (uint32_t)listener->env.rank,
                        (uint32_t)listener->env.size, listener->env.purposes, listener->env.integrity);
    if (!gy_handshake_io_start(handshake_io, listener->env.poller, fd, false, on_handshake, listener)) {
        gy_secret_free(handshake_io);
        return;
    }
    handshake_io->next = listener->handshakes;
    listener->handshakes = handshake_io;
    listener->handshake_count++;
    timer_run(listener);
    if (listener->env.sockets_opened)
        ++*listener->env.sockets_opened;
}

static void cannot_accept(struct gy_listener *listener, int errnum)
{
    if (listener->no_memory_since == 0) {
        listener->no_memory_since = gy_now();
        gy_log(GY_LOG_WARN, "cannot accept a connection: %s", strerror(errnum));
    } else if (listener->no_memory && gy_now() - listener->no_memory_since > STARVATION) {
        listener->no_memory(listener->no_memory_user, errnum);
    }
}

static void on_inbound(void *owner, uint32_t events)
{
    struct gy_listener *listener = owner;

    (void)events;
    make_room(listener);
    while (!oversubscribed(listener)) {
        struct sockaddr_storage from = {0};
        socklen_t bytes = sizeof(from);
        int fd = accept4(listener->fd, (struct sockaddr *)&from, &bytes, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (fd < 0) {
            if (errno == EAGAIN) { /* the backlog is empty: the shortage is over, or affects no connection */
                listener->no_memory_since = 0;
                return;
            }
            cannot_accept(listener, errno); /* the timer tries again */
            break;
        }
        listener->no_memory_since = 0;
        begin_handshake(listener, fd, &from);
    }
    gy_poller_change(listener->env.poller, &listener->watch, 0);
    timer_run(listener);
}

/* True if a connection waits in the backlog. accept needs a free descriptor before it looks. */
static bool is_awaited(const struct gy_listener *listener)
{
    struct pollfd backlog = {.fd = listener->fd, .events = POLLIN};

    return poll(&backlog, 1, 0) > 0;
}

static void on_tick(void *owner, uint32_t events)
{
    struct gy_listener *listener = owner;
    uint64_t ticks;

    (void)events;
    if (read(listener->timer, &ticks, sizeof(ticks)) < 0)
        return;
    for (struct gy_handshake_io *handshake_io = listener->handshakes; handshake_io; handshake_io = handshake_io->next) {
        handshake_io->ticks++;
        handshake_io->ticked += listener->tick;
    }
    drop_older_than(listener, GY_LISTENER_TIMEOUT, GY_LISTENER_TIMEOUT);
    make_room(listener);
    if (listener->no_memory_since &&
        !is_awaited(listener)) /* the backlog was empty, or another descriptor of this listener accepted the
                                * connection */
        listener->no_memory_since = 0;
    if (!oversubscribed(listener))
        gy_poller_change(listener->env.poller, &listener->watch, EPOLLIN);
    timer_set(listener, wanted_tick(listener));
}

gyre_status gy_listener_open(struct gy_listener *listener, const struct gy_listener_env *env, struct gy_error *error)
{
    gyre_status status;

    listener->env = *env;
    memcpy(listener->key, env->key, GY_HANDSHAKE_KEY_BYTES);
    listener->env.key = listener->key;
    listener->watch = (struct gy_watch){
        .fd = listener->fd, .events = EPOLLIN, .callback = on_inbound, .owner = listener};
    listener->timer_watch = (struct gy_watch){
        .fd = listener->timer, .events = EPOLLIN, .callback = on_tick, .owner = listener};
    status = gy_poller_add(env->poller, &listener->watch, error);
    if (status == GYRE_SUCCESS)
        status = gy_poller_add(env->poller, &listener->timer_watch, error);
    return status;
}

void gy_listener_on(struct gy_listener *listener, enum gy_purpose purpose, gy_listener_func callback, void *user)
{
    listener->on[purpose] = callback;
    listener->user[purpose] = user;
    if (!callback)
        return;
    for (struct gy_handshake_io **at = &listener->kept; *at;) {
        struct gy_handshake_io *kept = *at;

        if (kept->handshake.purpose != purpose) {
            at = &kept->next;
            continue;
        }
        *at = kept->next;
        callback(user, (int)kept->handshake.from, kept->fd, &kept->handshake.keys);
        gy_secret_free(kept);
    }
}

const void *gy_listener_owner(const struct gy_listener *listener, enum gy_purpose purpose)
{
    return listener->on[purpose] ? listener->user[purpose] : NULL;
}

int gy_listener_handshake(const struct gy_listener *listener)
{
    return listener->handshake_count;
}

int gy_listener_hold(const struct gy_listener *listener)
{
    return fcntl(listener->fd, F_DUPFD_CLOEXEC, 0);
}

void gy_listener_release(struct gy_listener *listener)
{
    listener->held--;
    gy_poller_change(listener->env.poller, &listener->watch, EPOLLIN);
}

void gy_listener_on_refused(struct gy_listener *listener, gy_listener_refused_func callback, void *user)
{
    listener->refused = callback;
    listener->refused_user = user;
}

void gy_listener_on_no_memory(struct gy_listener *listener, gy_listener_no_memory_func callback, void *user)
{
    listener->no_memory = callback;
    listener->no_memory_user = user;
}

static void listener_end(struct gy_listener *listener, bool forked)
{
    struct gy_handshake_io *handshake_io, *kept;

    if (!listener)
        return;
    while ((handshake_io = listener->handshakes)) {
        listener->handshakes = handshake_io->next;
        if (forked)
            close(handshake_io->fd);
        else
            gy_handshake_io_cancel(handshake_io);
        gy_secret_free(handshake_io);
    }
    while ((kept = listener->kept)) {
        listener->kept = kept->next;
        close(kept->fd);
        gy_secret_free(kept);
    }
    if (listener->env.poller && !forked) {
        gy_poller_remove(listener->env.poller, &listener->watch);
        gy_poller_remove(listener->env.poller, &listener->timer_watch);
    }
    close(listener->fd);
    close(listener->timer);
    gy_secret_free(listener->key);
    gy_free(listener);
}

void gy_listener_free(struct gy_listener *listener)
{
    listener_end(listener, false);
}

void gy_listener_abandon(struct gy_listener *listener)
{
    listener_end(listener, true);
}
