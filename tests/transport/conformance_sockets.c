/* What tcp does on its sockets: what overtakes what, which frames leave without a queue, which bytes are worth the end
 * of a sleep, which are awaited where they are, which the kernel says nothing of, and what it cannot send. */
#include "conformance.h"

#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "core/clock.h"
#include "transport/tcp/internal.h"

/* tcp: two grants that are posted last, behind more than sockets take, arrive before most payloads, the one after the
 * other; no frame is torn by them. */
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
        rank_progress(rank, true);
    CHECK(rank->rank == 0 || pair->grants == 2, "%d grants", (int)pair->grants);
    CHECK(rank->rank == 0 || pair->before_grant < COUNT, "behind %d payloads", (int)pair->before_grant);
    rank_barrier(rank);
    free(payload);
}

enum { MANY = 512, MANY_BYTES = 60000 };
static struct gy_frame_out many[MANY];
static unsigned char of_many[MANY_BYTES];

/* More than sockets take; rank 1 may read then. */
static void post_many(void *user)
{
    struct rank *rank = user;
    struct gy_frame_out one;
    rank_frame(rank, 1, &one, 2, of_many, MANY_BYTES);
    for (int k = 0; k < MANY; k++) {
        many[k] = one;
        many[k].header.sequence = (uint64_t)k + 2;
        rank->ops->post(rank->pair[0].link, &many[k]);
    }
    CHECK(many[MANY - 1].queued, "30 MB left without a reader");
    rank_barrier(rank);
}

static void come_back(void *user)
{
    (void)user;
}

/* tcp: a thread of rank 0 sleeps, with nothing to be sent, while another one posts and leaves. The sleeper sends the
 * rest. */
