/* Every other rank while the ranks meet.
 *
 *   DIALLING ──handshake, HELLO──► ASKING ──REGISTERED──► WAITING ──TABLE (parent, or rank 0)──► HANDING ON
 *      ▲  └ refused connection: again after 1, 2, 4 .. 50 ms                  done ◄──END── WAITING ◄──DONE──┘
 *
 * The own door opens when REGISTERED has brought job and key; a parent that comes earlier waits in the backlog. The
 * socket to rank 0 stays until every rank has the table, so that either side sees the other die, and a rank that fails
 * to pass it on is an error for all. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "boot/meet.h"
#include "boot/stream.h"
#include "boot/wire.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"

#define HELLO_BYTES (12 + GY_MEMBER_WIRE)
#define DIAL_PATIENCE (5 * GY_SECOND)
#define REFUSAL_PATIENCE (2 * GY_SECOND) /* a stale file may lead to a stranger: read it again for this long */
#define BACKOFF_LEAST GY_MILLISECOND
#define BACKOFF_MOST (50 * GY_MILLISECOND)
#define FLUSH_GRACE (GY_SECOND / 5)

struct member {
    struct gy_meeting *meeting;
    struct gy_world *world;
    struct gy_greeting greeting;
    bool greeting_over;
    int errnum;              /* of the last attempt */
    enum gy_refusal refusal; /* of the last attempt */
    char why[400];           /* of the last attempt */
    struct gy_stream root;   /* to rank 0 */
    struct gy_stream parent; /* a visit by the parent */
    bool hung_up;            /* rank 0, before it had registered us */
    bool registered, has_table, ended;
    int64_t deadline;
    struct gy_error *error;
};

static bool failed(const struct member *member)
{
    return member->error->status != GYRE_SUCCESS;
}

static void on_message(void *user, struct gy_stream *stream, uint8_t kind, uint8_t *body, size_t bytes);

/* Losing rank 0 is an error at any time; losing the parent only shows when rank 0 says so. */
static void on_closed(void *user, struct gy_stream *stream, int errnum)
{
    struct member *member = user;

    if (stream != &member->root || failed(member) || member->ended)
        return;
    if (member->registered)
        gy_error_set(member->error, GYRE_PEER_DEAD, 0, "rank 0 died while the ranks were meeting%s%s",
                     errnum ? ": " : "", errnum ? strerror(errnum) : "");
    else /* it was still busy with the meeting before this one, or has just ended: the next attempt tells */
        member->hung_up = true;
}

static void on_parent(void *user, int rank, int fd)
{
    struct member *member = user;
    int own = member->world->rank;

    if (rank != (own & (own - 1)) || member->has_table) {
        close(fd);
        return;
    }
    gy_stream_close(&member->parent);
    gy_stream_open(&member->parent, member->world->poller, fd, 4 + (size_t)member->world->size * GY_MEMBER_WIRE,
                   on_message, on_closed, member, member->error);
}

static void on_starved(void *user, int errnum)
{
    struct member *member = user;

    if (!failed(member))
        gy_error_system(member->error, errnum, "rank %d cannot accept the visit that brings the table of members",
                        member->world->rank);
}

static void hear_registered(struct member *member, uint8_t *body, size_t bytes)
{
    struct gy_world *world = member->world;
    struct gy_wire wire = gy_wire_over(body, bytes);
    int64_t left;

    world->job = gy_wire_get(&wire, 8);
    gy_wire_get_bytes(&wire, member->meeting->salt, GY_KEY_BYTES);
    left = (int64_t)gy_wire_get(&wire, 8);
    if (wire.bad || wire.at != wire.end || left < 0 || left > INT64_C(1000000) * GY_SECOND) {
        gy_error_set(member->error, GYRE_PROTOCOL, 0,
                     "rank 0 sent a registration that this version does not understand");
        return;
    }
    member->registered = true;
    /* Rank 0 decides who is missing: give it the time to say so. */
    if (member->deadline < gy_now() + left + 15 * GY_SECOND)
        member->deadline = gy_now() + left + 15 * GY_SECOND;
    gy_handshake_derive(member->meeting->identity->key, "gyre session", world->job, member->meeting->salt, world->key);
    if (gy_meet_open_door(world, member->error) == GYRE_SUCCESS) {
        gy_door_on(world->door, GY_PURPOSE_MEET, on_parent, member);
        gy_door_on_starved(world->door, on_starved, member);
    }
}

static void on_message(void *user, struct gy_stream *stream, uint8_t kind, uint8_t *body, size_t bytes)
{
    struct member *member = user;

    if (kind == GY_MEET_REGISTERED && stream == &member->root && !member->registered) {
        hear_registered(member, body, bytes);
    } else if (kind == GY_MEET_TABLE && member->registered && !member->has_table) {
        member->has_table = gy_meet_table_decode(member->world, body, bytes);
        if (!member->has_table)
            gy_error_set(member->error, GYRE_PROTOCOL, -1,
                         "a table of members arrived that this version does not understand");
    } else if (kind == GY_MEET_END && stream == &member->root && member->has_table) {
        member->ended = true;
    } else if (kind == GY_MEET_FAILED && stream == &member->root && !failed(member)) {
        gy_meet_failed_decode(body, bytes, member->error);
    }
}

