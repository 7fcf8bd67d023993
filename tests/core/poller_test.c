/* The event set: delivery, change, removal inside callbacks (own, others, freed ones, in nested polls), time, and
 * that no poll sleeps beside a quiet watch. The source is compiled in, to force the path that older kernels take. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../src/core/poller.c"

struct node {
    struct gy_watch watch;
    int calls, listened;
    bool asleep; /* when it was made to listen */
    uint32_t seen;
    void (*then)(struct node *node);
};

static struct gy_poller *poller;
static struct node *nodes[100];
static struct gy_error error;

static void called(void *owner, uint32_t events)
{
    struct node *node = owner;

    node->calls++;
    node->seen = events;
    if (node->then)
        node->then(node);
}

static void set_up(void)
{
    gy_error_clear(&error);
    cr_assert_eq(gy_poller_create(&poller, &error), GYRE_SUCCESS);
}

static void tear_down(void)
{
    gy_poller_free(poller);
}

TestSuite(poller, .init = set_up, .fini = tear_down);

/* A watch on an event that is already there. */
static struct node *node_add(size_t index, void (*then)(struct node *node))
{
    struct node *node = calloc(1, sizeof(*node));

    node->watch.fd = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);
    node->watch.events = EPOLLIN;
    node->watch.callback = called;
    node->watch.owner = node;
    node->then = then;
    cr_assert_eq(gy_poller_add(poller, &node->watch, &error), GYRE_SUCCESS, "%s", error.text);
    nodes[index] = node;
    return node;
}

static void node_free(size_t index)
{
    struct node *node = nodes[index];

    gy_poller_remove(poller, &node->watch);
    cr_assert_not(node->watch.active);
    gy_poller_remove(poller, &node->watch); /* idempotent */
    close(node->watch.fd);
    free(node);
    nodes[index] = NULL;
}

Test(poller, delivers_while_the_event_lasts)
{
    struct node *node = node_add(0, NULL);
    uint64_t value;

    cr_assert(node->watch.active);
    cr_assert_eq(gy_poller_poll(poller, 0), 1);
    cr_assert_eq(gy_poller_poll(poller, GY_SECOND), 1);
    cr_assert_eq(node->calls, 2);
    cr_assert_eq(node->seen, EPOLLIN);
    cr_assert_eq(read(node->watch.fd, &value, sizeof(value)), 8);
    cr_assert_eq(gy_poller_poll(poller, 0), 0);
    gy_poller_change(poller, &node->watch, EPOLLOUT);
    cr_assert_eq(gy_poller_poll(poller, 0), 1);
    cr_assert_eq(node->seen, EPOLLOUT);
    gy_poller_change(poller, &node->watch, 0);
    cr_assert_eq(gy_poller_poll(poller, 0), 0);
    node_free(0);
}

static void free_everyone(struct node *self)
{
    (void)self;
    for (size_t i = 0; i < GY_ARRAY_LENGTH(nodes); i++) {
        if (nodes[i])
            node_free(i);
    }
}

Test(poller, a_callback_may_free_all_watches)
{
    for (size_t i = 0; i < 40; i++)
        node_add(i, free_everyone);
    cr_assert_eq(gy_poller_poll(poller, GY_SECOND), 1);
    cr_assert_null(nodes[0]);
    cr_assert_eq(gy_poller_poll(poller, 0), 0);
}

static void poll_again(struct node *self)
{
    self->then = NULL;
    gy_poller_poll(poller, 0);
}

Test(poller, removal_in_a_nested_poll_reaches_the_outer_batch)
{
    struct node *first = node_add(0, poll_again);

    node_add(1, NULL);
    node_add(2, free_everyone);
    cr_assert_eq(gy_poller_poll(poller, GY_SECOND), 1, "the outer batch had three events, two of them blanked");
    (void)first; /* freed */
    cr_assert_null(nodes[1]);
    cr_assert_eq(gy_poller_poll(poller, 0), 0);
}

