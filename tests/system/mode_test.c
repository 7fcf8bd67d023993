/* The caller's floating-point mode plays no part in a reduction, and comes back with its flags: with rounding upwards,
 * denormals taken for zero and an exception that has been noted every way of reducing gives the bits that it gives
 * without. Any number of ranks. */
#include <fenv.h>
#if defined(__x86_64__)
#include <immintrin.h>
#define DENORMALS_ARE_ZERO 0x8040u /* as operands and as results */
#endif

#include "support/rank.h"

#define MOST 70000

static gyre_comm *comm;
static int rank, size;
static float in[MOST], out[MOST], wanted[MOST];

static void set_mode(void)
{
    CHECK(fesetround(FE_UPWARD) == 0);
    CHECK(feclearexcept(FE_ALL_EXCEPT) == 0);
    CHECK(feraiseexcept(FE_DIVBYZERO) == 0);
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | DENORMALS_ARE_ZERO);
#endif
}

static void check_mode(void)
{
    CHECK(fegetround() == FE_UPWARD);
    CHECK(fetestexcept(FE_ALL_EXCEPT) == FE_DIVBYZERO);
#if defined(__x86_64__)
    CHECK((_mm_getcsr() & DENORMALS_ARE_ZERO) == DENORMALS_ARE_ZERO);
#endif
}

/* Sums that are inexact, sums of denormals, and one that overflows. */
static void fill(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float value = 1.0f + (float)(rank + 1) * (float)(i % 97) * 0x1p-23f;
        in[i] = i % 3 == 1 ? (float)(rank + 1 + (int)(i % 5)) * 0x1p-149f
                : i == 6   ? 0x1.8p127f
                           : value * (float)(rank + 1);
        out[i] = wanted[i] = -7.0f;
    }
}

typedef gyre_status (*way_func)(float *output, size_t count, gyre_op op);

static gyre_status blocking(float *output, size_t count, gyre_op op)
{
    return gyre_all_reduce(comm, in, output, count, GYRE_FLOAT32, op);
}

static gyre_status started(float *output, size_t count, gyre_op op)
{
    gyre_request *request;
    gyre_status status = gyre_all_reduce_start(comm, in, output, count, GYRE_FLOAT32, op, &request);
    return status == GYRE_SUCCESS ? gyre_wait(&request) : status;
}

/* Several under way at once, which a turn completes one after the other, and between them one that reduces nothing. */
static gyre_status several(float *output, size_t count, gyre_op op)
{
    static float others[2][MOST];
    gyre_request *requests[4];
    gyre_status status = gyre_all_reduce_start(comm, in, others[0], count, GYRE_FLOAT32, op, &requests[0]);
    if (status == GYRE_SUCCESS)
        status = gyre_all_reduce_start(comm, in, others[1], count, GYRE_FLOAT32, op, &requests[1]);
    if (status == GYRE_SUCCESS)
        status = gyre_barrier_start(comm, &requests[2]);
    if (status == GYRE_SUCCESS)
        status = gyre_all_reduce_start(comm, in, output, count, GYRE_FLOAT32, op, &requests[3]);
    if (status == GYRE_SUCCESS)
        status = gyre_wait_all(requests, 4);
    for (int i = 0; i < 2 && status == GYRE_SUCCESS; i++)
        CHECK(memcmp(others[i], output, count * sizeof *output) == 0);
    return status;
}

static gyre_status to_root(float *output, size_t count, gyre_op op)
{
    return gyre_reduce(comm, in, output, count, GYRE_FLOAT32, op, 0);
}

static gyre_status to_all(float *output, size_t count, gyre_op op)
{
    return gyre_reduce_scatter(comm, in, output, count / (size_t)size, GYRE_FLOAT32, op);
}

/* One of the ranks comes late by turns: it finds what the others have shown, and they wait, as a request if long. */
static void step(int round)
{
    if (round % (size + 1) == rank)
        usleep(round % 2 ? 3000 : 200);
}

static void try_way(way_func way, size_t count, gyre_op op, int round)
{
    fill(count);
    step(round);
    OK(comm, way(wanted, count, op));
    fenv_t before;
    CHECK(fegetenv(&before) == 0);
    set_mode();
    step(round + 1);
    gyre_status status = way(out, count, op);
    check_mode();
    CHECK(fesetenv(&before) == 0);
    OK(comm, status);
    if (memcmp(out, wanted, count * sizeof *out) != 0)
        rank_fail("%zu elements, operation %d: other bits in another floating-point mode", count, (int)op);
}

int main(void)
{
    static const size_t counts[] = {1, 8, 24, 64, 512, 1500, 5000, MOST};
    static const way_func ways[] = {blocking, started, several, to_root, to_all};
    comm = rank_begin(60);
    rank = gyre_comm_rank(comm);
    size = gyre_comm_size(comm);
    int round = 0;
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
            for (int again = 0; again < 4; again++, round++)
                try_way(ways[w], counts[c], again % 2 ? GYRE_AVERAGE : GYRE_SUM, round);
    OK(comm, gyre_comm_destroy(comm));
    return 0;
}
