/* The members' side of a join.
 *
 *   backlog ──listener──► greeted ──HELLO──► waits ──CALL──► called ──HERE──► here ──take──► taken ──WELCOME──► gone
 *                        └── another run or other settings: FAILED, one line in the log, closed
 *
 * From HELLO on rank 0 sends WAIT four times as often as it has to. A joiner that receives none gives up and closes its
 * listener, well before the stall timeout of the new world has reported it together with rank 0. Both would count in
 * that world as members that may be alive, and the other members might have no quorum (quorum.c).
 *
 * A member other than rank 0 sends ELSEWHERE instead. A joiner that closes its socket is forgotten, in any state. If it
 * was taken, it is a member of the next epoch that has died. Nothing here outlives one growth step: the remaining
 * joiners are closed, reconnect and wait in the backlog. So between two growth steps no unknown process holds memory
 * here. */
#include "membership/join_server.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "net/byte_codec.h"
#include "net/listener.h"
#include "net/message_stream.h"

#define LISTENERS 2
#define HELLO_TIMEOUT (GY_SECOND / 2)
#define FLUSH_GRACE (GY_SECOND / 5)
#define WAITS_PER_TIMEOUT 4

enum joiner_state { GREETED, WAITS, CALLED, HERE, TAKEN };

struct joiner {
    struct gy_join_server *join_server;
    struct joiner *next;
    struct gy_stream stream;
    enum joiner_state state;
    int64_t since;
    struct gy_member member;
};

struct gy_join_server {
    struct gy_world *world;
    struct gy_listener *listeners[LISTENERS];
    bool host;
    struct gy_endpoint elsewhere;
    struct joiner *first; /* in the order in which they came */
    int count;
    struct gy_watch timer; /* of rank 0, for WAIT; fd −1: none */
};

void gy_endpoint_encode(const struct gy_endpoint *endpoint, uint8_t wire_p[GY_ENDPOINT_WIRE])
{
    wire_p[0] = endpoint->is_unix;
    gy_address_encode(&endpoint->address, wire_p + 1);
    memcpy(wire_p + 1 + GY_ADDRESS_WIRE, endpoint->name, sizeof(endpoint->name));
}

bool gy_endpoint_decode(const uint8_t wire[GY_ENDPOINT_WIRE], struct gy_endpoint *endpoint_p)
{
    struct gy_endpoint endpoint = {.is_unix = wire[0] != 0};

    memcpy(endpoint.name, wire + 1 + GY_ADDRESS_WIRE, sizeof(endpoint.name));
    if (wire[0] > 1 || !gy_address_decode(wire + 1, &endpoint.address) || endpoint.name[sizeof(endpoint.name) - 1] ||
        (!endpoint.is_unix && endpoint.address.ss_family != AF_INET && endpoint.address.ss_family != AF_INET6))
        return false;
    *endpoint_p = endpoint;
    return true;
}

static void refuse(struct joiner *joiner, const struct gy_error *error)
{
    uint8_t body[8 + GY_BOOTSTRAP_TEXT];

    gy_stream_send(&joiner->stream, GY_JOIN_FAILED, body,
                   gy_bootstrap_failed_encode(error, joiner->join_server->world->rank, body));
    gy_stream_close(&joiner->stream);
}

/* True if the joiner has our run label and our settings. */
static bool fits(const struct gy_join_server *join_server, uint64_t label, const uint8_t *settings, size_t bytes,
                 struct gy_error *error)
{
    char mine[GY_CONFIG_SHARED + 1], other[GY_CONFIG_SHARED + 1];
    struct gy_config_difference difference;
    uint64_t ours = join_server->world->join_address->label;
    int own = join_server->world->rank;

    if (label != 0 && ours != 0 && label != ours) { /* 0: started without any launcher */
        gy_error_set(
            error, GYRE_REFUSED, -1,
            "a joining process belongs to another job (TORCHELASTIC_RUN_ID, or Slurm's job and step, differ from rank "
            "%d's)",
            own);
        return false;
    }
    memcpy(mine, join_server->world->join_address->settings, join_server->world->join_address->settings_bytes);
    mine[join_server->world->join_address->settings_bytes] = '\0';
    memcpy(other, settings, bytes);
    other[bytes] = '\0';
    if (!gy_config_differs(mine, other, &difference))
        return true;
    gy_error_set(error, GYRE_REFUSED, -1,
                 "%s differs: %s on rank %d, %s at a joining process; it must be the same on every rank",
                 difference.name, difference.mine, own, difference.theirs);
    return false;
}

