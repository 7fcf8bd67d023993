/* A joiner: from an address and the secret to a rank in a running world.
 *
 *   LOOKING ──handshake, HELLO──► WAITING ──CALL, HERE──► WAITING ──WELCOME──► a world, epoch 2 or later
 *      ▲  ▲  └ refused: the end, unless the socket may have another owner by now
 *      │  └── ELSEWHERE: tries that endpoint next, then the address again
 *      └───── no listener, or the socket ends, or rank 0 is silent for too long: again, with another listener and nonce
 *
 * The joiner creates its own listener before HELLO, which carries its address, and opens it when WELCOME has brought
 * the key. If the socket ends between the two, or rank 0 is silent for longer than its WAIT allows, the world may have
 * counted the joiner in. So the joiner closes the listener, which tells the ranks of that epoch that it is not there.
 * The next HELLO carries another listener. A WELCOME is treated the same way if this process was stopped for so long
 * before it that the world has declared it failed (overlay_connect.c).
 *
 * Timeouts. A world answers only while it grows, so an answer has no deadline but that of the whole join. The file of a
 * file:// is read again meanwhile, since it may have another owner. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "core/secret_memory.h"
#include "core/topology.h"
#include "membership/join_server.h"
#include "membership/overlay.h"
#include "net/byte_codec.h"
#include "net/listener.h"
#include "net/message_stream.h"

#define CHECK_EVERY (GY_SECOND / 4)
#define PAUSE_LEAST (2 * GY_MILLISECOND)
#define PAUSE_MOST (50 * GY_MILLISECOND)
#define STALE_TIMEOUT (2 * GY_SECOND) /* a stale file may lead to another process: it is read again for this long */
#define SIZE_MOST 65536

struct joiner {
    struct gy_config *config;
    struct gy_poller *poller;
    struct gy_identity *identity;         /* secret memory, like the handshake */
    struct gy_join_address *join_address; /* of the world to come */
    struct gy_member own;                 /* without its address */
    struct gy_next_world next;
    struct gy_endpoint endpoint, elsewhere; /* where this attempt goes; where the next one shall */
    bool redirected, aside;                 /* the next attempt goes elsewhere; this one has */
    struct gy_handshake_io *handshake_io;
    bool handshake_over; /* the handshake is over */
    int errnum;
    enum gy_refusal refusal;
    struct gy_unanswered unanswered;
    struct gy_stream stream;
    bool lost;              /* the stream's end */
    bool stale;             /* this process was stopped for too long after HERE */
    bool forsaken;          /* rank 0 has been silent for too long */
    int64_t polled_at;      /* when it last looked */
    int64_t heard, timeout; /* time of rank 0's last message, and how long it may be silent; 0: not known yet */
    int64_t deadline, first_refusal;
    char why[400];
    struct gy_world *world; /* when welcome */
    struct gy_charter *charter;
    struct gy_error *error;
};

static bool failed(const struct joiner *joiner)
{
    return joiner->error->status != GYRE_SUCCESS;
}

/* ---- where ---- */

static bool resolve(struct joiner *joiner, struct gy_endpoint *endpoint_p)
{
    const struct gy_address *address = &joiner->identity->address;
    struct gy_error error = {.rank = -1, .quiet = true};
    struct gy_endpoint endpoint = {0};

    if (gy_address_resolve(address->host, address->port, &endpoint.address, &error) != GYRE_SUCCESS) {
        snprintf(joiner->why, sizeof(joiner->why), "%.380s", error.text);
        return false;
    }
    if (joiner->join_address->local_only && !gy_address_is_local(&endpoint.address)) {
        gy_error_set(
            joiner->error, GYRE_BAD_CONFIGURATION, -1,
            "tcp://%s:%u is another host, and there is no secret: set GYRE_SECRET or GYRE_SECRET_FILE to the text "
            "of the world to join, or GYRE_INSECURE=1 to insist",
            address->host, address->port);
        return false;
    }
    if (joiner->join_address->local_only)
        gy_endpoint_of_user(&endpoint.address, &endpoint);
    *endpoint_p = endpoint;
    return true;
}