static void on_greeted(void *user, struct gy_greeting *greeting, int errnum)
{
    struct member *member = user;

    member->greeting_over = true;
    member->errnum = errnum;
    member->refusal = greeting->handshake.state == GY_HANDSHAKE_REFUSED ? greeting->handshake.refusal : GY_REFUSAL_NONE;
}

/* One attempt, to whoever listens at `place`. true: greeting.fd is authenticated. */
static bool dial_once(struct member *member, const struct gy_place *place, const uint8_t *key, uint64_t job, int rank)
{
    struct gy_world *world = member->world;
    int64_t deadline = gy_now() + DIAL_PATIENCE;
    int fd = gy_socket_connect(place);

    member->greeting_over = false;
    member->refusal = GY_REFUSAL_NONE;
    member->errnum = errno;
    if (fd < 0 && gy_error_is_shortage(errno))
        gy_error_system(member->error, errno, "rank %d cannot make a socket to meet rank %d", world->rank, rank);
    if (fd < 0)
        return false;
    world->counters.sockets_opened++;
    gy_socket_tune(fd, world->config->peer_timeout_ns);
    memset(&member->greeting, 0, sizeof(member->greeting));
    gy_handshake_dial(&member->greeting.handshake, key, job, GY_PURPOSE_MEET, (uint32_t)world->rank, (uint32_t)rank);
    member->errnum = ENOMEM;
    if (!gy_greeting_start(&member->greeting, world->poller, fd, true, on_greeted, member))
        return false;
    while (!member->greeting_over && gy_now() < deadline && gy_now() < member->deadline && !failed(member))
        gy_poller_poll(world->poller, GY_SECOND / 20);
    if (!member->greeting_over) {
        gy_greeting_cancel(&member->greeting);
        member->errnum = ETIMEDOUT;
    }
    return member->greeting.fd >= 0;
}

static bool find_root(struct member *member, struct gy_place *place_p)
{
    const struct gy_meeting_place *where = member->meeting->place;
    uint64_t nonce;

    if (!where->path) {
        *place_p = where->place;
        return true;
    }
    errno = 0;
    if (gy_rendezvous_read(where->path, where->local_only, place_p, &nonce, member->why, sizeof(member->why)))
        return true;
    if (gy_error_is_shortage(errno))
        gy_error_system(member->error, errno, "rank %d cannot read the meeting file %s", member->world->rank,
                        where->path);
    return false;
}

static void pause_for(struct member *member, int64_t *pause)
{
    int64_t until = gy_now() + *pause;

    while (gy_now() < until)
        gy_poller_poll(member->world->poller, until - gy_now());
    *pause = *pause * 2 < BACKOFF_MOST ? *pause * 2 : BACKOFF_MOST;
}

/* Is this refusal final? A file may be stale, and then what it leads to is not our rank 0. */
static bool refused_for_good(struct member *member, int64_t *first_refusal)
{
    if (member->refusal == GY_REFUSAL_NONE)
        return false;
    if (!member->meeting->place->path)
        return true;
    if (*first_refusal == 0)
        *first_refusal = gy_now();
    return gy_now() - *first_refusal > REFUSAL_PATIENCE;
}

static gyre_status reach_root(struct member *member)
{
    int64_t pause = BACKOFF_LEAST, first_refusal = 0;
    char at[GY_ADDRESS_TEXT + 80];

    for (;;) {
        struct gy_place place = {0};

        if ((!*member->why || gy_now() < member->deadline) && find_root(member, &place)) {
            if (dial_once(member, &place, member->meeting->identity->key, 0, 0))
                return GYRE_SUCCESS;
            gy_place_format(&place, at, sizeof(at));
            if (refused_for_good(member, &first_refusal))
                return gy_error_set(member->error, GYRE_REFUSED, member->world->rank, "rank %d at %s: refused: %s%s",
                                    member->world->rank, at, gy_refusal_text(member->refusal),
                                    member->refusal == GY_REFUSAL_SECRET
                                        ? "; every rank needs the same GYRE_SECRET or GYRE_SECRET_FILE"
                                        : "");
            if (!*member->why || gy_now() < member->deadline) /* not: the last attempt was cut short */
                snprintf(member->why, sizeof(member->why), "%s: %s", at, strerror(member->errnum));
        }
        if (failed(member))
            return member->error->status;
        if (gy_now() >= member->deadline)
            return gy_error_set(
                member->error, GYRE_MEETING_FAILED, 0,
                "rank %d could not reach rank 0 at %s within %.1f s (%s); is rank 0 running, and is the "
                "address right?",
                member->world->rank, member->meeting->place->what,
                (double)member->world->config->meet_timeout_ns / (double)GY_SECOND, member->why);
        pause_for(member, &pause);
    }
}