/* Half of the time after which the new world reports the ranks that have not connected. */
static int64_t timeout(const struct gy_join_server *join_server)
{
    const struct gy_config *config = join_server->world->config;
    int64_t stall = config->stall_timeout_ns, bootstrap = config->meet_timeout_ns,
            half = (stall < bootstrap ? stall : bootstrap) / 2;

    return half > GY_MILLISECOND ? half : GY_MILLISECOND;
}

static void say_wait(struct joiner *joiner)
{
    uint8_t body[4];
    struct gy_wire wire = gy_wire_over(body, sizeof(body));
    int64_t ms = timeout(joiner->join_server) / GY_MILLISECOND;

    gy_wire_put(&wire, ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX, 4);
    gy_stream_send(&joiner->stream, GY_JOIN_WAIT, body, sizeof(body));
}

static void on_timer(void *owner, uint32_t events)
{
    struct gy_join_server *join_server = owner;
    uint64_t ticks;

    (void)events;
    (void)!read(join_server->timer.fd, &ticks, sizeof(ticks));
    for (struct joiner *joiner = join_server->first; joiner; joiner = joiner->next)
        if (joiner->state != GREETED)
            say_wait(joiner);
}

static gyre_status run_timer(struct gy_join_server *join_server, struct gy_error *error)
{
    int64_t every = timeout(join_server) / WAITS_PER_TIMEOUT;
    struct timespec span = {.tv_sec = every / GY_SECOND, .tv_nsec = every % GY_SECOND};
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

    if (fd < 0)
        return gy_error_system(error, errno, "rank %d cannot make a timer to let joining processes in",
                               join_server->world->rank);
    timerfd_settime(fd, 0, &(struct itimerspec){.it_value = span, .it_interval = span}, NULL);
    join_server->timer = (struct gy_watch){.fd = fd, .events = EPOLLIN, .callback = on_timer, .owner = join_server};
    return gy_poller_add(join_server->world->poller, &join_server->timer, error);
}

static void stop_timer(struct gy_join_server *join_server)
{
    if (join_server->timer.fd < 0)
        return;
    gy_poller_remove(join_server->world->poller, &join_server->timer);
    close(join_server->timer.fd);
    join_server->timer.fd = -1;
}

static void hear_hello(struct joiner *joiner, uint8_t *body, size_t bytes)
{
    struct gy_join_server *join_server = joiner->join_server;
    struct gy_error error = {.rank = -1};
    struct gy_wire wire = gy_wire_over(body, bytes);
    uint64_t label = gy_wire_get(&wire, 8);
    uint8_t endpoint[GY_ENDPOINT_WIRE];

    if (bytes < GY_JOIN_HELLO_LEAST || !gy_member_decode(wire.at, &joiner->member) ||
        joiner->member.address.ss_family == AF_UNSPEC) {
        gy_log(GY_LOG_WARN, "a joining process said something that this version does not understand");
        gy_stream_close(&joiner->stream);
    } else if (!join_server->host) {
        gy_endpoint_encode(&join_server->elsewhere, endpoint);
        gy_stream_send(&joiner->stream, GY_JOIN_ELSEWHERE, endpoint, sizeof(endpoint));
        gy_stream_close(&joiner->stream);
    } else if (!fits(join_server, label, body + GY_JOIN_HELLO_LEAST, bytes - GY_JOIN_HELLO_LEAST, &error)) {
        refuse(joiner, &error);
    } else {
        joiner->state = WAITS;
        say_wait(joiner);
    }
}

static void on_message(void *user, struct gy_stream *stream, uint8_t kind, uint8_t *body, size_t bytes)
{
    struct joiner *joiner = user;

    if (kind == GY_JOIN_HELLO && joiner->state == GREETED)
        hear_hello(joiner, body, bytes);
    else if (kind == GY_JOIN_HERE && joiner->state == CALLED)
        joiner->state = HERE;
    else
        gy_stream_close(stream);
}