static bool find_endpoint(struct joiner *joiner, struct gy_endpoint *endpoint_p)
{
    struct gy_error ignored = {.rank = -1, .quiet = true};
    struct sockaddr_storage own;
    uint64_t nonce;

    if (joiner->identity->address.kind == GY_ADDRESS_TCP)
        return resolve(joiner, endpoint_p);
    if (!gy_rendezvous_read(joiner->identity->address.path, joiner->join_address->local_only, endpoint_p, &nonce,
                            joiner->why, sizeof(joiner->why)))
        return false;
    if (gy_address_is_link_local(&endpoint_p->address) &&
        gy_address_own(NULL, joiner->config->interface, &own, &ignored) == GYRE_SUCCESS)
        gy_address_take_scope(&endpoint_p->address, &own);
    return true;
}

/* True if the file has another owner than the one of this attempt. */
static bool moved(const struct joiner *joiner)
{
    return joiner->identity->address.kind == GY_ADDRESS_FILE && !joiner->aside &&
           gy_rendezvous_moved(joiner->identity->address.path, joiner->join_address->local_only, &joiner->endpoint);
}

/* ---- hearing ---- */

static void hear_welcome(struct joiner *joiner, uint8_t *body, size_t bytes)
{
    struct gy_wire wire = gy_wire_over(body, bytes);
    struct gy_next_plan plan = {.grown = true, .job = gy_wire_get(&wire, 8)};
    uint8_t salt[GY_KEY_BYTES];
    struct gy_member *members = NULL;
    uint32_t epoch, rank, size;
    bool good;

    gy_wire_get_bytes(&wire, salt, sizeof(salt));
    epoch = (uint32_t)gy_wire_get(&wire, 4);
    rank = (uint32_t)gy_wire_get(&wire, 4);
    size = (uint32_t)gy_wire_get(&wire, 4);
    joiner->charter->size = (size_t)gy_wire_get(&wire, 2);
    good = !wire.bad && epoch > 1 && size > 1 && size <= SIZE_MOST && rank > 0 && rank < size &&
           joiner->charter->size <= GY_CHARTER_MOST;
    if (good)
        gy_wire_get_bytes(&wire, joiner->charter->bytes, joiner->charter->size);
    good = good && !wire.bad && (size_t)(wire.end - wire.at) == size * (size_t)GY_MEMBER_WIRE;
    if (good && !(members = gy_alloc(size * sizeof(*members)))) {
        gy_error_set(joiner->error, GYRE_NO_MEMORY, -1, "no memory for %u members", size);
        return;
    }
    for (uint32_t i = 0; good && i < size; i++, wire.at += GY_MEMBER_WIRE)
        good = gy_member_decode(wire.at, &members[i]) && members[i].address.ss_family != AF_UNSPEC;
    good = good && members[rank].nonce == joiner->next.own.nonce;
    if (good) {
        plan.rank = (int)rank;
        plan.size = (int)size;
        plan.salt = salt;
        plan.members = members;
        plan.known_running = joiner->polled_at;
        gy_world_enter(joiner->join_address, epoch, &joiner->next, &plan, joiner->config, joiner->poller,
                       &joiner->world, joiner->error);
        joiner->join_address = NULL;
    } else {
        gy_error_set(joiner->error, GYRE_PROTOCOL, 0,
                     "rank 0 of the world to join said something that this version does not understand");
    }
    gy_free(members);
}

static void say_here(struct joiner *joiner)
{
    joiner->stale = false;
    joiner->polled_at = gy_now();
    gy_stream_send(&joiner->stream, GY_JOIN_HERE, NULL, 0);
}

/* The new world waits for this process as long as the stall timeout says, and does not begin to before HERE. Returns
 * true if that time is over. */
static bool is_stale(struct joiner *joiner)
{
    joiner->stale |= gy_now() - joiner->polled_at > joiner->config->stall_timeout_ns;
    return joiner->stale;
}

static void hear_wait(struct joiner *joiner, uint8_t *body, size_t bytes)
{
    struct gy_wire wire = gy_wire_over(body, bytes);
    int64_t timeout = (int64_t)gy_wire_get(&wire, 4) * GY_MILLISECOND;

    if (!wire.bad)
        joiner->timeout = timeout;
}

/* True if rank 0 is stopped or cut off, and the world may have grown without telling this process. Messages that came
 * while this process was itself stopped are handled first. */
