/* How a connection's end is told: by the error that there was, and as an end of file only where there was one, since
 * that proves the end of a process. And what a stream holds back. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "net/message_stream.h"

#define LIMIT 4096u
#define QUEUED 256              /* messages: more than the kernel's buffers hold */
#define WAITS ((size_t)1 << 19) /* likewise, in bytes */

static struct gy_poller *poller;
static int mine, theirs; /* the two ends */
static int told = -1;    /* how it ended */

static void connect_ends(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), little = 65536; /* buffers that do not grow */

    mine = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert(setsockopt(mine, SOL_SOCKET, SO_SNDBUF, &little, sizeof(little)) == 0 &&
              setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &little, sizeof(little)) == 0);
    cr_assert(bind(listener, (struct sockaddr *)&address, bytes) == 0 && listen(listener, 1) == 0 &&
              getsockname(listener, (struct sockaddr *)&address, &bytes) == 0 &&
              connect(mine, (struct sockaddr *)&address, bytes) == 0);
    theirs = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    cr_assert_geq(theirs, 0);
    close(listener);
}

static bool becomes(int fd, short events)
{
    struct pollfd end = {.fd = fd, .events = events};

    return poll(&end, 1, 60000) == 1 && (end.revents & events);
}

static void on_message(void *user, struct gy_stream *stream, uint8_t kind, uint8_t *body, size_t bytes)
{
    (void)user, (void)stream, (void)kind, (void)body, (void)bytes;
}

static void on_closed(void *user, struct gy_stream *stream, int errnum)
{
    (void)user, (void)stream;
    told = errnum;
}

/* The peer resets the connection, in the round of the poller in which the stream is told that it may send. */
static void reset(void *owner, uint32_t events)
{
    struct linger at_once = {.l_onoff = 1};

    (void)events;
    gy_poller_remove(poller, owner);
    setsockopt(theirs, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close(theirs);
    cr_assert(becomes(mine, POLLERR));
}

/* The socket takes a little all the time, never all: what has left takes no room. */
Test(stream, room_is_for_what_waits, .timeout = 120)
{
    static uint8_t body[1000], read[1 << 14];
    const struct gy_seal_keys keys = {.suite = GY_SUITE_OFF};
    struct gy_error error = {.rank = -1};
    struct gy_stream stream = {.fd = -1};

    connect_ends();
    cr_assert_eq(gy_poller_create(&poller, &error), GYRE_SUCCESS);
    cr_assert(fcntl(mine, F_SETFL, O_NONBLOCK) == 0);
    cr_assert_eq(gy_stream_open(&stream, poller, mine, &keys, LIMIT, on_message, on_closed, NULL, &error),
                 GYRE_SUCCESS);
    for (int sent = 0; sent < 4000;) {
        if (stream.out_end - stream.out_begin < WAITS) {
            cr_assert(gy_stream_send(&stream, 1, body, sizeof(body)));
            sent++;
            continue;
        }
        cr_assert(becomes(theirs, POLLIN) && recv(theirs, read, sizeof(read), 0) > 0);
        gy_poller_poll(poller, 0);
    }
    cr_assert_leq(stream.out_room, 2 * WAITS, "%zu bytes", stream.out_room);
    gy_stream_close(&stream);
    close(theirs);
    gy_poller_free(poller);
}

Test(stream, a_reset_that_sending_finds_is_no_end_of_file)
{
    static uint8_t body[LIMIT];
    const struct gy_seal_keys keys = {.suite = GY_SUITE_OFF};
    struct gy_error error = {.rank = -1};
    struct gy_stream stream = {.fd = -1};
    struct gy_watch first = {.fd = eventfd(0, EFD_CLOEXEC), .events = EPOLLIN, .callback = reset, .owner = &first};

    connect_ends();
    cr_assert_eq(gy_poller_create(&poller, &error), GYRE_SUCCESS);
    cr_assert_eq(gy_poller_add(poller, &first, &error), GYRE_SUCCESS);
    cr_assert(fcntl(mine, F_SETFL, O_NONBLOCK) == 0);
    cr_assert_eq(gy_stream_open(&stream, poller, mine, &keys, LIMIT, on_message, on_closed, NULL, &error),
                 GYRE_SUCCESS);
    for (int i = 0; i < QUEUED; i++)
        cr_assert(gy_stream_send(&stream, 1, body, sizeof(body)));
    while (gy_poller_poll(poller, GY_SECOND / 10) > 0) /* until no more has room */
        ;
    cr_assert_not(gy_stream_flushed(&stream));
    cr_assert_eq(eventfd_write(first.fd, 1), 0);
    while (poll(&(struct pollfd){.fd = mine, .events = POLLOUT}, 1, 10) == 0)
        while (recv(theirs, body, sizeof(body), 0) > 0)
            ;
    while (told < 0 && gy_poller_poll(poller, GY_SECOND) > 0)
        ;
    cr_assert_eq(told, ECONNRESET, "told as %d", told);
    gy_stream_close(&stream);
    close(first.fd);
    gy_poller_free(poller);
}
