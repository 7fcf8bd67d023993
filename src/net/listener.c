/*   backlog ──accept──► greeting (<= 64, <= 5 s each) ──authenticated──► callback of its purpose, or kept for it
 *                           └── refused, late, gone: closed, and one line in the log; at most 8 lines a minute, for
 *                               strangers must not fill a disk
 *
 * When 64 are greeting (or `most` are there, guests included), those that have not come to an end for half a second make room;
 * otherwise new visitors wait in the kernel's backlog. Where `most` says how many, a rank waits for nothing but this door, speaks as soon
 * as it is connected, and comes again if it is sent away: a visitor that has not proved for a tenth of a second that it knows the key, by a
 * whole first message, makes room there, so that a crowd of strangers keeps no rank from the meeting, however many stand in front of it in the backlog. A timer runs only while somebody
 * is being greeted, or could not be for want of a descriptor. Kept visitors have proved that they know the secret; each (rank, purpose) is kept once, the newest. */
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

#define TICK_NS 250000000L
#define TICK_CROWDED_NS 40000000L /* where the unproved make room */
#define UNPROVED (100 * GY_MILLISECOND)
#define SILENCE (GY_SECOND / 2)
#define TICKS_LEAST 3                        /* a visitor's time is over only when so many have found it waiting, */
#define TICKED_LEAST (TICKS_LEAST * TICK_NS) /* for so long, if it has spoken: who was away heard nobody */
#define NOTES 8                              /* lines about strangers, per ... */
#define NOTES_EVERY (60 * GY_SECOND)
#define STARVATION GY_SECOND /* descriptors may be scarce for a moment */

struct gy_door {
    struct gy_door_env env;
    uint8_t key[GY_HANDSHAKE_KEY_BYTES];
    int fd, timer;
    long tick; /* nanoseconds from one to the next of the timer's; 0: it does not run */
    struct gy_watch watch, timer_watch;
    struct gy_greeting *greetings; /* newest first */
    int greeting_count;
    int guests;               /* counted only where env.most says so */
    struct gy_greeting *kept; /* done, and nobody has asked for their purpose yet */
    gy_door_func on[GY_PURPOSES];
    void *user[GY_PURPOSES];
    gy_door_refused_func refused;
    void *refused_user;
    gy_door_starved_func starved;
    void *starved_user;
    int64_t noted_since; /* the minute of `notes` lines; `unnoted` were too many for it */
    unsigned notes, unnoted;
    int64_t starved_since; /* when accept first failed for want of something, 0: it did not */
};

gyre_status gy_door_create(int fd, struct gy_door **door_p, struct gy_error *error)
{
    struct gy_door *door = gy_alloc_zero(1, sizeof(*door));

    if (!door) {
        close(fd);
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "no memory for a listener");
    }
    door->fd = fd;
    door->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (door->timer < 0) {
        int errnum = errno;

        close(fd);
        gy_free(door);
        return gy_error_system(error, errnum, "cannot create a timer for the listener");
    }
    *door_p = door;
    return GYRE_SUCCESS;
}

static bool crowded(const struct gy_door *door)
{
    return door->env.most ? door->greeting_count + door->guests >= door->env.most
                          : door->greeting_count >= GY_DOOR_GREETINGS;
}

/* It runs while somebody is greeted, or could not be let in. */
static long wanted_tick(const struct gy_door *door)
{
    if (door->greeting_count == 0 && !door->starved_since)
        return 0;
    return door->env.most && crowded(door) ? TICK_CROWDED_NS : TICK_NS;
}

static void timer_set(struct gy_door *door, long ns)
{
    struct itimerspec every = {.it_value.tv_nsec = ns, .it_interval.tv_nsec = ns};

    if (ns == door->tick)
        return;
    door->tick = ns;
    timerfd_settime(door->timer, 0, &every, NULL);
}

/* Who comes or goes quickens it, and slows it down never: a tick that is put off again and again does not come. */
static void timer_run(struct gy_door *door)
{
    long ns = wanted_tick(door);

    if (door->tick == 0 || ns < door->tick)
        timer_set(door, ns);
}

