/* One rank of the tests of messages from point to point, one suite per run (the argument):
 *   sizes                       blocking, 0 bytes to 5 MiB, every type, between all pairs, to oneself, sendrecv round
 *                               the ring
 *   many                        hundreds under way between all pairs, in both directions, started and collected in any
 *                               order
 *   early                       messages and collectives that the other side has not entered yet do not starve each
 *                               other
 *   group                       all to all by sends and receives in any order, head-to-head blocking sends, groups in
 *                               groups
 *   count, type, small, large   the ends of a message disagree: an error on both
 *   death                       a peer dies while others receive from it (its own launcher)
 *   timeout                     a message to oneself that is never sent; a peer that never sends */
#include "support/launcher.h"
#include "trial.h"

static gyre_comm *comm;
static int rank, size;
static uint64_t own;

static struct trial message(enum trial_kind kind, int peer, size_t count, gyre_dtype dtype)
{
    struct trial it = {
        .kind = kind, .comm = comm, .rank = rank, .size = size, .root = peer, .count = count, .dtype = dtype};
    trial_make(&it, &own);
    return it;
}

static void expect_right(struct trial *it)
{
    const char *wrong = trial_wrong(it);
    if (wrong)
        rank_fail("%s", wrong);
    trial_free(it);
}

/* ---- sizes ---- */

static void pass(int from, int to, size_t count, gyre_dtype dtype, uint64_t salt)
{
    if (rank != from && rank != to)
        return;
    struct trial it = message(rank == from ? TRIAL_SEND : TRIAL_RECV, rank == from ? to : from, count, dtype);
    trial_fill(&it, salt);
    OK(comm, trial_call(&it));
    expect_right(&it);
}

static void pass_to_itself(size_t count, gyre_dtype dtype)
{
    struct trial in = message(TRIAL_RECV, rank, count, dtype), out = message(TRIAL_SEND, rank, count, dtype);
    gyre_request *request;
    trial_fill(&in, count);
    trial_fill(&out, count);
    OK(comm, trial_start(&out, &request));
    OK(comm, trial_call(&in));
    OK(comm, gyre_wait(&request));
    expect_right(&in);
    expect_right(&out);
}

static void pass_round(size_t count, gyre_dtype dtype)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    struct trial in = message(TRIAL_RECV, before, count, dtype), out = message(TRIAL_SEND, next, count, dtype);
    trial_fill(&in, count);
    trial_fill(&out, count);
    OK(comm, gyre_sendrecv(comm, out.input, count, next, in.output, count, before, dtype));
    expect_right(&in);
    expect_right(&out);
}

static void test_sizes(void)
{
    static const size_t counts[] = {0, 1, 2, 1000, 8191, 8192, 8193, 65536, 200001};
    for (int dtype = 0; gyre_dtype_name((gyre_dtype)dtype); dtype++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            for (int from = 0; from < size; from++)
                for (int to = 0; to < size; to++)
                    if (from != to)
                        pass(from, to, counts[c], (gyre_dtype)dtype, c);
            pass_to_itself(counts[c], (gyre_dtype)dtype);
            pass_round(counts[c], (gyre_dtype)dtype);
        }
    for (int from = 0; from < size; from++)
        pass(from, (from + 1) % size, from == (from + 1) % size ? 0 : (5 << 20) + 3, GYRE_UINT8, 9);
    pass_round((5 << 20) + 1, GYRE_UINT8);
}

/* ---- many ---- */

#define WITH_EACH 60

struct pile {
    struct trial trial[2 * WITH_EACH * TRIAL_RANKS];
    gyre_request *request[2 * WITH_EACH * TRIAL_RANKS];
    size_t count;
};

static size_t size_of_message(int from, int to, int number)
{
    static const size_t sizes[] = {0, 1, 40, 8192, 3000, 9000, 300000, 17, 5};
    return sizes[(size_t)(from * 7 + to * 5 + number * 3) % (sizeof sizes / sizeof *sizes)];
}

static void put(struct pile *pile, enum trial_kind kind, int peer, int number)
{
    int from = kind == TRIAL_SEND ? rank : peer, to = kind == TRIAL_SEND ? peer : rank;
    struct trial *it = &pile->trial[pile->count];
    *it = message(kind, peer, size_of_message(from, to, number), GYRE_UINT8);
    trial_fill(it, (uint64_t)number);
    OK(comm, trial_start(it, &pile->request[pile->count]));
    pile->count++;
}

