/* One rank of the tests of operations, one suite per run (the argument):
 *   average     every type, all reducing collectives
 *   scaled      pre-multiplied sums with another scalar on every rank, every type
 *   own         user-defined operations, commutative and not: products of matrices prove the order of ranks
 *   crossed     two ranks that made the same operations in another order: a mismatch
 *   wrong       what is refused */
#include "algebra.h"
#include "exact.h"
#include "support/rank.h"
#include "trial.h"

static gyre_comm *comm;
static int rank, size;
static uint64_t own;

static const enum trial_kind reducing[] = {TRIAL_ALL_REDUCE, TRIAL_REDUCE, TRIAL_REDUCE_SCATTER, TRIAL_REDUCE_SCATTERV};
enum { REDUCING = sizeof reducing / sizeof *reducing };
static const size_t counts[] = {0, 1, 5, 300, 8193, 100000};
enum { COUNTS = sizeof counts / sizeof *counts };

static struct trial reduction(enum trial_kind kind, gyre_dtype dtype, gyre_op op, size_t count)
{
    struct trial it = {.kind = kind, .comm = comm, .rank = rank, .size = size, .dtype = dtype, .op = op};
    it.count = count;
    it.root = (int)(count % (size_t)size);
    it.in_place = trial_below(&own, 2);
    it.shift = (unsigned)trial_below(&own, 2);
    for (int r = 0; r < size; r++)
        it.counts[0][r] = count / (size_t)(r + 1);
    return it;
}

static void test_average(void)
{
    for (int dtype = 0; gyre_dtype_name((gyre_dtype)dtype); dtype++)
        for (int k = 0; k < REDUCING && gy_exact_has((gyre_dtype)dtype, GYRE_AVERAGE); k++)
            for (int c = 0; c < COUNTS; c++) {
                struct trial it = reduction(reducing[k], (gyre_dtype)dtype, GYRE_AVERAGE, counts[c]);
                trial_make(&it, &own);
                trial_fill(&it, (uint64_t)(c + 1));
                OK(comm, trial_call(&it));
                const char *wrong = trial_wrong(&it);
                if (wrong)
                    rank_fail("%s", wrong);
                trial_free(&it);
            }
}

/* ---- operations whose reference is here: element i of rank r's vector, and of the reduction ---- */

struct reference {
    gyre_dtype dtype;
    uint64_t (*give)(int rank, size_t i);
    uint64_t (*result)(size_t i);
};

static const struct reference *reference;

static uint64_t expected(const struct trial *it, int side, size_t i)
{
    const struct trial_block *block = side ? &it->out[0] : &it->in[0];
    return side ? reference->result(block->first + i) : reference->give(it->rank, block->first + i);
}

static void write_input(const struct trial *it)
{
    size_t element = gyre_dtype_size(it->dtype);
    for (int b = 0; b < it->ins; b++)
        for (size_t i = 0; i < it->in[b].count; i++) {
            uint64_t bits = reference->give(it->rank, it->in[b].first + i);
            unsigned char *base = it->memory[it->in_place] + it->shift;
            memcpy(base + (it->in[b].place + i) * element, &bits, element);
        }
}

static void check_output(const struct trial *it, const char *what)
{
    size_t element = gyre_dtype_size(it->dtype);
    for (size_t i = 0; it->outs > 0 && i < it->out[0].count; i++) {
        uint64_t bits = expected(it, 1, i), got = 0;
        memcpy(&got, it->memory[1] + it->shift + (it->out[0].place + i) * element, element);
        if (bits != got)
            rank_fail("%s, %s of %zu %s: element %zu is %llx instead of %llx", what, trial_name(it->kind), it->count,
                      gyre_dtype_name(it->dtype), i, (unsigned long long)got, (unsigned long long)bits);
    }
}

/* False: it is not supported here, and says so. */
static bool run(enum trial_kind kind, gyre_op op, size_t count, const char *what)
{
    struct trial it = reduction(kind, reference->dtype, op, count);
    gyre_request *request = NULL;
    trial_make(&it, &own);
    trial_fill(&it, 1); /* paints; what it writes is written over */
    write_input(&it);
    gyre_status status = trial_call(&it);
    if (status == GYRE_UNSUPPORTED) {
        CHECK(*gyre_last_error(comm));
        trial_free(&it);
        return false;
    }
    OK(comm, status);
    check_output(&it, what);
    OK(comm, trial_init(&it, &request));
    for (int round = 0; round < 2; round++) {
        write_input(&it);
        OK(comm, gyre_start(request));
        OK(comm, gyre_wait(&request));
        check_output(&it, what);
    }
    OK(comm, gyre_request_free(&request));
    trial_free(&it);
    return true;
}

