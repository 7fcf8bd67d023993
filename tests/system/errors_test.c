/* One rank of the tests of wrong calls: shapes that differ between ranks are named on both sides; misuse is refused
 * and leaves the communicator as it was; abort reaches all ranks; a late rank is named; a forked child is refused. */
#include <sys/wait.h>

#include "support/rank.h"

static gyre_comm *comm;
static int rank, size;
static float input[4096], output[8 * 4096];

static void create_world(void)
{
    gyre_status status = gyre_comm_create(NULL, &comm);
    if (status != GYRE_SUCCESS)
        rank_fail("create: %s: %s", gyre_status_name(status), gyre_last_error(NULL));
    rank = gyre_comm_rank(comm);
    size = gyre_comm_size(comm);
}

static void open_world(void)
{
    create_world();
    OK(comm, gyre_barrier(comm));
}

static gyre_status call_count(bool odd)
{
    return gyre_all_reduce(comm, input, output, odd ? 1234 : 1000, GYRE_FLOAT32, GYRE_SUM);
}

static gyre_status call_dtype(bool odd)
{
    return gyre_all_reduce(comm, input, output, 1000, odd ? GYRE_INT32 : GYRE_FLOAT32, GYRE_SUM);
}

static gyre_status call_op(bool odd)
{
    return gyre_all_reduce(comm, input, output, 1000, GYRE_FLOAT32, odd ? GYRE_MAX : GYRE_SUM);
}

static gyre_status call_kind(bool odd)
{
    return odd ? gyre_all_gather(comm, input, output, 1000, GYRE_FLOAT32)
               : gyre_all_reduce(comm, input, output, 1000, GYRE_FLOAT32, GYRE_SUM);
}

static gyre_status call_root(bool odd)
{
    return gyre_broadcast(comm, input, output, 1000, GYRE_FLOAT32, odd ? 1 : 0);
}

/* The first of many that are under way. */
static gyre_status call_first_of_many(bool odd)
{
    gyre_status status = gyre_group_begin();
    for (int i = 0; i < 20 && status == GYRE_SUCCESS; i++)
        status = gyre_all_reduce(comm, input + i, output + i, 1, odd && i == 0 ? GYRE_INT32 : GYRE_FLOAT32, GYRE_SUM);
    gyre_status end = gyre_group_end();
    return status == GYRE_SUCCESS ? end : status;
}

/* At this call or the next, and both shapes in the error message. */
static void expect_mismatch(const char *what, gyre_status (*call)(bool odd), const char *one, const char *other)
{
    create_world();
    rank_gather(comm, GYRE_MISMATCH);
    gyre_status status = call(rank == size - 1);
    if (status == GYRE_SUCCESS)
        status = gyre_barrier(comm);
    const char *text = gyre_last_error(comm);
    if (status != GYRE_MISMATCH || !strstr(text, one) || !strstr(text, other))
        rank_fail("%s differs: got %s, '%s', which should name '%s' and '%s'", what, gyre_status_name(status), text,
                  one, other);
    GIVES(GYRE_MISMATCH, comm, gyre_barrier(comm)); /* stays failed */
    OK(NULL, gyre_comm_destroy(comm));
}

static void test_misuse(void)
{
    gyre_comm *none;
    open_world();
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_all_reduce(comm, NULL, output, 10, GYRE_FLOAT32, GYRE_SUM));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_all_reduce(comm, input, NULL, 10, GYRE_FLOAT32, GYRE_SUM));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_all_reduce(comm, input, output, 10, (gyre_dtype)77, GYRE_SUM));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_all_reduce(comm, input, output, 10, GYRE_FLOAT32, (gyre_op)77));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_all_reduce(comm, output, output + 1, 10, GYRE_FLOAT32, GYRE_SUM));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_all_reduce(comm, input, output, SIZE_MAX / 2, GYRE_FLOAT32, GYRE_SUM));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_broadcast(comm, input, output, 10, GYRE_FLOAT32, size));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_broadcast(comm, input, output, 10, GYRE_FLOAT32, -1));
    CHECK(*gyre_last_error(comm) != 0);
    GIVES(GYRE_INVALID_ARGUMENT, NULL, gyre_barrier(NULL));
    GIVES(GYRE_INVALID_ARGUMENT, NULL, gyre_comm_duplicate(NULL, &none));
    CHECK(gyre_comm_algorithm(comm, "all_to_none", 1, GYRE_FLOAT32) == NULL);
    OK(NULL, gyre_comm_destroy(NULL));
    OK(comm, gyre_all_reduce(comm, input, output, 10, GYRE_FLOAT32, GYRE_SUM)); /* as it was */
    OK(comm, gyre_barrier(comm));
    OK(NULL, gyre_comm_destroy(comm));
}

