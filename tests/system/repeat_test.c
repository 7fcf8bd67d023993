/* Short calls like the last one of their collective, blocking or not (repeat.h): right ones give what they should, and
 * whatever has changed since is seen, above all what makes such a call a wrong one. The argument: how many elements,
 * few for an exchange, or so many that a broadcast or reduction to a root goes by tiles. */
#include <sys/wait.h>

#include "support/rank.h"

#define COUNT_MOST 3000
#define RANKS_MOST 8

static gyre_comm *comm;
static int rank, size;
static int length;  /* elements of a call */
static bool starts; /* they are started and waited for, and do not block */
static int32_t in[RANKS_MOST * COUNT_MOST], out[RANKS_MOST * COUNT_MOST];

enum kind { ALL_REDUCE, REDUCE, BROADCAST, REDUCE_SCATTER, ALL_GATHER, ALL_TO_ALL, KINDS };

static gyre_status call_blocking(enum kind kind, const void *input, void *output, size_t count, gyre_dtype dtype,
                                 gyre_op op, int root)
{
    switch (kind) {
    case ALL_REDUCE: return gyre_all_reduce(comm, input, output, count, dtype, op);
    case REDUCE: return gyre_reduce(comm, input, output, count, dtype, op, root);
    case BROADCAST: return gyre_broadcast(comm, input, output, count, dtype, root);
    case REDUCE_SCATTER: return gyre_reduce_scatter(comm, input, output, count, dtype, op);
    case ALL_GATHER: return gyre_all_gather(comm, input, output, count, dtype);
    default: return gyre_all_to_all(comm, input, output, count, dtype);
    }
}

static gyre_status call_start(enum kind kind, const void *input, void *output, size_t count, gyre_dtype dtype,
                              gyre_op op, int root, gyre_request **request_p)
{
    switch (kind) {
    case ALL_REDUCE: return gyre_all_reduce_start(comm, input, output, count, dtype, op, request_p);
    case REDUCE: return gyre_reduce_start(comm, input, output, count, dtype, op, root, request_p);
    case BROADCAST: return gyre_broadcast_start(comm, input, output, count, dtype, root, request_p);
    case REDUCE_SCATTER: return gyre_reduce_scatter_start(comm, input, output, count, dtype, op, request_p);
    case ALL_GATHER: return gyre_all_gather_start(comm, input, output, count, dtype, request_p);
    default: return gyre_all_to_all_start(comm, input, output, count, dtype, request_p);
    }
}

static gyre_status call(enum kind kind, const void *input, void *output, size_t count, gyre_dtype dtype, gyre_op op,
                        int root)
{
    gyre_request *request;
    if (!starts)
        return call_blocking(kind, input, output, count, dtype, op, root);
    gyre_status status = call_start(kind, input, output, count, dtype, op, root, &request);
    return status == GYRE_SUCCESS ? gyre_wait(&request) : status;
}

/* What rank `from` contributes to element i of its vector in call `round`. */
static int32_t value(int from, int i, int round)
{
    return 1000 * from + i + 7 * round;
}

static int32_t expected(enum kind kind, gyre_op op, int root, int i, int round)
{
    int32_t sum = 0, most = INT32_MIN;
    int place = kind == REDUCE_SCATTER ? rank * length + i : i;
    for (int p = 0; p < size; p++) {
        sum += value(p, place, round);
        most = value(p, place, round) > most ? value(p, place, round) : most;
    }
    switch (kind) {
    case BROADCAST: return value(root, i, round);
    case ALL_GATHER: return value(i / length, i % length, round);
    case ALL_TO_ALL: return value(i / length, rank * length + i % length, round);
    default: return op == GYRE_SUM ? sum : most;
    }
}

static void right(enum kind kind, gyre_op op, int root)
{
    static int round;
    round++;
    for (int i = 0; i < size * length; i++) {
        in[i] = value(rank, i, round);
        out[i] = -1;
    }
    OK(comm, call(kind, in, out, (size_t)length, GYRE_INT32, op, root));
    int elements = kind == ALL_GATHER || kind == ALL_TO_ALL ? size * length : length;
    for (int i = 0; i < elements && (kind != REDUCE || rank == root); i++)
        CHECK(out[i] == expected(kind, op, root, i, round));
    for (int i = elements; i < size * length; i++)
        CHECK(out[i] == -1);
}

static void refused(gyre_status status, const char *word)
{
    if (status != GYRE_INVALID_ARGUMENT || !strstr(gyre_last_error(comm), word))
        rank_fail("%s instead of a refusal that speaks of %s: %s", gyre_status_name(status), word,
                  gyre_last_error(comm));
}