static void start_all(struct pile *pile)
{
    int next[2][TRIAL_RANKS] = {{0}};
    int left = 2 * WITH_EACH * size;
    pile->count = 0;
    while (left > 0) {
        int side = (int)trial_below(&own, 2), peer = (int)trial_below(&own, (uint64_t)size);
        if (next[side][peer] == WITH_EACH)
            continue;
        put(pile, side ? TRIAL_SEND : TRIAL_RECV, peer, next[side][peer]++);
        left--;
        if (trial_below(&own, 10) == 0)
            (void)gyre_progress(comm);
        if (trial_below(&own, 200) == 0)
            usleep(500);
    }
}

/* More sends than there is credit. Its return comes together with an answer, which is what that turn of rank 0 deals
 * with; the sends that follow must not take what the one before them waits for. */
static void send_in_turn(void)
{
    enum { FIRST = 5, SENDS = 9 };
    for (uint8_t round = 0; rank < 2 && round < 50; round++) {
        uint8_t bytes[SENDS], got;
        gyre_request *request[SENDS + 1];
        if (rank == 0)
            OK(comm, gyre_recv_start(comm, &got, 1, GYRE_UINT8, 1, &request[SENDS]));
        for (int i = 0; i < SENDS; i++) {
            bytes[i] = (uint8_t)(round + i);
            if (rank == 0 && i == FIRST) {
                usleep(2000);
                OK(comm, gyre_progress(comm));
            }
            if (rank == 1 && i == FIRST - 1)
                OK(comm, gyre_send(comm, &round, 1, GYRE_UINT8, 0));
            if (rank == 0)
                OK(comm, gyre_send_start(comm, &bytes[i], 1, GYRE_UINT8, 1, &request[i]));
            else
                OK(comm, gyre_recv(comm, &got, 1, GYRE_UINT8, 0));
            CHECK(rank == 0 || got == bytes[i]);
        }
        if (rank == 0)
            OK(comm, gyre_wait_all(request, SENDS + 1));
        CHECK(rank == 1 || got == round);
    }
}

static void test_many(void)
{
    send_in_turn();
    static struct pile pile;
    for (int round = 0; round < 6; round++) {
        start_all(&pile);
        if (round == 3) /* between them a collective of the same communicator */
            OK(comm, gyre_barrier(comm));
        for (size_t left = pile.count; left > 0;) {
            ptrdiff_t index = -1;
            size_t indices[2 * WITH_EACH * TRIAL_RANKS], done = 0;
            if (round % 3 == 0) {
                OK(comm, gyre_wait_any(pile.request, pile.count, &index));
                CHECK(index >= 0 && !pile.request[index]);
                left--;
            } else if (round % 3 == 1) {
                OK(comm, gyre_wait_some(pile.request, pile.count, indices, &done));
                CHECK(done > 0 && done <= left);
                left -= done;
            } else {
                OK(comm, gyre_wait_all(pile.request, pile.count));
                left = 0;
            }
        }
        for (size_t i = 0; i < pile.count; i++)
            expect_right(&pile.trial[i]);
    }
}

/* ---- early ---- */

static void reduce(size_t count)
{
    static int32_t in[40000], out[40000];
    for (size_t i = 0; i < count; i++)
        in[i] = rank + (int32_t)i;
    OK(comm, gyre_all_reduce(comm, in, out, count, GYRE_INT32, GYRE_SUM));
    for (size_t i = 0; i < count; i++)
        CHECK(out[i] == size * (size - 1) / 2 + size * (int32_t)i);
}