static void unlink_greeting(struct gy_door *door, struct gy_greeting *greeting)
{
    for (struct gy_greeting **at = &door->greetings; *at; at = &(*at)->next) {
        if (*at != greeting)
            continue;
        *at = greeting->next;
        door->greeting_count--;
        break;
    }
    gy_poller_change(door->env.poller, &door->watch, EPOLLIN);
    timer_run(door);
}

/* May one more line be written about a stranger? Says how many were not, when it may again. */
static bool may_note(struct gy_door *door)
{
    int64_t now = gy_now();

    if (door->notes && now - door->noted_since < NOTES_EVERY) {
        door->unnoted += door->notes >= NOTES;
        return door->notes++ < NOTES;
    }
    if (door->unnoted)
        gy_log(GY_LOG_WARN, "%u more visitors like those were turned away", door->unnoted);
    door->noted_since = now;
    door->notes = 1;
    door->unnoted = 0;
    return true;
}

/* It went, or broke off. `from` of a visitor is unproven in everything but its address. */
static void note_gone(struct gy_door *door, const struct gy_greeting *greeting)
{
    bool silent = greeting->handshake.step <= 1 && greeting->handshake.in_bytes == 0;

    if (!gy_handshake_is_unproved(
            &greeting->handshake)) /* a member: it only looked whether this rank listens, or has ended */
        gy_log(GY_LOG_DEBUG, "rank %u at %s ended its connection during the handshake", greeting->handshake.from,
               greeting->from);
    else if (may_note(door))
        gy_log(GY_LOG_WARN, "a visitor from %s %s", greeting->from,
               silent ? "went without a word" : "went in the middle of its greeting");
}

static void note_refused(struct gy_door *door, const struct gy_greeting *greeting)
{
    const struct gy_handshake *handshake = &greeting->handshake;
    char text[GY_REFUSAL_TEXT];

    if (!may_note(door))
        return;
    gy_refusal_print(handshake->refusal, handshake->peer_version, handshake->version, text);
    if (handshake->refusal == GY_REFUSAL_GARBAGE)
        gy_log(GY_LOG_WARN, "a visitor from %s was refused: %s", greeting->from, text);
    else if (handshake->purpose == GY_PURPOSE_JOIN)
        gy_log(GY_LOG_WARN, "a newcomer from %s was refused: %s", greeting->from, text);
    else
        gy_log(GY_LOG_WARN, "a visitor from %s that says it is rank %u was refused: %s", greeting->from,
               handshake->from, text);
}

/* A greeting that is through, or was broken off, has the connection's keys in it. */
static void forget(struct gy_greeting *greeting)
{
    gy_handshake_forget(&greeting->handshake);
    gy_free(greeting);
}

/* A stranger that sends a byte now and then has proved no more than one that sends nothing. */
static bool is_over(const struct gy_greeting *greeting, int64_t age, int64_t unproved)
{
    int64_t here = gy_now() - greeting->started;

    if (greeting->ticks < TICKS_LEAST)
        return false;
    return gy_handshake_is_unproved(&greeting->handshake) ? here >= unproved
                                                          : here >= age && greeting->ticked >= TICKED_LEAST;
}

/* Drops those that have been here for `age`; those that have not proved that they know the key, for `unproved`. */
static void drop_older_than(struct gy_door *door, int64_t age, int64_t unproved)
{
    struct gy_greeting *next;

    for (struct gy_greeting *greeting = door->greetings; greeting; greeting = next) {
        next = greeting->next;
        if (!is_over(greeting, age, unproved))
            continue;
        if (may_note(door))
            gy_log(GY_LOG_WARN, "a visitor from %s did not finish its greeting in time", greeting->from);
        gy_greeting_cancel(greeting);
        unlink_greeting(door, greeting);
        forget(greeting);
    }
}

static void make_room(struct gy_door *door)
{
    if (crowded(door))
        drop_older_than(door, SILENCE, door->env.most ? UNPROVED : SILENCE);
}