/* Each differs in one thing from a right call, after several of which it comes. */
static void test_wrong(enum kind kind)
{
    gyre_op op = GYRE_SUM;
    right(kind, op, 0);
    right(kind, op, 0);
    if (kind != BROADCAST || rank == 0)
        refused(call(kind, NULL, out, (size_t)length, GYRE_INT32, op, 0), "input is NULL");
    if (kind != REDUCE || rank == 0)
        refused(call(kind, in, NULL, (size_t)length, GYRE_INT32, op, 0), "output is NULL");
    right(kind, op, 0);
    if ((kind != BROADCAST && kind != REDUCE) || rank == 0) {
        refused(call(kind, out + 1, out, (size_t)length, GYRE_INT32, op, 0), "overlap");
        refused(call(kind, out, out + length - 1, (size_t)length, GYRE_INT32, op, 0), "overlap");
    }
    right(kind, op, 0);
    refused(call(kind, in, out, (size_t)length, (gyre_dtype)(GYRE_INT32 + 256), op, 0), "element type");
    refused(call(kind, in, out, SIZE_MAX / 2, GYRE_INT32, op, 0), "memory can hold");
    if (kind == ALL_REDUCE || kind == REDUCE || kind == REDUCE_SCATTER)
        refused(call(kind, in, out, (size_t)length, GYRE_INT32, (gyre_op)(op + 256), 0), "operation");
    if (kind == BROADCAST || kind == REDUCE) {
        refused(call(kind, in, out, (size_t)length, GYRE_INT32, op, size), "rank");
        refused(call(kind, in, out, (size_t)length, GYRE_INT32, op, -1), "rank");
    }
    right(kind, op, 0);
}

/* What is like the last one but for one thing is not taken for it. */
static void test_changes(enum kind kind)
{
    bool rooted = kind == BROADCAST || kind == REDUCE, reduces = kind == ALL_REDUCE || kind == REDUCE_SCATTER;
    for (int i = 0; i < 4 * size; i++) {
        right(kind, GYRE_SUM, rooted ? i % size : 0);
        right(kind, reduces && i % 2 ? GYRE_MAX : GYRE_SUM, rooted ? (i + 1) / 2 % size : 0);
        right((enum kind)(i % KINDS), GYRE_SUM, 0);
    }
    static int64_t wide_in[COUNT_MOST], wide_out[COUNT_MOST]; /* another type, of other bytes */
    for (int i = 0; i < length; i++)
        wide_in[i] = (int64_t)1 << 40;
    OK(comm, gyre_all_reduce(comm, wide_in, wide_out, (size_t)length, GYRE_INT64, GYRE_SUM));
    for (int i = 0; i < length; i++)
        CHECK(wide_out[i] == (int64_t)size << 40);
    right(ALL_REDUCE, GYRE_SUM, 0);
}

/* Beside requests, and in a group, calls keep their order. */
static void test_under_way(void)
{
    static int32_t first[COUNT_MOST], second[COUNT_MOST];
    gyre_request *request;
    for (int late = 0; late < size; late++) { /* the others have a request under way when they call */
        right(ALL_REDUCE, GYRE_SUM, 0);
        if (rank == late)
            usleep(20000);
        OK(comm, gyre_all_reduce_start(comm, in, first, (size_t)length, GYRE_INT32, GYRE_MAX, &request));
        OK(comm, gyre_all_reduce(comm, in, second, (size_t)length, GYRE_INT32, GYRE_SUM));
        OK(comm, gyre_wait(&request));
        CHECK(memcmp(second, out, (size_t)length * sizeof *second) == 0);
        for (int i = 0; i < length; i++)
            CHECK(first[i] == in[i] + 1000 * (size - 1 - rank));
    }
    OK(comm, gyre_group_begin());
    OK(comm, gyre_all_reduce(comm, in, first, (size_t)length, GYRE_INT32, GYRE_SUM));
    OK(comm, gyre_all_reduce(comm, in, second, (size_t)length, GYRE_INT32, GYRE_MAX));
    OK(comm, gyre_group_end());
    CHECK(memcmp(first, out, (size_t)length * sizeof *first) == 0);
    right(ALL_REDUCE, GYRE_MAX, 0);
    CHECK(memcmp(second, out, (size_t)length * sizeof *second) != 0 || size == 1);
}

/* More like starts in flight than are shown at once, one of the ranks late. */
static void test_many(void)
{
    enum { MANY = 24 };
    static int32_t many_in[MANY][COUNT_MOST], many_out[MANY][COUNT_MOST];
    gyre_request *requests[MANY];
    for (int late = 0; late < size; late++) {
        right(ALL_REDUCE, GYRE_SUM, 0);
        for (int k = 0; k < MANY; k++)
            for (int i = 0; i < length; i++)
                many_in[k][i] = value(rank, i, k);
        if (rank == late)
            usleep(5000);
        for (int k = 0; k < MANY; k++)
            OK(comm, gyre_all_reduce_start(comm, many_in[k], many_out[k], (size_t)length, GYRE_INT32, GYRE_SUM,
                                           &requests[k]));
        OK(comm, gyre_wait_all(requests, MANY));
        for (int k = 0; k < MANY; k++)
            for (int i = 0; i < length; i++)
                CHECK(many_out[k][i] == size * (i + 7 * k) + 1000 * (size * (size - 1) / 2));
        memset(many_out, 0, sizeof many_out);
    }
}