static void on_closed(void *user, struct gy_stream *stream, int errnum)
{
    (void)user;
    if (errnum != 0)
        gy_log(GY_LOG_INFO, "a joining process is gone: %s",
               stream->flaw ? gy_flaw_text(stream->flaw) : strerror(errnum));
    gy_stream_close(stream);
}

static void sweep(struct gy_join_server *join_server)
{
    for (struct joiner **at = &join_server->first; *at;) {
        struct joiner *joiner = *at;

        if (joiner->stream.fd >= 0 || joiner->state == TAKEN) {
            at = &joiner->next;
            continue;
        }
        *at = joiner->next;
        gy_stream_close(&joiner->stream);
        gy_free(joiner);
        join_server->count--;
    }
}

static void on_joiner(void *user, int rank, int fd, const struct gy_seal_keys *keys)
{
    struct gy_join_server *join_server = user;
    struct joiner *joiner = NULL, **last = &join_server->first;

    (void)rank;
    if (join_server->count < 2 * GY_JOINERS_MOST)
        joiner = gy_alloc_zero(1, sizeof(*joiner));
    if (!joiner) { /* it comes again */
        close(fd);
        return;
    }
    joiner->join_server = join_server;
    joiner->since = gy_now();
    if (gy_stream_open(&joiner->stream, join_server->world->poller, fd, keys, GY_JOIN_HELLO_MOST, on_message, on_closed,
                       joiner, NULL) != GYRE_SUCCESS) {
        close(fd);
        gy_free(joiner);
        return;
    }
    while (*last)
        last = &(*last)->next;
    *last = joiner;
    join_server->count++;
}

static gyre_status open_listener(struct gy_join_server *join_server, const struct gy_join_listener *at,
                                 struct gy_listener **listener_p, struct gy_error *error)
{
    struct gy_world *world = join_server->world;
    const struct gy_listener_env env = {
        .poller = world->poller,
        .key = world->join_address->key,
        .job = world->job,
        .rank = 0,
        .size = 2,
        .purposes = 1u << GY_PURPOSE_JOIN,
        .peer_timeout_ns = world->config->peer_timeout_ns,
        .integrity = (enum gy_integrity)world->config->integrity,
    };
    struct gy_join_listener open;
    gyre_status status;

    if (at->fd < 0)
        return GYRE_SUCCESS;
    if (!gy_join_listener_dup(at, &open))
        return gy_error_system(error, errno, "rank %d cannot open its listener to joining processes", world->rank);
    status = gy_listener_create(open.fd, listener_p, error);
    if (status != GYRE_SUCCESS)
        return status;
    gy_listener_on(*listener_p, GY_PURPOSE_JOIN, on_joiner, join_server);
    return gy_listener_open(*listener_p, &env, error);
}

gyre_status gy_join_server_open(struct gy_world *world, const struct gy_endpoint *elsewhere,
                                struct gy_join_server **join_server_p, struct gy_error *error)
{
    struct gy_join_server *join_server = gy_alloc_zero(1, sizeof(*join_server));
    gyre_status status;

    if (!join_server)
        return gy_error_set(error, GYRE_NO_MEMORY, world->rank, "rank %d has no memory to let joining processes in",
                            world->rank);
    join_server->world = world;
    join_server->host = !elsewhere;
    join_server->timer.fd = -1;
    if (elsewhere)
        join_server->elsewhere = *elsewhere;
    status = elsewhere ? GYRE_SUCCESS : run_timer(join_server, error);
    if (status == GYRE_SUCCESS)
        status = open_listener(join_server, &world->join_address->own, &join_server->listeners[0], error);
    if (status == GYRE_SUCCESS)
        status = open_listener(join_server, &world->join_address->known, &join_server->listeners[1], error);
    if (status == GYRE_SUCCESS)
        *join_server_p = join_server;
    else
        gy_join_server_close(join_server);
    return status;
}

static int count(const struct gy_join_server *join_server, enum joiner_state state)
{
    int found = 0;

    for (const struct joiner *joiner = join_server->first; joiner; joiner = joiner->next)
        found += joiner->state == state && joiner->stream.fd >= 0;
    return found;
}

