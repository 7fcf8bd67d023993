/* Wrong calls, one by one: each is refused with a sentence and leaves the communicator as it was, which a right call
 * after it proves. */
#include "support/rank.h"

static gyre_comm *comm;
static int rank, size;
static int32_t in[8192], out[8192];
static const char *last = "";

static void expect_refused(gyre_status status, const char *call, int line)
{
    if (status != GYRE_INVALID_ARGUMENT)
        rank_fail("line %d: %s gave %s: %s", line, call, gyre_status_name(status), gyre_last_error(comm));
    if (!*gyre_last_error(comm))
        rank_fail("line %d: %s was refused without a word", line, call);
    last = gyre_last_error(comm);
}

#define REFUSED(call) expect_refused(call, #call, __LINE__)
/* There is no communicator to keep a sentence. */
#define REJECTED(call) CHECK((call) == GYRE_INVALID_ARGUMENT)
#define SAYS(word) CHECK(strstr(last, word) != NULL)

static void still_works(void)
{
    int32_t mine = rank + 1, sum = 0;
    OK(comm, gyre_all_reduce(comm, &mine, &sum, 1, GYRE_INT32, GYRE_SUM));
    CHECK(sum == size * (size + 1) / 2);
}

static void test_null(void)
{
    gyre_request *request = NULL;
    REFUSED(gyre_all_reduce(comm, NULL, out, 10, GYRE_INT32, GYRE_SUM));
    SAYS("input is NULL");
    REFUSED(gyre_all_reduce(comm, in, NULL, 10, GYRE_INT32, GYRE_SUM));
    SAYS("output is NULL");
    REFUSED(gyre_reduce_scatter(comm, NULL, out, 10, GYRE_INT32, GYRE_SUM));
    REFUSED(gyre_reduce_scatter(comm, in, NULL, 10, GYRE_INT32, GYRE_SUM));
    REFUSED(gyre_all_gather(comm, NULL, out, 10, GYRE_INT32));
    REFUSED(gyre_all_gather(comm, in, NULL, 10, GYRE_INT32));
    SAYS("all_gather");
    REFUSED(gyre_broadcast(comm, NULL, out, 10, GYRE_INT32, rank));
    REFUSED(gyre_broadcast(comm, in, NULL, 10, GYRE_INT32, 0));
    REFUSED(gyre_all_reduce_start(comm, NULL, out, 10, GYRE_INT32, GYRE_SUM, &request));
    CHECK(request == NULL); /* outputs are written on success only */
    OK(comm, gyre_all_reduce(comm, NULL, NULL, 0, GYRE_INT32, GYRE_SUM));
    OK(comm, gyre_broadcast(comm, rank == 0 ? in : NULL, out, 10, GYRE_INT32, 0)); /* only the root has an input */
    still_works();
}

static void test_no_place(void)
{
    gyre_comm *none = NULL;
    gyre_request *request = NULL;
    REJECTED(gyre_all_reduce(NULL, in, out, 1, GYRE_INT32, GYRE_SUM));
    REJECTED(gyre_reduce_scatter(NULL, in, out, 1, GYRE_INT32, GYRE_SUM));
    REJECTED(gyre_all_gather(NULL, in, out, 1, GYRE_INT32));
    REJECTED(gyre_broadcast(NULL, in, out, 1, GYRE_INT32, 0));
    REJECTED(gyre_barrier(NULL));
    REJECTED(gyre_barrier_start(NULL, &request));
    REJECTED(gyre_barrier_start(comm, NULL));
    REJECTED(gyre_all_reduce_start(comm, in, out, 1, GYRE_INT32, GYRE_SUM, NULL));
    REJECTED(gyre_comm_duplicate(NULL, &none));
    REJECTED(gyre_comm_duplicate(comm, NULL));
    REJECTED(gyre_comm_create(NULL, NULL));
    REJECTED(gyre_comm_abort(NULL));
    REJECTED(gyre_comm_dump(NULL, 2));
    REJECTED(gyre_progress(NULL));
    REJECTED(gyre_test(NULL));
    REJECTED(gyre_wait(NULL));
    REJECTED(gyre_wait_all(NULL, 1));
    OK(comm, gyre_wait_all(NULL, 0));
    OK(comm, gyre_wait(&request)); /* no request: complete */
    OK(NULL, gyre_comm_destroy(NULL));
    CHECK(gyre_comm_rank(NULL) == -1 && gyre_comm_size(NULL) == -1);
    CHECK(gyre_comm_algorithm(comm, "all_to_none", 1, GYRE_INT32) == NULL);
    CHECK(gyre_comm_algorithm(comm, NULL, 1, GYRE_INT32) == NULL);
    CHECK(gyre_comm_algorithm(NULL, "barrier", 0, GYRE_INT32) == NULL);
    gyre_config config = {.size = 3};
    REJECTED(gyre_comm_create(&config, &none));
    CHECK(strstr(gyre_last_error(NULL), "size") && none == NULL);
    still_works();
}

