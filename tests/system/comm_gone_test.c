/* One rank destroys a communicator while the others still use it. Their calls on it are GYRE_PEER_LEFT at once, with
 * an error message that names that rank and the operation, and the world and a sibling go on with right results. The
 * rank that left calls gyre no more until the others are through. The calls are collectives:
 *
 *   all_reduce, broadcast, to_all, barrier   of some bytes
 *   long                                     of many
 *   heap                                     in memory of gyre_mem_alloc
 *   started, kept                            non-blocking, persistent
 *
 * messages:
 *
 *   send, isend, recv, both   to and from the rank that left; other ones are between two others
 *   chain                     in a ring: whichever rank fails first, all name the one that left
 *   alone                     one rank alone receives from the one that left, at first over a link that has no other
 *                             end: no other rank tells it
 *
 * The call begins when the communicator has been destroyed, or before ("early", which is every other round). Beside
 * these:
 *
 *   sent      what was complete, or had left, before it was destroyed arrives
 *   last      in order: each rank destroys it when it is through with the last operation, in which others still are
 *   pending   it is destroyed with operations under way, which are its own alone
 *
 * Arguments: which; anything more: the ranks are on two "hosts". */
#include <stdatomic.h>

#include "support/launcher.h"

#define RANKS 4
#define SHORT 24
#define LONG ((size_t)3 << 18) /* floats */
#define ROUNDS 6
#define LIMIT_NS INT64_C(60000000000)
#define SOON_NS INT64_C(8000000000) /* a busy machine's; GYRE_TIMEOUT and the other clocks are longer */

static struct page {
    _Atomic int gone, through;
    _Atomic int64_t slowest;
} * page;
static const char *scenario;
static bool hosts; /* two of them */
static int owner, rank;
static float *in, *out; /* LONG each, from gyre_mem_alloc where that is asked for */
static gyre_request *kept;

static bool is(const char *name)
{
    return strcmp(scenario, name) == 0;
}

static void await(_Atomic int *count, int times)
{
    for (int64_t limit = rank_now_ns() + LIMIT_NS; atomic_load(count) < times; usleep(200))
        CHECK(rank_now_ns() < limit);
}

static size_t count(void)
{
    return is("long") || is("heap") || is("isend") || is("recv") || is("pending") ? LONG : SHORT;
}

static gyre_status wait_after(gyre_status status, gyre_request **request)
{
    return status == GYRE_SUCCESS ? gyre_wait(request) : status;
}

/* A ring of messages that are too long to leave without the receiver. The rank farthest from the one that left gets
 * the first. */
static gyre_status pass_on(gyre_comm *comm)
{
    gyre_status status = GYRE_SUCCESS;
    for (int i = 0; i < RANKS && status == GYRE_SUCCESS; i++)
        status = gyre_sendrecv(comm, in, LONG, (rank + 1) % RANKS, out, LONG, (rank + RANKS - 1) % RANKS, GYRE_FLOAT32);
    return status;
}

/* A message without a wait does not fail at once: at the latest, the fifth, for which there is no credit. */
static gyre_status send_some(gyre_comm *comm)
{
    gyre_status status = GYRE_SUCCESS;
    for (int i = 0; i < 8 && status == GYRE_SUCCESS; i++)
        status = gyre_send(comm, in, SHORT, GYRE_FLOAT32, owner);
    return status;
}

static gyre_status use(gyre_comm *comm)
{
    gyre_request *request = NULL;
    if (is("broadcast"))
        return gyre_broadcast(comm, in, out, SHORT, GYRE_FLOAT32, owner);
    if (is("to_all"))
        return gyre_all_to_all(comm, in, out, LONG / RANKS, GYRE_FLOAT32);
    if (is("barrier"))
        return gyre_barrier(comm);
    if (is("started"))
        return wait_after(gyre_all_reduce_start(comm, in, out, LONG, GYRE_FLOAT32, GYRE_SUM, &request), &request);
    if (is("kept"))
        return wait_after(gyre_start(kept), &kept);
    if (is("send"))
        return send_some(comm);
    if (is("isend"))
        return wait_after(gyre_send_start(comm, in, LONG, GYRE_FLOAT32, owner, &request), &request);
    if (is("recv") || is("alone"))
        return gyre_recv(comm, out, LONG, GYRE_FLOAT32, owner);
    if (is("both"))
        return gyre_sendrecv(comm, in, SHORT, owner, out, SHORT, owner, GYRE_FLOAT32);
    if (is("chain"))
        return pass_on(comm);
    return gyre_all_reduce(comm, in, out, count(), GYRE_FLOAT32, GYRE_SUM);
}

