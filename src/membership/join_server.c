/* The members' side of a newcomer's joining.
 *
 *   backlog ──door──► greeted ──HELLO──► waits ──CALL──► called ──HERE──► here ──take──► taken ──WELCOME──► gone
 *                        └── another run or other settings: FAILED, one line in the log, closed
 *
 * From HELLO on rank 0 says WAIT four times as often as it has to: who hears none goes, and closes its door, well before the
 * stall clock of the new world has named it together with rank 0. Both would count in that world as members who may live
 * elsewhere, and those who are left might be too few (quorum.c).
 *
 * A member other than rank 0 says ELSEWHERE instead. Whoever closes is forgotten, in whatever state; if it was taken, it
 * is a member of the next epoch that has died. Nothing here outlives one growing: who is still there at its end is closed,
 * comes again and waits in the backlog, so that between two growings no stranger has a byte of this process. */
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

#define DOORS 2
#define HELLO_PATIENCE (GY_SECOND / 2)
#define FLUSH_GRACE (GY_SECOND / 5)
#define WAITS_PER_PATIENCE 4

enum newcomer_state { GREETED, WAITS, CALLED, HERE, TAKEN };

struct newcomer {
    struct gy_reception *reception;
    struct newcomer *next;
    struct gy_stream stream;
    enum newcomer_state state;
    int64_t since;
    struct gy_member member;
};

struct gy_reception {
    struct gy_world *world;
    struct gy_door *doors[DOORS];
    bool host;
    struct gy_place elsewhere;
    struct newcomer *first; /* in the order in which they came */
    int count;
    struct gy_watch timer; /* of rank 0, for WAIT; fd −1: none */
};

void gy_place_encode(const struct gy_place *place, uint8_t wire_p[GY_PLACE_WIRE])
{
    wire_p[0] = place->local;
    gy_address_encode(&place->address, wire_p + 1);
    memcpy(wire_p + 1 + GY_ADDRESS_WIRE, place->name, sizeof(place->name));
}

bool gy_place_decode(const uint8_t wire[GY_PLACE_WIRE], struct gy_place *place_p)
{
    struct gy_place place = {.local = wire[0] != 0};

    memcpy(place.name, wire + 1 + GY_ADDRESS_WIRE, sizeof(place.name));
    if (wire[0] > 1 || !gy_address_decode(wire + 1, &place.address) || place.name[sizeof(place.name) - 1] ||
        (!place.local && place.address.ss_family != AF_INET && place.address.ss_family != AF_INET6))
        return false;
    *place_p = place;
    return true;
}

static void refuse(struct newcomer *newcomer, const struct gy_error *error)
{
    uint8_t body[8 + GY_MEET_TEXT];

    gy_stream_send(&newcomer->stream, GY_JOIN_FAILED, body,
                   gy_meet_failed_encode(error, newcomer->reception->world->rank, body));
    gy_stream_close(&newcomer->stream);
}

/* Is it of our run and of our settings? */
static bool fits(const struct gy_reception *reception, uint64_t label, const uint8_t *settings, size_t bytes,
                 struct gy_error *error)
{
    char mine[GY_CONFIG_SHARED + 1], other[GY_CONFIG_SHARED + 1];
    struct gy_config_difference difference;
    uint64_t ours = reception->world->house->label;
    int own = reception->world->rank;

    if (label != 0 && ours != 0 && label != ours) { /* 0: it stands outside of any launcher */
        gy_error_set(
            error, GYRE_REFUSED, -1,
            "a newcomer belongs to another job (TORCHELASTIC_RUN_ID, or Slurm's job and step, differ from rank "
            "%d's)",
            own);
        return false;
    }
    memcpy(mine, reception->world->house->settings, reception->world->house->settings_bytes);
    mine[reception->world->house->settings_bytes] = '\0';
    memcpy(other, settings, bytes);
    other[bytes] = '\0';
    if (!gy_config_differs(mine, other, &difference))
        return true;
    gy_error_set(error, GYRE_REFUSED, -1,
                 "%s differs: %s on rank %d, %s at a newcomer; it must be the same on every rank", difference.name,
                 difference.mine, own, difference.theirs);
    return false;
}

