/* Rank 0 while the ranks meet.
 *
 *   visitor ──authenticated──► guest ──HELLO──► registered, told its seat ──SEATED──► gone, its parent has it
 *                                 └── another job, size or setting, or there already: everybody is told, and fails
 *
 * At most GUESTS sockets are in this state at once, however many ranks there are; the others wait in the kernel's
 * backlog. Between HELLO and SEATED the end of the socket is a death; after SEATED the tree (meet_tree.c) sees it. On a
 * failure guests are told here, seated ranks through the tree, and latecomers for a while. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "boot/meet_tree.h"
#include "boot/wire.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"

#define GUESTS 16
#define GUEST_PATIENCE (2 * GY_SECOND) /* a slower one keeps its socket, but not the place of somebody else */
#define FINISH_GRACE (10 * GY_SECOND)
#define FLUSH_GRACE (GY_SECOND / 5)
#define LATECOMER_GRACE (2 * GY_SECOND)

struct root;

struct visitor {
    struct root *root;
    struct visitor *next;
    struct gy_stream stream;
    int rank;
    int64_t since;
    bool counted; /* among the door's guests */
    bool registered, seated;
};

struct root {
    struct gy_meeting *meeting;
    struct gy_world *world;
    struct gy_door *listener;
    struct visitor *visitors;
    int *seats;                /* [size] by rank; 0: not registered */
    int *ranks;                /* [size] by seat */
    enum gy_refusal *refusals; /* [size] why the last one that said it was this rank was refused */
    bool stranger;             /* one was refused that said it was a rank that there cannot be: */
    uint32_t stranger_rank;
    int registered, late; /* late: told of the failure instead of being registered */
    struct gy_error failure;
    struct gy_meet_tree tree;
};

static bool failed(const struct root *root)
{
    return root->failure.status != GYRE_SUCCESS;
}

static void uncount(struct visitor *visitor)
{
    if (visitor->counted)
        gy_door_release(visitor->root->listener);
    visitor->counted = false;
}

static void dismiss(struct visitor *visitor)
{
    gy_stream_close(&visitor->stream);
    uncount(visitor);
}

static void tell(struct root *root, struct visitor *visitor)
{
    uint8_t body[8 + GY_MEET_TEXT];

    if (!visitor->seated)
        gy_stream_send(&visitor->stream, GY_MEET_FAILED, body, gy_meet_failed_encode(&root->failure, body));
}

static void register_visitor(struct root *root, struct visitor *visitor, const struct gy_member *member)
{
    uint8_t body[GY_SEAT_BYTES];
    struct gy_wire wire = gy_wire_over(body, sizeof(body));
    int64_t left = root->meeting->deadline - gy_now();
    int seat = ++root->registered, parent = root->ranks[seat & (seat - 1)];

    root->world->members[visitor->rank] = *member;
    root->seats[visitor->rank] = seat;
    root->ranks[seat] = visitor->rank;
    visitor->registered = true;
    gy_wire_put(&wire, root->world->job, 8);
    gy_wire_put_bytes(&wire, root->meeting->salt, GY_KEY_BYTES);
    gy_wire_put(&wire, (uint64_t)(left > 0 ? left : 0), 8);
    gy_wire_put(&wire, (uint32_t)seat, 4);
    gy_wire_put(&wire, (uint32_t)parent, 4);
    gy_member_encode(&root->world->members[parent], wire.at);
    gy_stream_send(&visitor->stream, GY_MEET_SEAT, body, sizeof(body));
}

/* Somebody says that it is a rank that is registered. Before the table is on its way that is one too many; afterwards
 * the same process wants the next world already, and tries again. */
static void hear_duplicate(struct root *root, struct visitor *visitor, const struct gy_member *member)
{
    const struct gy_member *first = &root->world->members[visitor->rank];
    struct gy_error *failure = &root->failure, own = {.rank = -1};

    if (root->tree.has_table && member->host_key == first->host_key && member->pid == first->pid) {
        dismiss(visitor);
        return;
    }
    gy_error_set(root->tree.has_table ? &own : failure, GYRE_REFUSED, visitor->rank,
                 "rank %d is there twice: process %d and process %d both say they are rank %d; check RANK",
                 visitor->rank, first->pid, member->pid, visitor->rank);
    if (root->tree.has_table) { /* the world is complete without it */
        uint8_t body[8 + GY_MEET_TEXT];

        gy_stream_send(&visitor->stream, GY_MEET_FAILED, body, gy_meet_failed_encode(&own, body));
    }
}

