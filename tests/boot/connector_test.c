/* How often a rank tries to connect to another one. A listener that closes at once is tried three times in all. One
 * that waited for a while before it closed is tried without a limit, and so is one that does not accept while its
 * host answers.
 *
 * The listener of rank 1 is a listen_fd of the test, and in the end a gy_listener. The linker's --wrap stands for a
 * host that does not answer: connections to it go to that listen_fd, whose backlog is full. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bootstrap/world.h"
#include "core/clock.h"
#include "net/address.h"
#include "net/listener.h"

#define JOB 7
#define ATTEMPTS 3

static struct gy_poller *poller;
static struct gy_config config = {.peer_timeout_ns = 10 * GY_SECOND, .integrity = GY_INTEGRITY_OFF};
static struct gy_member members[2];
static struct gy_world world = {.rank = 0,
                                .size = 2,
                                .job = JOB,
                                .key = (uint8_t[GY_KEY_BYTES]){"the key of this test"},
                                .members = members,
                                .config = &config};
static int listen_fd;

static void begin(void)
{
    struct gy_error error = {.rank = -1};
    struct gy_endpoint endpoint = {.address.ss_family = AF_INET};

    cr_assert_eq(gy_poller_create(&poller, &error), GYRE_SUCCESS);
    ((struct sockaddr_in *)&endpoint.address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listen_fd = gy_socket_listen(&endpoint);
    cr_assert(listen_fd >= 0);
    members[1].address = endpoint.address;
    world.poller = poller;
}

TestSuite(connect, .init = begin, .timeout = 60);

static bool mute, asked; /* the host */

int __real_gy_socket_connect_from(const struct gy_endpoint *endpoint, const struct sockaddr_storage *from);
int __wrap_gy_socket_connect_from(const struct gy_endpoint *endpoint, const struct sockaddr_storage *from);

int __wrap_gy_socket_connect_from(const struct gy_endpoint *endpoint, const struct sockaddr_storage *from)
{
    struct gy_endpoint other = {.address = members[1].address};
    bool listener = gy_address_port(&endpoint->address) == gy_address_port(&other.address);

    asked |= !listener;
    return __real_gy_socket_connect_from(mute && !listener ? &other : endpoint, from);
}

struct outcome {
    bool over;
    int fd;
};

static void on_connected(void *user, int rank, int fd, const struct gy_seal_keys *keys)
{
    struct outcome *outcome = user;

    cr_assert(rank == 1 && (fd < 0) == (keys == NULL));
    *outcome = (struct outcome){.over = true, .fd = fd};
}

static void poll_for(const struct outcome *outcome, int64_t ns)
{
    for (int64_t limit = gy_now() + ns; !outcome->over && gy_now() < limit;)
        gy_poller_poll(poller, 10 * GY_MILLISECOND);
}

/* Accepts the next connection, and closes it after so long. Returns whether one came. */
static bool close_after(const struct outcome *outcome, int64_t ns)
{
    int fd = -1;

    for (int64_t limit = gy_now() + 10 * GY_SECOND; fd < 0 && !outcome->over && gy_now() < limit;) {
        gy_poller_poll(poller, 10 * GY_MILLISECOND);
        fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    }
    if (fd < 0)
        return false;
    poll_for(outcome, ns);
    close(fd);
    return true;
}

static void let_in(void *user, int rank, int fd, const struct gy_seal_keys *keys)
{
    (void)keys;
    cr_assert_eq(rank, 0);
    *(int *)user = fd;
}

/* The listener opens, and the connect comes to its end. */
static void expect_handshake(struct outcome *outcome)
{
    struct gy_error error = {.rank = -1};
    struct gy_listener *listener;
    int registrant = -1;
    const struct gy_listener_env env = {.poller = poller,
                                        .key = world.key,
                                        .job = JOB,
                                        .rank = 1,
                                        .size = 2,
                                        .purposes = 1u << GY_PURPOSE_TCP,
                                        .peer_timeout_ns = 10 * GY_SECOND};

    cr_assert_eq(gy_listener_create(listen_fd, &listener, &error), GYRE_SUCCESS);
    gy_listener_on(listener, GY_PURPOSE_TCP, let_in, &registrant);
    cr_assert_eq(gy_listener_open(listener, &env, &error), GYRE_SUCCESS);
    poll_for(outcome, 20 * GY_SECOND);
    cr_assert(outcome->over && outcome->fd >= 0, "%s", strerror(world.connect_errnum));
    for (int64_t limit = gy_now() + 10 * GY_SECOND; registrant < 0 && gy_now() < limit;)
        gy_poller_poll(poller, 10 * GY_MILLISECOND);
    cr_assert(registrant >= 0);
    close(registrant);
    close(outcome->fd);
    gy_listener_free(listener);
}

Test(connect, a_listener_that_closes_at_once_is_tried_three_times)
{
    struct gy_error error = {.rank = -1};
    struct outcome outcome = {.fd = -1};
    int tried = 0;

    cr_assert_eq(gy_world_connect(&world, 1, GY_PURPOSE_TCP, NULL, on_connected, &outcome, &error), GYRE_SUCCESS);
    while (tried <= ATTEMPTS && close_after(&outcome, 0))
        tried++;
    cr_assert(outcome.over && outcome.fd < 0);
    cr_assert_eq(tried, ATTEMPTS);
    cr_assert_eq(world.connect_errnum, ECONNRESET);
}

