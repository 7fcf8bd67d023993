/* When a listener closes a connection for its time.
 *
 * who_was_away_listens_first: its inbound connection is silent at first, and sends while the rank does not poll.
 * When the rank polls again, the connection's time is over by the clock, but its bytes have not been read. The
 * clock's tick comes to the poller before the bytes do, and the listener is oversubscribed: another connection waits
 * to be accepted.
 *
 * who_is_silent_makes_room: for another connection, where the rank polls all the time.
 *
 * a_member_that_ends_its_connection_leaves_no_warning: it has given up, or only tested whether the rank listens; an
 * unauthenticated peer leaves one.
 *
 * an_end_without_an_answer: after message 1 it is read as another secret, three times in a fifth of a second;
 * before, as another program.
 *
 * And how long descriptors were short: old_shortages_are_forgotten by the time of the next one, also if another
 * process has accepted the connection that this listener could not. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bootstrap/world.h"
#include "core/clock.h"
#include "core/log.h"
#include "net/listener.h"

#define JOB 7

static const uint8_t key[GY_KEY_BYTES] = "the key of this test";
static struct gy_poller *poller;
static struct gy_endpoint endpoint;

static struct gy_listener *open_listener(int most)
{
    struct gy_error error = {.rank = -1};
    struct gy_listener *listener;
    struct sockaddr_in *address = (struct sockaddr_in *)&endpoint.address;

    address->sin_family = AF_INET;
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const struct gy_listener_env env = {.poller = poller,
                                        .key = key,
                                        .job = JOB,
                                        .size = 2,
                                        .purposes = 1u << GY_PURPOSE_OVERLAY,
                                        .peer_timeout_ns = 10 * GY_SECOND,
                                        .most = most};
    cr_assert_eq(gy_listener_create(gy_socket_listen(&endpoint), &listener, &error), GYRE_SUCCESS);
    cr_assert_eq(gy_listener_open(listener, &env, &error), GYRE_SUCCESS);
    return listener;
}

static int visit(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    cr_assert(fd >= 0 && connect(fd, (struct sockaddr *)&endpoint.address, sizeof(struct sockaddr_in)) == 0);
    return fd;
}

/* True if `done` returns true before so long has passed. */
static bool poll_until(const bool *done, int64_t ns)
{
    for (int64_t limit = gy_now() + ns; !*done && gy_now() < limit;)
        gy_poller_poll(poller, 50 * GY_MILLISECOND);
    return *done;
}

static void come_in(void *user, int rank, int fd, const struct gy_seal_keys *keys)
{
    (void)keys;
    cr_assert_eq(rank, 1);
    *(bool *)user = true;
    close(fd);
}

Test(listener, who_was_away_listens_first, .timeout = 30)
{
    struct gy_error error = {.rank = -1};
    struct gy_handshake handshake;
    uint8_t second[GY_HANDSHAKE_BYTES_2];
    bool in = false, never = false;

    cr_assert_eq(gy_poller_create(&poller, &error), GYRE_SUCCESS);
    struct gy_listener *listener = open_listener(1);
    gy_listener_on(listener, GY_PURPOSE_OVERLAY, come_in, &in);
    int inbound = visit();
    for (int64_t limit = gy_now() + 10 * GY_SECOND; gy_listener_handshake(listener) == 0 && gy_now() < limit;)
        gy_poller_poll(poller, 50 * GY_MILLISECOND);
    cr_assert_eq(gy_listener_handshake(listener), 1);
    int other = visit();

    usleep(400000); /* a tick */
    gy_handshake_initiate(&handshake, key, JOB, GY_PURPOSE_OVERLAY, 1, 0, GY_INTEGRITY_OFF);
    cr_assert_eq(send(inbound, handshake.out, GY_HANDSHAKE_BYTES_1, MSG_NOSIGNAL), GY_HANDSHAKE_BYTES_1);
    usleep(400000);
    gy_poller_poll(poller, 0);
    poll_until(&never, 50 * GY_MILLISECOND);
    cr_assert_eq(recv(inbound, second, sizeof(second), MSG_WAITALL), (ssize_t)sizeof(second));
    gy_handshake_feed(&handshake, second, sizeof(second));
    cr_assert_eq(send(inbound, handshake.out, GY_HANDSHAKE_BYTES_3, MSG_NOSIGNAL), GY_HANDSHAKE_BYTES_3);
    cr_assert(poll_until(&in, 10 * GY_SECOND));
    close(inbound);
    close(other);
    gy_listener_free(listener);
    gy_poller_free(poller);
}