void conformance_sleeper(struct rank *rank)
{
    rank_link(rank);
    conformance_exchange(rank, 1, conformance_small, 500, false);
    int64_t start = gy_now();
    if (rank->rank == 0) {
        CHECK(rank->ops->arm(rank->instance), "there is nothing to do but to sleep");
        gy_poller_wait(rank->poller, 20 * GY_SECOND, post_many, come_back, rank);
        CHECK(gy_now() - start < 15 * GY_SECOND, "slept while there was room");
        rank->ops->disarm(rank->instance);
    } else {
        rank_barrier(rank);
    }
    while (rank->rank == 0 ? !many[MANY - 1].done : rank->pair[0].arrived < MANY + 1)
        rank_progress(rank, true);
    rank_barrier(rank);
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

/* Rank 0 sends bytes `from` to `to` of the frame's payload on the bare socket, behind its header where they are the
 * first; afterwards rank 1 may look for them. */
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

/* tcp: a sleep goes on while too little of a payload has come, and ends with the last byte, although another process
 * has read all before, and with the connection's end. */
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

/* Sends a frame without its last bytes. Tests whether they are awaited where the others are, or the receive handler
 * has been asked for a place. */
static void come_in_two(struct rank *rank, uint8_t flags, bool waits)
{
    enum { BYTES = GY_TCP_EAGER, FIRST = BYTES - 200 };
    static unsigned char payload[BYTES];
    struct rank_pair *pair = &rank->pair[0];
    struct tcp_link *link = (struct tcp_link *)pair->link;
    struct gy_frame_out frame = {.payload = payload};
    uint64_t placed = pair->placed, arrived = pair->arrived;
    if (rank->rank == 0) {
        pair->posted++;
        rank_frame(rank, 1, &frame, pair->posted, payload, BYTES);
        frame.header.flags = flags;
    }
    drip(rank, &frame, 0, FIRST);
    int64_t start = gy_now();
    while (rank->rank == 1 && gy_now() - start < 30 * GY_SECOND &&
           !(link->base.inbound.active ? link->base.inbound.got == FIRST : link->end == GY_FRAME_BYTES + FIRST))
        rank->ops->progress(pair->link);
    CHECK(rank->rank == 0 || rank->ops->arm(rank->instance), "there is nothing to do but to sleep");
    rank->ops->disarm(rank->instance);
    CHECK(!waits || rank->rank == 0 || !link->lengthy, "what is awaited comes by small pieces");
    CHECK(rank->rank == 0 || pair->placed == placed + !waits, "%d places where %d were to be asked for",
          (int)(pair->placed - placed), !waits);
    drip(rank, &frame, FIRST, BYTES);
    while (rank->rank == 1 && pair->arrived == arrived && gy_now() - start < 60 * GY_SECOND)
        gy_poller_poll(rank->poller, 70 * GY_SECOND);
    CHECK(rank->rank == 0 || pair->arrived == arrived + 1, "slept through the rest");
    CHECK(rank->rank == 0 || pair->placed == placed + !waits, "it was placed after all");
    rank_barrier(rank);
}

/* tcp: an eager frame between sockets of a host is given to the receive handler when it is complete, so that it
 * needs no place for its last bytes to wait in; others are placed at once. The end of the connection is not waited
 * for behind one. */
void conformance_whole(struct rank *rank)
{
    static unsigned char payload[1000];
    struct gy_frame_out frame = {.payload = payload};
    if (gy_config_rails(&rank->config) > 1)
        return;
    rank_link(rank);
    conformance_exchange(rank, 1, conformance_small, 500, false);
    struct rank_pair *pair = &rank->pair[0];
    struct tcp_link *link = (struct tcp_link *)pair->link;
    come_in_two(rank, GY_FRAME_EAGER, true);
    come_in_two(rank, 0, false);
    link->lengthy = true; /* as behind a long payload, of which no more than headers was read ahead */
    come_in_two(rank, GY_FRAME_EAGER, true);
    link->same_machine = false;
    come_in_two(rank, GY_FRAME_EAGER, false);
    link->same_machine = true;
    if (rank->rank == 0) {
        rank_frame(rank, 1, &frame, pair->posted + 1, payload, sizeof(payload));
        frame.header.flags = GY_FRAME_EAGER;
    }
    drip(rank, &frame, 0, sizeof(payload) / 2);
    if (rank->rank == 0)
        CHECK(shutdown(link->rail[0].watch.fd, SHUT_WR) == 0, "shutdown");
    for (int64_t start = gy_now(); rank->rank == 1 && !pair->broken && gy_now() - start < 30 * GY_SECOND;)
        gy_poller_poll(rank->poller, 40 * GY_SECOND);
    CHECK(rank->rank == 0 || pair->broken, "slept through the end");
    rank_barrier(rank);
}

static void send_one(struct rank *rank, enum gy_frame_kind kind, bool posts)
{
    static struct gy_frame_out frames[2];
    static unsigned char payloads[2][8];
    struct rank_pair *pair = &rank->pair[0];
    struct gy_frame_out *frame = &frames[rank->rank];
    rank_frame(rank, pair->peer, frame, ++pair->posted, payloads[rank->rank], sizeof(payloads[0]));
    frame->header.kind = (uint8_t)kind;
    if (posts)
        rank->ops->post(pair->link, frame);
    else
        CHECK(rank->ops->send_short(pair->link, &frame->header, frame->payload), "the socket is empty");
    for (int64_t start = gy_now();
         (posts ? !frame->done : pair->link->first != NULL) && gy_now() - start < 30 * GY_SECOND;)
        rank->ops->progress(pair->link);
}

static void look_for(struct rank *rank, uint64_t arrived)
{
    struct rank_pair *pair = &rank->pair[0];
    int64_t start = gy_now();
    while (pair->arrived < arrived) {
        if (!rank->ops->progress(pair->link))
            sched_yield(); /* the other may need this core */
        CHECK(gy_now() - start < 60 * GY_SECOND, "nothing came");
    }
}

static bool is_quiet(const struct rank *rank)
{
    int lowest = 0;
    socklen_t bytes = sizeof(lowest);
    int fd = ((const struct tcp_link *)rank->pair[0].link)->rail[0].watch.fd;
    CHECK(getsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &lowest, &bytes) == 0, "no socket");
    return lowest > (int)GY_TCP_EAGER;
}

/* Both look, and answer each other. */
static void answer_each_other(struct rank *rank)
{
    enum { TIMES = 100 };
    struct rank_pair *pair = &rank->pair[0];
    rank_barrier(rank);
    uint64_t first = pair->arrived;
    for (uint64_t i = 1; i <= TIMES; i++) {
        if (rank->rank == 0)
            send_one(rank, GY_FRAME_DATA, false);
        look_for(rank, first + i);
        if (rank->rank == 1)
            send_one(rank, GY_FRAME_DATA, false);
    }
    CHECK(is_quiet(rank), "the event set hears of each of %d short frames", TIMES);
    rank_barrier(rank);
}

/* tcp: while two ranks answer each other and neither sleeps the kernel reports no short frames. A rank that sleeps,
 * announced or not, is told of earlier frames as of later ones. A rank that posts a frame which may have a long
 * answer ends it, too; and the connection's end is told at once. */
