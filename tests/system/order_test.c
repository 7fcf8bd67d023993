/* One rank of the test of order: what real runs give is, bit for bit, the algorithm's expression tree
 * (tests/collectives/ tree.h) evaluated serially, on every rank and every time; whatever the delays, tiles, placement,
 * alignment and memory.
 *
 *   worlds       every algorithm forced in turn, and the library's own choice; each with large and with small tiles
 *   calls        every reducing and moving collective x type x operation x length, in some of the ways of `ways`
 *   delays       random, before calls and, by polling a started request, between the turns that move it
 *
 * Every rank makes all ranks' vectors itself, so that the comparison needs no communication. Additions of two numbers
 * commute, so bits show which sums were made and not on which side an operand stood: sides are the checker's to prove.
 *
 * Argument: "shm", "tcp", or "mixed": ranks of two or three hosts, of which some share memory; or "grouped": one host,
 * cut into groups by GYRE_HIERARCHY. Hierarchical algorithms are forced in the last two, and in the last one nothing
 * else. */
#include <math.h>
#include <sched.h>

#include "order_data.h"
#include "support/rank.h"
#include "tree.h"

#define LENGTH_MOST 20011
#define GUARD 64
#define RANKS_MOST 16

static const struct algorithm {
    const char *name;
    enum gy_algorithm algorithm;
    unsigned serves; /* bits of collectives */
} algorithms[] = {
#define ROW(constant, name, builder, serves, counts, flags) {name, constant, serves},
    GY_ALGORITHM_ROWS(ROW)
#undef ROW
};
static const char *const collectives[] = {"all_reduce", "reduce_scatter", "all_gather", "broadcast"};
enum { ALGORITHMS = sizeof algorithms / sizeof *algorithms, KINDS = sizeof collectives / sizeof *collectives };
/* Of the whole vector. 48 bytes travel inside a flag's line; small tiles: 4 KiB in shared memory, 8 KiB on links. */
static const size_t lengths[] = {1, 6, 7, 12, 13, 1025, 4099, LENGTH_MOST};
static const gyre_dtype dtypes[] = {GYRE_FLOAT32, GYRE_FLOAT64, GYRE_INT32};
static const gyre_op ops[] = {GYRE_SUM, GYRE_MIN, GYRE_MAX};

/* Where input and output lie. */
static const struct way {
    bool in_place, shared_input, shared_output;
    size_t shift;
} ways[] = {
    {false, false, false, 0}, {false, true, true, 0},  {true, false, false, 0}, {true, true, true, 0},
    {false, false, false, 1}, {false, true, true, 3},  {true, false, false, 5}, {true, true, true, 1},
    {false, true, false, 0},  {false, false, true, 0}, {false, true, false, 4}, {false, false, true, 2},
};
enum { WAYS = sizeof ways / sizeof *ways, MIXED_WAYS };

static gyre_comm *comm;
static int rank, size;
static uint64_t delays;                   /* state: other delays in every run */
static unsigned char *inputs[RANKS_MOST]; /* vectors of all ranks */
static unsigned char *expected;           /* my output */
static unsigned char *heap[2], *shared[2];
static struct gy_expression expression;
static int32_t trees[RANKS_MOST * RANKS_MOST]; /* per block */
static int groups[RANKS_MOST];

/* One call with one set of data. */
struct call {
    struct gy_schedule_shape shape;
    gyre_dtype dtype;
    gyre_op op;
    size_t total, count, element; /* elements of the vector, the argument; bytes of an element */
    size_t from, length;          /* my output's elements of the vector */
    size_t mine, given;           /* my input's elements of the vector */
    uint64_t seed;
};

/* Nothing, a yield, or a sleep of up to `most` microseconds. */
static void delay(unsigned most)
{
    uint64_t choice = order_mix(delays++, (uint64_t)rank);
    if (choice % 16 == 0)
        usleep((useconds_t)(choice >> 8) % most);
    else if (choice % 4 == 1)
        sched_yield();
}

static enum gy_algorithm chosen(const struct call *call)
{
    const char *name = gyre_comm_algorithm(comm, collectives[call->shape.collective], call->count, call->dtype);
    CHECK(name != NULL);
    for (size_t i = 0; i < ALGORITHMS; i++) {
        if (strcmp(algorithms[i].name, name) == 0)
            return algorithms[i].algorithm;
    }
    rank_fail("the algorithm %s is not one whose order is described", name);
}