/* Half of what the new world waits before it names who has not come to it. */
static int64_t patience(const struct gy_reception *reception)
{
    const struct gy_config *config = reception->world->config;
    int64_t stall = config->stall_timeout_ns, meet = config->meet_timeout_ns, half = (stall < meet ? stall : meet) / 2;

    return half > GY_MILLISECOND ? half : GY_MILLISECOND;
}

static void say_wait(struct newcomer *newcomer)
{
    uint8_t body[4];
    struct gy_wire wire = gy_wire_over(body, sizeof(body));
    int64_t ms = patience(newcomer->reception) / GY_MILLISECOND;

    gy_wire_put(&wire, ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX, 4);
    gy_stream_send(&newcomer->stream, GY_JOIN_WAIT, body, sizeof(body));
}

static void on_timer(void *owner, uint32_t events)
{
    struct gy_reception *reception = owner;
    uint64_t ticks;

    (void)events;
    (void)!read(reception->timer.fd, &ticks, sizeof(ticks));
    for (struct newcomer *newcomer = reception->first; newcomer; newcomer = newcomer->next)
        if (newcomer->state != GREETED)
            say_wait(newcomer);
}

static gyre_status run_timer(struct gy_reception *reception, struct gy_error *error)
{
    int64_t every = patience(reception) / WAITS_PER_PATIENCE;
    struct timespec span = {.tv_sec = every / GY_SECOND, .tv_nsec = every % GY_SECOND};
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

    if (fd < 0)
        return gy_error_system(error, errno, "rank %d cannot make a timer to let newcomers in", reception->world->rank);
    timerfd_settime(fd, 0, &(struct itimerspec){.it_value = span, .it_interval = span}, NULL);
    reception->timer = (struct gy_watch){.fd = fd, .events = EPOLLIN, .callback = on_timer, .owner = reception};
    return gy_poller_add(reception->world->poller, &reception->timer, error);
}

static void stop_timer(struct gy_reception *reception)
{
    if (reception->timer.fd < 0)
        return;
    gy_poller_remove(reception->world->poller, &reception->timer);
    close(reception->timer.fd);
    reception->timer.fd = -1;
}

static void hear_hello(struct newcomer *newcomer, uint8_t *body, size_t bytes)
{
    struct gy_reception *reception = newcomer->reception;
    struct gy_error error = {.rank = -1};
    struct gy_wire wire = gy_wire_over(body, bytes);
    uint64_t label = gy_wire_get(&wire, 8);
    uint8_t place[GY_PLACE_WIRE];

    if (bytes < GY_JOIN_HELLO_LEAST || !gy_member_decode(wire.at, &newcomer->member) ||
        newcomer->member.address.ss_family == AF_UNSPEC) {
        gy_log(GY_LOG_WARN, "a newcomer said something that this version does not understand");
        gy_stream_close(&newcomer->stream);
    } else if (!reception->host) {
        gy_place_encode(&reception->elsewhere, place);
        gy_stream_send(&newcomer->stream, GY_JOIN_ELSEWHERE, place, sizeof(place));
        gy_stream_close(&newcomer->stream);
    } else if (!fits(reception, label, body + GY_JOIN_HELLO_LEAST, bytes - GY_JOIN_HELLO_LEAST, &error)) {
        refuse(newcomer, &error);
    } else {
        newcomer->state = WAITS;
        say_wait(newcomer);
    }
}

static void on_message(void *user, struct gy_stream *stream, uint8_t kind, uint8_t *body, size_t bytes)
{
    struct newcomer *newcomer = user;

    if (kind == GY_JOIN_HELLO && newcomer->state == GREETED)
        hear_hello(newcomer, body, bytes);
    else if (kind == GY_JOIN_HERE && newcomer->state == CALLED)
        newcomer->state = HERE;
    else
        gy_stream_close(stream);
}

