/* Two ranks that a link joins: collectives of short vectors, blocking, have to the bit the result that they have as
 * requests, of any bytes (NaN with their payloads among them), whichever rank comes first. Argument:
 *   results    all_reduce of every type, operation and length around what is short; in place too; while requests are
 *              under way; a rank is late, so that the call becomes a request behind its back
 *   kinds      every collective and messages, from and to either rank, among requests
 *   parts      the same over a socket that takes parts of frames: no call returns before all of its frame has left
 *   calls      one call of the kernel sends a frame and one receives it, and there are no other calls
 *   waits      a rank that waits for what goes one way returns at once the credit it owes, so that it comes sooner
 *   credit     a rank that only sends reads what came back before it makes a request for want of it
 *   sockets    options of the link's socket; argument: the longest frame of a broadcast of 2 MiB
 *   memory     there is none for a request, or for a buffer of it, which the call becomes when its partner is late: it
 *              fails, nothing has left, and a second call gives both what is said then
 *   disagree   the two call different things: an error on both that shows both
 *   roots      both send, each as the root: an error on both at the next call that waits */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "meddler.h"
#include "trial.h"

#include "support/rank.h"

#define MOST 66000 /* bytes */

static gyre_comm *comm;
static int rank;
static uint32_t dice;

static void roll(unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)((dice = dice * 1664525u + 1013904223u) >> 24);
}

/* A late rank keeps the other waiting for longer than it polls without a request. */
static void be_late(unsigned call)
{
    if (call % 16 == 3 && rank == (int)(call / 16 % 2))
        usleep(2000);
}

static void compare(gyre_dtype dtype, gyre_op op, size_t count)
{
    static unsigned char input[MOST], now[MOST], started[MOST];
    static int32_t mine[1], all[2];
    static unsigned calls;
    gyre_request *request = NULL, *other = NULL;
    size_t bytes = count * gyre_dtype_size(dtype);

    roll(input, bytes);
    calls++;
    be_late(calls);
    if (calls % 5 == 0) { /* something else is under way */
        mine[0] = rank;
        OK(comm, gyre_all_gather_start(comm, mine, all, 1, GYRE_INT32, &other));
    }
    memcpy(now, input, bytes);
    gyre_status status = gyre_all_reduce(comm, calls % 3 ? input : now, now, count, dtype, op);
    if (other)
        OK(comm, gyre_wait(&other));
    if (status == GYRE_INVALID_ARGUMENT) /* not of this type */
        return;
    OK(comm, status);
    OK(comm, gyre_all_reduce_start(comm, input, started, count, dtype, op, &request));
    OK(comm, gyre_wait(&request));
    if (memcmp(now, started, bytes) != 0)
        rank_fail("%s, op %d, %zu elements: not what a request gives", gyre_dtype_name(dtype), (int)op, count);
}

static void test_results(void)
{
    for (int round = 0; round < 2; round++)
        for (int dtype = 0; gyre_dtype_name((gyre_dtype)dtype); dtype++)
            for (int op = 0; gyre_op_name((gyre_op)op); op++) {
                size_t element = gyre_dtype_size((gyre_dtype)dtype);
                size_t counts[] = {0,
                                   1,
                                   2,
                                   3,
                                   31,
                                   4096 / element,
                                   8192 / element,
                                   8192 / element + 1,
                                   20000 / element,
                                   32768 / element,
                                   65536 / element,
                                   65536 / element + 1};
                for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
                    compare((gyre_dtype)dtype, (gyre_op)op, counts[c]);
            }
}

static bool exhausted;

static void *allocate(void *user, size_t bytes, size_t align)
{
    void *memory = NULL;
    (void)user;
    return exhausted || posix_memalign(&memory, align < sizeof(void *) ? sizeof(void *) : align, bytes) ? NULL : memory;
}

static void *resize(void *user, void *memory, size_t bytes)
{
    (void)user;
    return exhausted ? NULL : realloc(memory, bytes);
}

static void release(void *user, void *memory)
{
    (void)user;
    free(memory);
}

