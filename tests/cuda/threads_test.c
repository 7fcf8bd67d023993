/* Ranks that share a GPU. One kernel executes a call on streams for all ranks, which are threads of one process, or
 * processes that map each other's memory. One suite per run:
 *
 *   launches        every collective: counts launches, and checks that no operand is copied through the host
 *   bits            every type and operation, also in canonical order, has the bits of the CPU
 *   scalars         pre-multiplied sums, many of them in flight
 *   one_thread      one thread makes the calls of all ranks in groups, several calls in one launch
 *   staged          calls that kernels cannot execute: host memory on one rank, a user-defined operation
 *   mismatch        ranks make different calls
 *   timeout         a rank does not make its call in time
 *   abort           a rank aborts while others wait for it
 *   destroyed       a rank destroys its communicator while others wait for it
 *   launch_failure  a launch fails
 *
 *   threads_test SUITE RANKS       ranks are threads
 *   threads_test SUITE processes   one rank of those that gyre-run starts: launches, bits, scalars, staged */
#include <pthread.h>
#include <stdatomic.h>

#include "counted_driver.h"
#include "kernels/reference.h"
#include "support/rank.h"
#include "system/trial.h"

enum { RANKS_MOST = 12, COUNT = 1000, BITS = 150 };
#define WITHIN_NS 100000000 /* others' calls return within this time of a failure */

#define CU(call) CHECK((call) == GY_CU_SUCCESS)

static pthread_barrier_t together;
static bool in_processes;
static int device; /* of the ranks of this process */
static gy_cu_context context;
static atomic_llong failed_at;

struct rank {
    int rank, ranks;
    const char *address;
    void (*suite)(struct rank *r);
    gyre_comm *comm;
    gy_cu_stream stream;
    gy_cu_address input, output;
};

/* ---- The driver ---- */

static void open_driver(void)
{
    int devices = 0;
    gy_cu_device handle;
    count_driver();
    CU(cu->init(0));
    OK(NULL, gyre_cuda_available(&devices));
    if (in_processes)
        device = atoi(getenv("RANK")) % devices;
    CU(cu->device_get(&handle, device));
    CU(cu->context_retain(&context, handle));
}

/* Returns when all ranks have called it. */
static void meet(const struct rank *r)
{
    if (in_processes)
        OK(r->comm, gyre_barrier(r->comm));
    else
        pthread_barrier_wait(&together);
}

/* Returns true if this process counts the launches of all ranks. */
static bool counts_launches(const struct rank *r)
{
    return !in_processes || r->rank == device; /* the lowest rank of a device launches */
}

/* ---- Memory ---- */

static gy_cu_address on_device(size_t bytes)
{
    gy_cu_address address;
    CU(cu->mem_alloc(&address, bytes));
    return address;
}

static void *pointer(gy_cu_address address)
{
    return (void *)(uintptr_t)address;
}

static void put(const struct rank *r, gy_cu_address to, const void *from, size_t bytes)
{
    CU(cu->copy_async(to, (uintptr_t)from, bytes, r->stream));
}

static void get(const struct rank *r, void *to, gy_cu_address from, size_t bytes)
{
    CU(cu->copy_async((uintptr_t)to, from, bytes, r->stream));
}

static gyre_status reduce_on(const struct rank *r)
{
    return gyre_all_reduce_on(r->comm, pointer(r->input), pointer(r->output), COUNT, GYRE_FLOAT32, GYRE_SUM, r->stream);
}

static void put_ones(const struct rank *r, float value)
{
    static _Thread_local float values[COUNT];
    for (int i = 0; i < COUNT; i++)
        values[i] = value;
    put(r, r->input, values, sizeof(values));
    CU(cu->stream_synchronize(r->stream));
}

static void expect_sum(const struct rank *r, float wanted)
{
    static _Thread_local float got[COUNT];
    get(r, got, r->output, sizeof(got));
    CU(cu->stream_synchronize(r->stream));
    for (int i = 0; i < COUNT; i++)
        CHECK(got[i] == wanted);
}

