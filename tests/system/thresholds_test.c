/* One rank of a test of every collective at sizes around every threshold at which gyre changes its algorithm, path or
 * tiling: one element below, at, and one above. Exact data, every bit of the result compared; heap and gyre_mem_alloc
 * memory, in place and not. The argument is the largest vector in bytes (default 1 MiB). */
#include "collective.h"
#include "exact.h"
#include "support/rank.h"

static const size_t thresholds[] = {64,        112,       256,      512,      1 << 10,  2 << 10,  4 << 10,
                                    8 << 10,   12 << 10,  16 << 10, 32 << 10, 64 << 10, 96 << 10, 128 << 10,
                                    256 << 10, 512 << 10, 1 << 20,  2 << 20,  4 << 20};
static const gyre_dtype types[] = {GYRE_FLOAT32, GYRE_INT8, GYRE_BFLOAT16};
enum { THRESHOLDS = sizeof thresholds / sizeof *thresholds, TYPES = sizeof types / sizeof *types, PLACES = 4 };

static gyre_comm *comm;
static unsigned char *memory[2][2]; /* heap or own; input, output */
static size_t most = 1 << 20;
static uint64_t iteration;

/* `count` elements a rank, or a rank's block; placements take turns where the vector is long. */
static void check(struct gy_case *it, size_t count)
{
    if (gy_exact_ranks(it->dtype, it->op) < it->size)
        return;
    size_t bytes = count * gyre_dtype_size(it->dtype) * (gy_kind_is_blocked(it->kind) ? (size_t)it->size : 1);
    if (bytes > most)
        return;
    for (int place = 0; place < PLACES; place++) {
        iteration++;
        if (bytes > 64 << 10 && iteration % PLACES != (uint64_t)place)
            continue;
        it->in_place = place & 1;
        it->input = memory[place >> 1][0];
        it->output = memory[place >> 1][1];
        it->root = (int)(iteration % (uint64_t)it->size);
        it->count = count;
        it->bytes = bytes;
        gy_case_fill(it, iteration);
        OK(comm, gy_case_call(it));
        size_t wrong = gy_case_wrong(it, iteration);
        if (wrong)
            rank_fail("%s of %zu %s: %zu elements wrong, in place %d, own memory %d, root %d", gy_kind_name(it->kind),
                      count, gyre_dtype_name(it->dtype), wrong, it->in_place, place >> 1, it->root);
    }
}

/* The thresholds are of a vector, and of a block as long as a rank's share of one. */
static void check_around(struct gy_case *it, size_t bytes)
{
    size_t at = bytes / gyre_dtype_size(it->dtype), shared = at / (size_t)it->size;
    for (size_t count = at - 1; count <= at + 1; count++)
        check(it, count);
    for (size_t count = shared; shared > 1 && gy_kind_is_blocked(it->kind) && count <= shared + 1; count++)
        check(it, count);
}

int main(int argc, char **argv)
{
    comm = rank_begin(240);
    if (argc > 1)
        most = (size_t)strtoull(argv[1], NULL, 10);
    for (int i = 0; i < 2; i++) {
        void *own;
        memory[0][i] = malloc(most);
        CHECK(memory[0][i] != NULL);
        OK(comm, gyre_mem_alloc(comm, most, &own));
        memory[1][i] = own;
    }
    struct gy_case it = {.comm = comm, .rank = gyre_comm_rank(comm), .size = gyre_comm_size(comm), .op = GYRE_SUM};
    for (int kind = 0; kind < GY_KINDS; kind++) {
        it.kind = (enum gy_kind)kind;
        for (int t = 0; t < THRESHOLDS && kind != GY_KIND_BARRIER; t++) {
            for (int d = 0; d < TYPES; d++) {
                it.dtype = types[d];
                check_around(&it, thresholds[t]);
            }
        }
        OK(comm, gyre_barrier(comm));
    }
    for (int i = 0; i < 2; i++) {
        free(memory[0][i]);
        OK(comm, gyre_mem_free(comm, memory[1][i]));
    }
    OK(NULL, gyre_comm_destroy(comm));
    _exit(0);
}
