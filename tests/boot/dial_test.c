/* How often a rank dials another one: a door that closes at once is tried three times in all, one that waited for a while
 * before it closed, or that could not even take the connection while its host answers, as often as it takes.
 *
 * The door of rank 1 is a listener that the test looks after, and at last a door. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "boot/door.h"
#include "core/clock.h"

#define JOB 7
#define ATTEMPTS 3

static struct gy_poller *poller;
static struct gy_config config = {.peer_timeout_ns = 10 * GY_SECOND, .integrity = GY_INTEGRITY_OFF};
static struct gy_member members[2];
static struct gy_world world = {
    .rank = 0, .size = 2, .job = JOB, .key = "the key of this test", .members = members, .config = &config};
static int listener;

static void begin(void)
{
    struct gy_error error = {.rank = -1};
    struct gy_place place = {.address.ss_family = AF_INET};

    cr_assert_eq(gy_poller_create(&poller, &error), GYRE_SUCCESS);
    ((struct sockaddr_in *)&place.address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener = gy_socket_listen(&place);
    cr_assert(listener >= 0);
    members[1].address = place.address;
    world.poller = poller;
}

TestSuite(dial, .init = begin, .timeout = 60);

struct outcome {
    bool over;
    int fd;
};

static void on_dialled(void *user, int rank, int fd, const struct gy_seal_keys *keys)
{
    struct outcome *outcome = user;

    cr_assert(rank == 1 && (fd < 0) == (keys == NULL));
    *outcome = (struct outcome){.over = true, .fd = fd};
}

static void turn_for(const struct outcome *outcome, int64_t ns)
{
    for (int64_t limit = gy_now() + ns; !outcome->over && gy_now() < limit;)
        gy_poller_poll(poller, 10 * GY_MILLISECOND);
}

/* Whoever comes is let in, and sent away after so long: whether somebody came. */
static bool close_after(const struct outcome *outcome, int64_t ns)
{
    int fd = -1;

    for (int64_t limit = gy_now() + 10 * GY_SECOND; fd < 0 && !outcome->over && gy_now() < limit;) {
        gy_poller_poll(poller, 10 * GY_MILLISECOND);
        fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    }
    if (fd < 0)
        return false;
    turn_for(outcome, ns);
    close(fd);
    return true;
}

static void let_in(void *user, int rank, int fd, const struct gy_seal_keys *keys)
{
    (void)keys;
    cr_assert_eq(rank, 0);
    *(int *)user = fd;
}

/* The door opens, and the dial comes to its end. */
static void expect_greeting(struct outcome *outcome)
{
    struct gy_error error = {.rank = -1};
    struct gy_door *door;
    int guest = -1;
    const struct gy_door_env env = {.poller = poller,
                                    .key = world.key,
                                    .job = JOB,
                                    .rank = 1,
                                    .size = 2,
                                    .purposes = 1u << GY_PURPOSE_LINK,
                                    .peer_timeout_ns = 10 * GY_SECOND};

    cr_assert_eq(gy_door_create(listener, &door, &error), GYRE_SUCCESS);
    gy_door_on(door, GY_PURPOSE_LINK, let_in, &guest);
    cr_assert_eq(gy_door_open(door, &env, &error), GYRE_SUCCESS);
    turn_for(outcome, 20 * GY_SECOND);
    cr_assert(outcome->over && outcome->fd >= 0, "%s", strerror(world.dial_errnum));
    for (int64_t limit = gy_now() + 10 * GY_SECOND; guest < 0 && gy_now() < limit;)
        gy_poller_poll(poller, 10 * GY_MILLISECOND);
    cr_assert(guest >= 0);
    close(guest);
    close(outcome->fd);
    gy_door_free(door);
}

Test(dial, a_door_that_closes_at_once_is_tried_three_times)
{
    struct gy_error error = {.rank = -1};
    struct outcome outcome = {.fd = -1};
    int tried = 0;

    cr_assert_eq(gy_world_dial(&world, 1, on_dialled, &outcome, &error), GYRE_SUCCESS);
    while (tried <= ATTEMPTS && close_after(&outcome, 0))
        tried++;
    cr_assert(outcome.over && outcome.fd < 0);
    cr_assert_eq(tried, ATTEMPTS);
    cr_assert_eq(world.dial_errnum, ECONNRESET);
}

/* This rank computed, and looked so seldom that the door did not wait for the end of its greeting. */
Test(dial, a_slow_greeting_begins_again)
{
    struct gy_error error = {.rank = -1};
    struct outcome outcome = {.fd = -1};

    cr_assert_eq(gy_world_dial(&world, 1, on_dialled, &outcome, &error), GYRE_SUCCESS);
    for (int i = 0; i < ATTEMPTS + 1; i++)
        cr_assert(close_after(&outcome, 1200 * GY_MILLISECOND), "after %d: %s", i, strerror(world.dial_errnum));
    expect_greeting(&outcome);
}

/* An overlay's neighbour does nothing else meanwhile. */
Test(dial, a_slow_greeting_of_the_overlay_counts)
{
    struct gy_error error = {.rank = -1};
    struct outcome outcome = {.fd = -1};
    int tried = 0;

    cr_assert_eq(gy_world_dial_overlay(&world, 1, on_dialled, &outcome, &error), GYRE_SUCCESS);
    while (tried <= ATTEMPTS && close_after(&outcome, 1200 * GY_MILLISECOND))
        tried++;
    cr_assert(outcome.over && outcome.fd < 0);
    cr_assert_eq(tried, ATTEMPTS);
}