static void test_values(void)
{
    static const int numbers[] = {-1, 77, 1 << 20, INT32_MIN};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        REFUSED(gyre_all_reduce(comm, in, out, 10, (gyre_dtype)numbers[i], GYRE_SUM));
        SAYS("element type");
        REFUSED(gyre_all_reduce(comm, in, out, 10, GYRE_INT32, (gyre_op)numbers[i]));
        SAYS("operation");
        REFUSED(gyre_broadcast(comm, in, out, 10, GYRE_INT32, numbers[i]));
        SAYS("root");
    }
    REFUSED(gyre_broadcast(comm, in, out, 10, GYRE_INT32, size));
    REFUSED(gyre_all_reduce(comm, in, out, SIZE_MAX, GYRE_INT32, GYRE_SUM));
    SAYS("count");
    REFUSED(gyre_all_reduce(comm, in, out, SIZE_MAX / 4 + 1, GYRE_INT32, GYRE_SUM)); /* times 4 it is nearly nothing */
    REFUSED(gyre_all_gather(comm, in, out, SIZE_MAX / (4 * (size_t)size) + 1, GYRE_INT32));
    REFUSED(gyre_reduce_scatter(comm, in, out, SIZE_MAX / (4 * (size_t)size) + 1, GYRE_INT32, GYRE_SUM));
    REFUSED(gyre_broadcast(comm, in, out, SIZE_MAX / 2, GYRE_FLOAT64, 0));
    still_works();
}

static void test_overlap(void)
{
    size_t n = 100, all = n * (size_t)size;
    REFUSED(gyre_all_reduce(comm, out, out + 1, n, GYRE_INT32, GYRE_SUM));
    SAYS("overlap");
    REFUSED(gyre_all_reduce(comm, out + n - 1, out, n, GYRE_INT32, GYRE_SUM));
    REFUSED(gyre_all_gather(comm, out + (size_t)rank * n + 1, out, n, GYRE_INT32));
    REFUSED(gyre_all_gather(comm, out + ((size_t)rank + 1) % (size_t)size * n, out, n, GYRE_INT32));
    REFUSED(gyre_reduce_scatter(comm, in, in + ((size_t)rank + 1) % (size_t)size * n, n, GYRE_INT32, GYRE_SUM));
    REFUSED(gyre_reduce_scatter(comm, in, in + all - 1, n, GYRE_INT32, GYRE_SUM));
    if (rank == 0)
        REFUSED(gyre_broadcast(comm, out, out + 1, n, GYRE_INT32, 0));
    OK(comm, gyre_all_reduce(comm, out, out + n, n, GYRE_INT32, GYRE_SUM)); /* they touch, no more */
    OK(comm, gyre_all_gather(comm, out + (size_t)rank * n, out, n, GYRE_INT32));
    OK(comm, gyre_reduce_scatter(comm, in, in + (size_t)rank * n, n, GYRE_INT32, GYRE_SUM));
    OK(comm, gyre_broadcast(comm, out, out, n, GYRE_INT32, 0));
    still_works();
}

/* A handle of which somebody kept a copy. */
static void test_twice(void)
{
    gyre_request *request, *copy, *both[2];
    OK(comm, gyre_all_reduce_start(comm, in, out, 2000, GYRE_INT32, GYRE_SUM, &request));
    copy = request;
    OK(comm, gyre_wait(&request));
    CHECK(request == NULL);
    REJECTED(gyre_wait(&copy));
    REJECTED(gyre_test(&copy));
    REJECTED(gyre_wait_all(&copy, 1));
    OK(comm, gyre_barrier_start(comm, &both[0]));
    both[1] = both[0];
    REJECTED(gyre_wait_all(both, 2));
    for (int i = 0; i < 20; i++) { /* the free list is whole: several at once are different ones */
        gyre_request *some[4];
        for (int k = 0; k < 4; k++)
            OK(comm, gyre_all_reduce_start(comm, in, out + 1000 * k, 1000, GYRE_INT32, GYRE_SUM, &some[k]));
        for (int k = 1; k < 4; k++)
            CHECK(some[k] != some[k - 1]);
        OK(comm, gyre_wait_all(some, 4));
    }
    still_works();
}

static void test_memory(void)
{
    void *memory = NULL;
    REJECTED(gyre_mem_alloc(NULL, 10, &memory));
    REJECTED(gyre_mem_alloc(comm, 10, NULL));
    REJECTED(gyre_mem_free(NULL, in));
    OK(comm, gyre_mem_free(comm, NULL));
    GIVES(GYRE_NO_MEMORY, comm, gyre_mem_alloc(comm, SIZE_MAX, &memory));
    GIVES(GYRE_NO_MEMORY, comm, gyre_mem_alloc(comm, SIZE_MAX / 2, &memory));
    CHECK(memory == NULL && *gyre_last_error(comm));
    OK(comm, gyre_mem_alloc(comm, 0, &memory));
    OK(comm, gyre_mem_free(comm, memory));
    still_works();
}

int main(void)
{
    comm = rank_begin(60);
    rank = gyre_comm_rank(comm);
    size = gyre_comm_size(comm);
    CHECK(size >= 2);
    test_null();
    test_no_place();
    test_values();
    test_overlap();
    test_twice();
    test_memory();
    OK(NULL, gyre_comm_destroy(comm));
    _exit(0);
}