static void on_closed(void *user, struct gy_stream *stream, int errnum)
{
    (void)user;
    if (errnum != 0)
        gy_log(GY_LOG_INFO, "a newcomer is gone: %s", stream->flaw ? gy_flaw_text(stream->flaw) : strerror(errnum));
    gy_stream_close(stream);
}

static void sweep(struct gy_reception *reception)
{
    for (struct newcomer **at = &reception->first; *at;) {
        struct newcomer *newcomer = *at;

        if (newcomer->stream.fd >= 0 || newcomer->state == TAKEN) {
            at = &newcomer->next;
            continue;
        }
        *at = newcomer->next;
        gy_stream_close(&newcomer->stream);
        gy_free(newcomer);
        reception->count--;
    }
}

static void on_newcomer(void *user, int rank, int fd, const struct gy_seal_keys *keys)
{
    struct gy_reception *reception = user;
    struct newcomer *newcomer = NULL, **last = &reception->first;

    (void)rank;
    if (reception->count < 2 * GY_NEWCOMERS_MOST)
        newcomer = gy_alloc_zero(1, sizeof(*newcomer));
    if (!newcomer) { /* it comes again */
        close(fd);
        return;
    }
    newcomer->reception = reception;
    newcomer->since = gy_now();
    if (gy_stream_open(&newcomer->stream, reception->world->poller, fd, keys, GY_JOIN_HELLO_MOST, on_message, on_closed,
                       newcomer, NULL) != GYRE_SUCCESS) {
        close(fd);
        gy_free(newcomer);
        return;
    }
    while (*last)
        last = &(*last)->next;
    *last = newcomer;
    reception->count++;
}

static gyre_status open_door(struct gy_reception *reception, const struct gy_house_door *at, struct gy_door **door_p,
                             struct gy_error *error)
{
    struct gy_world *world = reception->world;
    const struct gy_door_env env = {
        .poller = world->poller,
        .key = world->house->key,
        .job = world->job,
        .rank = 0,
        .size = 2,
        .purposes = 1u << GY_PURPOSE_JOIN,
        .peer_timeout_ns = world->config->peer_timeout_ns,
        .integrity = (enum gy_integrity)world->config->integrity,
    };
    struct gy_house_door open;
    gyre_status status;

    if (at->fd < 0)
        return GYRE_SUCCESS;
    if (!gy_house_door_again(at, &open))
        return gy_error_system(error, errno, "rank %d cannot open its door to newcomers", world->rank);
    status = gy_door_create(open.fd, door_p, error);
    if (status != GYRE_SUCCESS)
        return status;
    gy_door_on(*door_p, GY_PURPOSE_JOIN, on_newcomer, reception);
    return gy_door_open(*door_p, &env, error);
}

gyre_status gy_reception_open(struct gy_world *world, const struct gy_place *elsewhere,
                              struct gy_reception **reception_p, struct gy_error *error)
{
    struct gy_reception *reception = gy_alloc_zero(1, sizeof(*reception));
    gyre_status status;

    if (!reception)
        return gy_error_set(error, GYRE_NO_MEMORY, world->rank, "rank %d has no memory to let newcomers in",
                            world->rank);
    reception->world = world;
    reception->host = !elsewhere;
    reception->timer.fd = -1;
    if (elsewhere)
        reception->elsewhere = *elsewhere;
    status = elsewhere ? GYRE_SUCCESS : run_timer(reception, error);
    if (status == GYRE_SUCCESS)
        status = open_door(reception, &world->house->own, &reception->doors[0], error);
    if (status == GYRE_SUCCESS)
        status = open_door(reception, &world->house->known, &reception->doors[1], error);
    if (status == GYRE_SUCCESS)
        *reception_p = reception;
    else
        gy_reception_close(reception);
    return status;
}

