/* The bootstrap of every rank but rank 0.
 *
 *   DIALLING ──handshake, HELLO──► ASKING ──SEAT──► JOINING ──parent's listener, WELCOME──► SEATED ──TABLE, GO──► done
 *      ▲  └ refused connection: again after 1, 2, 4 .. 50 ms
 *
 * Timeouts. A rank connected to rank 0 waits in its backlog, behind all other connections, also unauthenticated ones. A
 * rank that gave up would queue again, at the end. So a handshake has no deadline but that of the bootstrap. The file
 * of a file:// is read again meanwhile, since it may be stale and lead to another process.
 *
 * This rank's listener opens when SEAT has brought job and key; a child that comes earlier waits in the backlog. The
 * socket to rank 0 lives until the parent watches this rank (bootstrap/tree.c), so its death is detected at every
 * moment. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bootstrap/tree.h"
#include "core/clock.h"
#include "core/config.h"
#include "core/log.h"
#include "core/mem.h"
#include "core/secret_memory.h"
#include "net/byte_codec.h"

#define CONNECT_TIMEOUT (5 * GY_SECOND)
#define CHECK_EVERY (GY_SECOND / 4)
#define TELLING GY_SECOND /* an attempt that lasted so long is significant, even if the deadline cut it short */
#define REFUSAL_TIMEOUT (2 * GY_SECOND) /* a stale file may lead to another process: it is read again for this long */
#define BACKOFF_LEAST GY_MILLISECOND
#define BACKOFF_MOST (50 * GY_MILLISECOND)
#define FLUSH_GRACE (GY_SECOND / 5)
#define UNREACHABLE_GRACE (GY_SECOND / 2)
#define GONE_GRACE (5 * GY_SECOND)

struct member {
    struct gy_rendezvous *meeting;
    struct gy_world *world;
    struct gy_handshake_io *handshake_io; /* secret memory */
    bool handshake_over;
    int errnum;  /* of the last attempt */
    bool silent; /* the last attempt was accepted, and not answered */
    struct gy_unanswered unanswered;
    enum gy_refusal refusal; /* of the last attempt */
    char refused[GY_REFUSAL_TEXT];
    char why[400];         /* of the last attempt */
    struct gy_stream root; /* to rank 0 */
    bool hung_up;          /* rank 0, before it had registered us */
    bool registered, seated;
    int parent;
    struct gy_bootstrap_tree tree;
    int64_t deadline;
    struct gy_error *error;
};

static bool failed(const struct member *member)
{
    return member->error->status != GYRE_SUCCESS;
}

static void on_closed(void *user, struct gy_stream *stream, int errnum)
{
    struct member *member = user;

    (void)stream;
    if (failed(member) || member->seated)
        return;
    if (member->registered || errnum == EBADMSG) /* it may have registered us: we cannot just try again */
        gy_bootstrap_lost(member->world, 0, errnum, member->error);
    else /* it was still busy with an earlier bootstrap, or has just ended: the next attempt decides */
        member->hung_up = true;
}

static void hear_position(struct member *member, uint8_t *body, size_t bytes)
{
    struct gy_world *world = member->world;
    struct gy_wire wire = gy_wire_over(body, bytes);
    uint32_t position, parent;
    int64_t left;

    world->job = gy_wire_get(&wire, 8);
    gy_wire_get_bytes(&wire, member->meeting->salt, GY_KEY_BYTES);
    left = (int64_t)gy_wire_get(&wire, 8);
    position = (uint32_t)gy_wire_get(&wire, 4);
    parent = (uint32_t)gy_wire_get(&wire, 4);
    if (bytes != GY_POSITION_BYTES || left < 0 || left > GY_TIMEOUT_MOST || position == 0 ||
        position >= (uint32_t)world->size || parent >= (uint32_t)world->size || parent == (uint32_t)world->rank ||
        !gy_member_decode(wire.at, &world->members[parent])) {
        gy_error_set(member->error, GYRE_PROTOCOL, 0,
                     "rank 0 sent a registration that this version does not understand");
        return;
    }
    gy_address_take_scope(&world->members[parent].address, &world->members[world->rank].address);
    member->registered = true;
    member->parent = (int)parent;
    /* Rank 0 determines the missing ranks: give it the time to report them. */
    if (member->deadline < gy_now() + left + 15 * GY_SECOND)
        member->deadline = gy_now() + left + 15 * GY_SECOND;
    gy_handshake_derive(member->meeting->identity->key, "gyre session", world->job, member->meeting->salt, world->key);
    gy_bootstrap_tree_sit(&member->tree, (int)position);
    if (gy_bootstrap_open_listener(world, member->error) == GYRE_SUCCESS)
        gy_bootstrap_tree_open(&member->tree);
}

