/* What a joiner receives from the world that it joins, whose members know the secret, but may be of a broken build.
 * The whole of gy_world_join runs against a member that does what the input says. The first byte chooses:
 *
 *   conversation   the member answers HELLO with the pieces of the input, as messages of any kind and size. A joiner
 *                  that is accepted is in a world whose every member has an address, at a rank of it; one that is not
 *                  has a status. Either way no descriptor is left, and the only connections go to what ELSEWHERE named
 *   charter        what is accepted of the world's settings are an address and an algorithm that end, and as many
 *                  operations as there may be
 *
 * A piece is: kind 1, length 2, that many bytes. In a WELCOME whose kind has the top bit set the members are made of
 * the joiner's own record, which no input could know. At its end the member sends FAILED, so that no join lasts. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bootstrap/world.h"
#include "collectives/comm/context.h"
#include "collectives/events/upcalls.h"
#include "collectives/lifecycle/charter.h"
#include "core/mem.h"
#include "fuzz/fuzz.h"
#include "membership/epoch.h"
#include "membership/join_server.h"
#include "net/byte_codec.h"
#include "net/listener.h"
#include "net/message_stream.h"

#define RANK_AT (8 + GY_KEY_BYTES + 4) /* in a WELCOME, and behind it the size; the charter's length */
#define CHARTER_AT (RANK_AT + 8)
#define MEMBERS_MOST 64
#define PLACES_MOST 1024

static struct gy_config config;
static struct gy_poller *poller;
static struct gy_endpoint home;
static struct gy_join_address *join_address;
static char address[64];

static struct {
    struct gy_stream stream;
    const uint8_t *data;
    size_t size;
    bool said;
    struct gy_endpoint elsewhere[PLACES_MOST]; /* that were said */
    int places;
} member;

/* The linker leads calls of gy_socket_connect here: nothing that an input says is really connected to. */
int __real_gy_socket_connect(const struct gy_endpoint *endpoint);
int __wrap_gy_socket_connect(const struct gy_endpoint *endpoint);
int __wrap_gy_socket_connect(const struct gy_endpoint *endpoint)
{
    if (endpoint->is_unix && strcmp(endpoint->name, home.name) == 0)
        return __real_gy_socket_connect(endpoint);
    bool said = false;
    for (int i = 0; i < member.places; i++) {
        const struct gy_endpoint *named = &member.elsewhere[i];
        said |= endpoint->is_unix == named->is_unix &&
                (endpoint->is_unix ? strcmp(endpoint->name, named->name) == 0
                                   : memcmp(&endpoint->address, &named->address, sizeof(endpoint->address)) == 0);
    }
    check(said);
    errno = ECONNREFUSED;
    return -1;
}

/* ---- the member ---- */

static void tell_failed(void)
{
    const struct gy_error end = {.status = GYRE_REFUSED, .rank = -1, .text = "the end of the input"};
    uint8_t body[8 + GY_BOOTSTRAP_TEXT];
    gy_stream_send(&member.stream, GY_JOIN_FAILED, body, gy_bootstrap_failed_encode(&end, 0, body));
}

/* A WELCOME from what the input says of it, up to the members: these are copies of the joiner's own record, one for
 * each member, with what is left of the input added bit by bit. */
static size_t compose(const uint8_t *data, size_t bytes, const uint8_t *record, uint8_t *body_p)
{
    uint8_t head[CHARTER_AT + 2] = {0};
    memcpy(head, data, gy_min_size(bytes, sizeof(head)));
    struct gy_wire wire = gy_wire_over(head + RANK_AT + 4, 6);
    size_t size = gy_wire_get(&wire, 4), charter = gy_wire_get(&wire, 2);
    size_t table = gy_min_size(size, MEMBERS_MOST) * GY_MEMBER_WIRE, at = sizeof(head) + charter;
    memset(body_p, 0, at);
    memcpy(body_p, data, gy_min_size(bytes, at));
    for (size_t i = 0; i < table; i++)
        body_p[at + i] = record[i % GY_MEMBER_WIRE] ^ (at + i < bytes ? data[at + i] : 0);
    return at + table;
}

static void say(const uint8_t *record)
{
    static uint8_t composed[CHARTER_AT + 2 + UINT16_MAX + MEMBERS_MOST * GY_MEMBER_WIRE];
    const uint8_t *data = member.data;
    size_t size = member.size;
    while (size >= 3 && member.stream.fd >= 0) {
        size_t bytes = gy_min_size(data[1] | (size_t)data[2] << 8, size - 3);
        uint8_t kind = data[0] % 8;
        if (kind == GY_JOIN_ELSEWHERE && bytes == GY_ENDPOINT_WIRE && member.places < PLACES_MOST &&
            gy_endpoint_decode(data + 3, &member.elsewhere[member.places]))
            member.places++;
        if (kind == GY_JOIN_WELCOME && data[0] >= 0x80)
            gy_stream_send(&member.stream, kind, composed, compose(data + 3, bytes, record, composed));
        else
            gy_stream_send(&member.stream, kind, data + 3, bytes);
        data += 3 + bytes;
        size -= 3 + bytes;
    }
}

static void on_message(void *user, struct gy_stream *stream, uint8_t kind, uint8_t *body, size_t bytes)
{
    (void)user;
    (void)stream;
    if (kind != GY_JOIN_HELLO) {
        check(kind == GY_JOIN_HERE && bytes == 0);
        return;
    }
    struct gy_member who;
    check(bytes >= GY_JOIN_HELLO_LEAST && gy_member_decode(body + 8, &who) && who.address.ss_family == AF_INET);
    if (!member.said) {
        member.said = true;
        say(body + 8);
    }
    tell_failed();
}

