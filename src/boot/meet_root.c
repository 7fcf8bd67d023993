/* Rank 0 while the ranks meet.
 *
 *   visitor ──authenticated──► newcomer ──HELLO──► registered ──(all there) TABLE down the tree──► DONE
 *                                  │                                          (all have it) END ◄──┘
 *                                  └── another size, a rank that is there already: everybody is told, and fails
 *
 * A registration's socket stays until every rank has the table: should it die before, or rank 0, the other side sees it
 * at once, and nobody goes on to look for a rank that has given up. On a failure every registered rank gets the
 * sentence before its socket is closed. */
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
#define FINISH_GRACE (10 * GY_SECOND)
#define FLUSH_GRACE (GY_SECOND / 5)
#define LATECOMER_GRACE (2 * GY_SECOND)

struct root;

struct visitor {
    struct root *root;
    struct visitor *next;
    struct gy_stream stream;
    int rank;
    bool registered, done, told;
};

struct root {
    struct gy_meeting *meeting;
    struct gy_world *world;
    struct visitor *visitors;
    struct visitor **by_rank;  /* [size] registered ones */
    enum gy_refusal *refusals; /* [size] why the last one that said it was this rank was refused */
    int registered, done, told;
    bool telling; /* failed, and everybody is being told */
    struct gy_error failure;
};

static void tell_visitor(struct root *root, struct visitor *visitor);

static void fail(struct root *root, gyre_status status, int rank, const char *text)
{
    gy_error_set(&root->failure, status, rank, "%s", text);
}

static void register_visitor(struct root *root, struct visitor *visitor, const struct gy_member *member)
{
    uint8_t body[8 + GY_KEY_BYTES + 8];
    struct gy_wire wire = gy_wire_over(body, sizeof(body));
    int64_t left = root->meeting->deadline - gy_now();

    root->world->members[visitor->rank] = *member;
    root->by_rank[visitor->rank] = visitor;
    visitor->registered = true;
    root->registered++;
    gy_wire_put(&wire, root->world->job, 8);
    gy_wire_put_bytes(&wire, root->meeting->salt, GY_KEY_BYTES);
    gy_wire_put(&wire, (uint64_t)(left > 0 ? left : 0), 8);
    gy_stream_send(&visitor->stream, GY_MEET_REGISTERED, body, sizeof(body));
}

static void hear_hello(struct root *root, struct visitor *visitor, uint8_t *body, size_t bytes)
{
    struct gy_wire wire = gy_wire_over(body, bytes);
    int size = root->world->size;
    char text[GY_MEET_TEXT];
    struct gy_member member;
    uint64_t label;
    uint32_t theirs;

    if (root->failure.status != GYRE_SUCCESS && root->telling) {
        tell_visitor(root, visitor);
        return;
    }
    if (bytes != HELLO_BYTES || visitor->registered) {
        gy_stream_close(&visitor->stream);
        return;
    }
    theirs = (uint32_t)gy_wire_get(&wire, 4);
    label = gy_wire_get(&wire, 8);
    if (!gy_member_decode(wire.at, &member)) {
        gy_stream_close(&visitor->stream);
        return;
    }
    if (label != root->meeting->identity->label) {
        snprintf(text, sizeof(text),
                 "a process that says it is rank %d belongs to another job (TORCHELASTIC_RUN_ID differs from rank 0's)",
                 visitor->rank);
        fail(root, GYRE_REFUSED, visitor->rank, text);
    } else if (theirs != (uint32_t)size) {
        snprintf(text, sizeof(text), "rank %d says that there are %u ranks, rank 0 says %d: check WORLD_SIZE",
                 visitor->rank, theirs, size);
        fail(root, GYRE_REFUSED, visitor->rank, text);
    } else if (root->by_rank[visitor->rank] && root->by_rank[visitor->rank]->done) {
        gy_stream_close(&visitor->stream); /* it has left this meeting already and wants the next one: it tries again */
    } else if (root->by_rank[visitor->rank]) {
        snprintf(text, sizeof(text),
                 "rank %d is there twice: process %d and process %d both say they are rank %d; check RANK",
                 visitor->rank, root->world->members[visitor->rank].pid, member.pid, visitor->rank);
        fail(root, GYRE_REFUSED, visitor->rank, text);
    } else {
        register_visitor(root, visitor, &member);
    }
}