static void expect_child_turned_away(void *memory)
{
    int status;
    char text[128];
    gyre_rank_place place = {.size = sizeof place};
    pid_t child = fork();
    if (child == 0)
        _exit(gyre_barrier(comm) == GYRE_FORKED && gyre_progress(comm) == GYRE_FORKED &&
                      gyre_comm_get(comm, "meeting", text, sizeof text) == GYRE_FORKED &&
                      gyre_comm_topology(comm, 0, &place) == GYRE_FORKED &&
                      gyre_comm_algorithm(comm, "all_reduce", 1000, GYRE_FLOAT32) && gyre_comm_size(comm) == size &&
                      (!memory || gyre_mem_free(comm, memory) == GYRE_FORKED)
                  ? 0
                  : 1);
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void test_abort(void)
{
    gyre_request *request;
    create_world();
    rank_gather(comm, GYRE_ABORTED);
    if (rank == 0) {
        OK(comm, gyre_barrier_start(comm, &request));
        OK(comm, gyre_comm_abort(comm));
        GIVES(GYRE_ABORTED, comm, gyre_wait(&request));
    } else if (rank == size - 1) { /* stays away, so that the barrier of the others cannot complete */
        gyre_status status = GYRE_SUCCESS;
        while (status == GYRE_SUCCESS)
            status = gyre_progress(comm);
        GIVES(GYRE_ABORTED, comm, status);
    } else {
        GIVES(GYRE_ABORTED, comm, gyre_barrier(comm));
    }
    GIVES(GYRE_ABORTED, comm, gyre_barrier(comm));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_mem_alloc(comm, 1, NULL)); /* the first error message stays */
    if (strncmp(gyre_last_error(comm), "rank 0 aborted", strlen("rank 0 aborted")) != 0)
        rank_fail("the failure's sentence is gone: '%s'", gyre_last_error(comm));
    expect_child_turned_away(NULL); /* of a world that has failed, too */
    OK(NULL, gyre_comm_destroy(comm));
}

/* A rank that stays away is named by all, also by those that miss it only in the middle of what they wait for. The
 * others are not to be late themselves on a machine that is busy: the clock is longer than any of them waits for a
 * core. */
static void test_late(const char *algorithm)
{
    setenv("GYRE_TIMEOUT", "5", 1);
    setenv("GYRE_ALGORITHM", algorithm, 1);
    create_world();
    rank_gather(comm, GYRE_PEER_LATE);
    gyre_status status = GYRE_SUCCESS;
    if (rank < size - 1)
        status = gyre_all_reduce(comm, input, output, 4096, GYRE_FLOAT32, GYRE_SUM);
    for (; rank == size - 1 && status == GYRE_SUCCESS; usleep(1000))
        status = gyre_progress(comm);
    char name[32], told[64]; /* the word that a host's ranks share comes without the whole error message */
    snprintf(name, sizeof name, "rank %d did not arrive", size - 1);
    snprintf(told, sizeof told, "rank %d: a rank did not arrive", size - 1);
    if (status != GYRE_PEER_LATE || (!strstr(gyre_last_error(comm), name) && !strstr(gyre_last_error(comm), told)))
        rank_fail("%s: got %s, '%s'", algorithm, gyre_status_name(status), gyre_last_error(comm));
    OK(NULL, gyre_comm_destroy(comm));
    unsetenv("GYRE_TIMEOUT");
    unsetenv("GYRE_ALGORITHM");
}

static void test_fork(void)
{
    void *memory;
    open_world();
    OK(comm, gyre_mem_alloc(comm, sizeof(int), &memory));
    *(volatile int *)memory = 7;
    expect_child_turned_away(memory);
    CHECK(*(volatile int *)memory == 7);
    OK(comm, gyre_mem_free(comm, memory));
    OK(comm, gyre_barrier(comm));
    OK(NULL, gyre_comm_destroy(comm));
}

int main(void)
{
    alarm(150);
    test_misuse();
    test_abort();
    test_fork();
    const char *transport = getenv("GYRE_TRANSPORT");
    if (!transport || strcmp(transport, "shm") == 0) /* direct algorithms need shared memory */
        test_late("all_reduce:direct_two_shot");
    test_late("all_reduce:ring");
    test_late("all_reduce:halving_doubling");
    test_late("all_reduce:binary_tree");
    expect_mismatch("count", call_count, "1000", "1234");
    expect_mismatch("dtype", call_dtype, "float32", "int32");
    expect_mismatch("op", call_op, "sum", "max");
    expect_mismatch("collective", call_kind, "all_reduce", "all_gather");
    expect_mismatch("root", call_root, "root 0", "root 1");
    expect_mismatch("type of the first of many", call_first_of_many, "float32", "int32");
    _exit(0);
}