static void on_message(void *user, struct gy_stream *stream, uint8_t kind, uint8_t *body, size_t bytes)
{
    struct member *member = user;

    (void)stream;
    if (kind == GY_BOOTSTRAP_POSITION && !member->registered)
        hear_position(member, body, bytes);
    else if (kind == GY_BOOTSTRAP_FAILED && !failed(member))
        gy_bootstrap_failed_decode(body, bytes, member->error);
}

static void on_handshake(void *user, struct gy_handshake_io *handshake_io, int errnum)
{
    struct member *member = user;

    member->handshake_over = true;
    member->errnum = errnum;
    const struct gy_handshake *handshake = &handshake_io->handshake;
    member->refusal = handshake->state == GY_HANDSHAKE_REFUSED ? handshake->refusal : GY_REFUSAL_NONE;
    if (gy_handshake_io_is_of_another_secret(handshake_io, &member->unanswered))
        member->refusal = GY_REFUSAL_SECRET;
    gy_refusal_print(member->refusal, handshake->peer_version, handshake->version, member->refused);
}

/* Until it is over, or hopeless. */
static void await_handshake(struct member *member, const struct gy_endpoint *endpoint, bool of_root)
{
    const struct gy_rendezvous_endpoint *where = member->meeting->endpoint;
    int64_t connected_by = of_root ? gy_now() + CONNECT_TIMEOUT : member->deadline, check_at = gy_now() + CHECK_EVERY;

    while (!member->handshake_over && gy_now() < member->deadline && !failed(member)) {
        gy_poller_poll(member->world->poller, GY_SECOND / 20);
        if (member->handshake_io->connecting && gy_now() > connected_by)
            return;
        if (!of_root || !where->path || gy_now() < check_at)
            continue;
        if (gy_rendezvous_moved(where->path, where->local_only, endpoint))
            return;
        check_at = gy_now() + CHECK_EVERY;
    }
}

/* One attempt to connect to the listener at `endpoint`: that of rank 0, or of the parent. Returns true if the fd is
 * authenticated. */
static bool connect_once(struct member *member, const struct gy_endpoint *endpoint, bool to_root)
{
    struct gy_world *world = member->world;
    const uint8_t *key = to_root ? member->meeting->identity->key : world->key;
    int fd = gy_socket_connect(endpoint), rank = to_root ? 0 : member->parent;

    member->handshake_over = false;
    member->refusal = GY_REFUSAL_NONE;
    member->errnum = errno;
    if (fd < 0 && gy_error_is_shortage(errno))
        gy_error_system(member->error, errno, "rank %d cannot make a socket to meet rank %d", world->rank, rank);
    if (fd < 0)
        return false;
    world->counters.sockets_opened++;
    gy_socket_tune(fd, world->config->peer_timeout_ns);
    memset(member->handshake_io, 0, sizeof(*member->handshake_io));
    gy_handshake_initiate(&member->handshake_io->handshake, key, to_root ? 0 : world->job, GY_PURPOSE_BOOTSTRAP,
                          (uint32_t)world->rank, (uint32_t)rank, (enum gy_integrity)world->config->integrity);
    member->errnum = ENOMEM;
    if (!gy_handshake_io_start(member->handshake_io, world->poller, fd, true, on_handshake, member))
        return false;
    await_handshake(member, endpoint, to_root);
    member->silent = false;
    if (!member->handshake_over) {
        struct sockaddr_storage peer;
        socklen_t bytes = sizeof(peer);

        member->silent = getpeername(fd, (struct sockaddr *)&peer, &bytes) == 0;
        gy_handshake_io_cancel(member->handshake_io);
        member->errnum = ETIMEDOUT;
    }
    return member->handshake_io->fd >= 0;
}