static void hear_hello(struct root *root, struct visitor *visitor, uint8_t *body, size_t bytes)
{
    const struct gy_meeting *meeting = root->meeting;
    const struct gy_meet_claim own = {.size = (uint32_t)root->world->size,
                                      .label = meeting->identity->label,
                                      .settings = (const uint8_t *)meeting->settings,
                                      .settings_bytes = meeting->settings_bytes};
    struct gy_meet_claim theirs = {.rank = visitor->rank};
    struct gy_wire wire = gy_wire_over(body, bytes);
    struct gy_member member;

    if (failed(root)) {
        root->late++;
        tell(root, visitor);
        return;
    }
    theirs.size = (uint32_t)gy_wire_get(&wire, 4);
    theirs.label = gy_wire_get(&wire, 8);
    if (bytes < GY_HELLO_LEAST || visitor->registered || !gy_member_decode(wire.at, &member)) {
        dismiss(visitor);
        return;
    }
    theirs.settings = body + GY_HELLO_LEAST;
    theirs.settings_bytes = bytes - GY_HELLO_LEAST;
    if (!gy_meet_agree(&own, &theirs, &root->failure)) {
        root->late++;
        return;
    }
    if (root->seats[visitor->rank])
        hear_duplicate(root, visitor, &member);
    else
        register_visitor(root, visitor, &member);
}

static void on_message(void *user, struct gy_stream *stream, uint8_t kind, uint8_t *body, size_t bytes)
{
    struct visitor *visitor = user;
    struct root *root = visitor->root;

    (void)stream;
    if (kind == GY_MEET_HELLO) {
        hear_hello(root, visitor, body, bytes);
    } else if (kind == GY_MEET_SEATED && visitor->registered) {
        visitor->seated = true;
        dismiss(visitor);
    } else if (kind == GY_MEET_FAILED && visitor->registered && !failed(root)) {
        gy_meet_failed_decode(body, bytes, &root->failure);
    } else {
        dismiss(visitor);
    }
}

static void on_closed(void *user, struct gy_stream *stream, int errnum)
{
    struct visitor *visitor = user;

    (void)stream;
    uncount(visitor);
    if (visitor->registered && !visitor->seated && !failed(visitor->root))
        gy_meet_lost(visitor->root->world, visitor->rank, errnum, &visitor->root->failure);
}