static const char *name_of(enum gy_algorithm algorithm)
{
    for (size_t i = 0; i < ALGORITHMS; i++) {
        if (algorithms[i].algorithm == algorithm)
            return algorithms[i].name;
    }
    return "unknown";
}

static void plan_call(struct call *call, size_t length)
{
    bool scatters = call->shape.collective == GY_REDUCE_SCATTER, gathers = call->shape.collective == GY_ALL_GATHER;
    call->element = gyre_dtype_size(call->dtype);
    call->count = length;
    if (scatters || gathers)
        call->count = length / (size_t)size ? length / (size_t)size : 1;
    call->total = scatters || gathers ? call->count * (size_t)size : length;
    call->from = scatters ? (size_t)rank * call->count : 0;
    call->length = scatters ? call->count : call->total;
    call->mine = gathers ? (size_t)rank * call->count : 0;
    call->given = gathers ? call->count : call->total;
    call->shape.rank = rank;
    call->shape.size = size;
    call->shape.groups = groups;
    call->shape.root = (int)(call->seed % (uint64_t)size);
    call->shape.algorithm = chosen(call);
}

/* All vectors, the trees, and what my output must be. */
static void prepare(const struct call *call)
{
    expression.nodes = 0;
    for (int b = 0; b < gy_tree_blocks(&call->shape); b++) {
        trees[b] = gy_tree_build(&call->shape, b, 0, &expression);
        CHECK(trees[b] >= 0);
    }
    for (int r = 0; r < size; r++)
        order_fill(inputs[r], call->total, call->dtype, r, call->seed);
    for (size_t i = 0; i < call->length; i++) {
        size_t e = call->from + i;
        gy_expression_evaluate(&expression, trees[gy_tree_block(&call->shape, call->total, e)], e,
                               (const void *const *)inputs, call->dtype, call->op, expected + i * call->element);
    }
}

static gyre_status start(const struct call *it, const void *input, void *output, gyre_request **request_p)
{
    switch (it->shape.collective) {
    case GY_ALL_REDUCE: return gyre_all_reduce_start(comm, input, output, it->count, it->dtype, it->op, request_p);
    case GY_REDUCE_SCATTER:
        return gyre_reduce_scatter_start(comm, input, output, it->count, it->dtype, it->op, request_p);
    case GY_ALL_GATHER: return gyre_all_gather_start(comm, input, output, it->count, it->dtype, request_p);
    default: return gyre_broadcast_start(comm, input, output, it->count, it->dtype, it->shape.root, request_p);
    }
}

static gyre_status block(const struct call *it, const void *input, void *output)
{
    switch (it->shape.collective) {
    case GY_ALL_REDUCE: return gyre_all_reduce(comm, input, output, it->count, it->dtype, it->op);
    case GY_REDUCE_SCATTER: return gyre_reduce_scatter(comm, input, output, it->count, it->dtype, it->op);
    case GY_ALL_GATHER: return gyre_all_gather(comm, input, output, it->count, it->dtype);
    default: return gyre_broadcast(comm, input, output, it->count, it->dtype, it->shape.root);
    }
}

/* Blocking, or a request whose turns have delays between them. */
static void make_call(const struct call *it, const void *input, void *output, bool polled)
{
    gyre_request *request;
    delay(400);
    if (!polled) {
        OK(comm, block(it, input, output));
        return;
    }
    OK(comm, start(it, input, output, &request));
    gyre_status status;
    while ((status = gyre_test(&request)) == GYRE_IN_PROGRESS)
        delay(60);
    OK(comm, status);
}

static void expect_bytes(const struct call *call, const unsigned char *got, const unsigned char *want, size_t bytes,
                         const char *what, size_t way)
{
    if (memcmp(got, want, bytes) == 0)
        return;
    size_t at = 0;
    while (got[at] == want[at])
        at++;
    rank_fail("%s of %s, %s %s, %zu elements, root %d: %s differs at byte %zu of %zu (is %02x, should be %02x); in "
              "place %d, shared %d %d, shift %zu",
              name_of(call->shape.algorithm), collectives[call->shape.collective], gyre_dtype_name(call->dtype),
              gyre_op_name(call->op), call->total, call->shape.root, what, at, bytes, got[at], want[at],
              ways[way].in_place, ways[way].shared_input, ways[way].shared_output, ways[way].shift);
}

