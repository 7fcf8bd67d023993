/* One rank of the test of operands that others read in place: every collective, each rank's input and output in memory
 * of gyre or of the heap as its own dice fall, in place or not, late or not, away in the middle or not; and what a rank
 * gets back is overwritten at once (the result is put aside first), which a reader that is still there would show. */
#include "collective.h"
#include "support/rank.h"

#define BYTES (3u << 20)
#define ROUNDS 120
#define MANY 20 /* under way at once: more than a rank shows its peers */
#define EACH 12288
#define STRAIGHT 80 /* calls, most of them with all operands in memory of gyre */

static unsigned char *memory[2][2]; /* [of gyre][input, output] */
static unsigned char *aside;

/* Many at once, started one by one or in a group, in memory of gyre on some ranks. */
static void many(gyre_comm *comm, int rank, int size, bool grouped)
{
    float *input = (float *)(void *)memory[rank % 2][0], *output = (float *)(void *)memory[rank % 3 > 0][1];
    gyre_request *requests[MANY];
    for (size_t i = 0; i < (size_t)MANY * EACH; i++) {
        input[i] = (float)(rank + 1) * (float)(i / EACH + i % 7);
        output[i] = -1;
    }
    if (grouped)
        OK(comm, gyre_group_begin());
    for (size_t i = 0; i < MANY; i++)
        OK(comm, grouped ? gyre_all_reduce(comm, input + i * EACH, output + i * EACH, EACH, GYRE_FLOAT32, GYRE_SUM)
                         : gyre_all_reduce_start(comm, input + i * EACH, output + i * EACH, EACH, GYRE_FLOAT32,
                                                 GYRE_SUM, &requests[i]));
    OK(comm, grouped ? gyre_group_end() : gyre_wait_all(requests, MANY));
    for (size_t i = 0; i < (size_t)MANY * EACH; i++)
        if (output[i] != (float)(size * (size + 1) / 2) * (float)(i / EACH + i % 7))
            rank_fail("many at once: element %zu of operation %zu is %g", i % EACH, i / EACH, (double)output[i]);
}

/* Calls of all_reduce that find all operands in memory of gyre, or, now and then, not on some rank, and their peers
 * there or not: what is done in one go (collectives/call/shm_blocking.c), what becomes a request on the way, and both
 * beside ranks that did not block. What others may still write or read is overwritten as soon as a rank has it back. */
static void straight(gyre_comm *comm, int rank, int size)
{
    unsigned common = 19, own = (unsigned)rank * 31 + 3;
    for (int round = 1; round <= STRAIGHT; round++) {
        size_t count = 8192 + (size_t)rand_r(&common) % (rand_r(&common) % 4 ? 24576 : 250000);
        bool in_place = rand_r(&common) % 3 == 0, average = rand_r(&common) % 4 == 0;
        int64_t *input = (int64_t *)(void *)memory[rand_r(&own) % 8 > 0][0];
        int64_t *output = in_place ? input : (int64_t *)(void *)memory[rand_r(&own) % 8 > 0][1];
        for (size_t i = 0; i < count; i++)
            input[i] = (int64_t)size * ((rank + 1) * round + (int64_t)(i % 1009));
        if (rand_r(&own) % 4 == 0)
            usleep((unsigned)rand_r(&own) % 500);
        gyre_op op = average ? GYRE_AVERAGE : GYRE_SUM;
        if (rand_r(&own) % 6) {
            OK(comm, gyre_all_reduce(comm, input, output, count, GYRE_INT64, op));
        } else {
            gyre_request *request;
            OK(comm, gyre_all_reduce_start(comm, input, output, count, GYRE_INT64, op, &request));
            OK(comm, gyre_wait(&request));
        }
        memcpy(aside, output, count * sizeof *output);
        memset(input, 0x33, count * sizeof *input);
        memset(output, 0x44, count * sizeof *output);
        for (size_t i = 0; i < count; i++) {
            int64_t sum = size * (size * (size + 1) / 2 * round + size * (int64_t)(i % 1009)), found;
            memcpy(&found, aside + i * sizeof found, sizeof found);
            if (found != (average ? sum / size : sum))
                rank_fail("straight, round %d: element %zu of %zu is %lld, in place %d, average %d", round, i, count,
                          (long long)found, in_place, average);
        }
    }
}

int main(void)
{
    gyre_comm *comm = rank_begin(100);
    int rank = gyre_comm_rank(comm), size = gyre_comm_size(comm);
    unsigned common = 7, own = (unsigned)rank * 77 + 5;
    for (int i = 0; i < 2; i++) {
        void *shared;
        OK(comm, gyre_mem_alloc(comm, BYTES, &shared));
        memory[1][i] = shared;
        memory[0][i] = malloc(BYTES);
        CHECK(memory[0][i] != NULL);
    }
    aside = malloc(BYTES);
    CHECK(aside != NULL);
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        struct gy_case it = {.kind = (enum gy_kind)(rand_r(&common) % GY_KINDS),
                             .comm = comm,
                             .rank = rank,
                             .size = size,
                             .root = rand_r(&common) % size,
                             .dtype = rand_r(&common) % 2 ? GYRE_FLOAT32 : GYRE_FLOAT64,
                             .op = GYRE_SUM};
        gy_case_size(&it, (size_t)rand_r(&common) % BYTES);
        bool alike = rand_r(&common) % 2; /* else a rank in place meets others that are not */
        it.in_place = rand_r(alike ? &common : &own) % 3 == 0;
        it.input = memory[rand_r(&own) % 2][0];
        it.output = memory[rand_r(&own) % 2][1];
        gy_case_fill(&it, round);
        if (rand_r(&own) % 4 == 0)
            usleep((unsigned)rand_r(&own) % 2000);
        if (rand_r(&common) % 2) {
            OK(comm, gy_case_call(&it));
        } else {
            gyre_request *request;
            OK(comm, gy_case_start(&it, &request));
            if (rand_r(&own) % 3 == 0)
                usleep((unsigned)rand_r(&own) % 3000);
            OK(comm, gyre_wait(&request));
        }
        memset(it.input, 0x11, it.bytes);
        memcpy(aside, it.output, it.bytes);
        memset(it.output, 0x22, it.bytes);
        it.output = aside;
        size_t wrong = gy_case_wrong(&it, round);
        if (wrong)
            rank_fail("round %d: %s of %zu bytes: %zu elements are wrong, in place %d, root %d", (int)round,
                      gy_kind_name(it.kind), it.bytes, wrong, it.in_place, it.root);
    }
    straight(comm, rank, size);
    many(comm, rank, size, false);
    many(comm, rank, size, true);
    OK(comm, gyre_barrier(comm));
    OK(comm, gyre_comm_destroy(comm));
    return 0;
}
