/* tcp: payloads that go through the pool (transport/tcp/zero_copy_pool.c): whole whatever their reader does meanwhile,
 * also where slots are scarce, are another link's, or their link has ended; and no signal where the peer has gone. */
#include "conformance.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "transport/tcp/internal.h"

#define LONG ((uint32_t)1 << 20)

static struct tcp_link *link_to(struct rank *rank, int pair)
{
    return (struct tcp_link *)rank->pair[pair].link;
}

static bool uses_pool(struct rank *rank)
{
    return link_to(rank, 0)->same_machine && !link_to(rank, 0)->rails && !link_to(rank, 0)->envelopes;
}

/* Whatever the clocks say, but for what is tried. */
static void prefer(struct tcp_link *link)
{
    for (unsigned sort = 0; sort < GY_TCP_SORTS; sort++) {
        link->policy.sort[sort].pays = true;
        link->policy.sort[sort].theirs[0] = 0;
    }
}

static uint32_t lengthy(uint64_t i)
{
    return LONG - (uint32_t)(i * 2654435761u >> 7) % (i % 3 ? 1000 : 700000);
}

/* What this rank has read, all of it; the others' word of it comes meanwhile. */
static void say_taken(struct rank *rank)
{
    static _Thread_local struct gy_frame_out grants[RANKS_MOST];
    static _Thread_local uint64_t said;
    said++;
    for (int i = 0; i < rank->pairs; i++) {
        grants[i] = (struct gy_frame_out){.header = {.kind = GY_FRAME_GRANT, .epoch = 1}};
        rank->ops->post(rank->pair[i].link, &grants[i]);
    }
    for (int i = 0; i < rank->pairs; i++)
        while (!grants[i].done || rank->pair[i].grants < said)
            rank_progress(rank, false);
}

/* Both ends count the bytes of the stream alike, and what has been read is free. */
static void check_taken(struct rank *rank)
{
    const struct tcp_pool *pool = &link_to(rank, 0)->tcp->pool;
    int used = 0;
    for (int i = 0; i < rank->pairs; i++) {
        const struct tcp_link *link = link_to(rank, i);
        CHECK(link->policy.taken == SIZE_MAX - link->out.left - GY_FRAME_BYTES, "rank %d has read %llu bytes of %llu",
              link->base.peer, (unsigned long long)link->policy.taken,
              (unsigned long long)(SIZE_MAX - link->out.left - GY_FRAME_BYTES));
    }
    for (int i = 0; i < GY_TCP_SLOTS; i++) {
        used += pool->slot[i].link != NULL;
        CHECK(!pool->slot[i].link || pool->slot[i].until <= pool->slot[i].link->policy.taken, "slot %d", i);
    }
    CHECK(pool->memory && !pool->refused && used > 0, "no payload went through the pool");
}

void conformance_pool(struct rank *rank)
{
    enum { ROUNDS = 4 };
    rank_link(rank);
    conformance_exchange(rank, 1, conformance_small, 500, false);
    rank->linger_ns = 100000;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < rank->pairs; i++)
            prefer(link_to(rank, i));
        conformance_exchange(rank, 12, lengthy, LONG, round % 2);
        rank_barrier(rank);
        if (uses_pool(rank)) {
            say_taken(rank);
            check_taken(rank);
            for (int i = 0; i < rank->pairs; i++)
                CHECK(round > 0 || link_to(rank, i)->policy.sort[3].sends[1].count == 0,
                      "the first use of pages counts");
        }
        rank_barrier(rank);
    }
    CHECK(uses_pool(rank) || !link_to(rank, 0)->tcp->pool.memory, "a pool for links that have none");
}

/* The reader says what it has read while more of it is under way, as it does where tiles follow each other. */
void conformance_pool_under_way(struct rank *rank)
{
    enum { FRAMES = 40, AT_ONCE = 4 };
    static struct gy_frame_out frames[FRAMES], grant;
    static unsigned char *payload[AT_ONCE];
    rank_link(rank);
    conformance_exchange(rank, 1, conformance_small, 500, false);
    struct rank_pair *pair = &rank->pair[0];
    uint64_t last = (rank->rank == 0 ? 0 : pair->arrived) + FRAMES, said = 0;
    rank_barrier(rank); /* nothing of it has come before it is counted */
    for (int k = 0; rank->rank == 0 && k < FRAMES; k++) {
        payload[k % AT_ONCE] = k < AT_ONCE ? malloc(LONG) : payload[k % AT_ONCE];
        CHECK(payload[k % AT_ONCE], "no memory");
        while (k >= AT_ONCE && !frames[k - AT_ONCE].done)
            rank_progress(rank, false);
        rank_frame(rank, pair->peer, &frames[k], ++pair->posted, payload[k % AT_ONCE], LONG);
        prefer(link_to(rank, 0));
        rank->ops->post(pair->link, &frames[k]);
    }
    while (rank->rank == 0 ? !frames[FRAMES - 1].done : rank->rank == 1 && pair->arrived < last) {
        rank_progress(rank, false);
        if (rank->rank == 0 || grant.queued || pair->link->inbound.got + pair->arrived * LONG == said)
            continue;
        said = pair->link->inbound.got + pair->arrived * LONG;
        grant = (struct gy_frame_out){.header = {.kind = GY_FRAME_GRANT, .epoch = 1}};
        rank->ops->post(pair->link, &grant);
        conformance_pause(1);
    }
    rank_barrier(rank);
    for (int k = 0; k < AT_ONCE && rank->rank == 0; k++)
        free(payload[k]);
}

/* Eager frames whose senders keep no copy: the memory is the sender's again at once. Slots are free again when any
 * frame that comes back says so, while more is under way and sockets are full. */