/* Takes over the greeting, so that keeping asks for no memory. */
static void keep(struct gy_door *door, struct gy_greeting *greeting)
{
    struct gy_greeting **at = &door->kept;

    while (*at && ((*at)->handshake.from != greeting->handshake.from ||
                   (*at)->handshake.purpose != greeting->handshake.purpose))
        at = &(*at)->next;
    greeting->next = *at ? (*at)->next : NULL;
    if (*at) {
        close((*at)->fd);
        forget(*at);
    }
    *at = greeting;
}

/* What becomes of a visitor whose greeting came to its end; `greeting` is gone or kept. */
static void receive(struct gy_door *door, struct gy_greeting *greeting, const struct gy_handshake *handshake,
                    int errnum)
{
    int fd = greeting->fd;
    bool refused = handshake->state == GY_HANDSHAKE_REFUSED;

    if (!refused && !errnum && fd >= 0 && !door->on[handshake->purpose]) {
        door->guests += door->env.most > 0;
        keep(door, greeting);
        return;
    }
    if (refused)
        note_refused(door, greeting);
    else if (errnum || fd < 0)
        note_gone(door, greeting);
    forget(greeting);
    if (refused && door->refused)
        door->refused(door->refused_user, handshake);
    if (refused || errnum || fd < 0)
        return;
    if (door->env.most)
        door->guests++;
    door->on[handshake->purpose](door->user[handshake->purpose], (int)handshake->from, fd, &handshake->keys);
}

/* Whom the door tells may close it, so that nothing of the greeting is looked at after that but a copy. */
static void on_greeted(void *user, struct gy_greeting *greeting, int errnum)
{
    struct gy_handshake handshake = greeting->handshake;

    unlink_greeting(user, greeting);
    receive(user, greeting, &handshake, errnum);
    gy_handshake_forget(&handshake);
}

static void greet(struct gy_door *door, int fd, const struct sockaddr_storage *from)
{
    struct gy_greeting *greeting;

    if (gy_socket_check(fd) != 0) { /* a Unix peer of another user */
        if (may_note(door))
            gy_log(GY_LOG_WARN, "a visitor of another user was refused");
        close(fd);
        return;
    }
    gy_socket_tune(fd, door->env.peer_timeout_ns);
    greeting = gy_alloc_zero(1, sizeof(*greeting));
    if (!greeting) {
        close(fd);
        return;
    }
    if (from->ss_family == AF_INET || from->ss_family == AF_INET6)
        gy_address_format(from, greeting->from);
    else
        snprintf(greeting->from, sizeof(greeting->from), "this host");
    gy_handshake_accept(&greeting->handshake, door->key, door->env.job, (uint32_t)door->env.rank,
                        (uint32_t)door->env.size, door->env.purposes, door->env.integrity);
    if (!gy_greeting_start(greeting, door->env.poller, fd, false, on_greeted, door)) {
        forget(greeting);
        return;
    }
    greeting->next = door->greetings;
    door->greetings = greeting;
    door->greeting_count++;
    timer_run(door);
    if (door->env.sockets_opened)
        ++*door->env.sockets_opened;
}

static void cannot_accept(struct gy_door *door, int errnum)
{
    if (door->starved_since == 0) {
        door->starved_since = gy_now();
        gy_log(GY_LOG_WARN, "cannot accept a connection: %s", strerror(errnum));
    } else if (door->starved && gy_now() - door->starved_since > STARVATION) {
        door->starved(door->starved_user, errnum);
    }
}