/* Nothing around `bytes` at `memory` was written. */
static void expect_guards(const struct call *call, const unsigned char *memory, size_t bytes, size_t way)
{
    static const unsigned char guard[GUARD] = {[0 ... GUARD - 1] = 0xa5};
    expect_bytes(call, memory - GUARD, guard, GUARD, "what lies before a buffer", way);
    expect_bytes(call, memory + bytes, guard, GUARD, "what lies behind a buffer", way);
}

static void run_in_place(const struct call *call, size_t way, bool polled)
{
    size_t bytes = call->total * call->element, from = call->from * call->element, mine = call->mine * call->element;
    unsigned char *memory = (ways[way].shared_output ? shared : heap)[1] + GUARD + ways[way].shift;
    memset(memory - GUARD, 0xa5, bytes + 2 * (size_t)GUARD);
    memcpy(memory + mine, inputs[rank] + mine, call->given * call->element);
    make_call(call, memory + mine, memory + from, polled);
    expect_guards(call, memory, bytes, way);
    expect_bytes(call, memory + from, expected, call->length * call->element, "the output", way);
    size_t behind = from + call->length * call->element;
    expect_bytes(call, memory, inputs[rank], from, "the input before the output", way);
    expect_bytes(call, memory + behind, inputs[rank] + behind, bytes - behind, "the input behind the output", way);
}

static void run_out_of_place(const struct call *call, size_t way, bool polled)
{
    size_t given = call->given * call->element, length = call->length * call->element;
    unsigned char *input = (ways[way].shared_input ? shared : heap)[0] + GUARD + ways[way].shift;
    unsigned char *output = (ways[way].shared_output ? shared : heap)[1] + GUARD + ways[way].shift;
    const unsigned char *source = inputs[rank] + call->mine * call->element;
    memset(input - GUARD, 0xa5, given + 2 * (size_t)GUARD);
    memset(output - GUARD, 0xa5, length + 2 * (size_t)GUARD);
    memcpy(input, source, given);
    make_call(call, input, output, polled);
    expect_guards(call, input, given, way);
    expect_guards(call, output, length, way);
    expect_bytes(call, output, expected, length, "the output", way);
    expect_bytes(call, input, source, given, "the input", way);
}

/* All ranks take the same way, or (the last) each its own. */
static void run_way(const struct call *call, size_t way, bool polled)
{
    if (way == WAYS)
        way = order_mix(call->seed, (uint64_t)rank) % WAYS;
    if (ways[way].in_place)
        run_in_place(call, way, polled);
    else
        run_out_of_place(call, way, polled);
}

static void run_collective(enum gy_collective collective, const struct algorithm *forced, uint64_t *seed)
{
    bool reduces = collective == GY_ALL_REDUCE || collective == GY_REDUCE_SCATTER;
    uint64_t runs = size > 4 ? 1 : 2; /* of each call; the next call goes on with the next way */
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (size_t o = 0; o < (reduces ? sizeof ops / sizeof *ops : 1); o++)
            for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
                struct call call = {.shape.collective = collective, .dtype = dtypes[d], .op = ops[o]};
                call.seed = ++*seed;
                plan_call(&call, lengths[l]);
                if (forced && (forced->serves & GY_SERVES(collective)) && call.shape.algorithm != forced->algorithm)
                    rank_fail("%s was forced for %s, and not used", forced->name, collectives[collective]);
                prepare(&call);
                for (uint64_t run = 0; run < runs; run++)
                    run_way(&call, (runs * *seed + run) % MIXED_WAYS, order_mix(*seed, run) % 2);
            }
}