/* Messages that wait for receives which come after collectives. */
static void messages_first(int messages, size_t bytes)
{
    struct trial trial[100];
    gyre_request *request[100] = {NULL};
    for (int i = 0; rank == 0 && i < messages; i++) {
        trial[i] = message(TRIAL_SEND, size - 1, bytes, GYRE_UINT8);
        trial_fill(&trial[i], (uint64_t)i);
        OK(comm, trial_start(&trial[i], &request[i]));
    }
    for (int i = 0; i < 12; i++)
        reduce(i % 3 == 0 ? 1 : i % 3 == 1 ? 1000 : 40000);
    for (int i = 0; rank == size - 1 && i < messages; i++)
        pass(0, size - 1, bytes, GYRE_UINT8, (uint64_t)i);
    OK(comm, gyre_wait_all(request, 100));
    for (int i = 0; rank == 0 && i < messages; i++)
        expect_right(&trial[i]);
}

/* Collectives that wait for ranks which receive a message first, of lengths that leave before they are granted, over
 * TCP all. */
static void collectives_first(size_t bytes)
{
    enum { CALLS = 20, LONGEST = 8192 };
    static const size_t counts[] = {100, LONGEST, 2049, 1, 5000};
    gyre_request *request[CALLS];
    static int32_t values[CALLS][LONGEST];
    for (int i = 0; i < CALLS; i++)
        for (int k = 0; k < LONGEST; k++)
            values[i][k] = rank == 0 ? i * 10000 + k : -1;
    for (int i = 0; rank == 0 && i < CALLS; i++)
        OK(comm, gyre_broadcast_start(comm, values[i], values[i], counts[i % 5], GYRE_INT32, 0, &request[i]));
    for (int to = 1; to < size; to++)
        pass(0, to, bytes, GYRE_UINT8, 7);
    for (int i = 0; rank != 0 && i < CALLS; i++)
        OK(comm, gyre_broadcast_start(comm, values[i], values[i], counts[i % 5], GYRE_INT32, 0, &request[i]));
    OK(comm, gyre_wait_all(request, CALLS));
    for (int i = 0; i < CALLS; i++)
        for (int k = 0; k < LONGEST; k++)
            CHECK(values[i][k] == (rank == 0 || (size_t)k < counts[i % 5] ? i * 10000 + k : -1));
}

static void test_early(void)
{
    for (int round = 0; round < 5; round++) {
        messages_first(1, 100000);
        messages_first(100, 10);
        messages_first(40, 9000);
        collectives_first(10);
        collectives_first(100000);
    }
}

/* ---- groups ---- */

static int32_t sum;

static void sum_in_group(void)
{
    static const int32_t one = 1;
    sum = 0;
    OK(comm, gyre_all_reduce(comm, &one, &sum, 1, GYRE_INT32, GYRE_SUM));
}

static void test_group(void)
{
    static struct trial trial[2 * TRIAL_RANKS];
    for (int round = 0; round < 40; round++) {
        size_t bytes = (size_t)round * 4001;
        int order[2 * TRIAL_RANKS], count = 2 * size;
        for (int i = 0; i < count; i++)
            order[i] = i;
        for (int i = count - 1; i > 0; i--) {
            int j = (int)trial_below(&own, (uint64_t)i + 1), other = order[i];
            order[i] = order[j];
            order[j] = other;
        }
        OK(comm, gyre_group_begin());
        for (int i = 0; i < count; i++) {
            if (i == count / 2)
                OK(comm, gyre_group_begin());
            trial[i] = message(order[i] % 2 ? TRIAL_SEND : TRIAL_RECV, order[i] / 2, bytes, GYRE_INT8);
            trial_fill(&trial[i], (uint64_t)round);
            OK(comm, trial_call(&trial[i]));
        }
        OK(comm, gyre_group_end()); /* does not wait */
        sum_in_group();
        OK(comm, gyre_group_end());
        CHECK(sum == size);
        for (int i = 0; i < count; i++)
            expect_right(&trial[i]);
    }
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_group_end());
}

/* ---- errors ---- */

static const struct {
    const char *name;
    size_t sends, expects;
    gyre_dtype type;
    unsigned late; /* ms by which the receiver comes later; the sender if odd */
} disagreements[] = {
    {"count", 10, 11, GYRE_INT32, 0},           {"count_late", 10, 11, GYRE_INT32, 50},
    {"type", 10, 10, GYRE_FLOAT32, 0},          {"small", 10, 100000, GYRE_INT32, 0},
    {"small_late", 10, 100000, GYRE_INT32, 50}, {"large", 100000, 10, GYRE_INT32, 0},
    {"large_late", 100000, 10, GYRE_INT32, 50}, {"large_early", 100000, 10, GYRE_INT32, 51},
    {"both", 100000, 100001, GYRE_INT32, 0},
};