static bool is_forsaken(struct joiner *joiner)
{
    if (joiner->timeout == 0 || gy_now() - joiner->heard <= joiner->timeout)
        return false;
    gy_poller_poll(joiner->poller, 0);
    joiner->forsaken = !joiner->world && gy_now() - joiner->heard > joiner->timeout;
    if (joiner->forsaken)
        gy_log(GY_LOG_INFO, "rank 0 of the world to join says nothing any more; this process tries again");
    return joiner->forsaken;
}

static void hear_elsewhere(struct joiner *joiner, const uint8_t *body)
{
    if (!gy_endpoint_decode(body, &joiner->elsewhere))
        return;
    gy_address_take_scope(&joiner->elsewhere.address, &joiner->endpoint.address);
    joiner->lost = joiner->redirected = true;
}

static void on_message(void *user, struct gy_stream *stream, uint8_t kind, uint8_t *body, size_t bytes)
{
    struct joiner *joiner = user;

    (void)stream;
    if (failed(joiner) || joiner->world)
        return;
    joiner->heard = gy_now();
    if (kind == GY_JOIN_WAIT)
        hear_wait(joiner, body, bytes);
    else if (kind == GY_JOIN_CALL)
        say_here(joiner);
    else if (kind == GY_JOIN_WELCOME && is_stale(joiner))
        joiner->lost = true;
    else if (kind == GY_JOIN_WELCOME)
        hear_welcome(joiner, body, bytes);
    else if (kind == GY_JOIN_FAILED)
        gy_bootstrap_failed_decode(body, bytes, joiner->error);
    else if (kind == GY_JOIN_ELSEWHERE && bytes == GY_ENDPOINT_WIRE)
        hear_elsewhere(joiner, body);
}

static void on_closed(void *user, struct gy_stream *stream, int errnum)
{
    struct joiner *joiner = user;

    joiner->lost = true;
    if (errnum == EBADMSG)
        gy_log(GY_LOG_WARN, "what the world to join said %s", gy_flaw_text(stream->flaw));
}

static void on_handshake(void *user, struct gy_handshake_io *handshake_io, int errnum)
{
    struct joiner *joiner = user;
    const struct gy_handshake *handshake = &handshake_io->handshake;
    char text[GY_REFUSAL_TEXT];

    joiner->handshake_over = true;
    joiner->errnum = errnum;
    joiner->refusal = handshake->state == GY_HANDSHAKE_REFUSED ? handshake->refusal : GY_REFUSAL_NONE;
    if (gy_handshake_io_is_of_another_secret(handshake_io, &joiner->unanswered))
        joiner->refusal = GY_REFUSAL_SECRET;
    if (handshake_io->fd < 0)
        snprintf(joiner->why, sizeof(joiner->why), "%s",
                 joiner->refusal ? gy_refusal_print(joiner->refusal, handshake->peer_version, handshake->version, text)
                                 : strerror(errnum ? errnum : ECONNRESET));
}

/* ---- one attempt ---- */

/* Turns until `*until`, an end, or the endpoint is another one. */
static void wait_for(struct joiner *joiner, const bool *until)
{
    int64_t check_at = gy_now() + CHECK_EVERY;

    while (!failed(joiner) && !*until && !joiner->world && gy_now() < joiner->deadline) {
        joiner->polled_at = gy_now();
        gy_poller_poll(joiner->poller, GY_SECOND / 20);
        is_stale(joiner);
        if (joiner->world ||
            is_forsaken(joiner)) /* welcome: there is no join address of its own any more, to look from */
            return;
        if (gy_now() < check_at)
            continue;
        if (moved(joiner))
            return;
        check_at = gy_now() + CHECK_EVERY;
    }
}

static gyre_status make_listener(struct joiner *joiner)
{
    struct sockaddr_storage at = {.ss_family = AF_INET};
    gyre_status status = GYRE_SUCCESS;

    if (joiner->next.listener)
        return GYRE_SUCCESS;
    if (joiner->endpoint.is_unix && !*joiner->config->interface)
        ((struct sockaddr_in *)&at)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else
        status = gy_address_own(joiner->endpoint.is_unix ? NULL : &joiner->endpoint.address, joiner->config->interface,
                                &at, joiner->error);
    if (status == GYRE_SUCCESS)
        status = gy_world_next_prepare_at(&joiner->own, &at, joiner->config, &joiner->next, joiner->error);
    return status;
}