/* ---- launches ---- */

/* Operands on the device, aligned or not. All ranks are in place, or none. */
struct pass {
    struct trial trial, placed;
    gy_cu_address sides[2];
};

static void make_pass(const struct rank *r, struct pass *pass, enum trial_kind kind, uint64_t *common, uint64_t *own)
{
    struct trial *it = &pass->trial;
    *it = (struct trial){.kind = kind, .comm = r->comm, .rank = r->rank, .size = r->ranks, .stream = r->stream};
    it->dtype = GYRE_FLOAT32;
    it->op = trial_below(common, 2) ? GYRE_SUM : GYRE_AVERAGE;
    it->count = trial_below(common, 300);
    it->root = (int)trial_below(common, (uint64_t)r->ranks);
    for (int i = 0; i < r->ranks; i++)
        for (int j = 0; j <= i; j++)
            it->counts[i][j] = it->counts[j][i] = trial_below(common, 100);
    it->in_place = trial_below(common, 2);
    it->layout = (enum trial_layout)trial_below(own, 3);
    it->shift = (unsigned)trial_below(own, 8);
    trial_make(it, own);
    trial_fill(it, 1 + trial_below(common, 1000));
    pass->placed = *it;
    for (int side = 0; side < 2; side++) {
        pass->sides[side] = on_device(trial_bytes(it, side));
        put(r, pass->sides[side], it->memory[side], trial_bytes(it, side));
    }
    const int from = it->in_place ? 1 : 0;
    if (it->input)
        pass->placed.input = pointer(pass->sides[from] +
                                     (gy_cu_address)((const unsigned char *)it->input - it->memory[from]));
    if (it->output)
        pass->placed.output = pointer(pass->sides[1] +
                                      (gy_cu_address)((const unsigned char *)it->output - it->memory[1]));
}

static void end_pass(const struct rank *r, struct pass *pass)
{
    for (int side = 0; side < 2; side++)
        get(r, pass->trial.memory[side], pass->sides[side], trial_bytes(&pass->trial, side));
    CU(cu->stream_synchronize(r->stream));
    const char *wrong = trial_wrong(&pass->trial);
    if (wrong)
        rank_fail("%s", wrong);
    for (int side = 0; side < 2; side++)
        CU(cu->mem_free(pass->sides[side]));
    trial_free(&pass->trial);
}

static void test_launches(struct rank *r)
{
    enum { ROUNDS = 12 };
    uint64_t common = 5, own = 9 + (uint64_t)r->rank;
    for (int round = 0; round < ROUNDS; round++)
        for (enum trial_kind kind = TRIAL_ALL_REDUCE; kind < TRIAL_SEND; kind++) {
            struct pass pass;
            make_pass(r, &pass, kind, &common, &own);
            OK(r->comm, trial_call_on(&pass.placed));
            end_pass(r, &pass);
        }
    meet(r);
    CHECK(atomic_load(&copies) == 0);
    CHECK(r->ranks == 1 || !counts_launches(r) || atomic_load(&launches) > ROUNDS * 8);
}

/* ---- bits ---- */

static void reference(const struct rank *r, unsigned char *result, unsigned char inputs[][BITS * 8], gyre_dtype dtype,
                      gyre_op op, bool canonical)
{
    const void *sources[RANKS_MOST];
    for (int s = 0; s < r->ranks; s++)
        sources[s] = inputs[s];
    reference_reduce(result, sources, r->ranks, BITS, (int)dtype, (int)op, canonical);
}