Test(listener, who_is_silent_makes_room, .timeout = 30)
{
    struct gy_error error = {.rank = -1};
    bool in = false;

    cr_assert_eq(gy_poller_create(&poller, &error), GYRE_SUCCESS);
    struct gy_listener *listener = open_listener(1);
    gy_listener_on(listener, GY_PURPOSE_OVERLAY, come_in, &in);
    int silent = visit(), inbound = visit();
    struct gy_handshake handshake;
    gy_handshake_initiate(&handshake, key, JOB, GY_PURPOSE_OVERLAY, 1, 0, GY_INTEGRITY_OFF);
    cr_assert_eq(send(inbound, handshake.out, GY_HANDSHAKE_BYTES_1, MSG_NOSIGNAL), GY_HANDSHAKE_BYTES_1);
    uint8_t second[GY_HANDSHAKE_BYTES_2];
    ssize_t got = -1;
    for (int64_t limit = gy_now() + 10 * GY_SECOND; got < 0 && gy_now() < limit;) {
        gy_poller_poll(poller, 50 * GY_MILLISECOND);
        got = recv(inbound, second, sizeof(second), MSG_DONTWAIT);
    }
    cr_assert_eq(got, (ssize_t)sizeof(second));
    close(silent);
    close(inbound);
    gy_listener_free(listener);
    gy_poller_free(poller);
}

static void count_warning(void *user, enum gyre_log_level level, const char *line)
{
    (void)line;
    *(int *)user += level <= GYRE_LOG_WARN;
}

static void never_done(void *user, struct gy_handshake_io *handshake_io, int errnum)
{
    (void)user, (void)handshake_io, (void)errnum;
    cr_assert_fail("a handshake that was cancelled is over");
}

/* Connects, and gives up before the connection is looked at for the first time. */
static void give_up(void)
{
    struct gy_handshake_io handshake_io = {.fd = -1};

    gy_handshake_initiate(&handshake_io.handshake, key, JOB, GY_PURPOSE_OVERLAY, 1, 0, GY_INTEGRITY_OFF);
    cr_assert(gy_handshake_io_start(&handshake_io, poller, gy_socket_connect(&endpoint), true, never_done, NULL));
    gy_handshake_io_cancel(&handshake_io);
}

static void until_greeted(const struct gy_listener *listener)
{
    for (int64_t limit = gy_now() + GY_SECOND / 2; gy_now() < limit;)
        gy_poller_poll(poller, 50 * GY_MILLISECOND);
    cr_assert_eq(gy_listener_handshake(listener), 0);
}

Test(listener, a_member_that_ends_its_connection_leaves_no_warning, .timeout = 30)
{
    struct gy_error error = {.rank = -1};
    int warnings = 0;

    gy_log_set_sink(count_warning, &warnings);
    cr_assert_eq(gy_poller_create(&poller, &error), GYRE_SUCCESS);
    struct gy_listener *listener = open_listener(0);
    for (int i = 0; i < 3; i++)
        give_up();
    until_greeted(listener);
    cr_expect_eq(warnings, 0);
    close(visit());
    until_greeted(listener);
    cr_expect_eq(warnings, 1);
    gy_log_set_sink(NULL, NULL);
    gy_listener_free(listener);
    gy_poller_free(poller);
}

static void note_over(void *user, struct gy_handshake_io *handshake_io, int errnum)
{
    (void)handshake_io;
    cr_assert_neq(errnum, 0);
    *(bool *)user = true;
}

/* An attempt at a listen_fd that ends the connection after, or before, it has read message 1. True if it was taken for
 * another secret. */
