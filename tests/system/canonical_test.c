/* Canonical order in real runs: the bits of every reduction are those of one tree over the ranks, evaluated serially,
 * whatever transport, algorithm, count, root and tile size. Runs over shm, tcp and hosts that mix both all compare with
 * the same serial tree, so that they are equal to each other.
 *
 * reduce_scatterv: counts of zero and of nearly everything; in place and not.
 *
 * Narrow floats: the tree in float32 on the widened operands, rounded once. Operations of the user's: one that depends
 * on the brackets in canonical order; and without canonical order one that depends on the order of operands alone. */
#include "core/dtype.h"
#include "expression.h"
#include "order_data.h"
#include "support/rank.h"
#include "tree.h"

enum { RANKS_MOST = 9, LENGTH_MOST = 30011, BYTES_MOST = LENGTH_MOST * 8 };

static const size_t lengths[] = {1, 5, 12, 13, 1027, 8209, LENGTH_MOST};
static const gyre_dtype dtypes[] = {GYRE_FLOAT32,  GYRE_FLOAT64,     GYRE_INT32,      GYRE_FLOAT16,
                                    GYRE_BFLOAT16, GYRE_FLOAT8_E4M3, GYRE_FLOAT8_E5M2};
static const gyre_op ops[] = {GYRE_SUM, GYRE_MIN, GYRE_MAX, GYRE_AVERAGE};
enum {
    LENGTHS = sizeof lengths / sizeof *lengths,
    DTYPES = sizeof dtypes / sizeof *dtypes,
    OPS = sizeof ops / sizeof *ops
};

static gyre_comm *comm;
static int rank, size;
static unsigned char *inputs[RANKS_MOST], *output;
static float *wide[RANKS_MOST];
static struct gy_expression expression;
static int32_t tree;

static void plant_tree(void)
{
    const struct gy_schedule_shape shape = {.collective = GY_ALL_REDUCE, .algorithm = GY_CANONICAL, .size = size};
    tree = gy_tree_build(&shape, 0, 0, &expression);
    CHECK(tree >= 0);
}

/* Every pattern of bits of the narrow types; for the others what shows the order. */
static void fill(gyre_dtype dtype, size_t total, uint64_t seed)
{
    for (int r = 0; r < size; r++) {
        if (!gy_dtype_narrow(dtype)) {
            order_fill(inputs[r], total, dtype, r, seed);
            continue;
        }
        for (size_t i = 0; i < total * gyre_dtype_size(dtype); i++)
            inputs[r][i] = (unsigned char)order_mix(seed * 16 + (uint64_t)r, i);
        gy_widen(wide[r], inputs[r], total, dtype);
    }
}

static void serial(gyre_dtype dtype, gyre_op op, size_t element, void *result_p)
{
    gyre_op inner = op == GYRE_AVERAGE ? GYRE_SUM : op;
    uint32_t saved = gy_fp_enter();
    if (size == 1) {
        size_t bytes = gyre_dtype_size(dtype);
        memcpy(result_p, inputs[0] + element * bytes, bytes);
    } else if (gy_dtype_narrow(dtype)) {
        float value;
        gy_expression_evaluate(&expression, tree, element, (const void *const *)wide, GYRE_FLOAT32, inner, &value);
        gy_narrow(result_p, &value, 1, dtype);
    } else {
        gy_expression_evaluate(&expression, tree, element, (const void *const *)inputs, dtype, inner, result_p);
    }
    if (op == GYRE_AVERAGE)
        gy_reduce_divide(result_p, result_p, 1, dtype, size);
    gy_fp_leave(saved);
}

/* `count` elements of the output, the vector's from `from` on. */
static void expect(const char *what, gyre_dtype dtype, gyre_op op, size_t from, size_t count)
{
    size_t bytes = gyre_dtype_size(dtype);
    for (size_t i = 0; i < count; i++) {
        unsigned char wanted[8];
        serial(dtype, op, from + i, wanted);
        if (memcmp(wanted, output + i * bytes, bytes) != 0)
            rank_fail("%s by %s of %d ranks, %s %s, %zu elements: element %zu is not the tree's", what,
                      gyre_comm_algorithm(comm, what, count, dtype), size, gyre_dtype_name(dtype), gyre_op_name(op),
                      count, i);
    }
}