static void sum_of(const int32_t *input, int32_t *output, int elements)
{
    for (int i = 0; i < elements; i++)
        output[i] = -1;
    OK(comm, gyre_all_reduce(comm, input, output, (size_t)elements, GYRE_INT32, GYRE_SUM));
    for (int i = 0; i < elements; i++)
        CHECK(output[i] == size * i + size * (size - 1) / 2);
}

/* Long vectors that are exposed here and there, now on some ranks and then on others: unchanged ones do not see it. */
static void test_memory(void)
{
    enum { LONG = 12000 };
    static int32_t private_in[LONG], private_out[LONG];
    int32_t *open_in, *open_out;
    OK(comm, gyre_mem_alloc(comm, LONG * sizeof *open_in, (void **)&open_in));
    OK(comm, gyre_mem_alloc(comm, LONG * sizeof *open_out, (void **)&open_out));
    for (int i = 0; i < LONG; i++)
        open_in[i] = private_in[i] = i + rank;
    for (int round = 0; round < 8 * (1 << size); round++) {
        int closed = round / 4 & ((1 << size) - 1), half = round / 2 & 1;
        bool mine = closed >> rank & 1;
        sum_of(mine ? private_in : open_in, mine && half ? private_out : open_out, LONG);
        if (round % 5 == 0)
            right(ALL_REDUCE, GYRE_SUM, 0);
    }
    OK(comm, gyre_mem_free(comm, open_in));
    OK(comm, gyre_mem_free(comm, open_out));
}

/* An attribute that changes the choice, and a child of this process. */
static void test_forgotten(void)
{
    right(ALL_REDUCE, GYRE_SUM, 0);
    OK(comm, gyre_comm_set(comm, "order", "canonical"));
    OK(comm, gyre_comm_set(comm, "algorithm", "all_reduce:ring"));
    GIVES(GYRE_UNSUPPORTED, comm, call(ALL_REDUCE, in, out, (size_t)length, GYRE_INT32, GYRE_SUM, 0));
    OK(comm, gyre_comm_set(comm, "algorithm", ""));
    OK(comm, gyre_comm_set(comm, "order", "shape"));
    right(ALL_REDUCE, GYRE_SUM, 0);
    right(ALL_REDUCE, GYRE_SUM, 0);
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(call(ALL_REDUCE, in, out, (size_t)length, GYRE_INT32, GYRE_SUM, 0) != GYRE_FORKED);
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    right(ALL_REDUCE, GYRE_SUM, 0);
}

/* A rank alone has no peer to wait for, and no queue, even where a request of its world is under way. */
static void test_alone(void)
{
    static int32_t zeros[COUNT_MOST], late[COUNT_MOST];
    gyre_comm *world = comm;
    gyre_request *request;
    int world_rank = rank, world_size = size;
    OK(world, gyre_comm_split(world, world_rank, 0, &comm));
    if (rank == 0)
        usleep(20000);
    OK(world, gyre_all_reduce_start(world, zeros, late, (size_t)length, GYRE_INT32, GYRE_SUM, &request));
    rank = 0;
    size = 1;
    for (int i = 0; i < 4 * KINDS; i++) {
        starts = i & 1;
        right((enum kind)(i / 4), GYRE_SUM, 0);
    }
    starts = false;
    OK(world, gyre_wait(&request));
    gyre_comm_destroy(comm);
    comm = world;
    rank = world_rank;
    size = world_size;
}

/* After the world has failed nothing is a repeat. */
static void test_failed(void)
{
    right(ALL_REDUCE, GYRE_SUM, 0);
    rank_gather(comm, GYRE_ABORTED);
    gyre_comm_abort(comm);
    for (int i = 0; i < 3; i++)
        for (int way = 0; way < 2; way++) {
            starts = way;
            GIVES(GYRE_ABORTED, comm, call(ALL_REDUCE, in, out, (size_t)length, GYRE_INT32, GYRE_SUM, 0));
        }
}

int main(int argc, char **argv)
{
    length = argc > 1 ? atoi(argv[1]) : 0;
    CHECK(length > 1 && length <= COUNT_MOST);
    comm = rank_begin(60);
    rank = gyre_comm_rank(comm);
    size = gyre_comm_size(comm);
    CHECK(size <= RANKS_MOST);
    for (int i = 0; i < 2 * KINDS; i++) {
        starts = i % 2;
        test_wrong((enum kind)(i / 2));
        test_changes((enum kind)(i / 2));
    }
    starts = false;
    test_alone();
    test_under_way();
    test_many();
    test_memory();
    for (int way = 0; way < 2; way++) {
        starts = way;
        test_forgotten();
    }
    starts = false;
    test_failed();
    gyre_comm_destroy(comm);
    _exit(0);
}
