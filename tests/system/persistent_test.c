/* One rank of the tests of persistent requests, one suite per run (the argument):
 *   order      40 of all kinds, started in any order with other contents each time; from the second start on nothing is
 *              allocated
 *   misuse     started twice, freed while under way, waited for while idle, not persistent at all
 *   destroyed  the communicator goes while some of them are idle and some under way */
#include "support/allocations.h"
#include "support/rank.h"
#include "trial.h"

#define KEPT 40

static gyre_comm *comm;
static int rank, size;
static uint64_t common = 3, own;

/* ---- order ---- */

static void make(struct trial *it, int number)
{
    *it = (struct trial){.kind = (enum trial_kind)(number % TRIAL_SEND), .comm = comm, .rank = rank, .size = size};
    it->dtype = (gyre_dtype)trial_below(&common, 12);
    it->count = trial_below(&common, 4) ? trial_below(&common, 3000) : trial_below(&common, 60000);
    it->root = (int)trial_below(&common, (uint64_t)size);
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++)
            it->counts[i][j] = trial_below(&common, 2000);
    if (number % 8 == 7 && number < 32) { /* round the ring, all alike: sends and receives are shuffled apart */
        it->kind = number % 16 == 7 ? TRIAL_SEND : TRIAL_RECV;
        it->root = it->kind == TRIAL_SEND ? (rank + 1) % size : (rank + size - 1) % size;
        it->dtype = GYRE_INT32;
        it->count = 5000;
    }
    it->in_place = trial_below(&own, 2);
    it->layout = (enum trial_layout)trial_below(&own, 3);
    trial_make(it, &own);
}

static void shuffle(int *order)
{
    for (int i = 0; i < KEPT; i++)
        order[i] = i;
    for (int i = KEPT - 1; i > 0; i--) {
        int j = (int)trial_below(&common, (uint64_t)i + 1), other = order[i];
        order[i] = order[j];
        order[j] = other;
    }
}

static void collect(gyre_request **requests, int way)
{
    ptrdiff_t index = 0;
    size_t indices[KEPT], done = 1;
    while (way == 0 && index >= 0)
        OK(comm, gyre_wait_any(requests, KEPT, &index));
    while (way == 1 && done > 0)
        OK(comm, gyre_wait_some(requests, KEPT, indices, &done));
    OK(comm, gyre_wait_all(requests, KEPT));
}

static void test_order(void)
{
    static struct trial trial[KEPT];
    gyre_request *requests[KEPT];
    int order[KEPT];
    size_t before = 0;
    for (int i = 0; i < KEPT; i++) {
        make(&trial[i], i);
        OK(comm, trial_init(&trial[i], &requests[i]));
    }
    for (int round = 0; round < 12; round++) {
        shuffle(order);
        if (round == 1)
            before = allocations;
        for (int i = 0; i < KEPT; i++) {
            bool message = trial[order[i]].kind >= TRIAL_SEND;
            trial_fill(&trial[order[i]], (uint64_t)(round * 100 + (message ? 0 : order[i])));
            OK(comm, gyre_start(requests[order[i]]));
        }
        collect(requests, round % 3);
        if (round > 0 && allocations != before)
            rank_fail("start %d of known requests made %zu allocations", round, allocations - before);
        for (int i = 0; i < KEPT; i++) {
            const char *wrong = trial_wrong(&trial[i]);
            if (wrong)
                rank_fail("%s", wrong);
        }
    }
    for (int i = 0; i < KEPT; i++) {
        OK(comm, gyre_request_free(&requests[i]));
        CHECK(!requests[i]);
        trial_free(&trial[i]);
    }
}

/* ---- misuse ---- */

static int32_t in[5000], out[5000];

static void still_works(void)
{
    int32_t one = 1, sum = 0;
    OK(comm, gyre_all_reduce(comm, &one, &sum, 1, GYRE_INT32, GYRE_SUM));
    CHECK(sum == size);
}