void conformance_quiet(struct rank *rank)
{
    if (gy_config_rails(&rank->config) > 1)
        return;
    rank_link(rank);
    conformance_exchange(rank, 1, conformance_small, 500, false);
    struct rank_pair *pair = &rank->pair[0];
    for (int before = 0; before < 2; before++) {
        answer_each_other(rank);
        uint64_t arrived = pair->arrived;
        if (rank->rank == 0) {
            conformance_pause(before ? 0 : 20);
            send_one(rank, GY_FRAME_DATA, false);
        }
        if (before)
            rank_barrier(rank);
        if (rank->rank == 1 && before)
            gy_poller_poll(rank->poller, 0);
        CHECK(pair->arrived == arrived, "the event set hears of a short frame");
        int64_t start = gy_now();
        while (rank->rank == 1 && pair->arrived == arrived && gy_now() - start < 30 * GY_SECOND)
            gy_poller_poll(rank->poller, 40 * GY_SECOND);
        CHECK(rank->rank == 0 || gy_now() - start < 30 * GY_SECOND, "slept beside a frame");
        CHECK(rank->rank == 0 || !is_quiet(rank), "slept, and the kernel was to say nothing");
    }
    answer_each_other(rank);
    uint64_t arrived = pair->arrived;
    if (rank->rank == 1) {
        send_one(rank, GY_FRAME_CREDIT, true);
        CHECK(is_quiet(rank), "credit has no answer");
        send_one(rank, GY_FRAME_DATA, true);
        CHECK(!is_quiet(rank), "what is posted may have a long one");
    } else {
        look_for(rank, arrived + 2);
    }
    answer_each_other(rank);
    if (rank->rank == 1)
        CHECK(rank->ops->arm(rank->instance) && !is_quiet(rank), "who says that he sleeps hears");
    rank->ops->disarm(rank->instance);
    answer_each_other(rank);
    if (rank->rank == 0)
        CHECK(shutdown(((struct tcp_link *)pair->link)->rail[0].watch.fd, SHUT_WR) == 0, "shutdown");
    for (int64_t start = gy_now(); rank->rank == 1 && !pair->broken && gy_now() - start < 30 * GY_SECOND;) {
        CHECK(is_quiet(rank), "it was to be told all the same");
        gy_poller_poll(rank->poller, 0);
    }
    CHECK(rank->rank == 0 || pair->broken, "nobody was told of the end");
    rank_barrier(rank);
}

/* The first of several rails may carry messages while the others are still being connected to. */
static bool rails_are_there(const struct rank *rank)
{
    const struct tcp_link *link = (const struct tcp_link *)rank->pair[0].link;
    for (int i = 0; i < gy_config_rails(&rank->config); i++)
        if (link->rail[i].watch.fd < 0)
            return false;
    return true;
}

/* tcp: frames of send_short, which has given header and payload back when it returns. What a socket that is nearly full
 * leaves of one goes before all else, a grant among it, and until then no other is taken. */
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
        rank_progress(rank, true);
    struct rank_pair *pair = &rank->pair[0];
    for (int i = 0; i < gy_config_rails(&rank->config); i++) {
        int fd = ((struct tcp_link *)pair->link)->rail[i].watch.fd, which = rank->rank == 0 ? SO_SNDBUF : SO_RCVBUF;
        CHECK(setsockopt(fd, SOL_SOCKET, which, &little, sizeof(little)) == 0, "no small socket");
    }
    rank->linger_ns = 20000; /* so that the socket fills */
    while (rank->rank == 0 && kept < KEPT) {
        if (pair->link->first) { /* the socket is full, and progress says when it is not */
            rank_progress(rank, true);
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
        rank_progress(rank, true);
    CHECK(!pair->link->kept, "it has left");
    rank_barrier(rank);
}

/* tcp: a frame that cannot be sent for a reason of the sender's own, which no read would ever find, ends the link at
 * once and reports it. The peer sees the end of the connection, if there is only one: several stay quiet until the
 * link is closed. */
void conformance_unreadable(struct rank *rank)
{
    enum { BYTES = 8192 };
    static struct gy_frame_out frame;
    rank_link(rank);
    conformance_exchange(rank, 1, conformance_small, 500, false);
    struct rank_pair *pair = &rank->pair[0];
    rank_barrier(rank);
    unsigned char *payload = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(payload != MAP_FAILED, "no memory");
    if (rank->rank == 0) {
        rank_frame(rank, 1, &frame, ++pair->posted, payload, BYTES);
        CHECK(mprotect(payload, BYTES, PROT_NONE) == 0, "no protection");
        rank->ops->post(pair->link, &frame);
    }
    bool told = rank->rank == 0 || gy_config_rails(&rank->config) == 1;
    for (int64_t start = gy_now(); told && !pair->broken && gy_now() - start < 20 * GY_SECOND;)
        rank_progress(rank, rank->rank == 1);
    CHECK(!told || (pair->broken == 1 && !frame.done), "waits for ever");
    CHECK(!told || pair->broken_status == (rank->rank == 0 ? GYRE_SYSTEM : GYRE_PEER_UNREACHABLE), "status %d: %s",
          pair->broken_status, pair->link->error.text);
    CHECK(rank->rank == 1 || strstr(pair->link->error.text, "Bad address"), "%s", pair->link->error.text);
    rank_barrier(rank);
    munmap(payload, BYTES);
}