static void on_message(void *user, struct gy_stream *stream, uint8_t kind, uint8_t *body, size_t bytes)
{
    struct visitor *visitor = user;
    struct root *root = visitor->root;

    if (kind == GY_MEET_HELLO) {
        hear_hello(root, visitor, body, bytes);
    } else if (kind == GY_MEET_DONE && visitor->registered && !visitor->done) {
        visitor->done = true;
        root->done++;
    } else if (kind == GY_MEET_FAILED && visitor->registered) {
        if (root->failure.status == GYRE_SUCCESS)
            gy_meet_failed_decode(body, bytes, &root->failure);
    } else {
        gy_stream_close(stream);
    }
}

static void on_closed(void *user, struct gy_stream *stream, int errnum)
{
    struct visitor *visitor = user;
    char text[GY_MEET_TEXT];

    (void)stream;
    (void)errnum;
    if (!visitor->registered)
        return;
    snprintf(text, sizeof(text), "rank %d (process %d) died while the ranks were meeting", visitor->rank,
             visitor->root->world->members[visitor->rank].pid);
    fail(visitor->root, GYRE_PEER_DEAD, visitor->rank, text);
}

/* The handshake has checked that 0 < rank < size. */
static void on_visitor(void *user, int rank, int fd)
{
    struct root *root = user;
    struct visitor *visitor = gy_alloc_zero(1, sizeof(*visitor));

    if (!visitor) {
        close(fd);
        return;
    }
    visitor->root = root;
    visitor->rank = rank;
    if (gy_stream_open(&visitor->stream, root->world->poller, fd, 8 + GY_MEET_TEXT + HELLO_BYTES, on_message, on_closed,
                       visitor, NULL) != GYRE_SUCCESS) {
        gy_free(visitor);
        return;
    }
    root->world->counters.registrations++;
    visitor->next = root->visitors;
    root->visitors = visitor;
}

static void on_refused(void *user, const struct gy_handshake *handshake)
{
    struct root *root = user;

    if (handshake->from > 0 && handshake->from < (uint32_t)root->world->size)
        root->refusals[handshake->from] = handshake->refusal;
}

static void on_starved(void *user, int errnum)
{
    struct root *root = user;

    if (root->failure.status == GYRE_SUCCESS)
        gy_error_system(&root->failure, errnum, "rank 0 cannot accept the ranks that want to meet it");
}

/* "1, 4 (one was refused: wrong version), 5 and 17 more" */
static void name_missing(const struct root *root, char *text_p, size_t bytes)
{
    size_t used = 0;
    int missing = root->world->size - 1 - root->registered, named = 0;

    text_p[0] = '\0';
    for (int rank = 1; rank < root->world->size && used + 80 < bytes; rank++) {
        if (root->by_rank[rank])
            continue;
        used += (size_t)snprintf(text_p + used, bytes - used, "%s%d", named ? ", " : "", rank);
        if (root->refusals[rank] != GY_REFUSAL_NONE)
            used += (size_t)snprintf(text_p + used, bytes - used, " (one was refused: %s)",
                                     gy_refusal_text(root->refusals[rank]));
        named++;
    }
    if (named < missing)
        snprintf(text_p + used, bytes - used, " and %d more", missing - named);
}

static void wait_registrations(struct root *root)
{
    const struct gy_meeting *meeting = root->meeting;
    char missing[320], text[GY_MEET_TEXT];

    while (root->failure.status == GYRE_SUCCESS && root->registered < root->world->size - 1) {
        int64_t left = meeting->deadline - gy_now();

        if (left <= 0) {
            name_missing(root, missing, sizeof(missing));
            snprintf(text, sizeof(text),
                     "after %.1f s %d of %d ranks are missing: rank %s; are they running, with the same "
                     "meeting address and secret? (GYRE_MEET_TIMEOUT)",
                     (double)root->world->config->meet_timeout_ns / (double)GY_SECOND,
                     root->world->size - 1 - root->registered, root->world->size, missing);
            fail(root, GYRE_MEETING_FAILED, -1, text);
            return;
        }
        gy_poller_poll(root->world->poller, left < GY_SECOND ? left : GY_SECOND);
    }
}

/* Rank 0's children get the table on the sockets on which they registered. */
static void hand_on_table(struct root *root)
{
    int64_t deadline = root->meeting->deadline;
    uint8_t *body;
    size_t bytes;

    if (deadline < gy_now() + FINISH_GRACE)
        deadline = gy_now() + FINISH_GRACE;
    if (!gy_meet_table_encode(root->world, &body, &bytes)) {
        fail(root, GYRE_NO_MEMORY, 0, "rank 0 has no memory for the table of members");
        return;
    }
    for (int k = 0, child; (child = gy_meet_child(0, root->world->size, k)) > 0; k++) {
        struct gy_stream *stream = &root->by_rank[child]->stream;

        if (gy_stream_send(stream, GY_MEET_TABLE, body, bytes))
            root->world->counters.messages_sent++;
        else if (stream->fd >= 0) /* a closed one has been told already */
            fail(root, GYRE_NO_MEMORY, 0, "rank 0 has no memory to send the table of members");
    }
    gy_free(body);
    while (root->failure.status == GYRE_SUCCESS && root->done < root->world->size - 1) {
        if (gy_now() > deadline)
            fail(root, GYRE_MEETING_FAILED, -1, "the table of members did not reach every rank in time");
        else
            gy_poller_poll(root->world->poller, GY_SECOND / 10);
    }
}