static void say_hello(struct joiner *joiner)
{
    uint8_t body[GY_JOIN_HELLO_MOST];
    struct gy_wire wire = gy_wire_over(body, sizeof(body));
    char settings[GY_CONFIG_SHARED];
    size_t bytes = gy_config_shared(joiner->config, settings);

    gy_wire_put(&wire, joiner->identity->label, 8);
    gy_member_encode(&joiner->next.own, wire.at);
    memcpy(body + GY_JOIN_HELLO_LEAST, settings, bytes);
    gy_stream_send(&joiner->stream, GY_JOIN_HELLO, body, GY_JOIN_HELLO_LEAST + bytes);
}

/* The socket is authenticated. */
static void knock(struct joiner *joiner)
{
    struct gy_handshake *handshake = &joiner->handshake_io->handshake;
    gyre_status status = make_listener(joiner);

    if (status == GYRE_SUCCESS)
        status = gy_stream_open(&joiner->stream, joiner->poller, joiner->handshake_io->fd, &handshake->keys,
                                8 + GY_BOOTSTRAP_TEXT, on_message, on_closed, joiner, joiner->error);
    gy_handshake_forget(handshake);
    if (status != GYRE_SUCCESS) {
        close(joiner->handshake_io->fd);
        return;
    }
    gy_stream_widen(&joiner->stream, GY_JOIN_WELCOME_LEAST + GY_CHARTER_MOST + (size_t)SIZE_MOST * GY_MEMBER_WIRE);
    joiner->lost = joiner->forsaken = false;
    joiner->heard = gy_now();
    say_hello(joiner);
    wait_for(joiner, &joiner->lost);
    snprintf(joiner->why, sizeof(joiner->why), "%s",
             joiner->lost       ? "it ended the connection"
             : joiner->forsaken ? "it says nothing any more; is it stopped?"
                                : "it has let no process in meanwhile");
    joiner->timeout = 0;
    gy_stream_close(&joiner->stream);
    gy_world_next_cancel(&joiner->next); /* nothing where it is in use */
}

static void attempt(struct joiner *joiner)
{
    int fd = gy_socket_connect(&joiner->endpoint);

    joiner->handshake_over = false;
    joiner->refusal = GY_REFUSAL_NONE;
    if (fd < 0) {
        if (gy_error_is_shortage(errno))
            gy_error_system(joiner->error, errno, "cannot make a socket to join a world");
        snprintf(joiner->why, sizeof(joiner->why), "%s", strerror(errno));
        return;
    }
    gy_socket_tune(fd, joiner->config->peer_timeout_ns);
    memset(joiner->handshake_io, 0, sizeof(*joiner->handshake_io));
    gy_handshake_initiate(&joiner->handshake_io->handshake, joiner->identity->key, 0, GY_PURPOSE_JOIN, 1, 0,
                          (enum gy_integrity)joiner->config->integrity);
    if (!gy_handshake_io_start(joiner->handshake_io, joiner->poller, fd, true, on_handshake, joiner)) {
        snprintf(joiner->why, sizeof(joiner->why), "%s", strerror(ENOMEM));
        return;
    }
    wait_for(joiner, &joiner->handshake_over);
    if (!joiner->handshake_over) {
        gy_handshake_io_cancel(joiner->handshake_io);
        snprintf(joiner->why, sizeof(joiner->why), "it does not let anybody in now");
    } else if (joiner->handshake_io->fd >= 0) {
        knock(joiner);
    }
}

/* A joiner refused for its identity or settings gives up. But a world that is still bootstrapping may accept later, and
 * a file may be stale. */
static void handle_refusal(struct joiner *joiner, const char *at)
{
    const char *advice = joiner->refusal == GY_REFUSAL_SECRET
                             ? "; every rank needs the same GYRE_SECRET or GYRE_SECRET_FILE"
                             : "";

    if (failed(joiner) || joiner->world || joiner->refusal == GY_REFUSAL_NONE ||
        joiner->refusal == GY_REFUSAL_PURPOSE || joiner->aside)
        return;
    if (joiner->first_refusal == 0)
        joiner->first_refusal = gy_now();
    if (joiner->identity->address.kind == GY_ADDRESS_TCP || gy_now() - joiner->first_refusal > STALE_TIMEOUT)
        gy_error_set(joiner->error, GYRE_REFUSED, -1, "this process was refused at %s: %.200s%s", at, joiner->why,
                     advice);
}

