/* Wrong calls, one by one: each is refused with an error message and leaves the communicator as it was, which a right
 * call after it proves. */
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
/* There is no communicator to keep an error message. */
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
    struct {
        gyre_config config;
        int later;
    } longer = {{.size = sizeof longer}, 1}; /* of a version that this library does not know */
    REJECTED(gyre_comm_create(&longer.config, &none));
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
    REFUSED(gyre_all_gather(comm, out + all - 1, out, n, GYRE_INT32));
    REFUSED(gyre_all_to_all(comm, out, out + n, n, GYRE_INT32));
    REFUSED(gyre_all_to_all(comm, out + all - 1, out, n, GYRE_INT32));
    if (rank == 0)
        REFUSED(gyre_broadcast(comm, out, out + 1, n, GYRE_INT32, 0));
    OK(comm, gyre_all_reduce(comm, out, out + n, n, GYRE_INT32, GYRE_SUM)); /* they touch, no more */
    OK(comm, gyre_all_gather(comm, out + (size_t)rank * n, out, n, GYRE_INT32));
    OK(comm, gyre_reduce_scatter(comm, in, in + (size_t)rank * n, n, GYRE_INT32, GYRE_SUM));
    OK(comm, gyre_all_to_all(comm, out, out, n, GYRE_INT32));
    OK(comm, gyre_all_to_all(comm, out, out + all, n, GYRE_INT32));
    OK(comm, gyre_broadcast(comm, out, out, n, GYRE_INT32, 0));
    still_works();
}

/* A handle of which the program kept a copy. */
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
    char bytes[32];
    snprintf(bytes, sizeof(bytes), "%zu bytes", SIZE_MAX / 2);
    CHECK(strstr(gyre_last_error(comm), bytes)); /* this call's error message, and not that of the one before */
    CHECK(memory == NULL && *gyre_last_error(comm));
    OK(comm, gyre_mem_alloc(comm, 0, &memory));
    OK(comm, gyre_mem_free(comm, memory));
    still_works();
}

/* The forms with counts: lists, displacements, blocks. */
static void test_lists(void)
{
    size_t n = (size_t)size, counts[16], places[16], other[16];
    for (size_t i = 0; i < n; i++) {
        counts[i] = 10;
        places[i] = 10 * i;
        other[i] = 10 * i;
    }
    REFUSED(gyre_all_gatherv(comm, in, out, NULL, NULL, GYRE_INT32));
    SAYS("counts is NULL");
    REFUSED(gyre_gatherv(comm, in, out, NULL, NULL, GYRE_INT32, 0));
    REFUSED(gyre_scatterv(comm, in, NULL, NULL, out, GYRE_INT32, 0));
    REFUSED(gyre_reduce_scatterv(comm, in, out, NULL, GYRE_INT32, GYRE_SUM));
    REFUSED(gyre_all_to_allv(comm, in, counts, NULL, out, NULL, NULL, GYRE_INT32));
    REFUSED(gyre_all_to_allv(comm, in, NULL, NULL, out, counts, NULL, GYRE_INT32));
    REFUSED(gyre_all_gatherv(comm, NULL, out, counts, places, GYRE_INT32));
    SAYS("input is NULL");
    REFUSED(gyre_all_gatherv(comm, in, NULL, counts, places, GYRE_INT32));
    REFUSED(gyre_gatherv(comm, in, out, counts, places, GYRE_INT32, size));
    REFUSED(gyre_scatterv(comm, in, counts, places, out, GYRE_INT32, -1));
    REFUSED(gyre_all_gatherv(comm, in, out, counts, places, (gyre_dtype)-5));
    places[1] = 9; /* the last element of block 0 */
    REFUSED(gyre_all_gatherv(comm, in, out, counts, places, GYRE_INT32));
    SAYS("blocks overlap");
    REFUSED(gyre_all_to_allv(comm, in, counts, places, out, counts, other, GYRE_INT32));
    places[0] = 9;
    places[1] = 0; /* out of order, and one element too close */
    REFUSED(gyre_all_to_allv(comm, in, counts, other, out, counts, places, GYRE_INT32));
    SAYS("blocks overlap");
    places[1] = SIZE_MAX - 5;
    REFUSED(gyre_all_gatherv(comm, in, out, counts, places, GYRE_INT32));
    places[0] = 0;
    places[1] = SIZE_MAX / 4; /* in bytes more than memory */
    REFUSED(gyre_all_gatherv(comm, in, out, counts, places, GYRE_INT32));
    SAYS("memory");
    counts[0] = SIZE_MAX / 2;
    REFUSED(gyre_all_gatherv(comm, in, out, counts, NULL, GYRE_INT8));
    counts[0] = counts[1] = SIZE_MAX / 2 + 6; /* together they are hardly anything */
    REFUSED(gyre_all_gatherv(comm, in, out, counts, NULL, GYRE_INT8));
    REFUSED(gyre_reduce_scatterv(comm, in, out, counts, GYRE_INT8, GYRE_SUM));
    counts[0] = counts[1] = 10;
    counts[rank] = 11; /* for itself, what it sends and what it expects */
    places[0] = 0;
    for (size_t i = 0; i < n; i++)
        places[i] = 20 * i;
    for (size_t i = 0; i < n; i++)
        other[i] = 10;
    REFUSED(gyre_all_to_allv(comm, in, counts, NULL, out, other, NULL, GYRE_INT32));
    SAYS("itself");
    counts[rank] = 10;
    REFUSED(gyre_all_to_allv(comm, out, counts, places, out, counts, NULL, GYRE_INT32)); /* in place, lists differ */
    REFUSED(gyre_all_gatherv(comm, out + 20 * rank + 1, out, counts, places, GYRE_INT32));
    SAYS("overlap");
    OK(comm, gyre_all_gatherv(comm, out + 20 * rank, out, counts, places, GYRE_INT32));
    still_works();
}