static void on_joiner(void *user, int rank, int fd, const struct gy_seal_keys *keys)
{
    struct gy_error error = {.rank = -1};
    (void)user;
    (void)rank;
    gy_stream_close(&member.stream);
    check(gy_stream_open(&member.stream, poller, fd, keys, GY_JOIN_HELLO_MOST, on_message, ignore_end, NULL, &error) ==
          GYRE_SUCCESS);
}

static struct gy_listener *open_listener(void)
{
    struct gy_error error = {.rank = -1};
    struct gy_listener *listener;
    const struct gy_listener_env env = {.poller = poller,
                                        .key = join_address->key,
                                        .job = 1,
                                        .size = 2,
                                        .purposes = 1u << GY_PURPOSE_JOIN,
                                        .peer_timeout_ns = config.peer_timeout_ns,
                                        .integrity = GY_INTEGRITY_OFF};
    int fd = gy_socket_listen(&home);
    check(fd >= 0);
    check(gy_listener_create(fd, &listener, &error) == GYRE_SUCCESS);
    gy_listener_on(listener, GY_PURPOSE_JOIN, on_joiner, NULL);
    check(gy_listener_open(listener, &env, &error) == GYRE_SUCCESS);
    return listener;
}

/* ---- the joiner ---- */

static void begin(void)
{
    struct gy_error error = {.rank = -1};
    struct gy_identity identity;
    struct sockaddr_storage at;
    if (poller)
        return;
    unsetenv("GYRE_SECRET");
    unsetenv("GYRE_SECRET_FILE");
    gyre_log_set(ignore_log, NULL);
    check(gy_config_read(&config, &error) == GYRE_SUCCESS);
    config.meet_timeout_ns = INT64_C(30000000000);
    check(gy_poller_create(&poller, &error) == GYRE_SUCCESS);
    unsigned port = 1024u + (unsigned)getpid() % 60000u;
    snprintf(address, sizeof(address), "tcp://127.0.0.1:%u", port);
    const gyre_config user = {.size = sizeof(user), .address = address, .join = 1};
    check(gy_identity_read_joiner(&user, &config, &identity, &error) == GYRE_SUCCESS);
    join_address = gy_join_address_make(&identity, &config);
    check(join_address != NULL && join_address->local_only);
    check(gy_address_resolve("127.0.0.1", (uint16_t)port, &at, &error) == GYRE_SUCCESS);
    gy_endpoint_of_user(&at, &home);
}

static void follow(const struct gy_charter *charter)
{
    static struct gy_context ctx = {.up = &gy_upcalls};
    struct gy_join_address own = *join_address; /* takes over where the world met */
    struct gy_world world = {.join_address = &own};
    struct gy_error error = {.rank = -1};
    memset(&ctx, 0, sizeof(ctx));
    ctx.config = config;
    ctx.world = &world;
    if (gy_charter_follow(&ctx, charter, &error) == GYRE_SUCCESS) {
        check(ctx.operations.count >= 0 && ctx.operations.count <= GY_OPS_MADE_MOST);
        check(memchr(ctx.config.algorithm, '\0', sizeof(ctx.config.algorithm)) != NULL);
        check(memchr(own.address.host, '\0', sizeof(own.address.host)) != NULL);
        check(memchr(own.address.path, '\0', sizeof(own.address.path)) != NULL);
    } else {
        check(error.status != GYRE_SUCCESS && error.text[0]);
    }
    gy_operations_free(&ctx.operations);
}

static void look_around(const struct gy_world *world)
{
    check(world->size > 1 && world->rank > 0 && world->rank < world->size && world->epoch > 1);
    for (int i = 0; i < world->size; i++)
        check(world->members[i].address.ss_family == AF_INET || world->members[i].address.ss_family == AF_INET6);
}

static int lowest_free(void)
{
    int fd = dup(0);
    if (fd >= 0)
        close(fd);
    return fd;
}

static void conversation(const uint8_t *data, size_t size)
{
    const gyre_config user = {.size = sizeof(user), .address = address, .join = 1};
    struct gy_config own = config;
    struct gy_charter charter = {0};
    struct gy_error error = {.rank = -1, .quiet = true};
    struct gy_world *world = NULL;
    int before = lowest_free();
    memset(&member, 0, sizeof(member));
    member.stream.fd = -1;
    member.data = data;
    member.size = size;
    struct gy_listener *listener = open_listener();
    gyre_status status = gy_world_join(&user, &own, poller, &world, &charter, &error);
    check(status == error.status && (status == GYRE_SUCCESS) == (world != NULL));
    check(memchr(error.text, '\0', sizeof(error.text)) != NULL);
    if (world) {
        check(charter.size <= GY_CHARTER_MOST);
        look_around(world);
        follow(&charter);
        gy_world_free(world);
    }
    gy_stream_close(&member.stream);
    gy_listener_free(listener);
    check(lowest_free() == before);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gy_charter charter = {0};
    if (size == 0)
        return 0;
    begin();
    if (data[0] % 2) {
        charter.size = gy_min_size(size - 1, sizeof(charter.bytes));
        memcpy(charter.bytes, data + 1, charter.size);
        follow(&charter);
    } else {
        conversation(data + 1, size - 1);
    }
    return 0;
}