static int count(const struct gy_reception *reception, enum newcomer_state state)
{
    int found = 0;

    for (const struct newcomer *newcomer = reception->first; newcomer; newcomer = newcomer->next)
        found += newcomer->state == state && newcomer->stream.fd >= 0;
    return found;
}

int gy_reception_waiting(struct gy_reception *reception)
{
    sweep(reception);
    return count(reception, WAITS);
}

bool gy_reception_busy(const struct gy_reception *reception)
{
    int64_t now = gy_now();

    for (int i = 0; i < DOORS; i++)
        if (reception->doors[i] && gy_door_greeting(reception->doors[i]) > 0)
            return true;
    for (const struct newcomer *newcomer = reception->first; newcomer; newcomer = newcomer->next)
        if (newcomer->state == GREETED && newcomer->stream.fd >= 0 && now - newcomer->since < HELLO_PATIENCE)
            return true;
    return false;
}

void gy_reception_call(struct gy_reception *reception, int most)
{
    for (struct newcomer *newcomer = reception->first; newcomer && most > 0; newcomer = newcomer->next) {
        if (newcomer->state != WAITS || !gy_stream_send(&newcomer->stream, GY_JOIN_CALL, NULL, 0))
            continue;
        newcomer->state = CALLED;
        most--;
    }
}

bool gy_reception_called(const struct gy_reception *reception)
{
    return count(reception, CALLED) > 0;
}

int gy_reception_take(struct gy_reception *reception, struct gy_member *members_p)
{
    int taken = 0;

    for (struct newcomer *newcomer = reception->first; newcomer; newcomer = newcomer->next) {
        if (newcomer->state != HERE || newcomer->stream.fd < 0 || taken == GY_NEWCOMERS_MOST)
            continue;
        newcomer->state = TAKEN;
        members_p[taken++] = newcomer->member;
    }
    return taken;
}

void gy_reception_welcome(struct gy_reception *reception, const struct gy_next_plan *plan, uint32_t epoch,
                          const struct gy_charter *charter)
{
    size_t bytes = GY_JOIN_WELCOME_LEAST + charter->size + (size_t)plan->size * GY_MEMBER_WIRE;
    uint8_t *body = gy_alloc(bytes);
    int rank = plan->size;

    if (!body)
        return; /* they come again, and the world finds them dead */
    for (const struct newcomer *newcomer = reception->first; newcomer; newcomer = newcomer->next)
        rank -= newcomer->state == TAKEN;
    for (struct newcomer *newcomer = reception->first; newcomer; newcomer = newcomer->next) {
        struct gy_wire wire = gy_wire_over(body, bytes);

        if (newcomer->state != TAKEN)
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
        if (newcomer->stream.fd >= 0)
            gy_stream_send(&newcomer->stream, GY_JOIN_WELCOME, body, bytes);
    }
    gy_free(body);
}

static bool flushed(const struct gy_reception *reception)
{
    for (const struct newcomer *newcomer = reception->first; newcomer; newcomer = newcomer->next)
        if (newcomer->stream.fd >= 0 && !gy_stream_flushed(&newcomer->stream))
            return false;
    return true;
}

void gy_reception_close(struct gy_reception *reception)
{
    int64_t deadline = gy_now() + FLUSH_GRACE;

    if (!reception)
        return;
    while (!flushed(reception) && gy_now() < deadline)
        gy_poller_poll(reception->world->poller, GY_MILLISECOND);
    stop_timer(reception);
    for (int i = 0; i < DOORS; i++)
        gy_door_free(reception->doors[i]);
    for (struct newcomer *newcomer = reception->first; newcomer;) {
        struct newcomer *next = newcomer->next;

        gy_stream_close(&newcomer->stream);
        gy_free(newcomer);
        newcomer = next;
    }
    gy_free(reception);
}