static void replace_second(struct node *self)
{
    self->then = NULL;
    node_free(1);
    node_add(1, NULL);
}

Test(poller, a_new_watch_gets_no_event_of_the_old)
{
    node_add(0, replace_second);
    node_add(1, NULL);
    cr_assert_eq(gy_poller_poll(poller, GY_SECOND), 1);
    cr_assert_eq(nodes[1]->calls, 0);
    cr_assert_eq(gy_poller_poll(poller, 0), 2);
    cr_assert_eq(nodes[1]->calls, 1);
    node_free(0);
    node_free(1);
}

Test(poller, more_watches_than_a_batch)
{
    int polls = 0, total = 0;

    for (size_t i = 0; i < 100; i++)
        node_add(i, NULL);
    while (polls++ < 2)
        total += gy_poller_poll(poller, 0);
    cr_assert_gt(total, 100);
    for (size_t i = 0; i < 100; i++) {
        cr_assert_geq(nodes[i]->calls, 1, "watch %zu was starved", i);
        node_free(i);
    }
}

Test(poller, waits_no_less_than_asked)
{
    for (int old_kernel = 0; old_kernel < 2; old_kernel++) {
        static const int64_t waits[] = {1, 300000, 1500000, 20 * GY_MILLISECOND};

        atomic_store(&pwait2_missing, old_kernel);
        for (size_t i = 0; i < GY_ARRAY_LENGTH(waits); i++) {
            int64_t start = gy_now(), waited;

            cr_assert_eq(gy_poller_poll(poller, waits[i]), 0);
            waited = gy_now() - start;
            cr_assert_geq(waited, waits[i]);
            cr_assert_lt(waited, waits[i] + 5 * GY_SECOND);
        }
        cr_assert_eq(gy_poller_poll(poller, 0), 0);
        cr_assert_eq(gy_poller_poll(poller, -5), 0, "a deadline that has passed");
    }
}

/* ---- quiet ---- */

static void listened(void *owner)
{
    struct node *node = owner;

    node->listened++;
    node->asleep = node->asleep || poller->sleepers > 0;
}

static struct node *node_add_quiet(size_t index, uint32_t events)
{
    struct node *node = node_add(index, NULL);

    gy_poller_change(poller, &node->watch, events);
    node->watch.listen = listened;
    cr_assert(gy_poller_quiet(poller, &node->watch));
    cr_assert(gy_poller_quiet(poller, &node->watch), "it is");
    return node;
}

static void nothing(void *user)
{
    (void)user;
}

static bool refused;

/* Another thread, while one sleeps. */
static void try_quiet(void *node)
{
    refused = !gy_poller_quiet(poller, &((struct node *)node)->watch);
}

Test(poller, nobody_sleeps_beside_a_quiet_watch)
{
    struct node *nodes_of[3];

    for (size_t i = 0; i < GY_ARRAY_LENGTH(nodes_of); i++)
        nodes_of[i] = node_add_quiet(i, EPOLLIN);
    gy_poller_poll(poller, 0);
    cr_assert_eq(nodes_of[0]->listened, 0, "nobody slept");
    gy_poller_poll(poller, 1);
    for (size_t i = 0; i < GY_ARRAY_LENGTH(nodes_of); i++) {
        cr_assert_eq(nodes_of[i]->listened, 1);
        cr_assert(nodes_of[i]->asleep, "quiet could begin again before the sleep");
        cr_assert_not(nodes_of[i]->watch.quiet);
    }
    cr_assert(gy_poller_quiet(poller, &nodes_of[1]->watch), "all are awake");
    gy_poller_wait(poller, 1, try_quiet, nothing, nodes_of[0]);
    cr_assert(refused, "quiet began behind a sleeper's back");
    cr_assert_eq(nodes_of[0]->listened, 1);
    cr_assert_eq(nodes_of[1]->listened, 2);
    cr_assert(gy_poller_quiet(poller, &nodes_of[0]->watch));
    cr_assert(gy_poller_quiet(poller, &nodes_of[1]->watch));
    gy_poller_listen(poller, &nodes_of[1]->watch);
    gy_poller_listen(poller, &nodes_of[1]->watch);
    cr_assert_eq(nodes_of[1]->listened, 3);
    free_everyone(NULL);
    cr_assert_null(poller->quiet, "what is removed may be freed");
}