static void test_misuse(void)
{
    gyre_request *kept = NULL, *plain = NULL, *none = NULL, *copy;
    ptrdiff_t index = 7;
    size_t indices[1], done = 7;
    int8_t go = 1;
    OK(comm, gyre_all_reduce_init(comm, in, out, 5000, GYRE_INT32, GYRE_SUM, &kept));
    OK(comm, gyre_wait(&kept));
    OK(comm, gyre_test(&kept));
    OK(comm, gyre_wait_all(&kept, 1));
    OK(comm, gyre_wait_any(&kept, 1, &index));
    OK(comm, gyre_wait_some(&kept, 1, indices, &done));
    CHECK(kept && index == -1 && done == 0);
    if (rank != 0)
        OK(comm, gyre_recv(comm, &go, 1, GYRE_INT8, 0));
    OK(comm, gyre_start(kept));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_start(kept));
    CHECK(strstr(gyre_last_error(comm), "under way"));
    if (rank == 0) { /* the others start when they are told: it cannot be complete */
        GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_request_free(&kept));
        CHECK(kept && strstr(gyre_last_error(comm), "under way"));
        for (int to = 1; to < size; to++)
            OK(comm, gyre_send(comm, &go, 1, GYRE_INT8, to));
    }
    gyre_request *pair[2] = {kept, NULL};
    OK(comm, gyre_wait_any(pair, 2, &index));
    CHECK(index == 0 && pair[0] == kept);
    OK(comm, gyre_wait_any(pair, 2, &index));
    CHECK(index == -1);
    OK(comm, gyre_barrier_start(comm, &plain));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_start(plain));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_request_free(&plain));
    OK(comm, gyre_wait(&plain));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_start(NULL));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_request_free(NULL));
    OK(comm, gyre_request_free(&none));
    copy = kept;
    OK(comm, gyre_request_free(&kept));
    CHECK(!kept);
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_start(copy));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_wait(&copy));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_request_free(&copy));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_all_reduce_init(comm, in, in + 1, 10, GYRE_INT32, GYRE_SUM, &none));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_all_reduce_init(comm, in, out, 10, GYRE_INT32, GYRE_SUM, NULL));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_send_init(comm, in, 10, GYRE_INT32, size, &none));
    CHECK(!none);
    still_works();
}

/* Of a twin, so that the world is there afterwards, whatever was under way. */
static void test_destroyed(void)
{
    gyre_comm *twin;
    gyre_request *idle, *used, *other;
    OK(comm, gyre_comm_duplicate(comm, &twin));
    OK(twin, gyre_all_reduce_init(twin, in, out, 5000, GYRE_INT32, GYRE_SUM, &idle));
    OK(twin, gyre_all_gather_init(twin, in, out, 1000, GYRE_INT32, &used));
    OK(twin, gyre_start(used));
    OK(twin, gyre_wait(&used));
    OK(comm, gyre_barrier(comm));
    OK(NULL, gyre_comm_destroy(twin));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_start(idle));
    OK(comm, gyre_request_free(&idle));
    OK(comm, gyre_wait(&used)); /* it is idle, and goes with its communicator */
    CHECK(!idle && !used);
    still_works();

    OK(comm, gyre_comm_duplicate(comm, &twin));
    OK(twin, gyre_barrier_init(twin, &idle));
    OK(twin, gyre_recv_init(twin, out, 10, GYRE_INT32, (rank + 1) % size, &used));
    OK(twin, gyre_all_reduce_init(twin, in, out, 5000, GYRE_INT32, GYRE_SUM, &other));
    OK(twin, gyre_start(used));
    OK(comm, gyre_barrier(comm));
    OK(NULL, gyre_comm_destroy(
                 twin)); /* with one under way: it is the twin that ends, perhaps since another rank was first */
    gyre_status status = gyre_wait(&used);
    CHECK((status == GYRE_ABORTED || status == GYRE_PEER_LEFT) && !used);
    OK(comm, gyre_request_free(&idle));
    OK(comm, gyre_wait(&other));
    still_works();
}

int main(int argc, char **argv)
{
    const char *suite = argc > 1 ? argv[1] : "";
    comm = rank_begin(90);
    rank = gyre_comm_rank(comm);
    size = gyre_comm_size(comm);
    own = 77 + (uint64_t)rank;
    if (strcmp(suite, "order") == 0)
        test_order();
    else if (strcmp(suite, "misuse") == 0)
        test_misuse();
    else
        test_destroyed();
    if (strcmp(suite, "destroyed") != 0)
        OK(comm, gyre_barrier(comm));
    OK(NULL, gyre_comm_destroy(comm));
    _exit(0);
}