static void try_bits(struct rank *r, gyre_dtype dtype, gyre_op op, bool canonical, bool premultiplied)
{
    static _Thread_local unsigned char inputs[RANKS_MOST][BITS * 8], wanted[BITS * 8], got[BITS * 8];
    const size_t bytes = BITS * gyre_dtype_size(dtype);
    uint64_t state = 77 + (uint64_t)dtype * 100 + (uint64_t)op, scalar[RANKS_MOST];
    gyre_op called = op;
    for (int s = 0; s < r->ranks; s++) {
        reference_fill(inputs[s], BITS, (int)dtype, &state);
        reference_fill(&scalar[s], 1, (int)dtype, &state);
    }
    if (premultiplied)
        OK(r->comm, gyre_op_create_premul_sum(r->comm, &scalar[r->rank], dtype, &called));
    put(r, r->input, inputs[r->rank], bytes);
    CU(cu->stream_synchronize(r->stream));
    for (int s = 0; s < r->ranks && premultiplied; s++)
        reference_multiply(inputs[s], inputs[s], &scalar[s], BITS, (int)dtype);
    OK(r->comm, gyre_all_reduce_on(r->comm, pointer(r->input), pointer(r->output), BITS, dtype, called, r->stream));
    get(r, got, r->output, bytes);
    CU(cu->stream_synchronize(r->stream));
    reference(r, wanted, inputs, dtype, op, canonical);
    if (memcmp(got, wanted, bytes) != 0)
        rank_fail("%s %s of %d ranks, canonical %d: the bits differ from the CPU's", gyre_dtype_name(dtype),
                  premultiplied ? "premul_sum" : gyre_op_name(op), r->ranks, (int)canonical);
}

static void try_all_bits(struct rank *r, bool canonical)
{
    for (int dtype = GYRE_INT8; dtype <= GYRE_BOOL; dtype++) {
        for (int op = GYRE_SUM; op < GYRE_PREMUL_SUM; op++) {
            const bool bitwise = op >= GYRE_BIT_AND && op <= GYRE_BIT_XOR;
            const bool is_float = dtype >= GYRE_FLOAT16 && dtype <= GYRE_FLOAT8_E5M2;
            if (!(bitwise && is_float) && !(dtype == GYRE_BOOL && op == GYRE_AVERAGE))
                try_bits(r, (gyre_dtype)dtype, (gyre_op)op, canonical, false);
        }
        try_bits(r, (gyre_dtype)dtype, GYRE_PREMUL_SUM, canonical, true);
    }
}

static void test_bits(struct rank *r)
{
    try_all_bits(r, false);
    gyre_comm *first = r->comm;
    OK(first, gyre_comm_duplicate(first, &r->comm));
    OK(r->comm, gyre_comm_set(r->comm, "order", "canonical"));
    OK(r->comm, gyre_cuda_attach(r->comm, device));
    try_all_bits(r, true);
    OK(r->comm, gyre_comm_destroy(r->comm));
    r->comm = first;
    meet(r);
#if !defined(GYRE_SANITIZED) /* those builds contain kernels of some types only */
    CHECK(atomic_load(&copies) == 0);
#endif
    CHECK(!counts_launches(r) || atomic_load(&launches) > 40);
}

/* ---- scalars ---- */

/* A call in flight keeps its scalars while later calls are made. */
static void test_scalars(struct rank *r)
{
    enum { CALLS = 20, ROUNDS = 4 };
    static _Thread_local float got[CALLS][16];
    const gy_cu_address results = on_device(sizeof(got));
    gyre_op ops[CALLS];
    for (int c = 0; c < CALLS; c++) {
        const float scalar = (float)(c * 3 + r->rank);
        OK(r->comm, gyre_op_create_premul_sum(r->comm, &scalar, GYRE_FLOAT32, &ops[c]));
    }
    put_ones(r, 1);
    for (int round = 0; round < ROUNDS; round++) {
        for (int c = 0; c < CALLS; c++)
            OK(r->comm, gyre_all_reduce_on(r->comm, pointer(r->input), pointer(results + (gy_cu_address)c * 64), 16,
                                           GYRE_FLOAT32, ops[c], r->stream));
        get(r, got, results, sizeof(got));
        CU(cu->stream_synchronize(r->stream));
        for (int c = 0; c < CALLS; c++)
            CHECK(got[c][0] == (float)(c * 3 * r->ranks + r->ranks * (r->ranks - 1) / 2));
    }
    meet(r);
    CHECK(atomic_load(&copies) == 0);
}