/* This rank computed, and polled so seldom that the listener did not wait for the end of its handshake. */
Test(connect, a_slow_handshake_begins_again)
{
    struct gy_error error = {.rank = -1};
    struct outcome outcome = {.fd = -1};

    cr_assert_eq(gy_world_connect(&world, 1, GY_PURPOSE_TCP, NULL, on_connected, &outcome, &error), GYRE_SUCCESS);
    for (int i = 0; i < ATTEMPTS + 1; i++)
        cr_assert(close_after(&outcome, 1200 * GY_MILLISECOND), "after %d: %s", i, strerror(world.connect_errnum));
    expect_handshake(&outcome);
}

/* An overlay's neighbour does nothing else meanwhile. */
Test(connect, a_slow_handshake_of_the_overlay_counts)
{
    struct gy_error error = {.rank = -1};
    struct outcome outcome = {.fd = -1};
    int tried = 0;

    cr_assert_eq(gy_world_connect(&world, 1, GY_PURPOSE_OVERLAY, NULL, on_connected, &outcome, &error), GYRE_SUCCESS);
    while (tried <= ATTEMPTS && close_after(&outcome, 1200 * GY_MILLISECOND))
        tried++;
    cr_assert(outcome.over && outcome.fd < 0);
    cr_assert_eq(tried, ATTEMPTS);
}

/* As many as the listen_fd has room for, and more. */
static void fill_backlog(int inbounds[3])
{
    struct gy_endpoint endpoint = {.address = members[1].address};

    cr_assert_eq(listen(listen_fd, 0), 0);
    for (int i = 0; i < 3; i++)
        cr_assert((inbounds[i] = gy_socket_connect(&endpoint)) >= 0);
    usleep(100000);
    config.peer_timeout_ns = GY_SECOND / 2;
}

Test(connect, a_full_backlog_is_waited_for)
{
    struct gy_error error = {.rank = -1};
    struct outcome outcome = {.fd = -1};
    int inbounds[3];

    fill_backlog(inbounds);
    cr_assert_eq(gy_world_connect(&world, 1, GY_PURPOSE_TCP, NULL, on_connected, &outcome, &error), GYRE_SUCCESS);
    for (int64_t limit = gy_now() + 30 * GY_SECOND; world.counters.sockets_opened <= ATTEMPTS && gy_now() < limit;)
        poll_for(&outcome, 100 * GY_MILLISECOND);
    cr_assert(asked && !outcome.over && world.counters.sockets_opened > ATTEMPTS, "after %lu sockets: %s",
              (unsigned long)world.counters.sockets_opened, strerror(world.connect_errnum));
    for (int i = 0; i < 3; i++)
        close(inbounds[i]);
    cr_assert_eq(listen(listen_fd, 16), 0);
    expect_handshake(&outcome);
}

/* Whose connections they are is never in doubt, whatever a second transport with the same purpose does. */
Test(connect, a_purpose_has_one_owner)
{
    struct gy_error error = {.rank = -1, .quiet = true};
    int first, second;

    cr_assert_eq(gy_listener_create(listen_fd, &world.listener, &error), GYRE_SUCCESS);
    cr_assert_eq(gy_world_on(&world, GY_PURPOSE_TCP, let_in, &first, &error), GYRE_SUCCESS);
    cr_assert_eq(gy_world_on(&world, GY_PURPOSE_RDMA, let_in, &second, &error), GYRE_SUCCESS);
    cr_assert_eq(gy_world_on(&world, GY_PURPOSE_TCP, let_in, &second, &error), GYRE_INTERNAL);
    gy_world_off(&world, GY_PURPOSE_TCP, &second);
    cr_assert_eq(gy_listener_owner(world.listener, GY_PURPOSE_TCP), &first);
    gy_world_off(&world, GY_PURPOSE_TCP, &first);
    cr_assert_eq(gy_world_on(&world, GY_PURPOSE_TCP, let_in, &second, &error), GYRE_SUCCESS);
    cr_assert_eq(gy_listener_owner(world.listener, GY_PURPOSE_TCP), &second);
    gy_listener_free(world.listener);
    world.listener = NULL;
}

/* Where the backlog is full and the host does not answer. */
static void connect_to_none(struct outcome *outcome)
{
    struct gy_error error = {.rank = -1};
    int inbounds[3];

    mute = true;
    fill_backlog(inbounds);
    cr_assert_eq(gy_world_connect(&world, 1, GY_PURPOSE_TCP, NULL, on_connected, outcome, &error), GYRE_SUCCESS);
}

Test(connect, a_host_that_does_not_answer_is_given_up)
{
    struct outcome outcome = {.fd = -1};

    connect_to_none(&outcome);
    poll_for(&outcome, 40 * GY_SECOND);
    cr_assert(outcome.over && outcome.fd < 0);
    cr_assert_eq(world.connect_errnum, ETIMEDOUT);
    cr_assert_eq(world.counters.sockets_opened, ATTEMPTS);
}

/* A connector that is ended while the host is probed has no callback. */
Test(connect, a_connector_ends_while_its_host_is_probed)
{
    struct outcome outcome = {.fd = -1};

    connect_to_none(&outcome);
    for (int64_t limit = gy_now() + 30 * GY_SECOND; !asked && gy_now() < limit;)
        gy_poller_poll(poller, 10 * GY_MILLISECOND);
    cr_assert(asked && !outcome.over);
    gy_world_cancel_connectors(&world, &outcome);
    cr_assert_null(world.connectors);
    poll_for(&outcome, 2 * GY_SECOND);
    cr_assert_not(outcome.over);
}