static bool find_root(struct member *member, struct gy_endpoint *endpoint_p)
{
    const struct gy_rendezvous_endpoint *where = member->meeting->endpoint;
    uint64_t nonce;

    if (!where->path) {
        *endpoint_p = where->endpoint;
        return true;
    }
    errno = 0;
    if (gy_rendezvous_read(where->path, where->local_only, endpoint_p, &nonce, member->why, sizeof(member->why))) {
        gy_address_take_scope(&endpoint_p->address, &member->world->members[member->world->rank].address);
        return true;
    }
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

/* True if this refusal is final. A file may be stale, and then it does not lead to our rank 0. */
static bool refused_for_good(struct member *member, int64_t *first_refusal)
{
    if (member->refusal == GY_REFUSAL_NONE)
        return false;
    if (!member->meeting->endpoint->path)
        return true;
    if (*first_refusal == 0)
        *first_refusal = gy_now();
    return gy_now() - *first_refusal > REFUSAL_TIMEOUT;
}

/* What the last attempt that was not cut short came to, where that was a refusal. */
struct answer {
    enum gy_refusal refusal; /* GY_REFUSAL_NONE: something else */
    char text[GY_REFUSAL_TEXT], at[GY_ADDRESS_TEXT + 80];
};

static gyre_status say_refused(struct member *member, const struct answer *answer)
{
    const char *hint = answer->refusal == GY_REFUSAL_SECRET
                           ? "; every rank needs the same GYRE_SECRET or GYRE_SECRET_FILE"
                       : answer->refusal == GY_REFUSAL_GARBAGE
                           ? "; is it another program? set GYRE_ADDRESS or MASTER_PORT to a free port on every rank"
                           : "";

    return gy_error_set(member->error, GYRE_REFUSED, member->world->rank, "rank %d at %s: refused: %s%s",
                        member->world->rank, answer->at, answer->text, hint);
}

static gyre_status say_unreachable(struct member *member)
{
    const struct gy_rendezvous_endpoint *where = member->meeting->endpoint;

    return gy_error_set(member->error, GYRE_MEETING_FAILED, 0,
                        "rank %d could not reach rank 0 at %s within %.1f s (%s); is rank 0 running, and is the "
                        "address right?%s",
                        member->world->rank, where->what,
                        (double)member->world->config->meet_timeout_ns / (double)GY_SECOND, member->why, where->hint);
}

static void note_answer(struct member *member, const struct gy_endpoint *endpoint, struct answer *answer_p)
{
    answer_p->refusal = member->refusal;
    snprintf(answer_p->text, sizeof(answer_p->text), "%s", member->refused);
    gy_endpoint_format(endpoint, answer_p->at, sizeof(answer_p->at));
    snprintf(member->why, sizeof(member->why), "%s: %s", answer_p->at,
             member->refusal != GY_REFUSAL_NONE ? member->refused
             : member->silent ? "a process accepts connections there and does not answer as gyre does; "
                                "is it another program?"
                              : strerror(member->errnum));
}

/* Tries until rank 0 has completed the handshake. If it is refused until the deadline, the error says so. */
static gyre_status reach_root(struct member *member)
{
    int64_t pause = BACKOFF_LEAST, first_refusal = 0;
    struct answer answer = {.refusal = GY_REFUSAL_NONE};

    for (;;) {
        struct gy_endpoint endpoint = {0};
        int64_t begun = gy_now();
        bool tries = !*member->why || begun < member->deadline;

        if (tries && !find_root(member, &endpoint)) {
            answer.refusal = GY_REFUSAL_NONE;
        } else if (tries) {
            if (connect_once(member, &endpoint, true))
                return GYRE_SUCCESS;
            if (!*member->why || gy_now() < member->deadline || member->refusal != GY_REFUSAL_NONE ||
                gy_now() - begun > TELLING)
                note_answer(member, &endpoint, &answer);
            if (refused_for_good(member, &first_refusal))
                return say_refused(member, &answer);
        }
        if (failed(member))
            return member->error->status;
        if (gy_now() >= member->deadline)
            return answer.refusal != GY_REFUSAL_NONE ? say_refused(member, &answer) : say_unreachable(member);
        pause_for(member, &pause);
    }
}

static void say_hello(struct member *member)
{
    const struct gy_rendezvous *meeting = member->meeting;
    struct gy_world *world = member->world;
    uint8_t body[GY_HELLO_MOST];
    struct gy_wire wire = gy_wire_over(body, sizeof(body));

    gy_wire_put(&wire, (uint32_t)world->size, 4);
    gy_wire_put(&wire, meeting->identity->label, 8);
    gy_member_encode(&world->members[world->rank], wire.at);
    memcpy(body + GY_HELLO_LEAST, meeting->settings, meeting->settings_bytes);
    gy_stream_send(&member->root, GY_BOOTSTRAP_HELLO, body, GY_HELLO_LEAST + meeting->settings_bytes);
}

/* Turns until `*until`, a failure, rank 0's hanging up, or the deadline, which is the error `late`. */
static void wait_for(struct member *member, const bool *until, const char *late)
{
    while (!failed(member) && !*until && !member->hung_up) {
        if (gy_now() > member->deadline)
            gy_error_set(member->error, GYRE_MEETING_FAILED, 0, "rank %d %s in time", member->world->rank, late);
        else
            gy_poller_poll(member->world->poller, GY_SECOND / 10);
    }
}

/* Connects to rank 0 and gets a tree position, however often rank 0 closes before that; reach_root keeps the
 * deadline. */
static gyre_status take_position(struct member *member)
{
    struct gy_world *world = member->world;
    int64_t pause = BACKOFF_LEAST;
    uint8_t body[8 + GY_BOOTSTRAP_TEXT];

    do {
        if (member->hung_up) {
            gy_stream_close(&member->root);
            pause_for(member, &pause);
            member->hung_up = false;
        }
        if (reach_root(member) != GYRE_SUCCESS)
            break;
        const struct gy_seal_keys *keys = &member->handshake_io->handshake.keys;
        if (gy_stream_open(&member->root, world->poller, member->handshake_io->fd, keys,
                           gy_max_size(8 + GY_BOOTSTRAP_TEXT, GY_POSITION_BYTES), on_message, on_closed, member,
                           member->error) != GYRE_SUCCESS) {
            gy_stream_refuse(member->handshake_io->fd, keys, GY_BOOTSTRAP_FAILED, body,
                             gy_bootstrap_failed_encode(member->error, member->world->rank, body));
            break;
        }
        member->root.sent_count = &world->counters.messages_sent;
        member->root.received_count = &world->counters.messages_received;
        say_hello(member);
        wait_for(member, &member->registered, "reached rank 0 but was not registered");
    } while (member->hung_up && !failed(member));
    return member->error->status;
}

/* Once the parent's listener has let us in, until it watches us. */
static void await_welcome(struct member *member)
{
    struct gy_bootstrap_tree *tree = &member->tree;

    gy_bootstrap_tree_join(tree, member->parent, member->handshake_io->fd, &member->handshake_io->handshake.keys);
    while (!failed(member) && !tree->welcome && !tree->turned_away && gy_now() < member->deadline)
        gy_poller_poll(member->world->poller, GY_SECOND / 20);
    member->errnum = tree->turned_away ? ECONNRESET : ETIMEDOUT;
}

/* A parent that has just failed is gone, and rank 0, which knows why or will know soon, sends the better error message.
 * Not so if the network does not lead there. */
static void await_sentence(struct member *member)
{
    bool network = member->errnum == ETIMEDOUT || member->errnum == EHOSTUNREACH || member->errnum == ENETUNREACH ||
                   member->errnum == ENETDOWN || member->refusal != GY_REFUSAL_NONE;
    int64_t until = gy_now() + (network ? UNREACHABLE_GRACE : GONE_GRACE);

    while (!failed(member) && gy_now() < until && gy_now() < member->deadline)
        gy_poller_poll(member->world->poller, GY_SECOND / 20);
}

static void join_parent(struct member *member)
{
    struct gy_world *world = member->world;
    struct gy_endpoint endpoint = {.address = world->members[member->parent].address};
    bool reached = false;

    for (int attempt = 0; attempt < 3 && !reached && !failed(member); attempt++)
        reached = connect_once(member, &endpoint, false);
    if (reached && failed(member))
        close(member->handshake_io->fd);
    else if (reached)
        await_welcome(member);
    if (member->tree.welcome) {
        member->seated = true;
        gy_stream_send(&member->root, GY_BOOTSTRAP_POSITIONED, NULL, 0);
        return;
    }
    await_sentence(member);
    if (!failed(member))
        gy_error_set(
            member->error, GYRE_PEER_UNREACHABLE, member->parent,
            "rank %d cannot reach rank %d at its listener %s: %s; if that is the wrong network, set GYRE_INTERFACE on "
            "rank %d's host",
            world->rank, member->parent, gy_endpoint_format(&endpoint, member->why, sizeof(member->why)),
            member->refusal != GY_REFUSAL_NONE ? member->refused : strerror(member->errnum), member->parent);
}

/* Sends what is queued for rank 0, for a short time, and closes. */
static void leave_root(struct member *member)
{
    int64_t deadline = gy_now() + FLUSH_GRACE;

    while (!gy_stream_flushed(&member->root) && gy_now() < deadline)
        gy_poller_poll(member->world->poller, GY_MILLISECOND);
    gy_stream_drain(&member->root);
    gy_stream_close(&member->root);
}

static gyre_status bootstrap(struct member *member)
{
    uint8_t body[8 + GY_BOOTSTRAP_TEXT];

    gy_bootstrap_tree_begin(&member->tree, member->world, member->error);
    if (take_position(member) == GYRE_SUCCESS)
        join_parent(member);
    if (failed(member)) /* SEAT may be in flight; rank 0 reads nothing from a rank that is not registered */
        gy_stream_send(&member->root, GY_BOOTSTRAP_FAILED, body,
                       gy_bootstrap_failed_encode(member->error, member->world->rank, body));
    leave_root(member);
    wait_for(member, &member->tree.went, "registered with rank 0, but the others were not complete");
    gy_bootstrap_tree_end(&member->tree);
    return member->error->status;
}

gyre_status gy_bootstrap_as_member(struct gy_rendezvous *meeting, struct gy_error *error)
{
    struct member *member = gy_alloc_zero(1, sizeof(*member));
    gyre_status status;

    if (member)
        member->handshake_io = gy_secret_alloc(sizeof(*member->handshake_io), GY_SECRET_COPIED);
    if (!member || !member->handshake_io) {
        gy_free(member);
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "no memory to meet");
    }
    member->meeting = meeting;
    member->world = meeting->world;
    member->deadline = meeting->deadline;
    member->error = error;
    member->handshake_io->fd = -1;
    status = bootstrap(member);
    gy_secret_free(member->handshake_io);
    gy_free(member);
    return status;
}