#define HELD_MOST 16

/* Persistent requests hold every request that there is. */
static void hold_requests(void)
{
    gyre_request *last; /* that of the barrier, if it left one */
    exhausted = true;
    while (gyre_barrier_init(comm, &last) == GYRE_SUCCESS)
        ;
}

/* Or every buffer of this length but `spare` of them, while there are requests. Returns how many are held. */
static int hold_buffers(gyre_request **held, const float *input, float *output, size_t count, int spare)
{
    int buffers = 0;
    for (int i = 0; i < HELD_MOST; i++)
        OK(comm, gyre_barrier_init(comm, &held[i]));
    for (int i = 0; i < HELD_MOST; i++)
        OK(comm, gyre_request_free(&held[i]));
    exhausted = true;
    while (buffers < HELD_MOST &&
           gyre_reduce_init(comm, input, output, count, GYRE_FLOAT32, GYRE_SUM, rank, &held[buffers]) == GYRE_SUCCESS)
        buffers++; /* each has a place where the other's operand lands */
    CHECK(buffers > spare && buffers < HELD_MOST);
    for (; spare > 0; spare--)
        OK(comm, gyre_request_free(&held[--buffers]));
    return buffers;
}

/* Rank 1 is late: it comes when rank 0, whose call has failed, sends it SIGUSR1. That lacks a request, or a buffer: it
 * wants one where a long operand lands, and in place another one for what it sends. */
static void test_memory(bool in_place, size_t count, bool buffers)
{
    static float mine[MOST], all[MOST];
    float *output = in_place ? mine : all;
    gyre_request *kept[4], *held[HELD_MOST];
    int32_t own = (int32_t)getpid(), pids[2];
    int signal, holding = 0;
    sigset_t failed;
    sigemptyset(&failed);
    sigaddset(&failed, SIGUSR1);
    CHECK(sigprocmask(SIG_BLOCK, &failed, NULL) == 0);
    OK(comm, gyre_all_gather(comm, &own, pids, 1, GYRE_INT32));
    for (int i = 0; i < 4; i++) {
        mine[0] = 1;
        OK(comm, gyre_all_reduce(comm, mine, output, count, GYRE_FLOAT32, GYRE_SUM));
        OK(comm, gyre_reduce(comm, mine, output, count, GYRE_FLOAT32, GYRE_SUM, 0)); /* its plan is there */
    }
    for (int i = 0; i < 4; i++)
        OK(comm, gyre_barrier_init(comm, &kept[i]));
    OK(comm, gyre_barrier(comm));
    for (size_t i = 0; i < count; i++)
        mine[i] = (float)((int)i + rank);
    if (rank == 1)
        CHECK(sigwait(&failed, &signal) == 0); /* in vain: the alarm ends it */
    if (rank == 0) {
        if (buffers)
            holding = hold_buffers(held, mine, all, count, in_place);
        else
            hold_requests();
        GIVES(GYRE_NO_MEMORY, comm, gyre_all_reduce(comm, mine, output, count, GYRE_FLOAT32, GYRE_SUM));
        exhausted = false;
        CHECK(kill((pid_t)pids[1], SIGUSR1) == 0);
        for (size_t i = 0; i < count; i++)
            mine[i] = (float)(100 * i);
    }
    OK(comm, gyre_all_reduce(comm, mine, output, count, GYRE_FLOAT32, GYRE_SUM));
    for (size_t i = 0; i < count; i++)
        CHECK(output[i] == (float)(101 * i + 1));
    while (holding > 0)
        OK(comm, gyre_request_free(&held[--holding]));
    OK(comm, gyre_barrier(comm));
}

static void test_scarcity(void)
{
    for (int buffers = 1; buffers >= 0; buffers--)
        for (int in_place = 0; in_place < 2; in_place++) {
            if (!buffers)
                test_memory(in_place, 8, false);
            test_memory(in_place, 4000, buffers);
        }
}

/* ---- every kind ---- */

