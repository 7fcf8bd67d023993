/* Messages between joiners and the members that receive them: they know the secret, but may be of a broken build.
 * The first byte of the input chooses:
 *
 *   hello     a joiner completes the handshake with rank 0, or another member, and sends the rest of the input, piece
 *             by piece, as messages: an accepted joiner has a process and an address, and only after HELLO and HERE
 *   place     what is accepted is the same when it is encoded again
 *   line      of the file of a file://: what is accepted has an address, or a name that ends */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bootstrap/world.h"
#include "core/mem.h"
#include "fuzz/fuzz.h"
#include "membership/join_server.h"
#include "net/handshake_io.h"
#include "net/message_stream.h"

static struct gy_config config;
static struct gy_member own = {.pid = 1};
static uint8_t key[GY_KEY_BYTES];
static struct gy_join_address join_address = {.key = key, .label = 7, .known.fd = -1, .local_only = true};
static struct gy_world world = {
    .size = 1, .epoch = 1, .job = 1, .members = &own, .config = &config, .join_address = &join_address};
static bool greeted;

static void open_join_address(void)
{
    struct gy_error error = {.rank = -1};
    struct gy_endpoint endpoint = {.is_unix = true};
    if (world.poller)
        return;
    check(gy_config_read(&config, &error) == GYRE_SUCCESS);
    check(gy_poller_create(&world.poller, &error) == GYRE_SUCCESS);
    snprintf(endpoint.name, sizeof(endpoint.name), "gyre-fuzz-%d", (int)getpid());
    join_address.settings_bytes = (size_t)snprintf(join_address.settings, sizeof(join_address.settings),
                                                   "GYRE_TCP_TILE=1\n");
    gyre_log_set(ignore_log, NULL);
    join_address.own = (struct gy_join_listener){gy_socket_listen(&endpoint), endpoint};
    check(join_address.own.fd >= 0);
}

static void on_handshake(void *user, struct gy_handshake_io *handshake_io, int errnum)
{
    (void)user;
    check(errnum == 0 && handshake_io->fd >= 0);
    greeted = true;
}

static void on_message(void *user, struct gy_stream *stream, uint8_t kind, uint8_t *body, size_t bytes)
{
    struct gy_endpoint endpoint;
    (void)user;
    (void)stream;
    check(kind == GY_JOIN_CALL || kind == GY_JOIN_FAILED || kind == GY_JOIN_ELSEWHERE || kind == GY_JOIN_WAIT);
    check(kind != GY_JOIN_WAIT || bytes == 4);
    check(kind != GY_JOIN_ELSEWHERE || (bytes == GY_ENDPOINT_WIRE && gy_endpoint_decode(body, &endpoint)));
}

static void turn(void)
{
    for (int i = 0; i < 3; i++)
        gy_poller_poll(world.poller, 0);
}

/* Pieces of: kind 1, length 2, that many bytes. */
static void say(struct gy_stream *stream, struct gy_join_server *join_server, const uint8_t *data, size_t size)
{
    bool said_hello = false, said_here = false;
    struct gy_member members[GY_JOINERS_MOST];
    while (size >= 3 && stream->fd >= 0) {
        size_t bytes = gy_min_size(data[1] | (size_t)data[2] << 8, size - 3);
        uint8_t kind = data[0] % 8;
        gy_stream_send(stream, kind, data + 3, bytes);
        turn();
        check(gy_join_server_waiting(join_server) <= said_hello + (kind == GY_JOIN_HELLO));
        said_hello |= kind == GY_JOIN_HELLO;
        said_here |= said_hello && kind == GY_JOIN_HERE;
        gy_join_server_call(join_server, 1);
        data += 3 + bytes;
        size -= 3 + bytes;
    }
    int taken = gy_join_server_take(join_server, members);
    check(taken <= (said_hello && said_here));
    check(taken == 0 || (members[0].pid > 0 && members[0].address.ss_family != AF_UNSPEC));
}

static void hello(const uint8_t *data, size_t size, bool host)
{
    struct gy_error error = {.rank = -1};
    struct gy_endpoint elsewhere = {.address.ss_family = AF_INET};
    struct gy_join_server *join_server;
    struct gy_handshake_io handshake_io;
    struct gy_stream stream = {0};
    open_join_address();
    memset(&handshake_io, 0, sizeof(handshake_io));
    check(gy_join_server_open(&world, host ? NULL : &elsewhere, &join_server, &error) == GYRE_SUCCESS);
    int fd = gy_socket_connect(&join_address.own.endpoint);
    check(fd >= 0);
    gy_handshake_initiate(&handshake_io.handshake, join_address.key, 0, GY_PURPOSE_JOIN, 1, 0, GY_INTEGRITY_OFF);
    greeted = false;
    check(gy_handshake_io_start(&handshake_io, world.poller, fd, true, on_handshake, NULL));
    while (!greeted)
        gy_poller_poll(world.poller, 1000000);
    check(gy_stream_open(&stream, world.poller, handshake_io.fd, &handshake_io.handshake.keys, 8 + GY_BOOTSTRAP_TEXT,
                         on_message, ignore_end, NULL, &error) == GYRE_SUCCESS);
    say(&stream, join_server, data, size);
    gy_stream_close(&stream);
    gy_join_server_close(join_server);
}

static void endpoint(const uint8_t *data, size_t size)
{
    struct gy_endpoint decoded, again;
    uint8_t wire[GY_ENDPOINT_WIRE];
    if (size < GY_ENDPOINT_WIRE || !gy_endpoint_decode(data, &decoded))
        return;
    gy_endpoint_encode(&decoded, wire);
    check(gy_endpoint_decode(wire, &again) && again.is_unix == decoded.is_unix &&
          strcmp(again.name, decoded.name) == 0);
    check(memcmp(&again.address, &decoded.address, sizeof(again.address)) == 0);
}

static void line(const uint8_t *data, size_t size)
{
    static char path[64];
    char why[320];
    struct gy_endpoint read;
    uint64_t nonce;
    if (!path[0])
        snprintf(path, sizeof(path), "/tmp/gyre-fuzz-join-%d", (int)getpid());
    FILE *file = fopen(path, "w");
    check(file != NULL);
    check(fwrite(data, 1, size, file) == size && fclose(file) == 0);
    for (int local = 0; local < 2; local++)
        if (gy_rendezvous_read(path, local, &read, &nonce, why, sizeof(why)))
            check(local ? memchr(read.name, 0, sizeof(read.name)) != NULL
                        : read.address.ss_family == AF_INET || read.address.ss_family == AF_INET6);
    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    switch (data[0] % 4) {
    case 0: hello(data + 1, size - 1, true); break;
    case 1: hello(data + 1, size - 1, false); break;
    case 2: endpoint(data + 1, size - 1); break;
    default: line(data + 1, size - 1);
    }
    return 0;
}