static void on_visitor(void *owner, uint32_t events)
{
    struct gy_door *door = owner;

    (void)events;
    make_room(door);
    while (!crowded(door)) {
        struct sockaddr_storage from = {0};
        socklen_t bytes = sizeof(from);
        int fd = accept4(door->fd, (struct sockaddr *)&from, &bytes, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (fd < 0) {
            if (errno == EAGAIN) { /* nobody waits: what was short is not any more, or is nobody's loss */
                door->starved_since = 0;
                return;
            }
            cannot_accept(door, errno); /* the timer tries again */
            break;
        }
        door->starved_since = 0;
        greet(door, fd, &from);
    }
    gy_poller_change(door->env.poller, &door->watch, 0);
    timer_run(door);
}

/* Is somebody waiting to be let in? The kernel asks for a descriptor before it looks. */
static bool is_awaited(const struct gy_door *door)
{
    struct pollfd visitors = {.fd = door->fd, .events = POLLIN};

    return poll(&visitors, 1, 0) > 0;
}

static void on_tick(void *owner, uint32_t events)
{
    struct gy_door *door = owner;
    uint64_t ticks;

    (void)events;
    if (read(door->timer, &ticks, sizeof(ticks)) < 0)
        return;
    for (struct gy_greeting *greeting = door->greetings; greeting; greeting = greeting->next) {
        greeting->ticks++;
        greeting->ticked += door->tick;
    }
    drop_older_than(door, GY_DOOR_PATIENCE, GY_DOOR_PATIENCE);
    make_room(door);
    if (door->starved_since && !is_awaited(door)) /* nobody did, or another listener of this door let him in */
        door->starved_since = 0;
    if (!crowded(door))
        gy_poller_change(door->env.poller, &door->watch, EPOLLIN);
    timer_set(door, wanted_tick(door));
}

gyre_status gy_door_open(struct gy_door *door, const struct gy_door_env *env, struct gy_error *error)
{
    gyre_status status;

    door->env = *env;
    memcpy(door->key, env->key, sizeof(door->key));
    door->env.key = door->key;
    door->watch = (struct gy_watch){.fd = door->fd, .events = EPOLLIN, .callback = on_visitor, .owner = door};
    door->timer_watch = (struct gy_watch){.fd = door->timer, .events = EPOLLIN, .callback = on_tick, .owner = door};
    status = gy_poller_add(env->poller, &door->watch, error);
    if (status == GYRE_SUCCESS)
        status = gy_poller_add(env->poller, &door->timer_watch, error);
    return status;
}

void gy_door_on(struct gy_door *door, enum gy_purpose purpose, gy_door_func callback, void *user)
{
    door->on[purpose] = callback;
    door->user[purpose] = user;
    if (!callback)
        return;
    for (struct gy_greeting **at = &door->kept; *at;) {
        struct gy_greeting *kept = *at;

        if (kept->handshake.purpose != purpose) {
            at = &kept->next;
            continue;
        }
        *at = kept->next;
        callback(user, (int)kept->handshake.from, kept->fd, &kept->handshake.keys);
        forget(kept);
    }
}

int gy_door_greeting(const struct gy_door *door)
{
    return door->greeting_count;
}

int gy_door_hold(const struct gy_door *door)
{
    return fcntl(door->fd, F_DUPFD_CLOEXEC, 0);
}

void gy_door_release(struct gy_door *door)
{
    door->guests--;
    gy_poller_change(door->env.poller, &door->watch, EPOLLIN);
}

void gy_door_on_refused(struct gy_door *door, gy_door_refused_func callback, void *user)
{
    door->refused = callback;
    door->refused_user = user;
}

void gy_door_on_starved(struct gy_door *door, gy_door_starved_func callback, void *user)
{
    door->starved = callback;
    door->starved_user = user;
}

static void door_end(struct gy_door *door, bool forked)
{
    struct gy_greeting *greeting, *kept;

    if (!door)
        return;
    while ((greeting = door->greetings)) {
        door->greetings = greeting->next;
        if (forked)
            close(greeting->fd);
        else
            gy_greeting_cancel(greeting);
        forget(greeting);
    }
    while ((kept = door->kept)) {
        door->kept = kept->next;
        close(kept->fd);
        forget(kept);
    }
    if (door->env.poller && !forked) {
        gy_poller_remove(door->env.poller, &door->watch);
        gy_poller_remove(door->env.poller, &door->timer_watch);
    }
    close(door->fd);
    close(door->timer);
    explicit_bzero(door->key, sizeof(door->key));
    gy_free(door);
}

void gy_door_free(struct gy_door *door)
{
    door_end(door, false);
}

void gy_door_abandon(struct gy_door *door)
{
    door_end(door, true);
}