static bool attempt(int listen_fd, bool reads, struct gy_unanswered *unanswered)
{
    struct gy_handshake_io handshake_io = {.fd = -1};
    uint8_t first[GY_HANDSHAKE_BYTES_1];
    bool over = false;

    gy_handshake_initiate(&handshake_io.handshake, key, JOB, GY_PURPOSE_OVERLAY, 1, 0, GY_INTEGRITY_OFF);
    cr_assert(gy_handshake_io_start(&handshake_io, poller, gy_socket_connect(&endpoint), true, note_over, &over));
    if (reads) /* sends message 1 */
        gy_poller_poll(poller, GY_SECOND);
    int accepted = accept(listen_fd, NULL, NULL);
    cr_assert(accepted >= 0);
    if (reads)
        cr_assert_eq(recv(accepted, first, sizeof(first), MSG_WAITALL), (ssize_t)sizeof(first));
    close(accepted);
    cr_assert(poll_until(&over, 10 * GY_SECOND));
    return gy_handshake_io_is_of_another_secret(&handshake_io, unanswered);
}

Test(listener, an_end_without_an_answer, .timeout = 30)
{
    struct gy_error error = {.rank = -1};
    struct sockaddr_in *address = (struct sockaddr_in *)&endpoint.address;

    address->sin_family = AF_INET;
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    cr_assert_eq(gy_poller_create(&poller, &error), GYRE_SUCCESS);
    int listen_fd = gy_socket_listen(&endpoint);
    cr_assert(listen_fd >= 0 && fcntl(listen_fd, F_SETFL, 0) == 0);
    for (int reads = 0; reads < 2; reads++) {
        struct gy_unanswered unanswered = {0};
        bool found = false;

        for (int i = 0; i < 5; i++) {
            found = attempt(listen_fd, reads, &unanswered);
            cr_assert(!found || i >= 2);
            usleep(120000);
        }
        cr_expect_eq(found, reads);
    }
    close(listen_fd);
    gy_poller_free(poller);
}

/* So many descriptors are to be had: as if the process had opened all the others. */
static void leave_descriptors(int count)
{
    struct rlimit limit;

    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    if (count < 0)
        return;
    int next = dup(0);
    cr_assert(next >= 0 && close(next) == 0);
    limit.rlim_cur = (rlim_t)(next + count);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void count_starved(void *user, int errnum)
{
    cr_assert_eq(errnum, EMFILE);
    ++*(int *)user;
}

static void poll_for(int64_t ns)
{
    bool never = false;

    poll_until(&never, ns);
}

static bool has_come(const struct gy_listener *listener, int count)
{
    for (int64_t limit = gy_now() + 10 * GY_SECOND; gy_listener_handshake(listener) < count && gy_now() < limit;)
        gy_poller_poll(poller, 50 * GY_MILLISECOND);
    return gy_listener_handshake(listener) == count;
}

Test(listener, old_shortages_are_forgotten, .timeout = 60)
{
    struct gy_error error = {.rank = -1};
    int starved = 0;

    cr_assert_eq(gy_poller_create(&poller, &error), GYRE_SUCCESS);
    struct gy_listener *listener = open_listener(8);
    gy_listener_on_no_memory(listener, count_starved, &starved);
    int first = visit(), kept = gy_listener_hold(listener);
    leave_descriptors(1); /* for the first, and none to look whether there is a second */
    cr_assert(kept >= 0 && has_come(listener, 1));
    close(first);
    poll_for(1500 * GY_MILLISECOND);
    leave_descriptors(-1);
    int second = visit();
    leave_descriptors(0);
    poll_for(500 * GY_MILLISECOND);
    cr_assert_eq(starved, 0, "it has been short for half a second");
    leave_descriptors(-1);
    int registrant = accept(kept, NULL, NULL);
    cr_assert(registrant >= 0);
    poll_for(1500 * GY_MILLISECOND);
    int third = visit();
    leave_descriptors(0);
    poll_for(500 * GY_MILLISECOND);
    cr_assert_eq(starved, 0, "it has been short for half a second again");
    poll_for(1500 * GY_MILLISECOND);
    cr_assert_gt(starved, 0, "two seconds are no moment");
    leave_descriptors(-1);
    cr_assert(has_come(listener, 1));
    for (size_t i = 0; i < 4; i++)
        close((const int[]){second, third, registrant, kept}[i]);
    gy_listener_free(listener);
    gy_poller_free(poller);
}