/* Cuts the vector into a block per rank: some empty, some long. Returns where this rank's begins. */
static size_t cut(size_t length, uint64_t seed, size_t *counts)
{
    size_t before = 0, left = length;
    for (int r = 0; r < size; r++) {
        uint64_t dice = order_mix(seed, (uint64_t)r);
        counts[r] = r + 1 == size ? left : dice % 3 == 0 ? 0 : dice / 3 % (left + 1);
        left -= counts[r];
        before += r < rank ? counts[r] : 0;
    }
    return before;
}

static void run_counts(gyre_dtype dtype, gyre_op op, size_t length, uint64_t seed)
{
    size_t counts[RANKS_MOST], from = cut(length, seed, counts), bytes = gyre_dtype_size(dtype);
    if (seed % 4 < 2) {
        OK(comm, gyre_reduce_scatterv(comm, inputs[rank], output, counts, dtype, op));
    } else {
        memcpy(output, inputs[rank], length * bytes);
        OK(comm, gyre_reduce_scatterv(comm, output, output + from * bytes, counts, dtype, op));
        memmove(output, output + from * bytes, counts[rank] * bytes);
    }
    expect("reduce_scatter", dtype, op, from, counts[rank]);
}

static void run(gyre_dtype dtype, gyre_op op, size_t length, uint64_t seed)
{
    size_t bytes = gyre_dtype_size(dtype), count = length / (size_t)size + (length < (size_t)size);
    size_t total = count * (size_t)size > length ? count * (size_t)size : length;
    int root = (int)(seed % (uint64_t)size);
    bool in_place = seed % 2 != 0;
    fill(dtype, total, seed);
    const void *input = in_place ? output : inputs[rank];
    memcpy(output, inputs[rank], length * bytes);
    OK(comm, gyre_all_reduce(comm, input, output, length, dtype, op));
    expect("all_reduce", dtype, op, 0, length);
    memcpy(output, inputs[rank], length * bytes);
    OK(comm, gyre_reduce(comm, input, output, length, dtype, op, root));
    if (rank == root)
        expect("reduce", dtype, op, 0, length);
    OK(comm, gyre_reduce_scatter(comm, inputs[rank], output, count, dtype, op));
    expect("reduce_scatter", dtype, op, (size_t)rank * count, count);
    run_counts(dtype, op, length, seed);
}

/* Depends on brackets and order of operands. */
static void mingle(void *user, const void *left, const void *right, void *result, size_t count, gyre_dtype dtype)
{
    (void)user, (void)dtype;
    for (size_t i = 0; i < count; i++) {
        uint64_t a, b;
        memcpy(&a, (const char *)left + 8 * i, 8);
        memcpy(&b, (const char *)right + 8 * i, 8);
        a = order_mix(a, b);
        memcpy((char *)result + 8 * i, &a, 8);
    }
}

/* x -> a·x + b, one after the other, modulo 2^32: associative, and does not commute. */
static void compose(void *user, const void *left, const void *right, void *result, size_t count, gyre_dtype dtype)
{
    (void)user, (void)dtype;
    for (size_t i = 0; i < count; i++) {
        uint32_t f[2], g[2], h[2];
        memcpy(f, (const char *)left + 8 * i, 8);
        memcpy(g, (const char *)right + 8 * i, 8);
        h[0] = f[0] * g[0];
        h[1] = f[0] * g[1] + f[1];
        memcpy((char *)result + 8 * i, h, 8);
    }
}

static uint64_t serial_made(gyre_reduce_func func, int32_t node, size_t element)
{
    const struct gy_expression_node *at = &expression.node[node];
    uint64_t left, right;
    if (at->left < 0) {
        memcpy(&left, inputs[at->rank] + 8 * element, 8);
        return left;
    }
    left = serial_made(func, at->left, element);
    right = serial_made(func, at->right, element);
    func(NULL, &left, &right, &left, 1, GYRE_UINT64);
    return left;
}

static void expect_made(gyre_reduce_func func, const char *what, size_t from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t wanted = serial_made(func, tree, from + i);
        if (memcmp(output + 8 * i, &wanted, 8) != 0)
            rank_fail("an operation of one's own, %s, %zu elements, %d ranks: wrong order", what, count, size);
    }
}