/* ---- one_thread ---- */

static struct rank all[RANKS_MOST];

static gyre_status gather_on(const struct rank *r)
{
    return gyre_all_gather_on(r->comm, pointer(r->input), pointer(r->output + COUNT * sizeof(float)), 16, GYRE_FLOAT32,
                              r->stream);
}

static gyre_status message_on(const struct rank *r)
{
    const gy_cu_address to = r->output + COUNT * sizeof(float);
    OK(r->comm, gyre_send_on(r->comm, pointer(r->input), 16, GYRE_FLOAT32, (r->rank + 1) % r->ranks, r->stream));
    return gyre_recv_on(r->comm, pointer(to), 16, GYRE_FLOAT32, (r->rank + r->ranks - 1) % r->ranks, r->stream);
}

/* Expects the operand of one rank in block `at` after the sum. */
static void expect_block(const struct rank *r, int at, float wanted)
{
    float got[16];
    get(r, got, r->output + (gy_cu_address)(COUNT + 16 * at) * sizeof(float), sizeof(got));
    CU(cu->stream_synchronize(r->stream));
    for (int i = 0; i < 16; i++)
        CHECK(got[i] == wanted);
}

static void run_group_of_one(int ranks, int round, gyre_status (*second)(const struct rank *r))
{
    const float sum = (float)(ranks * (ranks - 1) / 2 + ranks * round);
    const unsigned before = atomic_load(&launches);
    for (int r = 0; r < ranks; r++)
        put_ones(&all[r], (float)(r + round));
    OK(NULL, gyre_group_begin());
    for (int r = 0; r < ranks; r++)
        OK(all[r].comm, reduce_on(&all[r]));
    for (int r = ranks - 1; r >= 0; r--)
        OK(all[r].comm, second(&all[r]));
    OK(NULL, gyre_group_end());
    CHECK(atomic_load(&launches) == before + 2); /* one launch of the sums, and one of the moves */
    for (int r = 0; r < ranks; r++) {
        expect_sum(&all[r], sum);
        if (second == gather_on)
            expect_block(&all[r], ranks - 1, (float)(ranks - 1 + round));
        else
            expect_block(&all[r], 0, (float)((r + ranks - 1) % ranks + round));
    }
}

static void test_one_thread(struct rank *r)
{
    pthread_barrier_wait(&together);
    for (int round = 0; round < 10 && r->rank == 0; round++)
        run_group_of_one(r->ranks, round, round % 2 ? gather_on : message_on);
    pthread_barrier_wait(&together);
    CHECK(atomic_load(&copies) == 0);
}

/* ---- staged ---- */

static void add_floats(void *user, const void *left, const void *right, void *result, size_t count, gyre_dtype dtype)
{
    const float *a = left, *b = right;
    float *sum = result;
    (void)user, (void)dtype;
    for (size_t i = 0; i < count; i++)
        sum[i] = a[i] + b[i];
}

static void test_staged(struct rank *r)
{
    gyre_op op;
    const float sum = (float)(r->ranks * (r->ranks - 1) / 2);
    const gy_cu_address own = r->input;
    float *host = malloc(COUNT * sizeof(float));
    CHECK(host != NULL);
    put_ones(r, (float)r->rank);
    OK(r->comm, gyre_op_create(r->comm, add_floats, NULL, 1, &op));
    OK(r->comm, gyre_all_reduce_on(r->comm, pointer(r->input), pointer(r->output), COUNT, GYRE_FLOAT32, op, r->stream));
    expect_sum(r, sum);
    meet(r);
    CHECK(atomic_load(&launches) == 0 && atomic_load(&copies) > 0);
    meet(r);
    for (int i = 0; i < COUNT; i++)
        host[i] = (float)r->rank;
    if (r->rank == r->ranks - 1)
        r->input = (uintptr_t)host;
    OK(r->comm, reduce_on(r)); /* kernels cannot access one rank's operand */
    expect_sum(r, sum);
    meet(r);
    CHECK(atomic_load(&launches) == 0);
    meet(r);
    r->input = own;
    OK(r->comm, reduce_on(r));
    expect_sum(r, sum);
    meet(r);
    CHECK(!counts_launches(r) || atomic_load(&launches) == 1);
    free(host);
}