/* Sends what is queued, for a short time. */
static void flush_visitors(struct root *root)
{
    int64_t deadline = gy_now() + FLUSH_GRACE;
    bool flushed = false;

    while (!flushed && gy_now() < deadline) {
        flushed = true;
        for (struct visitor *visitor = root->visitors; visitor; visitor = visitor->next)
            flushed = flushed && gy_stream_flushed(&visitor->stream);
        if (!flushed)
            gy_poller_poll(root->world->poller, GY_MILLISECOND);
    }
}

/* Nothing can fail any more: from here on a death is the overlay's business. */
static void end_meeting(struct root *root)
{
    for (int rank = 1; rank < root->world->size; rank++) {
        root->by_rank[rank]->registered = false;
        gy_stream_send(&root->by_rank[rank]->stream, GY_MEET_END, NULL, 0);
    }
    flush_visitors(root);
}

static void tell_visitor(struct root *root, struct visitor *visitor)
{
    uint8_t body[8 + GY_MEET_TEXT];

    if (visitor->told)
        return;
    visitor->told = true;
    gy_stream_send(&visitor->stream, GY_MEET_FAILED, body, gy_meet_failed_encode(&root->failure, body));
    root->told++;
}

/* Everybody who is there, and for a moment those who come late: they would wait for a rank 0 that is gone. */
static void tell_failure(struct root *root)
{
    int64_t deadline = gy_now() + LATECOMER_GRACE;

    for (struct visitor *visitor = root->visitors; visitor; visitor = visitor->next)
        tell_visitor(root, visitor);
    root->telling = true;
    while (root->failure.status != GYRE_MEETING_FAILED && root->told < root->world->size - 1 && gy_now() < deadline)
        gy_poller_poll(root->world->poller, GY_SECOND / 20);
    flush_visitors(root);
}

static gyre_status open_listener(struct root *root, struct gy_door **door_p, struct gy_error *error)
{
    struct gy_world *world = root->world;
    const struct gy_door_env env = {
        .poller = world->poller,
        .key = root->meeting->identity->key,
        .job = world->job,
        .rank = 0,
        .size = world->size,
        .purposes = 1u << GY_PURPOSE_MEET,
        .peer_timeout_ns = world->config->peer_timeout_ns,
    };
    gyre_status status = gy_door_create(root->meeting->listener, door_p, error);

    if (status != GYRE_SUCCESS)
        return status;
    status = gy_door_open(*door_p, &env, error);
    if (status != GYRE_SUCCESS) {
        gy_door_free(*door_p);
        return status;
    }
    gy_door_on(*door_p, GY_PURPOSE_MEET, on_visitor, root);
    gy_door_on_refused(*door_p, on_refused, root);
    gy_door_on_starved(*door_p, on_starved, root);
    return GYRE_SUCCESS;
}

gyre_status gy_meet_as_root(struct gy_meeting *meeting, struct gy_error *error)
{
    struct root root = {.meeting = meeting, .world = meeting->world};
    struct gy_door *listener;
    struct visitor *visitor;
    gyre_status status;

    status = open_listener(&root, &listener, error);
    if (status != GYRE_SUCCESS)
        return status;
    root.by_rank = gy_alloc_zero((size_t)root.world->size, sizeof(struct visitor *));
    root.refusals = gy_alloc_zero((size_t)root.world->size, sizeof(*root.refusals));
    if (!root.by_rank || !root.refusals) {
        status = gy_error_set(error, GYRE_NO_MEMORY, -1, "no memory to register %d ranks", root.world->size);
        goto free_tables;
    }
    wait_registrations(&root);
    if (root.failure.status == GYRE_SUCCESS)
        hand_on_table(&root);
    if (root.failure.status == GYRE_SUCCESS) {
        end_meeting(&root);
    } else {
        tell_failure(&root);
        *error = root.failure;
    }
    status = root.failure.status;
free_tables:
    gy_door_free(listener);
    while ((visitor = root.visitors)) {
        root.visitors = visitor->next;
        gy_stream_close(&visitor->stream);
        gy_free(visitor);
    }
    gy_free(root.refusals);
    gy_free(root.by_rank);
    return status;
}