static const char *operation(void)
{
    if (is("send") || is("isend") || is("recv") || is("alone") || is("both") || is("chain"))
        return "message";
    return is("broadcast") ? "broadcast" : is("to_all") ? "all_to_all" : is("barrier") ? "barrier" : "all_reduce";
}

static void check_told(const gyre_comm *comm, gyre_status status, const char *what)
{
    char name[40];
    snprintf(name, sizeof name, "rank %d destroyed its communicator", owner);
    GIVES(GYRE_PEER_LEFT, comm, status);
    if (strncmp(gyre_last_error(comm), name, strlen(name)) != 0 || !strstr(gyre_last_error(comm), what))
        rank_fail("does not say '%s' and '%s': '%s'", name, what, gyre_last_error(comm));
}

/* It stays so, whatever is called, and nothing is begun. */
static void check_ended(gyre_comm *comm)
{
    gyre_comm *part = NULL;
    gyre_request *request = NULL;
    check_told(comm, gyre_barrier(comm), "barrier");
    check_told(comm, gyre_broadcast(comm, in, out, SHORT, GYRE_FLOAT32, rank), "broadcast");
    check_told(comm, gyre_send(comm, in, SHORT, GYRE_FLOAT32, (owner + 1) % RANKS), "message");
    check_told(comm, gyre_all_reduce_start(comm, in, out, 1, GYRE_FLOAT32, GYRE_SUM, &request), "all_reduce");
    check_told(comm, gyre_comm_duplicate(comm, &part), "");
    CHECK(!request && !part);
}

static void fill(size_t floats, int round)
{
    for (size_t i = 0; i < floats; i++)
        in[i] = (float)((i + (size_t)rank * 3 + (size_t)round) % 64);
}

/* On one that goes on, with the buffers that have just been given back. */
static void check_works(gyre_comm *comm, size_t floats, int round)
{
    fill(floats, round);
    memset(out, 0, floats * sizeof *out);
    OK(comm, gyre_all_reduce(comm, in, out, floats, GYRE_FLOAT32, GYRE_SUM));
    for (size_t i = 0; i < floats; i++) {
        float sum = 0;
        for (size_t r = 0; r < RANKS; r++)
            sum += (float)((i + r * 3 + (size_t)round) % 64);
        if (out[i] != sum)
            rank_fail("element %zu is %g instead of %g", i, (double)out[i], (double)sum);
    }
}

static void use_gone(gyre_comm *comm, int64_t began)
{
    gyre_status status = use(comm);
    int64_t took = rank_now_ns() - began;
    check_told(comm, status, operation());
    for (int64_t slowest = atomic_load(&page->slowest);
         took > slowest && !atomic_compare_exchange_weak(&page->slowest, &slowest, took);)
        ;
    CHECK(took < SOON_NS);
    check_ended(comm);
    CHECK(rank_now_ns() - began < SOON_NS);
}

/* The one that leaves; early: when the others are in the call, most probably. */
static void leave(gyre_comm *comm, int round, bool early)
{
    if (early)
        usleep(30000);
    OK(comm, gyre_comm_destroy(comm));
    atomic_store(&page->gone, round + 1);
    await(&page->through, (RANKS - 1) * (round + 1));
}

static void fail_round(gyre_comm *world, int round)
{
    gyre_comm *comm, *sibling;
    bool early = round % 2;
    OK(world, gyre_comm_duplicate(world, &comm));
    OK(world, gyre_comm_duplicate(world, &sibling));
    if (is("kept"))
        OK(comm, gyre_all_reduce_init(comm, in, out, LONG, GYRE_FLOAT32, GYRE_SUM, &kept));
    if (round > 1) /* it has been used before */
        check_works(comm, count(), round);
    OK(world, gyre_barrier(world));
    if (rank == owner) {
        leave(comm, round, early);
    } else {
        if (!early)
            await(&page->gone, round + 1);
        if (!is("alone") || rank == (owner + RANKS - 1) % RANKS)
            use_gone(comm, rank_now_ns() + (early ? 30000000 : 0));
        if (is("kept"))
            OK(comm, gyre_request_free(&kept));
        atomic_fetch_add(&page->through, 1);
    }
    check_works(sibling, LONG, round);
    if (rank != owner)
        OK(comm, gyre_comm_destroy(comm));
    check_works(world, count(), round);
    OK(sibling, gyre_comm_destroy(sibling));
}

/* ---- what arrives ---- */

static void check_came(float first, size_t floats)
{
    for (size_t i = 0; i < floats; i++)
        if (out[i] != first + (float)(i % 64))
            rank_fail("float %zu of what was sent before is %g", i, (double)out[i]);
}