/* ---- Failures ---- */

static bool is_last(const struct rank *r)
{
    return r->rank == r->ranks - 1;
}

static void expect_message(const struct rank *r, const char *part)
{
    if (!strstr(gyre_last_error(r->comm), part))
        rank_fail("rank %d: the message does not contain \"%s\": %s", r->rank, part, gyre_last_error(r->comm));
}

static void expect_in_time(const struct rank *r)
{
    const int64_t late = rank_now_ns() - atomic_load(&failed_at);
    if (late > WITHIN_NS)
        rank_fail("the call of rank %d returned %d ms after the failure", r->rank, (int)(late / 1000000));
}

static void test_mismatch(struct rank *r)
{
    OK(r->comm, reduce_on(r));
    atomic_store(&failed_at, rank_now_ns());
    pthread_barrier_wait(&together);
    GIVES(GYRE_MISMATCH, r->comm,
          gyre_all_reduce_on(r->comm, pointer(r->input), pointer(r->output), is_last(r) ? COUNT : COUNT - 1,
                             GYRE_FLOAT32, GYRE_SUM, r->stream));
    expect_message(r, "ranks called different collectives");
    GIVES(GYRE_MISMATCH, r->comm, gyre_cuda_status(r->comm));
    GIVES(GYRE_MISMATCH, r->comm, reduce_on(r));
}

static void test_timeout(struct rank *r)
{
    char part[60];
    snprintf(part, sizeof(part), "rank %d did not arrive in all_reduce", r->ranks - 1);
    if (!is_last(r)) {
        GIVES(GYRE_PEER_LATE, r->comm, reduce_on(r));
        expect_message(r, part);
    }
    pthread_barrier_wait(&together);
    GIVES(GYRE_PEER_LATE, r->comm, reduce_on(r));
}

static void test_abort(struct rank *r)
{
    char part[40];
    snprintf(part, sizeof(part), "rank %d aborted", r->ranks - 1);
    pthread_barrier_wait(&together);
    if (is_last(r)) {
        usleep(50000);
        atomic_store(&failed_at, rank_now_ns());
        OK(r->comm, gyre_comm_abort(r->comm));
    } else {
        GIVES(GYRE_ABORTED, r->comm, reduce_on(r));
        expect_in_time(r);
        expect_message(r, part);
    }
    pthread_barrier_wait(&together);
    GIVES(GYRE_ABORTED, r->comm, reduce_on(r));
}

static void test_destroyed(struct rank *r)
{
    gyre_comm *first = r->comm;
    char part[60];
    snprintf(part, sizeof(part), "rank %d destroyed its communicator", r->ranks - 1);
    OK(first, gyre_comm_duplicate(first, &r->comm));
    OK(r->comm, gyre_cuda_attach(r->comm, device));
    put_ones(r, 1);
    OK(r->comm, reduce_on(r));
    pthread_barrier_wait(&together);
    if (is_last(r)) {
        usleep(50000);
        atomic_store(&failed_at, rank_now_ns());
    } else {
        GIVES(GYRE_PEER_LEFT, r->comm, reduce_on(r));
        expect_in_time(r);
        expect_message(r, part);
    }
    OK(r->comm, gyre_comm_destroy(r->comm));
    r->comm = first;
    expect_sum(r, (float)r->ranks); /* the call before the failure is complete */
    OK(r->comm, gyre_barrier(r->comm));
    OK(r->comm, reduce_on(r)); /* the world is still usable */
    expect_sum(r, (float)r->ranks);
}