/* Inside gyre, so that what the other side asks is heard, before this one knows the answer. */
static void linger(unsigned ms)
{
    for (int64_t end = rank_now_ns() + ms * (int64_t)1000000; rank_now_ns() < end; usleep(100))
        (void)gyre_progress(comm);
}

static void test_disagree(const char *name)
{
    size_t i = 0;
    while (strcmp(disagreements[i].name, name) != 0)
        CHECK(++i < sizeof disagreements / sizeof *disagreements);
    static int32_t memory[100001];
    unsigned late = disagreements[i].late;
    gyre_status status = GYRE_SUCCESS;
    rank_gather(comm, GYRE_MISMATCH);
    pass(0, 1, 1, GYRE_INT32, 1); /* the link is there */
    if (rank == 0) {
        linger(late % 2 ? late : 0);
        status = gyre_send(comm, memory, disagreements[i].sends, GYRE_INT32, 1);
    } else if (rank == 1) {
        linger(late % 2 ? 0 : late);
        status = gyre_recv(comm, memory, disagreements[i].expects, disagreements[i].type, 0);
        GIVES(GYRE_MISMATCH, comm, status);
        CHECK(strstr(gyre_last_error(comm), "message #2 of rank 0"));
    }
    if (status == GYRE_SUCCESS) /* a small message may have left before the check */
        status = gyre_barrier(comm);
    GIVES(GYRE_MISMATCH, comm, status);
}

static void die_or_receive(int index)
{
    int32_t value = 0;
    comm = rank_begin(60);
    rank = gyre_comm_rank(comm);
    CHECK(rank == index);
    rank_gather(comm, GYRE_PEER_DEAD);
    if (rank == 1) {
        usleep(100000);
        kill(getpid(), SIGKILL);
    }
    int64_t before = rank_now_ns();
    GIVES(GYRE_PEER_DEAD, comm, gyre_recv(comm, &value, 1, GYRE_INT32, 1));
    CHECK(rank_now_ns() - before < (int64_t)30000000000); /* no clock has told */
    CHECK(strstr(gyre_last_error(comm), "rank 1"));
    GIVES(GYRE_PEER_DEAD, comm, gyre_send(comm, &value, 1, GYRE_INT32, 0));
    OK(NULL, gyre_comm_destroy(comm));
}

static void test_timeout(void)
{
    int32_t value;
    gyre_request *request = NULL;
    rank_gather(comm, GYRE_PEER_LATE);
    gyre_status status = gyre_recv_start(comm, &value, 1, GYRE_INT32, rank == 0 ? 0 : 1 - rank % 2, &request);
    GIVES(GYRE_PEER_LATE, comm, status == GYRE_SUCCESS ? gyre_wait(&request) : status);
}

int main(int argc, char **argv)
{
    const char *suite = argc > 1 ? argv[1] : "";
    if (strcmp(suite, "death") == 0) {
        launch_may_die = 1;
        setenv("GYRE_PEER_TIMEOUT", "60", 1);
        setenv("GYRE_STALL_TIMEOUT", "60", 1);
        return launch(3, die_or_receive, 60, "death in a receive") ? 0 : 1;
    }
    bool timeout = strcmp(suite, "timeout") == 0;
    if (timeout)
        setenv("GYRE_TIMEOUT", "2", 1); /* longer than a rank waits for a core */
    comm = rank_begin(110);
    rank = gyre_comm_rank(comm);
    size = gyre_comm_size(comm);
    own = 5 + (uint64_t)rank;
    if (strcmp(suite, "sizes") == 0)
        test_sizes();
    else if (strcmp(suite, "many") == 0)
        test_many();
    else if (strcmp(suite, "early") == 0)
        test_early();
    else if (strcmp(suite, "group") == 0)
        test_group();
    else if (timeout)
        test_timeout();
    else
        test_disagree(suite);
    if (!timeout && gyre_barrier(comm) != GYRE_SUCCESS)
        CHECK(*gyre_last_error(comm));
    OK(NULL, gyre_comm_destroy(comm));
    _exit(0);
}