void conformance_pool_short(struct rank *rank)
{
    enum { FRAMES = 600 };
    static unsigned char payload[GY_TCP_EAGER];
    static struct gy_frame_out frame, back;
    int little = 16 << 10, past = 0, left = 0;
    rank_link(rank);
    conformance_exchange(rank, 1, conformance_small, 500, false);
    struct rank_pair *pair = &rank->pair[0];
    struct tcp_link *link = link_to(rank, 0);
    uint64_t last = pair->arrived + FRAMES, said = 0;
    rank->linger_ns = 30000;
    rank_barrier(rank);
    if (uses_pool(rank) && rank->rank == 0)
        CHECK(setsockopt(link->rail[0].watch.fd, SOL_SOCKET, SO_SNDBUF, &little, sizeof(little)) == 0,
              "no small socket");
    for (int sent = 0; uses_pool(rank) && rank->rank == 0 && sent < FRAMES;) {
        uint32_t less = (uint32_t)sent * 2654435761u >> 5, bytes = GY_TCP_EAGER;
        if (sent % 3 == 0)
            bytes -= less % (GY_TCP_EAGER - GY_TCP_ZERO_COPY_LEAST + 1);
        rank_progress(rank, false);
        rank_frame(rank, pair->peer, &frame, pair->posted + 1, payload, bytes);
        frame.header.flags = GY_FRAME_EAGER;
        prefer(link);
        if (!rank->ops->send_short(pair->link, &frame.header, frame.payload))
            continue;
        memset(payload, 0xee, sizeof(payload));
        pair->posted++;
        sent++;
        past += (link->kept.header.flags & GY_TCP_FRAME_NT) != 0;
        left += link->policy.frame != NULL;
    }
    while (uses_pool(rank) && rank->rank == 1 && pair->arrived < last) {
        rank_progress(rank, false);
        if (pair->arrived == said || back.queued)
            continue;
        said = pair->arrived;
        rank_frame(rank, pair->peer, &back, ++pair->posted, NULL, 0);
        rank->ops->post(pair->link, &back);
    }
    while (uses_pool(rank) && rank->rank == 0 && link->policy.taken < gy_tcp_position(&link->out))
        rank_progress(rank, false);
    CHECK(!uses_pool(rank) || rank->rank > 0 || (past > FRAMES / 4 && left > 0), "%d past the caches, %d in parts",
          past, left);
    rank_barrier(rank);
}

/* Rank 0 has given all slots to a rank that reads nothing. Others get theirs all the same, and what he reads at last is
 * whole. */
void conformance_pool_of_others(struct rank *rank)
{
    enum { FRAMES = 8 };
    static struct gy_frame_out late[FRAMES], soon[FRAMES];
    static unsigned char *payload[2 * FRAMES];
    rank_link(rank);
    conformance_exchange(rank, 1, conformance_small, 500, false);
    rank_barrier(rank);
    if (rank->size < 3 || !uses_pool(rank))
        return;
    struct rank_pair *pairs = rank->pair;
    uint64_t before = pairs[0].arrived;
    for (int k = 0; rank->rank == 0 && k < FRAMES; k++) {
        struct gy_frame_out *frames[2] = {late, soon};
        for (int i = 0; i < 2; i++) {
            payload[2 * k + i] = malloc(LONG);
            CHECK(payload[2 * k + i], "no memory");
            rank_frame(rank, pairs[i].peer, &frames[i][k], ++pairs[i].posted, payload[2 * k + i], LONG);
        }
    }
    for (int k = 0; rank->rank == 0 && k < FRAMES; k++) {
        prefer(link_to(rank, 0));
        rank->ops->post(pairs[0].link, &late[k]);
    }
    for (int k = 0; rank->rank == 0 && k < FRAMES; k++) {
        prefer(link_to(rank, 1));
        rank->ops->post(pairs[1].link, &soon[k]);
    }
    while (rank->rank == 0 && !soon[FRAMES - 1].done)
        rank->ops->progress(pairs[1].link);
    while (rank->rank == 2 && pairs[0].arrived < before + FRAMES)
        rank_progress(rank, false);
    CHECK(rank->rank > 0 || !link_to(rank, 0)->tcp->pool.refused, "no pages");
    rank_barrier(rank);
    while (rank->rank == 0 ? !late[FRAMES - 1].done : rank->rank == 1 && pairs[0].arrived < before + FRAMES)
        rank_progress(rank, false);
    rank_barrier(rank);
    for (int k = 0; rank->rank == 0 && k < 2 * FRAMES; k++)
        free(payload[k]);
}

/* No peer is left to send to: the link is told, and no other one. */
void conformance_pool_signal(struct rank *rank)
{
    static unsigned char payload[LONG];
    static struct gy_frame_out frame;
    sigset_t blocked, pending;
    rank_link(rank);
    conformance_exchange(rank, 1, conformance_small, 500, false);
    struct rank_pair *pair = &rank->pair[0];
    if (!uses_pool(rank))
        return;
    if (rank->rank == 0) {
        rank_frame(rank, pair->peer, &frame, ++pair->posted, payload, LONG);
        prefer(link_to(rank, 0));
        CHECK(shutdown(link_to(rank, 0)->rail[0].watch.fd, SHUT_WR) == 0, "shutdown");
        rank->ops->post(pair->link, &frame);
        CHECK(frame.header.flags & GY_TCP_FRAME_NT && link_to(rank, 0)->send_failed, "it was to be sent, and in vain");
        CHECK(pthread_sigmask(SIG_SETMASK, NULL, &blocked) == 0 && !sigismember(&blocked, SIGPIPE), "a signal is held");
        CHECK(sigpending(&pending) == 0 && !sigismember(&pending, SIGPIPE), "a signal is left");
    }
    rank_barrier(rank);
}