static void test_launch_failure(struct rank *r)
{
    atomic_store(&fail_launch, 3);
    pthread_barrier_wait(&together);
    OK(r->comm, reduce_on(r));
    OK(r->comm, reduce_on(r));
    atomic_store(&failed_at, rank_now_ns());
    GIVES(GYRE_SYSTEM, r->comm, reduce_on(r));
    expect_in_time(r);
    expect_message(r, "cuLaunchKernel: CUDA_ERROR_ILLEGAL_ADDRESS");
    GIVES(GYRE_SYSTEM, r->comm, gyre_cuda_status(r->comm));
    GIVES(GYRE_SYSTEM, r->comm, reduce_on(r));
}

/* ---- Ranks ---- */

/* Runs the suite on a communicator that exists. */
static void run_suite(struct rank *r)
{
    CU(cu->context_push(context));
    CU(cu->stream_create(&r->stream, r->rank % 2 ? GY_CU_STREAM_NON_BLOCKING : 0));
    r->input = on_device(COUNT * sizeof(float));
    r->output = on_device((COUNT + 16 * RANKS_MOST) * sizeof(float));
    OK(r->comm, gyre_cuda_attach(r->comm, device));
    r->suite(r);
    if (!in_processes)
        pthread_barrier_wait(&together);
    OK(r->comm, gyre_comm_destroy(r->comm));
}

static void *run_rank(void *argument)
{
    struct rank *r = argument;
    gyre_config config = {.size = sizeof(config),
                          .rank = r->rank,
                          .world_size = r->ranks,
                          .address = r->address,
                          .secret = "a secret of ranks that are threads"};
    OK(NULL, gyre_comm_create(&config, &r->comm));
    run_suite(r);
    return NULL;
}

static void run_process(void (*suite)(struct rank *r))
{
    struct rank r = {.suite = suite};
    OK(NULL, gyre_comm_create(NULL, &r.comm));
    r.rank = gyre_comm_rank(r.comm);
    r.ranks = gyre_comm_size(r.comm);
    run_suite(&r);
}

static void run_ranks(int ranks, void (*suite)(struct rank *r))
{
    pthread_t threads[RANKS_MOST];
    char folder[] = "/tmp/gyre-cuda-threads-XXXXXX", address[64];
    CHECK(ranks > 0 && ranks <= RANKS_MOST && mkdtemp(folder));
    snprintf(address, sizeof(address), "file://%s/meet", folder);
    pthread_barrier_init(&together, NULL, (unsigned)ranks);
    for (int r = 0; r < ranks; r++) {
        all[r] = (struct rank){.rank = r, .ranks = ranks, .address = address, .suite = suite};
        CHECK(pthread_create(&threads[r], NULL, run_rank, &all[r]) == 0);
    }
    for (int r = 0; r < ranks; r++)
        CHECK(pthread_join(threads[r], NULL) == 0);
    rmdir(folder);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*suite)(struct rank *r);
    } suites[] = {{"launches", test_launches},     {"bits", test_bits},
                  {"one_thread", test_one_thread}, {"scalars", test_scalars},
                  {"staged", test_staged},         {"mismatch", test_mismatch},
                  {"timeout", test_timeout},       {"abort", test_abort},
                  {"destroyed", test_destroyed},   {"launch_failure", test_launch_failure}};
    alarm(100);
    CHECK(argc == 3);
    in_processes = strcmp(argv[2], "processes") == 0;
    open_driver();
    for (size_t i = 0; i < sizeof(suites) / sizeof(suites[0]); i++)
        if (strcmp(suites[i].name, argv[1]) == 0) {
            if (in_processes)
                run_process(suites[i].suite);
            else
                run_ranks(atoi(argv[2]), suites[i].suite);
            return 0;
        }
    rank_fail("no suite is called %s", argv[1]);
}