static const enum trial_kind kinds[] = {
    TRIAL_ALL_REDUCE, TRIAL_REDUCE_SCATTER, TRIAL_ALL_GATHER, TRIAL_ALL_TO_ALL, TRIAL_BARRIER,
    TRIAL_REDUCE,     TRIAL_GATHER,         TRIAL_BROADCAST,  TRIAL_SCATTER,    TRIAL_SEND};

/* Of a message one rank has the other end. */
static struct trial trial_of(enum trial_kind kind, int root, size_t count, bool in_place)
{
    static uint64_t own = 5;
    bool receives = kind == TRIAL_SEND && rank != root;
    struct trial it = {.kind = receives ? TRIAL_RECV : kind,
                       .comm = comm,
                       .rank = rank,
                       .size = 2,
                       .root = kind == TRIAL_SEND ? 1 - rank : root,
                       .dtype = GYRE_FLOAT16,
                       .op = GYRE_SUM,
                       .count = count,
                       .in_place = in_place};
    trial_make(&it, &own);
    return it;
}

static bool goes_one_way(enum trial_kind kind)
{
    return kind == TRIAL_REDUCE || kind == TRIAL_GATHER || kind == TRIAL_BROADCAST || kind == TRIAL_SCATTER ||
           kind == TRIAL_SEND;
}

static bool gives(enum trial_kind kind, int root)
{
    return (kind == TRIAL_REDUCE || kind == TRIAL_GATHER) != (rank == root);
}

static void call_one(enum trial_kind kind, int root, size_t count, unsigned number)
{
    struct trial it = trial_of(kind, root, count, number % 3 == 0);
    gyre_request *request;
    trial_fill(&it, number);
    be_late(number);
    if ((number + (unsigned)rank) % 7 == 0) { /* the other end need not go the same way */
        OK(comm, trial_start(&it, &request));
        OK(comm, gyre_wait(&request));
    } else {
        OK(comm, trial_call(&it));
        bool leaves = !goes_one_way(kind) || gives(kind, root); /* else what is still here is credit */
        if (leaves && meddler.owed > 0)
            rank_fail("%s returned while %zu bytes of its frame were still here", trial_name(kind), meddler.owed);
    }
    const char *wrong = trial_wrong(&it);
    if (wrong)
        rank_fail("%s", wrong);
    trial_free(&it);
}

static void test_kinds(unsigned rounds)
{
    static const size_t counts[] = {1, 3, 500, 501, 2048, 4096, 4097, 10000, 16384, 16385};
    unsigned number = 0;
    for (unsigned round = 0; round < rounds; round++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
            for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
                for (int root = 0; root < 2; root++, number++)
                    call_one(kinds[k], root, counts[c], number);
}

static void test_parts(void)
{
    meddle(true);
    test_kinds(4);
    meddle(false);
    CHECK(meddler.parts > 100);
}

/* The number of polls of a waiting rank is unknown, and so is whether it sleeps; but a frame is moved by one call. */
static void count_calls(enum trial_kind kind, int root, size_t count)
{
    enum { CALLS = 640, ALONE = 3 };
    struct trial it = trial_of(kind, root, count, false);
    bool one_way = goes_one_way(kind), sends = gives(kind, root);
    for (int i = 0; i < 3;
         i++) /* the first of them finds out that there is a short way; no credit is used up by so many */
        OK(comm, trial_call(&it));
    OK(comm, gyre_barrier(comm));
    struct meddler before = meddler;
    for (int i = 0; i < CALLS; i++) {
        OK(comm, trial_call(&it));
        if (i == ALONE - 1 && one_way && sends && meddler.clocks > before.clocks + 1)
            rank_fail("%s: %lu looks at the clock by %d calls that wait for nobody", trial_name(kind),
                      meddler.clocks - before.clocks, ALONE);
    }
    unsigned long sent = meddler.sends - before.sends, received = meddler.receives - before.receives;
    /* Credit goes back in a frame for several, or by a rank that waits; one that is kept waiting for long asks why. */
    unsigned long most_sent = CALLS + CALLS / 10;
    unsigned long most_received = one_way && sends ? CALLS / 2 : CALLS + CALLS / 10;
    if (sent > most_sent || received > most_received)
        rank_fail("%s: %lu calls sent and %lu received for %d operations", trial_name(kind), sent, received, CALLS);
    trial_free(&it);
    OK(comm, gyre_barrier(comm));
}

static void test_calls(void)
{
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int root = 0; root < 2; root++) {
            count_calls(kinds[k], root, 2);
            if (kinds[k] != TRIAL_SEND) /* messages so long wait for a grant */
                count_calls(kinds[k], root, 8192);
        }
}