static void give(gyre_comm *comm, int to, size_t floats)
{
    for (size_t i = 0; i < floats; i++)
        in[i] = (float)to + (float)(i % 64);
    OK(comm, gyre_send(comm, in, floats, GYRE_FLOAT32, to));
}

static void sent_round(gyre_comm *world, int round)
{
    gyre_comm *comm;
    OK(world, gyre_comm_duplicate(world, &comm));
    for (int to = 0; to < RANKS; to++) /* a long one is sent when it is received */
        if (to != owner && rank == owner)
            give(comm, to, LONG);
    if (rank != owner) {
        OK(comm, gyre_recv(comm, out, LONG, GYRE_FLOAT32, owner));
        check_came((float)rank, LONG);
    }
    if (rank == owner) {
        for (int to = 0; to < RANKS; to++)
            for (int i = 0; i < 3 && to != owner; i++)
                give(comm, to, SHORT);
        leave(comm, round, false);
        return;
    }
    await(&page->gone, round + 1);
    for (int i = 0; i < 3; i++) {
        OK(comm, gyre_recv(comm, out, SHORT, GYRE_FLOAT32, owner));
        check_came((float)rank, SHORT);
    }
    check_told(comm, gyre_recv(comm, out, SHORT, GYRE_FLOAT32, owner), "message");
    atomic_fetch_add(&page->through, 1);
    OK(comm, gyre_comm_destroy(comm));
}

static void last_round(gyre_comm *world, int round)
{
    gyre_comm *comm;
    size_t floats = (size_t)1 << (round * 9 % 20);
    OK(world, gyre_comm_duplicate(world, &comm));
    if (rank == (owner + 1) % RANKS)
        usleep(20000); /* a late rank still finds what the others have sent */
    check_works(comm, floats, round);
    OK(comm, gyre_broadcast(comm, in, out, floats, GYRE_FLOAT32, owner));
    OK(comm, gyre_comm_destroy(comm));
}

/* ---- with operations under way ---- */

static void pending_round(gyre_comm *world, int round)
{
    gyre_comm *comm;
    gyre_request *mine[2] = {NULL, NULL};
    OK(world, gyre_comm_duplicate(world, &comm));
    if (rank == owner) {
        OK(comm, gyre_recv_start(comm, out, LONG, GYRE_FLOAT32, (owner + 1) % RANKS, &mine[0]));
        OK(comm, gyre_all_reduce_start(comm, in, in, LONG, GYRE_FLOAT32, GYRE_SUM, &mine[1]));
        usleep(10000);
        int64_t began = rank_now_ns();
        OK(comm, gyre_comm_destroy(comm));
        CHECK(rank_now_ns() - began < 1000000000 + SOON_NS);
        atomic_store(&page->gone, round + 1);
        GIVES(GYRE_ABORTED, world, gyre_wait(&mine[0]));
        GIVES(GYRE_ABORTED, world, gyre_wait(&mine[1]));
        await(&page->through, (RANKS - 1) * (round + 1));
        return;
    }
    int64_t began = rank_now_ns();
    check_told(comm, gyre_all_reduce(comm, in, out, LONG, GYRE_FLOAT32, GYRE_SUM), "all_reduce");
    CHECK(rank_now_ns() - began < SOON_NS);
    OK(comm, gyre_comm_destroy(comm));
    atomic_fetch_add(&page->through, 1);
}

static float *buffer(gyre_comm *world)
{
    void *memory = NULL;
    if (is("heap"))
        OK(world, gyre_mem_alloc(world, LONG * sizeof(float), &memory));
    else
        memory = calloc(LONG, sizeof(float));
    CHECK(memory != NULL);
    return memory;
}

static void run_rank(int number)
{
    rank = number;
    if (hosts)
        setenv("GYRE_HOST_ID", number % 2 ? "odd" : "even", 1);
    gyre_comm *world = rank_begin(90);
    in = buffer(world);
    out = buffer(world);
    fill(LONG, 0);
    for (int round = 0; round < ROUNDS; round++) {
        owner = round % RANKS;
        if (is("sent"))
            sent_round(world, round);
        else if (is("last"))
            last_round(world, round);
        else if (is("pending"))
            pending_round(world, round);
        else
            fail_round(world, round);
        check_works(world, SHORT, round);
    }
    OK(world, gyre_comm_destroy(world));
}

int main(int argc, char **argv)
{
    scenario = argc > 1 ? argv[1] : "all_reduce";
    hosts = argc > 2;
    page = launch_share(sizeof *page);
    setenv("GYRE_TIMEOUT", "60", 1);
    if (!launch(RANKS, run_rank, 85, scenario))
        return 1;
    printf("%s: the last of them was told after %.1f ms\n", scenario, (double)atomic_load(&page->slowest) / 1e6);
    return 0;
}
