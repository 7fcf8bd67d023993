/* GYRE_VERIFY: a rank that computes wrongly is found and named.
 *
 *   verify_test shm|tcp|rdma
 *
 * The wrong rank has an operation of its own that is wrong once, from which an algorithm in which each rank computes
 * its own result (shared memory: one shot; links: recursive doubling) makes one wrong result. */
#include "support/launcher.h"

#define EVERY 5
#define MOST 20000

static int wrong_rank, ranks_now;
static bool wrong_now;
static int32_t in[MOST], out[4 * MOST];

static void add(void *user, const void *left, const void *right, void *result, size_t count, gyre_dtype dtype)
{
    const int32_t *a = left, *b = right;
    int32_t *c = result;
    (void)user;
    (void)dtype;
    for (size_t i = 0; i < count; i++)
        c[i] = a[i] + b[i];
    if (wrong_now && count > 0)
        c[count / 2] += 1 << 20;
}

static void fill(int rank, size_t count)
{
    for (size_t i = 0; i < count; i++)
        in[i] = (int32_t)i * (rank + 3);
}

/* Every kind that is compared, blocking and not, more under way at once than one comparison takes; and some that are
 * not compared. Nothing is found where nothing is wrong. */
static void good_body(int rank)
{
    gyre_comm *comm = rank_begin(60), *half;
    gyre_request *requests[3 * EVERY];
    size_t counts[4], places[4];
    fill(rank, MOST);
    for (int i = 0; i < 12; i++) {
        size_t count = i % 3 ? (size_t)i * 700 + 1 : (size_t)i;
        OK(comm, gyre_all_reduce(comm, in, out, count, GYRE_INT32, GYRE_SUM));
        OK(comm, gyre_broadcast(comm, in, out, count, GYRE_INT32, i % ranks_now));
        OK(comm, gyre_all_gather(comm, in, out, count, GYRE_INT32));
        OK(comm, gyre_reduce_scatter(comm, in, out, count / 8, GYRE_INT32, GYRE_SUM));
    }
    for (int r = 0; r < ranks_now; r++) {
        counts[r] = (size_t)r * 100;
        places[r] = (size_t)(ranks_now - r) * 1000;
    }
    OK(comm,
       gyre_all_gatherv(comm, in, out, counts, rank % 2 ? places : NULL, GYRE_INT32)); /* equal but for the places */
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3 * EVERY; i++)
            OK(comm, gyre_all_reduce_start(comm, in, out + i * 1000, 1000, GYRE_INT32, GYRE_MAX, &requests[i]));
        OK(comm, gyre_wait_all(requests, 3 * EVERY));
    }
    OK(comm, gyre_comm_split(comm, rank % 2, rank, &half));
    for (int i = 0; i < 2 * EVERY; i++)
        OK(half, gyre_all_reduce(half, in, out, 300, GYRE_INT32, GYRE_SUM));
    OK(half, gyre_comm_destroy(half));
    OK(comm, gyre_comm_destroy(comm));
}

/* The seventh of ten is wrong on one rank. */
static void wrong_body(int rank)
{
    gyre_comm *comm = rank_begin(60);
    gyre_status status = GYRE_SUCCESS;
    char words[64];
    gyre_op op;
    int done = 0;
    fill(rank, MOST);
    OK(comm, gyre_op_create(comm, add, NULL, 1, &op));
    for (; done < 2 * EVERY && status == GYRE_SUCCESS; done++) {
        wrong_now = rank == wrong_rank && done == EVERY + 1;
        status = gyre_all_reduce(comm, in, out, 3000, GYRE_INT32, op);
    }
    if (status != GYRE_WRONG_RESULT || done != 2 * EVERY)
        rank_fail("%s after %d operations: %s", gyre_status_name(status), done, gyre_last_error(comm));
    snprintf(words, sizeof(words), "rank %d got another result than", wrong_rank);
    if (!strstr(gyre_last_error(comm), words) || !strstr(gyre_last_error(comm), "all_reduce #7"))
        rank_fail("another sentence: %s", gyre_last_error(comm));
    if (!strstr(gyre_last_error(comm), ranks_now == 2 ? "no majority" : "ranks in"))
        rank_fail("another sentence: %s", gyre_last_error(comm));
    gyre_comm_destroy(comm);
}

/* With uniform ends. To make a communicator takes several operations, and the world fails during the first, which
 * succeeds. */
static void between_body(int rank)
{
    gyre_comm *comm = rank_begin(60), *twin = NULL;
    gyre_request *request;
    gyre_op op;
    fill(rank, MOST);
    OK(comm, gyre_op_create(comm, add, NULL, 1, &op));
    wrong_now = rank == wrong_rank;
    OK(comm, gyre_all_reduce_start(comm, in, out, 3000, GYRE_INT32, op, &request));
    OK(comm, gyre_wait(&request));
    GIVES(GYRE_WRONG_RESULT, comm, gyre_comm_duplicate(comm, &twin));
    CHECK(!twin);
    gyre_comm_destroy(comm);
}

/* Without the setting the same goes unnoticed: the test's wrong operation is one. */
static void unnoticed_body(int rank)
{
    gyre_comm *comm = rank_begin(60);
    int32_t sum = 0, sums[4];
    gyre_op op;
    fill(rank, MOST);
    OK(comm, gyre_op_create(comm, add, NULL, 1, &op));
    wrong_now = rank == wrong_rank;
    OK(comm, gyre_all_reduce(comm, in, out, 3000, GYRE_INT32, op));
    wrong_now = false;
    for (int i = 0; i < 3000; i++)
        sum = (int32_t)((unsigned)sum * 31u + (unsigned)out[i]);
    OK(comm, gyre_all_gather(comm, &sum, sums, 1, GYRE_INT32));
    for (int r = 0; r < ranks_now; r++)
        CHECK((sums[r] != sums[(wrong_rank + 1) % ranks_now]) == (r == wrong_rank));
    OK(comm, gyre_comm_destroy(comm));
}

static bool run(int ranks, int wrong, void (*body)(int), const char *what)
{
    ranks_now = ranks;
    wrong_rank = wrong;
    return launch(ranks, body, 70, what);
}

int main(int argc, char **argv)
{
    const char *transport = argc > 1 ? argv[1] : "shm";
    bool shm = strcmp(transport, "shm") == 0, good;
    setenv("GYRE_TRANSPORT", shm ? "shm,tcp" : transport, 1);
    setenv("GYRE_VERIFY", "5", 1);
    good = run(4, -1, good_body, "nothing wrong");
    setenv("GYRE_ALGORITHM", shm ? "all_reduce:direct_one_shot" : "all_reduce:recursive_doubling", 1);
    good = run(3, 1, wrong_body, "one of three") && good;
    if (shm)
        good = run(4, 3, wrong_body, "one of four") && good;
    good = run(2, 1, wrong_body, "one of two") && good;
    setenv("GYRE_VERIFY", "1", 1);
    setenv("GYRE_ENDS", "uniform", 1);
    good = run(3, 1, between_body, "between two operations") && good;
    unsetenv("GYRE_ENDS");
    unsetenv("GYRE_VERIFY");
    good = run(3, 1, unnoticed_body, "nobody looks") && good;
    return good ? 0 : 1;
}