/* The sender is late, by less than it takes to be asked why. Of the calls that found nothing there, and so often that
 * they had a second look to come to: for how many in a hundred was anything sent? 0: there are too few. */
static int32_t wait_for(struct trial *it, bool late)
{
    enum { CALLS = 40, LEAST = 10 };
    int32_t kept = 0, sent = 0;
    for (int i = 0; i < 3; i++)
        OK(comm, trial_call(it));
    OK(comm, gyre_barrier(comm));
    for (int i = 0; i < CALLS; i++) {
        struct meddler before = meddler;
        if (late)
            usleep(300);
        OK(comm, trial_call(it));
        if (!late && meddler.misses - before.misses >= 2) {
            kept++;
            sent += meddler.sends > before.sends;
        }
    }
    return kept < LEAST ? 0 : sent * 100 / kept;
}

/* On a machine that others use the receiver may be the later one, or sleep and be asked itself; not every time. */
static void wait_often(enum trial_kind kind, int root)
{
    enum { ENOUGH = 70, ROUNDS = 200 };
    struct trial it = trial_of(kind, root, 2, false);
    int32_t most = 0;
    for (int round = 0; round < ROUNDS && most < ENOUGH; round++) {
        int32_t percent = wait_for(&it, gives(kind, root)), found;
        OK(comm, gyre_all_reduce(comm, &percent, &found, 1, GYRE_INT32, GYRE_MAX));
        most = found > most ? found : most;
    }
    if (most < ENOUGH)
        rank_fail("%s: of messages that were waited for %d in a hundred were given back at once", trial_name(kind),
                  most);
    trial_free(&it);
}

static void test_waits(void)
{
    cpu_set_t cores;
    CHECK(sched_getaffinity(0, sizeof cores, &cores) == 0);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds && CPU_COUNT(&cores) > 1; k++)
        for (int root = 0; root < 2 && goes_one_way(kinds[k]); root++)
            wait_often(kinds[k], root);
}

/* Calls that only send, each when the partner has consumed what was sent before and waits, several times as many as
 * there is credit for: those that took the short way look at no clock. */
static bool sends_on(struct trial *it, bool sends)
{
    enum { CALLS = 80 };
    unsigned long looks = 0;
    OK(comm, gyre_barrier(comm));
    for (int i = 0; i < CALLS; i++) {
        unsigned long before = meddler.clocks;
        if (sends)
            usleep(300);
        OK(comm, trial_call(it));
        looks += meddler.clocks - before;
    }
    return looks <= 1;
}

/* On a machine that others use the partner may be late; not in every round. */
static void send_often(enum trial_kind kind, int root)
{
    enum { ROUNDS = 100 };
    struct trial it = trial_of(kind, root, 2, false);
    bool sends = gives(kind, root);
    int32_t proven = 0;
    for (int i = 0; i < 3; i++)
        OK(comm, trial_call(&it));
    for (int round = 0; round < ROUNDS && !proven; round++) {
        int32_t good = sends_on(&it, sends) && sends;
        OK(comm, gyre_all_reduce(comm, &good, &proven, 1, GYRE_INT32, GYRE_MAX));
    }
    if (!proven)
        rank_fail("%s: a sender looked at the clock in each of %d rounds", trial_name(kind), ROUNDS);
    trial_free(&it);
}