/* A world of its own with `forced` (or NULL) for every collective that it serves. */
static void run_world(const struct algorithm *forced, bool small_tiles, uint64_t *seed)
{
    char setting[256] = "";
    for (int c = 0; forced && c < KINDS; c++) {
        if (forced->serves & GY_SERVES(c))
            snprintf(setting + strlen(setting), sizeof setting - strlen(setting), "%s%s:%s", *setting ? "," : "",
                     collectives[c], forced->name);
    }
    setenv("GYRE_ALGORITHM", setting, 1);
    setenv("GYRE_SHM_SLOT", small_tiles ? "4096" : "", 1);
    setenv("GYRE_TCP_TILE", small_tiles ? "8192" : "", 1);
    comm = rank_begin(100);
    for (int i = 0; i < 2; i++) {
        void *memory;
        OK(comm, gyre_mem_alloc(comm, LENGTH_MOST * sizeof(double) + 4 * (size_t)GUARD, &memory));
        shared[i] = memory;
    }
    for (int c = 0; c < KINDS; c++)
        run_collective((enum gy_collective)c, forced, seed);
    OK(comm, gyre_barrier(comm)); /* no rank is still inside a call when the first says that it leaves */
    for (int i = 0; i < 2; i++)
        OK(comm, gyre_mem_free(comm, shared[i]));
    OK(NULL, gyre_comm_destroy(comm));
}

/* The data must be able to show another order: of three or more numbers, sums from the left and from the right often
 * differ, and every kind of result occurs. */
static void prove_data(void)
{
    enum { COUNT = 1000 };
    size_t differ = 0, nans = 0, infinities = 0, denormals = 0, zeros = 0;
    float x[3][COUNT];
    for (int r = 0; r < 3; r++)
        order_fill(x[r], COUNT, GYRE_FLOAT32, r, 1);
    for (size_t i = 0; i < COUNT; i++) {
        volatile float left = x[0][i] + x[1][i], right = x[1][i] + x[2][i];
        float sum = left + x[2][i];
        differ += sum != x[0][i] + right && !isnan(sum);
        nans += isnan(sum) != 0;
        infinities += isinf(sum) != 0;
        denormals += fpclassify(sum) == FP_SUBNORMAL;
        zeros += x[0][i] == 0 && signbit(x[0][i]);
    }
    if (differ < COUNT / 10 || nans < 5 || infinities < 5 || denormals < 5 || zeros < 5)
        rank_fail("the data show too little: of %d sums %zu differ; %zu NaNs, %zu infinities, %zu denormals, %zu zeros",
                  COUNT, differ, nans, infinities, denormals, zeros);
}

int main(int argc, char **argv)
{
    const char *where = argc == 2 ? argv[1] : "";
    bool mixed = strcmp(where, "mixed") == 0, grouped = strcmp(where, "grouped") == 0;
    CHECK(mixed || grouped || strcmp(where, "shm") == 0 || strcmp(where, "tcp") == 0);
    rank = atoi(getenv("RANK"));
    size = atoi(getenv("WORLD_SIZE"));
    CHECK(size <= RANKS_MOST);
    delays = (uint64_t)rank_now_ns();
    for (int r = 0; r < size; r++)
        groups[r] = grouped ? r / 3 * 2 + r % 3 / 2 : mixed ? r % (size > 4 ? 3 : 2) : 0;
    if (mixed) {
        char host[32];
        snprintf(host, sizeof host, "order test %d", groups[rank]);
        setenv("GYRE_HOST_ID", host, 1);
    } else if (grouped) {
        setenv("GYRE_HIERARCHY", "2,1", 1);
    } else {
        setenv("GYRE_TRANSPORT", where, 1);
    }
    prove_data();
    for (int i = 0; i < 2; i++)
        CHECK((heap[i] = malloc(LENGTH_MOST * sizeof(double) + 4 * (size_t)GUARD)) != NULL);
    for (int r = 0; r < size; r++)
        CHECK((inputs[r] = malloc(LENGTH_MOST * sizeof(double))) != NULL);
    CHECK((expected = malloc(LENGTH_MOST * sizeof(double))) != NULL);
    uint64_t seed = 0;
    for (int small_tiles = 0; small_tiles < 2; small_tiles++) {
        run_world(NULL, small_tiles, &seed);
        for (size_t a = 0; a < ALGORITHMS; a++) {
            const struct algorithm *it = &algorithms[a];
            bool tried = gy_is_hierarchical(it->algorithm)
                             ? mixed || grouped
                             : !grouped && (!gy_is_over_shm(it->algorithm) || strcmp(where, "shm") == 0);
            if (tried && it->serves & (GY_SERVES(KINDS) - 1))
                run_world(it, small_tiles, &seed);
        }
    }
    _exit(0);
}