static void test_messages(void)
{
    gyre_request *request = NULL;
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    REJECTED(gyre_send(NULL, in, 1, GYRE_INT32, 0));
    REJECTED(gyre_recv(NULL, out, 1, GYRE_INT32, 0));
    REJECTED(gyre_sendrecv(NULL, in, 1, 0, out, 1, 0, GYRE_INT32));
    REFUSED(gyre_send(comm, in, 1, GYRE_INT32, size));
    SAYS("peer");
    REFUSED(gyre_send(comm, in, 1, GYRE_INT32, -1));
    REFUSED(gyre_recv(comm, out, 1, GYRE_INT32, INT32_MAX));
    REFUSED(gyre_send(comm, NULL, 1, GYRE_INT32, next));
    REFUSED(gyre_recv(comm, NULL, 1, GYRE_INT32, before));
    REFUSED(gyre_recv(comm, out, SIZE_MAX / 4, GYRE_INT32, before));
    REFUSED(gyre_send(comm, in, 1, (gyre_dtype)13, next));
    REFUSED(gyre_send_start(comm, in, 1, GYRE_INT32, size, &request));
    REJECTED(gyre_recv_start(comm, out, 1, GYRE_INT32, next, NULL));
    /* Nothing is sent when the other half is wrong: no rank would wait for it. */
    REFUSED(gyre_sendrecv(comm, in, 1, next, out, 1, size, GYRE_INT32));
    REFUSED(gyre_sendrecv(comm, in, 1, next, NULL, 1, before, GYRE_INT32));
    REFUSED(gyre_sendrecv(comm, out, 10, next, out + 9, 10, before, GYRE_INT32));
    SAYS("overlap");
    CHECK(request == NULL);
    OK(comm, gyre_send(comm, NULL, 0, GYRE_INT32, rank)); /* nothing, to itself */
    OK(comm, gyre_recv(comm, NULL, 0, GYRE_INT32, rank));
    OK(comm, gyre_sendrecv(comm, out, 10, next, out + 10, 10, before, GYRE_INT32));
    still_works();
}