/* ---- scaled ---- */

/* The bits of a small whole number; negative ones of integers only. */
static uint64_t bits_of(gyre_dtype dtype, int64_t value)
{
    static const struct {
        int exponent, mantissa;
    } formats[] = {[GYRE_FLOAT16] = {5, 10},  [GYRE_BFLOAT16] = {8, 7},    [GYRE_FLOAT32] = {8, 23},
                   [GYRE_FLOAT64] = {11, 52}, [GYRE_FLOAT8_E4M3] = {4, 3}, [GYRE_FLOAT8_E5M2] = {5, 2}};
    if (dtype == GYRE_BOOL)
        return value != 0;
    if (dtype <= GYRE_UINT64)
        return gyre_dtype_size(dtype) == 8 ? (uint64_t)value
                                           : (uint64_t)value & (((uint64_t)1 << 8 * gyre_dtype_size(dtype)) - 1);
    int mantissa = formats[dtype].mantissa, bias = (1 << (formats[dtype].exponent - 1)) - 1, power = 0;
    if (value == 0)
        return 0;
    while (value >> (power + 1))
        power++;
    return ((uint64_t)(bias + power) << mantissa) + (((uint64_t)value - ((uint64_t)1 << power)) << mantissa >> power);
}

static gyre_dtype scaled_type;

static int64_t whole_of(int r, size_t i)
{
    return (int64_t)((i * 7 + (size_t)r * 3 + i / 5) % 2);
}

static uint64_t give_scaled(int r, size_t i)
{
    return bits_of(scaled_type, whole_of(r, i));
}

static int64_t scalar_of(int r)
{
    return scaled_type == GYRE_INT64 || scaled_type == GYRE_INT8 ? -3 - r : r + 1;
}

static uint64_t result_scaled(size_t i)
{
    int64_t sum = 0;
    for (int r = 0; r < size; r++)
        sum += scalar_of(r) * whole_of(r, i);
    return bits_of(scaled_type, sum);
}

static void test_scaled(void)
{
    for (int dtype = 0; gyre_dtype_name((gyre_dtype)dtype); dtype++) {
        struct reference scaled = {(gyre_dtype)dtype, give_scaled, result_scaled};
        gyre_op op;
        scaled_type = (gyre_dtype)dtype;
        reference = &scaled;
        uint64_t scalar = bits_of(scaled_type, scalar_of(rank));
        OK(comm, gyre_op_create_premul_sum(comm, &scalar, scaled_type, &op));
        scalar = 0; /* it was copied */
        for (int k = 0; k < REDUCING; k++)
            for (int c = 0; c < COUNTS; c++)
                CHECK(run(reducing[k], op, counts[c], "a pre-multiplied sum"));
    }
}

/* ---- own ---- */

static int calls; /* its address is the operations' `user` */

static void matrices(void *user, const void *left, const void *right, void *result, size_t count, gyre_dtype dtype)
{
    CHECK(user == &calls && dtype == GYRE_UINT64);
    calls++;
    algebra_products(left, right, result, count);
}

static uint64_t give_matrix(int r, size_t i)
{
    uint64_t state = (uint64_t)r * 1000003 + i;
    return trial_random(&state);
}

static uint64_t result_matrix(size_t i)
{
    uint64_t product = give_matrix(0, i);
    for (int r = 1; r < size; r++)
        product = algebra_product(product, give_matrix(r, i));
    return product;
}

static void xors(void *user, const void *left, const void *right, void *result, size_t count, gyre_dtype dtype)
{
    CHECK(user == &calls && dtype == GYRE_UINT32);
    calls++;
    algebra_equivalences(left, right, result, count);
}

static uint64_t give_word(int r, size_t i)
{
    return (uint32_t)give_matrix(r, i);
}

static uint64_t result_word(size_t i)
{
    uint32_t x = (uint32_t)give_word(0, i);
    for (int r = 1; r < size; r++)
        x = algebra_equivalence(x, (uint32_t)give_word(r, i));
    return x;
}