int gy_join_server_waiting(struct gy_join_server *join_server)
{
    sweep(join_server);
    return count(join_server, WAITS);
}

bool gy_join_server_busy(const struct gy_join_server *join_server)
{
    int64_t now = gy_now();

    for (int i = 0; i < LISTENERS; i++)
        if (join_server->listeners[i] && gy_listener_handshake(join_server->listeners[i]) > 0)
            return true;
    for (const struct joiner *joiner = join_server->first; joiner; joiner = joiner->next)
        if (joiner->state == GREETED && joiner->stream.fd >= 0 && now - joiner->since < HELLO_TIMEOUT)
            return true;
    return false;
}

void gy_join_server_call(struct gy_join_server *join_server, int most)
{
    for (struct joiner *joiner = join_server->first; joiner && most > 0; joiner = joiner->next) {
        if (joiner->state != WAITS || !gy_stream_send(&joiner->stream, GY_JOIN_CALL, NULL, 0))
            continue;
        joiner->state = CALLED;
        most--;
    }
}

bool gy_join_server_called(const struct gy_join_server *join_server)
{
    return count(join_server, CALLED) > 0;
}

int gy_join_server_take(struct gy_join_server *join_server, struct gy_member *members_p)
{
    int taken = 0;

    for (struct joiner *joiner = join_server->first; joiner; joiner = joiner->next) {
        if (joiner->state != HERE || joiner->stream.fd < 0 || taken == GY_JOINERS_MOST)
            continue;
        joiner->state = TAKEN;
        members_p[taken++] = joiner->member;
    }
    return taken;
}

void gy_join_server_welcome(struct gy_join_server *join_server, const struct gy_next_plan *plan, uint32_t epoch,
                            const struct gy_charter *charter)
{
    size_t bytes = GY_JOIN_WELCOME_LEAST + charter->size + (size_t)plan->size * GY_MEMBER_WIRE;
    uint8_t *body = gy_alloc(bytes);
    int rank = plan->size;

    if (!body)
        return; /* they come again, and the world finds them dead */
    for (const struct joiner *joiner = join_server->first; joiner; joiner = joiner->next)
        rank -= joiner->state == TAKEN;
    for (struct joiner *joiner = join_server->first; joiner; joiner = joiner->next) {
        struct gy_wire wire = gy_wire_over(body, bytes);

        if (joiner->state != TAKEN)
            continue;
        gy_wire_put(&wire, plan->job, 8);
        gy_wire_put_bytes(&wire, plan->salt, GY_KEY_BYTES);
        gy_wire_put(&wire, epoch, 4);
        gy_wire_put(&wire, (uint32_t)rank++, 4);
        gy_wire_put(&wire, (uint32_t)plan->size, 4);
        gy_wire_put(&wire, charter->size, 2);
        gy_wire_put_bytes(&wire, charter->bytes, charter->size);
        for (int i = 0; i < plan->size; i++, wire.at += GY_MEMBER_WIRE)
            gy_member_encode(&plan->members[i], wire.at);
        if (joiner->stream.fd >= 0)
            gy_stream_send(&joiner->stream, GY_JOIN_WELCOME, body, bytes);
    }
    gy_free(body);
}

static bool flushed(const struct gy_join_server *join_server)
{
    for (const struct joiner *joiner = join_server->first; joiner; joiner = joiner->next)
        if (joiner->stream.fd >= 0 && !gy_stream_flushed(&joiner->stream))
            return false;
    return true;
}

void gy_join_server_close(struct gy_join_server *join_server)
{
    int64_t deadline = gy_now() + FLUSH_GRACE;

    if (!join_server)
        return;
    while (!flushed(join_server) && gy_now() < deadline)
        gy_poller_poll(join_server->world->poller, GY_MILLISECOND);
    stop_timer(join_server);
    for (int i = 0; i < LISTENERS; i++)
        gy_listener_free(join_server->listeners[i]);
    for (struct joiner *joiner = join_server->first; joiner;) {
        struct joiner *next = joiner->next;

        gy_stream_close(&joiner->stream);
        gy_free(joiner);
        joiner = next;
    }
    gy_free(join_server);
}