static void test_groups(void)
{
    REJECTED(gyre_group_end());
    OK(comm, gyre_group_begin());
    OK(comm, gyre_group_end());
    REJECTED(gyre_group_end());
    OK(comm, gyre_group_begin()); /* a wrong call in a group is refused at once, the others count */
    REFUSED(gyre_all_reduce(comm, NULL, out, 10, GYRE_INT32, GYRE_SUM));
    OK(comm, gyre_all_reduce(comm, in, out, 10, GYRE_INT32, GYRE_SUM));
    REFUSED(gyre_send(comm, in, 1, GYRE_INT32, size));
    OK(comm, gyre_group_end());
    still_works();
}

/* Requests of a communicator that is gone, or of another one in the same list. */
static void test_foreign(void)
{
    gyre_comm *twin;
    gyre_request *requests[2];
    ptrdiff_t index;
    size_t completed;
    REJECTED(gyre_wait_any(NULL, 1, &index));
    REJECTED(gyre_wait_any(requests, 1, NULL));
    REJECTED(gyre_wait_some(NULL, 1, &completed, &completed));
    REJECTED(gyre_wait_some(requests, 1, NULL, &completed));
    REJECTED(gyre_wait_some(requests, 1, &completed, NULL));
    OK(comm, gyre_wait_any(NULL, 0, &index));
    CHECK(index == -1);
    OK(comm, gyre_comm_duplicate(comm, &twin));
    OK(twin, gyre_barrier_start(twin, &requests[0]));
    OK(comm, gyre_barrier_start(comm, &requests[1]));
    OK(comm, gyre_wait_all(requests, 2));
    OK(twin, gyre_all_reduce_start(twin, in, out, 10, GYRE_INT32, GYRE_SUM, &requests[0]));
    for (int i = 0; i < 3; i++) /* complete by now, as each of these drives it too, and not collected */
        OK(comm, gyre_barrier(comm));
    gyre_request *copy = requests[0];
    OK(comm, gyre_test(&requests[0]) == GYRE_IN_PROGRESS ? gyre_wait(&requests[0]) : GYRE_SUCCESS);
    REJECTED(gyre_wait(&copy));
    OK(comm, gyre_barrier(comm));
    OK(NULL, gyre_comm_destroy(twin));
    still_works();
}

/* Handles of requests that were collected, while their memory serves calls that need no handle: one that runs its plan
 * itself, one that is refused after it has taken a request; and when their communicator is gone. */
static void test_stale(void)
{
    gyre_comm *twin;
    gyre_request *request, *copy;
    OK(comm, gyre_comm_duplicate(comm, &twin));
    OK(twin, gyre_barrier_start(twin, &request));
    copy = request;
    OK(twin, gyre_wait(&request));
    OK(twin, gyre_all_reduce(twin, in, out, 8192, GYRE_INT32, GYRE_SUM));
    REJECTED(gyre_wait(&copy));
    OK(twin, gyre_comm_set(twin, "order", "canonical"));
    OK(twin, gyre_comm_set(twin, "algorithm", "all_reduce:ring"));
    GIVES(GYRE_UNSUPPORTED, twin, gyre_all_reduce(twin, in, out, 8192, GYRE_INT32, GYRE_SUM));
    REJECTED(gyre_test(&copy));
    OK(twin, gyre_comm_set(twin, "algorithm", ""));
    OK(twin, gyre_all_reduce(twin, in, out, 8192, GYRE_INT32, GYRE_SUM));
    OK(comm, gyre_barrier(comm));
    OK(NULL, gyre_comm_destroy(twin));
    REJECTED(gyre_wait(&copy));
    OK(comm, gyre_all_reduce_start(comm, in, out, 8192, GYRE_INT32, GYRE_SUM, &request));
    if (copy != request) { /* the memory may be its own by now */
        gyre_request *both[2] = {request, copy};
        REJECTED(gyre_wait_all(both, 2));
    } else {
        OK(comm, gyre_wait(&request));
    }
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
    test_lists();
    test_messages();
    test_groups();
    test_foreign();
    test_stale();
    OK(NULL, gyre_comm_destroy(comm));
    _exit(0);
}