static void test_credit(void)
{
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int root = 0; root < 2 && goes_one_way(kinds[k]) && kinds[k] != TRIAL_SEND; root++)
            send_often(kinds[k], root);
}

/* Where nothing but sockets is between the ranks of a host. */
static void test_sockets(uint32_t longest)
{
    enum { BYTES = 2 << 20 };
    unsigned char *vector = calloc(1, BYTES);
    char control[16] = "";
    int prompt = 0;
    socklen_t bytes = sizeof prompt, room = sizeof control - 1;
    CHECK(vector);
    OK(comm, gyre_broadcast(comm, vector, vector, BYTES, GYRE_UINT8, 0));
    CHECK(getsockopt(meddler.fd, IPPROTO_TCP, TCP_NODELAY, &prompt, &bytes) == 0 && prompt == 1);
    CHECK(getsockopt(meddler.fd, IPPROTO_TCP, TCP_CONGESTION, control, &room) == 0 && strcmp(control, "reno") == 0);
    if (rank == 0 && meddler.longest != longest)
        rank_fail("a frame of %u bytes, where %u would be the longest", meddler.longest, longest);
    free(vector);
}

/* ---- what goes wrong ---- */

static void test_roots(void)
{
    float data[4] = {0};
    for (int i = 0; i < 3; i++)
        OK(comm, gyre_broadcast(comm, data, data, 4, GYRE_FLOAT32, 0));
    OK(comm, gyre_barrier(comm));
    if (rank == 1) /* what the other sends is there before this rank calls */
        usleep(20000);
    gyre_status status = gyre_broadcast(comm, data, data, 4, GYRE_FLOAT32, rank);
    if (status == GYRE_SUCCESS)
        status = gyre_barrier(comm);
    GIVES(GYRE_MISMATCH, comm, status);
    CHECK(strstr(gyre_last_error(comm), "root 0") && strstr(gyre_last_error(comm), "root 1"));
}

static void test_disagree(void)
{
    float data[8] = {0};
    for (int i = 0; i < 3; i++)
        OK(comm, gyre_all_reduce(comm, data, data, 8, GYRE_FLOAT32, GYRE_SUM));
    gyre_status status = gyre_all_reduce(comm, data, data, rank ? 7 : 8, GYRE_FLOAT32, GYRE_SUM);
    if (status == GYRE_SUCCESS) /* its partner's comes later: the next call says so */
        status = gyre_all_reduce(comm, data, data, 8, GYRE_FLOAT32, GYRE_SUM);
    GIVES(GYRE_MISMATCH, comm, status);
    CHECK(strstr(gyre_last_error(comm), "x 7") && strstr(gyre_last_error(comm), "x 8"));
}

int main(int argc, char **argv)
{
    const char *suite = argc > 1 ? argv[1] : "";
    OK(NULL, gyre_allocator_set(&(gyre_allocator){sizeof(gyre_allocator), allocate, resize, release, NULL}));
    comm = rank_begin(180);
    rank = gyre_comm_rank(comm);
    dice = 77u + (uint32_t)rank;
    CHECK(gyre_comm_size(comm) == 2);
    if (strcmp(suite, "disagree") == 0)
        test_disagree();
    else if (strcmp(suite, "roots") == 0)
        test_roots();
    else if (strcmp(suite, "memory") == 0)
        test_scarcity();
    else if (strcmp(suite, "kinds") == 0)
        test_kinds(2);
    else if (strcmp(suite, "parts") == 0)
        test_parts();
    else if (strcmp(suite, "calls") == 0)
        test_calls();
    else if (strcmp(suite, "waits") == 0)
        test_waits();
    else if (strcmp(suite, "credit") == 0)
        test_credit();
    else if (strcmp(suite, "sockets") == 0)
        test_sockets((uint32_t)strtoul(argc > 2 ? argv[2] : "0", NULL, 10));
    else
        test_results();
    if (strcmp(suite, "disagree") != 0 && strcmp(suite, "roots") != 0)
        OK(comm, gyre_barrier(comm));
    OK(NULL, gyre_comm_destroy(comm));
    _exit(0);
}