/* The handshake has checked that 0 < rank < size. */
static void on_visitor(void *user, int rank, int fd)
{
    struct root *root = user;
    struct visitor *visitor = gy_alloc_zero(1, sizeof(*visitor));

    if (!visitor) {
        close(fd);
        gy_door_release(root->listener);
        return;
    }
    *visitor = (struct visitor){.root = root, .rank = rank, .since = gy_now(), .counted = true};
    if (gy_stream_open(&visitor->stream, root->world->poller, fd, gy_max_size(8 + GY_MEET_TEXT, GY_HELLO_MOST),
                       on_message, on_closed, visitor, NULL) != GYRE_SUCCESS) {
        uncount(visitor);
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
    if (handshake->refusal == GY_REFUSAL_RANK) {
        root->stranger = true;
        root->stranger_rank = handshake->from;
    }
}

static void on_starved(void *user, int errnum)
{
    struct root *root = user;

    if (!failed(root))
        gy_error_system(&root->failure, errnum, "rank 0 cannot accept the ranks that want to meet it");
}

/* Forgets visitors that are gone; slow ones give up their place. Not from a callback. */
static void sweep(struct root *root)
{
    int64_t now = gy_now();

    for (struct visitor **at = &root->visitors; *at;) {
        struct visitor *visitor = *at;

        if (now - visitor->since > GUEST_PATIENCE)
            uncount(visitor);
        if (visitor->stream.fd >= 0) {
            at = &visitor->next;
            continue;
        }
        *at = visitor->next;
        gy_free(visitor);
    }
}

/* "1, 4 (one was refused: wrong version), 5 and 17 more; a process that says it is rank 9 was refused" */
static void name_missing(const struct root *root, char *text_p, size_t bytes)
{
    size_t used = 0;
    int missing = root->world->size - 1 - root->registered, named = 0;

    text_p[0] = '\0';
    for (int rank = 1; rank < root->world->size && used + 160 < bytes; rank++) {
        if (root->seats[rank])
            continue;
        used += (size_t)snprintf(text_p + used, bytes - used, "%s%d", named ? ", " : "", rank);
        if (root->refusals[rank] != GY_REFUSAL_NONE)
            used += (size_t)snprintf(text_p + used, bytes - used, " (one was refused: %s)",
                                     gy_refusal_text(root->refusals[rank]));
        named++;
    }
    if (named < missing)
        used += (size_t)snprintf(text_p + used, bytes - used, " and %d more", missing - named);
    if (root->stranger)
        snprintf(text_p + used, bytes - used, "; a process that says it is rank %u was refused: check WORLD_SIZE",
                 root->stranger_rank);
}

static void wait_registrations(struct root *root)
{
    const struct gy_meeting *meeting = root->meeting;
    char missing[360];

    while (!failed(root) && root->registered < root->world->size - 1) {
        int64_t left = meeting->deadline - gy_now();

        if (left <= 0) {
            name_missing(root, missing, sizeof(missing));
            gy_error_set(&root->failure, GYRE_MEETING_FAILED, -1,
                         "after %.1f s %d of %d ranks are missing: rank %s; are they running, with the same meeting "
                         "address and secret? (GYRE_MEET_TIMEOUT)",
                         (double)root->world->config->meet_timeout_ns / (double)GY_SECOND,
                         root->world->size - 1 - root->registered, root->world->size, missing);
            return;
        }
        gy_poller_poll(root->world->poller, left < GY_SECOND ? left : GY_SECOND);
        sweep(root);
    }
}

/* The table goes down, and comes back as DONE. */
static void hand_out_table(struct root *root)
{
    int64_t deadline = root->meeting->deadline;

    if (deadline < gy_now() + FINISH_GRACE)
        deadline = gy_now() + FINISH_GRACE;
    gy_meet_tree_table(&root->tree);
    while (!failed(root) && !root->tree.all_done) {
        if (gy_now() > deadline)
            gy_error_set(&root->failure, GYRE_MEETING_FAILED, -1,
                         "the table of members did not reach every rank in time");
        else
            gy_poller_poll(root->world->poller, GY_SECOND / 10);
        sweep(root);
    }
    if (!failed(root))
        gy_meet_tree_go(&root->tree);
}

/* Everybody who is there, and for a moment those who come late: they would wait for a rank 0 that is gone. */
static void tell_failure(struct root *root)
{
    int64_t deadline = gy_now() + LATECOMER_GRACE;
    bool flushed = false;

    for (struct visitor *visitor = root->visitors; visitor; visitor = visitor->next)
        tell(root, visitor);
    gy_meet_tree_tell(&root->tree);
    while (root->failure.status != GYRE_MEETING_FAILED && root->registered + root->late < root->world->size - 1 &&
           gy_now() < deadline)
        gy_poller_poll(root->world->poller, GY_SECOND / 20);
    deadline = gy_now() + FLUSH_GRACE;
    while (!flushed && gy_now() < deadline) {
        flushed = true;
        for (struct visitor *visitor = root->visitors; visitor; visitor = visitor->next)
            flushed = flushed && gy_stream_flushed(&visitor->stream);
        if (!flushed)
            gy_poller_poll(root->world->poller, GY_MILLISECOND);
    }
}

static gyre_status open_listener(struct root *root, struct gy_error *error)
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
        .most = GUESTS,
    };
    gyre_status status = gy_door_create(root->meeting->listener, &root->listener, error);

    if (status != GYRE_SUCCESS)
        return status;
    status = gy_door_open(root->listener, &env, error);
    if (status != GYRE_SUCCESS) {
        gy_door_free(root->listener);
        return status;
    }
    gy_door_on(root->listener, GY_PURPOSE_MEET, on_visitor, root);
    gy_door_on_refused(root->listener, on_refused, root);
    gy_door_on_starved(root->listener, on_starved, root);
    return GYRE_SUCCESS;
}

static gyre_status make_tables(struct root *root, struct gy_error *error)
{
    size_t size = (size_t)root->world->size;

    root->seats = gy_alloc_zero(size, sizeof(*root->seats));
    root->ranks = gy_alloc_zero(size, sizeof(*root->ranks));
    root->refusals = gy_alloc_zero(size, sizeof(*root->refusals));
    if (!root->seats || !root->ranks || !root->refusals)
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "no memory to register %zu ranks", size);
    return GYRE_SUCCESS;
}

static void meet(struct root *root)
{
    struct visitor *visitor;

    gy_meet_tree_begin(&root->tree, root->world, &root->failure);
    gy_meet_tree_sit(&root->tree, 0);
    gy_meet_tree_open(&root->tree);
    wait_registrations(root);
    if (!failed(root))
        hand_out_table(root);
    if (failed(root))
        tell_failure(root);
    gy_meet_tree_end(&root->tree);
    while ((visitor = root->visitors)) {
        root->visitors = visitor->next;
        gy_stream_close(&visitor->stream);
        gy_free(visitor);
    }
}

gyre_status gy_meet_as_root(struct gy_meeting *meeting, struct gy_error *error)
{
    struct root *root = gy_alloc_zero(1, sizeof(*root));
    gyre_status status;

    if (!root) {
        close(meeting->listener);
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "no memory to meet");
    }
    root->meeting = meeting;
    root->world = meeting->world;
    root->failure.rank = -1;
    status = open_listener(root, error);
    if (status != GYRE_SUCCESS)
        goto free_root;
    status = make_tables(root, error);
    if (status == GYRE_SUCCESS) {
        meet(root);
        status = root->failure.status;
        if (status != GYRE_SUCCESS)
            *error = root->failure;
    }
    gy_door_free(root->listener);
    gy_free(root->refusals);
    gy_free(root->ranks);
    gy_free(root->seats);
free_root:
    gy_free(root);
    return status;
}