static void run_made(gyre_reduce_func func, int commutative, uint64_t seed)
{
    gyre_op op;
    size_t counts[RANKS_MOST];
    OK(comm, gyre_op_create(comm, func, NULL, commutative, &op));
    for (size_t l = 0; l < LENGTHS; l++) {
        size_t length = lengths[l], count = length / (size_t)size + (length < (size_t)size), all = count * (size_t)size;
        for (int r = 0; r < size; r++)
            for (size_t i = 0; i < (all > length ? all : length); i++) {
                uint64_t value = order_mix(order_mix(seed + l, (uint64_t)r), i);
                memcpy(inputs[r] + 8 * i, &value, 8);
            }
        OK(comm, gyre_all_reduce(comm, inputs[rank], output, length, GYRE_UINT64, op));
        expect_made(func, "all_reduce", 0, length);
        OK(comm, gyre_reduce_scatter(comm, inputs[rank], output, count, GYRE_UINT64, op));
        expect_made(func, "reduce_scatter", (size_t)rank * count, count);
        size_t from = cut(length, seed + l, counts);
        OK(comm, gyre_reduce_scatterv(comm, inputs[rank], output, counts, GYRE_UINT64, op));
        expect_made(func, "reduce_scatterv", from, counts[rank]);
        int root = (int)(l % (size_t)size);
        OK(comm, gyre_reduce(comm, inputs[rank], output, length, GYRE_UINT64, op, root));
        expect_made(func, "reduce", 0, rank == root ? length : 0);
    }
}

static void begin(const char *order, const char *algorithm, bool small_tiles)
{
    setenv("GYRE_ORDER", order, 1);
    setenv("GYRE_ALGORITHM", algorithm, 1);
    setenv("GYRE_SHM_SLOT", small_tiles ? "4096" : "", 1);
    setenv("GYRE_TCP_TILE", small_tiles ? "8192" : "", 1);
    comm = rank_begin(200);
}

static void end(void)
{
    OK(comm, gyre_barrier(comm));
    OK(NULL, gyre_comm_destroy(comm));
}

int main(int argc, char **argv)
{
    static const char *const links[] = {
        "", "all_reduce:canonical,reduce:canonical,reduce_scatter:canonical",
        "all_reduce:recursive_doubling,reduce:binomial",
        "all_reduce:direct_one_shot,reduce:direct_one_shot,reduce_scatter:direct_two_shot",
        "all_reduce:direct_two_shot,reduce:direct_two_shot"};
    const char *where = argc == 2 ? argv[1] : "";
    rank = atoi(getenv("RANK"));
    size = atoi(getenv("WORLD_SIZE"));
    CHECK(size <= RANKS_MOST);
    bool mixed = strcmp(where, "mixed") == 0, shm = strcmp(where, "shm") == 0;
    char host[32];
    snprintf(host, sizeof host, "canonical %d", rank % (size > 4 ? 3 : 2));
    setenv(mixed ? "GYRE_HOST_ID" : "GYRE_TRANSPORT", mixed ? host : where, 1);
    CHECK((output = malloc(BYTES_MOST + RANKS_MOST * 8)) != NULL);
    for (int r = 0; r < size; r++) {
        CHECK((inputs[r] = malloc(BYTES_MOST + RANKS_MOST * 8)) != NULL);
        CHECK((wide[r] = malloc(BYTES_MOST + RANKS_MOST * 8)) != NULL);
    }
    plant_tree();
    uint64_t seed = 0;
    for (size_t a = 0; a < (size == 1 ? 1 : shm ? 5 : 3); a++) {
        begin("canonical", links[a], a % 2 != 0);
        for (size_t d = 0; d < DTYPES; d++)
            for (size_t l = 0; l < LENGTHS; l++, seed++)
                run(dtypes[d], ops[(seed + l + d) % OPS], lengths[l], seed);
        run_made(mingle, 1, 7);
        end();
    }
    begin("shape", "", false);
    run_made(compose, 0, 9);
    end();
    begin("canonical", "all_reduce:ring", false);
    if (size > 1)
        GIVES(GYRE_UNSUPPORTED, comm, gyre_all_reduce(comm, inputs[rank], output, 5, GYRE_FLOAT32, GYRE_SUM));
    end();
    _exit(0);
}
