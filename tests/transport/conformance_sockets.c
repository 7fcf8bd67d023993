/* What tcp does on its sockets: what overtakes what, which frames leave without a queue, and which bytes are worth the end of a sleep. */
#include "conformance.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "core/clock.h"
#include "transport/tcp_private.h"

/* tcp: two grants that are posted last, behind more than sockets take, arrive before most payloads, the one after the other;
 * no frame is torn by them. */
void conformance_overtake(struct rank *rank)
{
    enum { COUNT = 1024, BYTES = 60000 }; /* sealed, several of them are under way */
    static struct gy_frame_out frames[COUNT], grants[2];
    rank_link(rank);
    conformance_exchange(rank, 1, conformance_small, 500, false);
    struct rank_pair *pair = &rank->pair[0];
    unsigned char *payload = malloc(BYTES);
    CHECK(payload, "no memory");
    rank_barrier(rank);
    if (rank->rank == 0) {
        struct gy_frame_out one;
        rank_frame(rank, 1, &one, 2, payload, BYTES);
        for (int k = 0; k < COUNT; k++) {
            frames[k] = one;
            frames[k].header.sequence = (uint64_t)k + 2;
            rank->ops->post(pair->link, &frames[k]);
        }
        rank->ops->progress(pair->link); /* seals all that are laid out together */
        for (int k = 0; k < 2; k++) {
            grants[k] = (struct gy_frame_out){.header = {.kind = GY_FRAME_GRANT, .epoch = 1, .value = (uint64_t)k}};
            rank->ops->post(pair->link, &grants[k]);
        }
        CHECK(grants[0].queued, "60 MB left without a reader");
        CHECK(grants[0].next == &grants[1], "grants do not overtake grants");
    }
    rank_barrier(rank);
    while (rank->rank == 0 ? !frames[COUNT - 1].done : pair->arrived < COUNT + 1)
        rank_turn(rank, true);
    CHECK(rank->rank == 0 || pair->grants == 2, "%d grants", (int)pair->grants);
    CHECK(rank->rank == 0 || pair->before_grant < COUNT, "behind %d payloads", (int)pair->before_grant);
    rank_barrier(rank);
    free(payload);
}

/* tcp: a link knows how long its way is once it is there, unless it goes over several. */
void conformance_trip(struct rank *rank)
{
    rank_link(rank);
    struct gy_link *link = rank->pair[0].link;
    int64_t before = rank->ops->round_trip(link);
    CHECK(before >= 0 && before < GY_SECOND, "%lld ns", (long long)before);
    conformance_exchange(rank, 1, conformance_small, 500, false);
    int64_t trip = rank->ops->round_trip(link);
    bool alone = gy_config_rails(&rank->config) == 1;
    CHECK(alone ? trip > 0 && trip < GY_SECOND : trip == 0, "%lld ns", (long long)trip);
    rank_barrier(rank);
}

/* Rank 0 sends bytes `from` to `to` of the frame's payload on the bare socket, behind its header where they are the first;
 * afterwards rank 1 may look for them. */
static void drip(struct rank *rank, const struct gy_frame_out *frame, size_t from, size_t to)
{
    int fd = ((struct tcp_link *)rank->pair[0].link)->rail[0].watch.fd;
    uint8_t header[GY_FRAME_BYTES];
    rank_barrier(rank);
    if (rank->rank == 0) {
        gy_frame_encode(&frame->header, header);
        CHECK(from > 0 || send(fd, header, sizeof(header), MSG_NOSIGNAL) == (ssize_t)sizeof(header), "no header");
        CHECK(send(fd, (const char *)frame->payload + from, to - from, MSG_NOSIGNAL) == (ssize_t)(to - from),
              "no part");
    }
    rank_barrier(rank);
}

/* Rank 1 reads without a sleep until it has so much of the payload, as a thread does while another one sleeps. */
static void read_awake(struct rank *rank, size_t bytes)
{
    struct gy_link *link = rank->pair[0].link;
    while (rank->rank == 1 && link->inbound.got < bytes)
        rank->ops->progress(link);
}

/* tcp: a sleep goes on while what comes of a payload is not worth its end, and ends with what is: the last byte, although
 * somebody else has read all before; the connection's end. */