Test(poller, who_watches_another_poller_may_sleep)
{
    struct node *node = node_add_quiet(0, EPOLLIN);

    cr_assert_eq(gy_poller_fd(poller), poller->epoll_fd);
    cr_assert_eq(node->listened, 1);
    gy_poller_poll(poller, 1);
    cr_assert_not(gy_poller_quiet(poller, &node->watch));
    node_free(0);
}

/* An edge that the set has told of stands for what older kernels said while it was of no use. */
Test(poller, the_end_of_quiet_is_told_what_is_there)
{
    struct node *node = node_add_quiet(0, EPOLLIN | EPOLLET);

    gy_poller_poll(poller, 0);
    cr_assert_eq(node->calls, 1);
    gy_poller_poll(poller, 0);
    cr_assert_eq(node->calls, 1);
    gy_poller_poll(poller, 1);
    cr_assert_eq(node->calls, 2);
    node_free(0);
}

Test(poller, a_child_leaves_its_parents_quiet_alone)
{
    struct node *node = node_add_quiet(0, EPOLLIN);

    gy_poller_abandon(poller);
    gy_poller_poll(poller, 1);
    cr_assert_eq(node->listened, 0);
    node_free(0);
}

static void connect_pair(int *here_p, int *there_p)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof(at);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    cr_assert_eq(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
    cr_assert_eq(listen(listener, 1), 0);
    cr_assert_eq(getsockname(listener, (struct sockaddr *)&at, &bytes), 0);
    *there_p = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(connect(*there_p, (struct sockaddr *)&at, sizeof(at)), 0);
    *here_p = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    cr_assert_geq(*here_p, 0);
    close(listener);
}

/* What the quiet of a socket rests on: the kernel says nothing of a few bytes, and everything of the connection's
 * end. */
Test(poller, the_end_of_a_quiet_socket_is_told)
{
    for (int reset = 0; reset < 2; reset++) {
        struct node node = {.watch = {.events = EPOLLIN, .callback = called, .owner = &node}};
        int there, lowest = 66561;
        struct linger at_once = {.l_onoff = reset};

        connect_pair(&node.watch.fd, &there);
        cr_assert_eq(gy_poller_add(poller, &node.watch, &error), GYRE_SUCCESS);
        cr_assert_eq(setsockopt(node.watch.fd, SOL_SOCKET, SO_RCVLOWAT, &lowest, sizeof(lowest)), 0);
        cr_assert_eq(setsockopt(there, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
        cr_assert_eq(write(there, "gyre", 4), 4);
        cr_assert_eq(gy_poller_poll(poller, 20 * GY_MILLISECOND), 0);
        close(there);
        cr_assert_eq(gy_poller_poll(poller, 20 * GY_SECOND), 1, "%s", reset ? "reset" : "closed");
        gy_poller_remove(poller, &node.watch);
        close(node.watch.fd);
    }
}

Test(poller, errors_say_what)
{
    struct gy_watch watch = {.fd = open("/dev/null", O_RDONLY | O_CLOEXEC), .events = EPOLLIN, .callback = called};
    struct gy_watch closed = {.fd = 9999, .events = EPOLLIN, .callback = called};

    cr_assert_eq(gy_poller_add(poller, &closed, &error), GYRE_SYSTEM);
    cr_assert_not_null(strstr(error.text, "9999"));
    cr_assert_not(closed.active);
    gy_poller_remove(poller, &closed);
    close(watch.fd);
    gy_poller_free(NULL);
}