static void test_own(void)
{
    static const struct reference matrix = {GYRE_UINT64, give_matrix, result_matrix};
    static const struct reference word = {GYRE_UINT32, give_word, result_word};
    gyre_op ordered, commutative;
    int unsupported = 0;
    OK(comm, gyre_op_create(comm, matrices, &calls, 0, &ordered));
    OK(comm, gyre_op_create(comm, xors, &calls, 1, &commutative));
    CHECK(ordered != commutative);
    for (int k = 0; k < REDUCING; k++)
        for (int c = 0; c < COUNTS; c++) {
            reference = &word;
            CHECK(run(reducing[k], commutative, counts[c], "a commutative operation"));
            reference = &matrix;
            unsupported += !run(reducing[k], ordered, counts[c], "a product of matrices");
        }
    CHECK(calls > 0 || size == 1);
    if (unsupported && rank == 0)
        fprintf(stderr, "note: %d calls with an operation that does not commute are unsupported here\n", unsupported);
}

/* ---- crossed, wrong ---- */

static void test_crossed(void)
{
    gyre_op first, second, sum;
    int32_t scalar = 2, in[100] = {0}, out[100];
    if (rank == 0) {
        OK(comm, gyre_op_create(comm, xors, &calls, 1, &sum));
        OK(comm, gyre_op_create_premul_sum(comm, &scalar, GYRE_INT32, &first));
    } else {
        OK(comm, gyre_op_create_premul_sum(comm, &scalar, GYRE_INT32, &first));
        OK(comm, gyre_op_create(comm, xors, &calls, 1, &second));
    }
    rank_gather(comm, GYRE_MISMATCH);
    gyre_status status = gyre_all_reduce(comm, in, out, 100, GYRE_INT32, first);
    if (status == GYRE_SUCCESS)
        status = gyre_barrier(comm);
    GIVES(GYRE_MISMATCH, comm, status);
}

static void test_wrong(void)
{
    gyre_op op = (gyre_op)5, last = op;
    float scalar = 2, in[10] = {0}, out[10];
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_op_create(NULL, xors, NULL, 1, &op));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_op_create(comm, NULL, NULL, 1, &op));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_op_create(comm, xors, NULL, 1, NULL));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_op_create_premul_sum(comm, NULL, GYRE_FLOAT32, &op));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_op_create_premul_sum(comm, &scalar, (gyre_dtype)99, &op));
    CHECK(op == (gyre_op)5);
    for (int i = 0; i < 128; i++) {
        OK(comm, gyre_op_create_premul_sum(comm, &scalar, GYRE_FLOAT32, &op));
        CHECK(op != last);
        last = op;
    }
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_op_create_premul_sum(comm, &scalar, GYRE_FLOAT32, &op));
    CHECK(strstr(gyre_last_error(comm), "128") && op == last);
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_all_reduce(comm, in, out, 10, GYRE_FLOAT64, op));
    CHECK(strstr(gyre_last_error(comm), "float32") && strstr(gyre_last_error(comm), "float64"));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_all_reduce(comm, in, out, 10, GYRE_FLOAT32, (gyre_op)((int)op + 1)));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_all_reduce(comm, in, out, 10, GYRE_FLOAT32, GYRE_PREMUL_SUM));
    CHECK(strstr(gyre_last_error(comm), "gyre_op_create_premul_sum"));
    OK(comm, gyre_all_reduce(comm, in, out, 10, GYRE_FLOAT32, op));
}

int main(int argc, char **argv)
{
    const char *suite = argc > 1 ? argv[1] : "";
    comm = rank_begin(90);
    rank = gyre_comm_rank(comm);
    size = gyre_comm_size(comm);
    own = 7 + (uint64_t)rank;
    if (strcmp(suite, "average") == 0)
        test_average();
    else if (strcmp(suite, "scaled") == 0)
        test_scaled();
    else if (strcmp(suite, "own") == 0)
        test_own();
    else if (strcmp(suite, "crossed") == 0)
        test_crossed();
    else
        test_wrong();
    if (strcmp(suite, "crossed") != 0)
        OK(comm, gyre_barrier(comm));
    OK(NULL, gyre_comm_destroy(comm));
    _exit(0);
}