void conformance_doze(struct rank *rank)
{
    enum { BYTES = 300000, FIRST = 60000, SECOND = 80000, THIRD = 260000, GONE = 1000 };
    static unsigned char payload[BYTES];
    struct gy_frame_out frame = {.payload = payload};
    if (gy_config_rails(&rank->config) > 1) /* the bytes that are written here are one connection's */
        return;
    rank_link(rank);
    conformance_exchange(rank, 1, conformance_small, 500, false);
    struct rank_pair *pair = &rank->pair[0];
    struct tcp_link *link = (struct tcp_link *)pair->link;
    if (rank->rank == 0)
        rank_frame(rank, 1, &frame, 2, payload, BYTES);
    drip(rank, &frame, 0, FIRST);
    read_awake(rank, FIRST);
    CHECK(rank->rank == 0 || rank->ops->arm(rank->instance), "there is nothing to do but to sleep");
    drip(rank, &frame, FIRST, SECOND);
    if (rank->rank == 1)
        gy_poller_poll(rank->poller, 50 * GY_MILLISECOND);
    CHECK(rank->rank == 0 || link->base.inbound.got == FIRST, "%d bytes ended a sleep", SECOND - FIRST);
    read_awake(rank, SECOND);
    drip(rank, &frame, SECOND, THIRD);
    read_awake(rank, THIRD);
    drip(rank, &frame, THIRD, BYTES);
    int64_t start = gy_now();
    while (rank->rank == 1 && pair->arrived < 2 && gy_now() - start < 30 * GY_SECOND)
        gy_poller_poll(rank->poller, 40 * GY_SECOND);
    CHECK(rank->rank == 0 || pair->arrived == 2, "slept through the rest");
    if (rank->rank == 0)
        frame.header.sequence = 3;
    drip(rank, &frame, 0, GONE);
    read_awake(rank, GONE);
    CHECK(rank->rank == 0 || rank->ops->arm(rank->instance), "there is nothing to do but to sleep");
    rank_barrier(rank);
    if (rank->rank == 0)
        CHECK(shutdown(link->rail[0].watch.fd, SHUT_WR) == 0, "shutdown");
    while (rank->rank == 1 && !pair->broken && gy_now() - start < 80 * GY_SECOND)
        gy_poller_poll(rank->poller, 90 * GY_SECOND);
    CHECK(rank->rank == 0 || pair->broken, "slept through the end");
    rank_barrier(rank);
}

/* The first of several rails may carry messages while the others are still being dialled. */
static bool rails_are_there(const struct rank *rank)
{
    const struct tcp_link *link = (const struct tcp_link *)rank->pair[0].link;
    for (int i = 0; i < gy_config_rails(&rank->config); i++)
        if (link->rail[i].watch.fd < 0)
            return false;
    return true;
}

/* tcp: frames of send_short, which has given header and payload back when it returns. What a socket that is nearly full leaves of
 * one goes before all else, a grant among it, and until then no other is taken. */
void conformance_short(struct rank *rank)
{
    enum { KEPT = 5, LAST = 5000 };
    static unsigned char payload[GY_TCP_EAGER];
    static struct gy_frame_out grant, last;
    struct gy_frame_out frame;
    int little = 8192, kept = 0;
    rank_link(rank);
    conformance_exchange(rank, 1, conformance_small, 500, false);
    while (!rails_are_there(rank))
        rank_turn(rank, true);
    struct rank_pair *pair = &rank->pair[0];
    for (int i = 0; i < gy_config_rails(&rank->config); i++) {
        int fd = ((struct tcp_link *)pair->link)->rail[i].watch.fd, which = rank->rank == 0 ? SO_SNDBUF : SO_RCVBUF;
        CHECK(setsockopt(fd, SOL_SOCKET, which, &little, sizeof(little)) == 0, "no small socket");
    }
    rank->linger_ns = 20000; /* so that the socket fills */
    while (rank->rank == 0 && kept < KEPT) {
        if (pair->link->first) { /* the socket is full, and progress says when it is not */
            rank_turn(rank, true);
            continue;
        }
        uint64_t number = pair->posted + 1;
        rank_frame(rank, pair->peer, &frame, number, payload, (uint32_t)(number * 977 % sizeof(payload)));
        if (!rank->ops->send_short(pair->link, &frame.header, frame.payload))
            continue;
        memset(payload, 0xee, sizeof(payload));
        pair->posted++;
        kept += pair->link->kept != NULL;
        CHECK(!pair->link->kept == !pair->link->first, "what is kept is what is queued");
    }
    if (rank->rank == 0) {
        struct pollfd room = {.fd = ((struct tcp_link *)pair->link)->out.rail->watch.fd, .events = POLLOUT};
        CHECK(poll(&room, 1, 40000) == 1, "the other reads"); /* full sockets so small may wait for TCP's timers */
        CHECK(!rank->ops->send_short(pair->link, &frame.header, frame.payload), "before what has been kept");
        rank_frame(rank, pair->peer, &last, pair->posted + 1, payload, LAST);
        grant = (struct gy_frame_out){.header = {.kind = GY_FRAME_GRANT, .epoch = 1}};
        rank->ops->post(pair->link, &last);
        rank->ops->post(pair->link, &grant);
        CHECK(last.done || pair->link->last == &last, "the queue's order");
        if (pair->link->kept &&
            pair->link->kept->sent > 0) /* of several rails, another one may take it, or none of it */
            CHECK(pair->link->first == pair->link->kept, "a grant stands in a frame that was begun");
    }
    while (rank->rank == 0 ? !last.done : pair->grants == 0 || pair->arrived == pair->before_grant)
        rank_turn(rank, true);
    CHECK(!pair->link->kept, "it has left");
    rank_barrier(rank);
}
