/* Two ranks that a link joins: all_reduce of short vectors, blocking, has to the bit the result that it has as a request, of
 * any bytes (NaN with their payloads among them), whoever comes first. Argument:
 *   results    every type, operation and length around what is short; in place too; while requests are under way; a rank is late,
 *              so that the call becomes a request behind its back
 *   disagree   the two call different things: an error on both that shows both */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/rank.h"

#define MOST 9000 /* bytes */

static gyre_comm *comm;
static int rank;
static uint32_t dice;

static void roll(unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)((dice = dice * 1664525u + 1013904223u) >> 24);
}

/* Who is late keeps the other waiting for longer than it looks without a request. */
static void be_late(unsigned call)
{
    if (call % 16 == 3 && rank == (int)(call / 16 % 2))
        usleep(2000);
}

static void compare(gyre_dtype dtype, gyre_op op, size_t count)
{
    static unsigned char input[MOST], now[MOST], started[MOST];
    static int32_t mine[1], all[2];
    static unsigned calls;
    gyre_request *request = NULL, *other = NULL;
    size_t bytes = count * gyre_dtype_size(dtype);

    roll(input, bytes);
    calls++;
    be_late(calls);
    if (calls % 5 == 0) { /* something else is under way */
        mine[0] = rank;
        OK(comm, gyre_all_gather_start(comm, mine, all, 1, GYRE_INT32, &other));
    }
    memcpy(now, input, bytes);
    gyre_status status = gyre_all_reduce(comm, calls % 3 ? input : now, now, count, dtype, op);
    if (other)
        OK(comm, gyre_wait(&other));
    if (status == GYRE_INVALID_ARGUMENT) /* not of this type */
        return;
    OK(comm, status);
    OK(comm, gyre_all_reduce_start(comm, input, started, count, dtype, op, &request));
    OK(comm, gyre_wait(&request));
    if (memcmp(now, started, bytes) != 0)
        rank_fail("%s, op %d, %zu elements: not what a request gives", gyre_dtype_name(dtype), (int)op, count);
}

static void test_results(void)
{
    for (int round = 0; round < 2; round++)
        for (int dtype = 0; gyre_dtype_name((gyre_dtype)dtype); dtype++)
            for (int op = 0; gyre_op_name((gyre_op)op); op++) {
                size_t element = gyre_dtype_size((gyre_dtype)dtype);
                size_t counts[] = {0, 1, 2, 3, 31, 4096 / element, 8192 / element, 8192 / element + 1};
                for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
                    compare((gyre_dtype)dtype, (gyre_op)op, counts[c]);
            }
}

static void test_disagree(void)
{
    float data[8] = {0};
    for (int i = 0; i < 3; i++)
        OK(comm, gyre_all_reduce(comm, data, data, 8, GYRE_FLOAT32, GYRE_SUM));
    gyre_status status = gyre_all_reduce(comm, data, data, rank ? 7 : 8, GYRE_FLOAT32, GYRE_SUM);
    if (status == GYRE_SUCCESS) /* its partner's comes later: the next call says so */
        status = gyre_all_reduce(comm, data, data, 8, GYRE_FLOAT32, GYRE_SUM);
    GIVES(GYRE_MISMATCH, comm, status);
    CHECK(strstr(gyre_last_error(comm), "x 7") && strstr(gyre_last_error(comm), "x 8"));
}

int main(int argc, char **argv)
{
    const char *suite = argc > 1 ? argv[1] : "";
    comm = rank_begin(100);
    rank = gyre_comm_rank(comm);
    dice = 77u + (uint32_t)rank;
    CHECK(gyre_comm_size(comm) == 2);
    if (strcmp(suite, "disagree") == 0) {
        test_disagree();
    } else {
        test_results();
        OK(comm, gyre_barrier(comm));
    }
    OK(NULL, gyre_comm_destroy(comm));
    _exit(0);
}