static void say_hello(struct member *member)
{
    struct gy_world *world = member->world;
    uint8_t body[HELLO_BYTES];
    struct gy_wire wire = gy_wire_over(body, sizeof(body));

    gy_wire_put(&wire, (uint32_t)world->size, 4);
    gy_wire_put(&wire, member->meeting->identity->label, 8);
    gy_member_encode(&world->members[world->rank], wire.at);
    gy_stream_send(&member->root, GY_MEET_HELLO, body, sizeof(body));
}

static void wait_for(struct member *member, const bool *what, const char *name)
{
    while (!failed(member) && !*what && !member->hung_up) {
        if (gy_now() > member->deadline)
            gy_error_set(member->error, GYRE_MEETING_FAILED, 0,
                         "rank %d registered with rank 0, but %s did not come in time", member->world->rank, name);
        else
            gy_poller_poll(member->world->poller, GY_SECOND / 10);
    }
}

/* Sends what is queued, for a short time. */
static void flush(struct member *member, struct gy_stream *stream)
{
    int64_t deadline = gy_now() + FLUSH_GRACE;

    while (!gy_stream_flushed(stream) && gy_now() < deadline)
        gy_poller_poll(member->world->poller, GY_MILLISECOND);
}

static void hand_to_child(struct member *member, int child, const uint8_t *body, size_t bytes)
{
    struct gy_world *world = member->world;
    struct gy_place place = {.address = world->members[child].address};
    struct gy_stream stream;
    bool reached = false;

    for (int attempt = 0; attempt < 3 && !reached && !failed(member); attempt++)
        reached = dial_once(member, &place, world->key, world->job, child);
    if (failed(member))
        return;
    if (!reached) {
        gy_error_set(member->error, GYRE_PEER_UNREACHABLE, child, "rank %d cannot reach rank %d at its door %s: %s",
                     world->rank, child, gy_place_format(&place, member->why, sizeof(member->why)),
                     member->refusal != GY_REFUSAL_NONE ? gy_refusal_text(member->refusal) : strerror(member->errnum));
        return;
    }
    if (gy_stream_open(&stream, world->poller, member->greeting.fd, 16, on_message, on_closed, member, member->error) !=
        GYRE_SUCCESS)
        return;
    stream.sent_count = &world->counters.messages_sent;
    if (gy_stream_send(&stream, GY_MEET_TABLE, body, bytes))
        flush(member, &stream);
    else if (!failed(member))
        gy_error_set(member->error, GYRE_NO_MEMORY, world->rank, "rank %d has no memory to send the table of members",
                     world->rank);
    gy_stream_close(&stream);
}

static void hand_on_table(struct member *member)
{
    struct gy_world *world = member->world;
    uint8_t *body;
    size_t bytes;

    if (!gy_meet_table_encode(world, &body, &bytes)) {
        gy_error_set(member->error, GYRE_NO_MEMORY, world->rank, "rank %d has no memory for the table of members",
                     world->rank);
        return;
    }
    for (int k = 0, child; (child = gy_meet_child(world->rank, world->size, k)) > 0 && !failed(member); k++)
        hand_to_child(member, child, body, bytes);
    gy_free(body);
}

gyre_status gy_meet_as_member(struct gy_meeting *meeting, struct gy_error *error)
{
    struct member member = {
        .meeting = meeting, .world = meeting->world, .deadline = meeting->deadline, .error = error, .greeting.fd = -1};
    struct gy_world *world = meeting->world;
    size_t limit = 4 + (size_t)world->size * GY_MEMBER_WIRE;
    uint8_t body[8 + GY_MEET_TEXT];

    do {
        int64_t pause = BACKOFF_LEAST;
        if (member.hung_up) {
            gy_stream_close(&member.root);
            pause_for(&member, &pause);
            member.hung_up = false;
        }
        if (reach_root(&member) != GYRE_SUCCESS)
            return error->status;
        if (gy_stream_open(&member.root, world->poller, member.greeting.fd, gy_max_size(limit, 8 + GY_MEET_TEXT),
                           on_message, on_closed, &member, error) != GYRE_SUCCESS)
            return error->status;
        member.root.sent_count = &world->counters.messages_sent;
        member.root.received_count = &world->counters.messages_received;
        say_hello(&member);
        wait_for(&member, &member.has_table, "the table of members");
    } while (member.hung_up && !failed(&member)); /* reach_root keeps the deadline */
    if (!failed(&member))
        hand_on_table(&member);
    if (!failed(&member)) {
        gy_stream_send(&member.root, GY_MEET_DONE, NULL, 0);
        wait_for(&member, &member.ended, "the end of the meeting");
    } else if (member.registered) {
        gy_stream_send(&member.root, GY_MEET_FAILED, body, gy_meet_failed_encode(error, body));
    }
    flush(&member, &member.root);
    gy_stream_close(&member.parent);
    gy_stream_close(&member.root);
    gy_door_on(world->door, GY_PURPOSE_MEET, NULL, NULL);
    gy_door_on_starved(world->door, NULL, NULL);
    return error->status;
}