static void pause_for(struct joiner *joiner, int64_t *pause)
{
    int64_t until = gy_now() + *pause;

    while (gy_now() < until)
        gy_poller_poll(joiner->poller, until - gy_now());
    *pause = *pause * 2 < PAUSE_MOST ? *pause * 2 : PAUSE_MOST;
}

static gyre_status join(struct joiner *joiner)
{
    const struct gy_address *address = &joiner->identity->address;
    char what[320], at[GY_ADDRESS_TEXT + 80] = "nowhere";
    int64_t pause = PAUSE_LEAST;

    if (address->kind == GY_ADDRESS_TCP)
        snprintf(what, sizeof(what), "tcp://%s:%u", address->host, address->port);
    else
        snprintf(what, sizeof(what), "file://%s", address->path);
    while (!failed(joiner) && !joiner->world) {
        joiner->aside = joiner->redirected;
        joiner->redirected = false;
        joiner->endpoint = joiner->elsewhere;
        if (joiner->aside || find_endpoint(joiner, &joiner->endpoint)) {
            gy_endpoint_format(&joiner->endpoint, at, sizeof(at));
            attempt(joiner);
            handle_refusal(joiner, at);
        }
        if (failed(joiner) || joiner->world)
            break;
        if (gy_now() >= joiner->deadline)
            gy_error_set(
                joiner->error, GYRE_MEETING_FAILED, -1,
                "no world has let this process in within %.1f s (GYRE_MEET_TIMEOUT): %s, last at %s: %.200s; do "
                "its members call gyre_comm_grow?",
                (double)joiner->config->meet_timeout_ns / (double)GY_SECOND, what, at, joiner->why);
        else if (!joiner->redirected)
            pause_for(joiner, &pause);
    }
    return joiner->error->status;
}

static gyre_status check_identity(struct joiner *joiner)
{
    const struct gy_identity *identity = joiner->identity;

    if (identity->address.kind != GY_ADDRESS_NONE)
        return GYRE_SUCCESS;
    return gy_error_set(joiner->error, GYRE_BAD_CONFIGURATION, -1,
                        "a joining process needs the address of the world that it joins: set GYRE_ADDRESS, or "
                        "gyre_config.address, to tcp://HOST:PORT of any member or to the file:///PATH where it met");
}

static gyre_status begin_join(const gyre_config *user, struct joiner *joiner)
{
    gyre_status status;

    joiner->identity = gy_secret_alloc(sizeof(*joiner->identity), GY_SECRET_COPIED);
    joiner->handshake_io = gy_secret_alloc(sizeof(*joiner->handshake_io), GY_SECRET_COPIED);
    if (!joiner->identity || !joiner->handshake_io)
        return gy_error_set(joiner->error, GYRE_NO_MEMORY, -1, "no memory to join a world");
    status = gy_identity_read_joiner(user, joiner->config, joiner->identity, joiner->error);
    if (status == GYRE_SUCCESS)
        status = check_identity(joiner);
    if (status != GYRE_SUCCESS)
        return status;
    joiner->join_address = gy_join_address_make(joiner->identity, joiner->config);
    if (!joiner->join_address)
        return gy_error_set(joiner->error, GYRE_NO_MEMORY, -1, "no memory to join a world");
    joiner->join_address->used = true;
    gy_member_know_myself(&joiner->own, joiner->config);
    return GYRE_SUCCESS;
}

gyre_status gy_world_join(const gyre_config *user, struct gy_config *config, struct gy_poller *poller,
                          struct gy_world **world_p, struct gy_charter *charter_p, struct gy_error *error)
{
    struct joiner *joiner = gy_alloc_zero(1, sizeof(*joiner));
    gyre_status status;

    if (!joiner)
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "no memory to join a world");
    joiner->config = config;
    joiner->poller = poller;
    joiner->charter = charter_p;
    joiner->error = error;
    joiner->deadline = gy_now() + config->meet_timeout_ns;
    status = begin_join(user, joiner);
    if (status == GYRE_SUCCESS)
        status = join(joiner);
    if (status == GYRE_SUCCESS)
        *world_p = joiner->world;
    gy_join_address_free(joiner->join_address);
    gy_secret_free(joiner->handshake_io);
    gy_secret_free(joiner->identity);
    gy_free(joiner);
    return status;
}
