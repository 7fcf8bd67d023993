/* gyre-kernels: how fast the reduction kernels are, per type, operation and instruction set, beside memcpy. A tool of
 * the tree, not installed: it reaches below the public interface.
 *
 *   gyre-kernels [TYPE [OP]]
 *
 * GB/s are bytes of the result per second: reducing two sources moves three times that, memcpy twice. Each figure is
 * the fastest of nine batches of at least a millisecond, of three out of memory. `cache` buffers of 64 KiB stay in the
 * second-level cache, `memory` ones of 64 MiB do not; `4` reduces four sources in one pass; `stream` writes past the
 * caches. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/kernels.h"

#define CACHE_BYTES ((size_t)64 << 10)
#define MEMORY_BYTES ((size_t)64 << 20)
enum { SOURCES = 4, BATCHES = 9, MEMORY_BATCHES = 3 };

static char *memory[SOURCES + 1]; /* the last is the destination */

struct job {
    gy_reduce_kernel kernel; /* NULL: memcpy */
    int nsrc;
    size_t bytes;
    bool stream;
};

static void run_once(const struct job *job)
{
    const void *const src[SOURCES] = {memory[0], memory[1], memory[2], memory[3]};

    if (job->kernel)
        job->kernel(memory[SOURCES], NULL, src, job->nsrc, job->bytes, job->stream ? GY_STREAM_DST : 0);
    else
        memcpy(memory[SOURCES], memory[0], job->bytes);
    __asm__ volatile("" : : : "memory");
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double batch(const struct job *job, long times)
{
    double began = seconds();

    for (long i = 0; i < times; i++)
        run_once(job);
    return seconds() - began;
}

static double speed(const struct job *job)
{
    int batches = job->bytes > CACHE_BYTES ? MEMORY_BATCHES : BATCHES;
    double fastest = HUGE_VAL;
    long times = 1;

    while (batch(job, times) < 1e-3)
        times *= 2;
    for (int i = 0; i < batches; i++)
        fastest = fmin(fastest, batch(job, times));
    return (double)job->bytes * (double)times / fastest * 1e-9;
}

static void print_row(const struct gy_kernels *kernels, gyre_dtype dtype, gyre_op op)
{
    gy_reduce_kernel kernel = kernels->reduce[dtype][op];
    const struct job jobs[] = {{kernel, 2, CACHE_BYTES, false},  {kernel, 4, CACHE_BYTES, false},
                               {kernel, 2, MEMORY_BYTES, false}, {kernel, 2, MEMORY_BYTES, true},
                               {kernel, 4, MEMORY_BYTES, false}, {kernel, 4, MEMORY_BYTES, true}};

    printf("%-12s %-8s %-7s", gyre_dtype_name(dtype), gyre_op_name(op), kernels->name);
    for (size_t i = 0; i < GY_ARRAY_LENGTH(jobs); i++)
        printf(" %8.2f", speed(&jobs[i]));
    printf("\n");
    fflush(stdout);
}

/* Values of moderate size, as bytes that are a number in every type. */
static void fill(void)
{
    for (int i = 0; i <= SOURCES; i++) {
        memory[i] = aligned_alloc(4096, MEMORY_BYTES);
        if (!memory[i]) {
            fprintf(stderr, "gyre-kernels: no memory\n");
            exit(1);
        }
        for (size_t at = 0; at < MEMORY_BYTES; at++)
            memory[i][at] = (char)(0x38 + (at * 7 + (size_t)i) % 8);
    }
}

int main(int argc, char **argv)
{
    const struct gy_kernels *kernels;
    uint32_t saved = gy_fp_enter();

    fill();
    printf("# memcpy: %.2f GB/s of 64 KiB, %.2f of 64 MiB\n", speed(&(struct job){NULL, 1, CACHE_BYTES, false}),
           speed(&(struct job){NULL, 1, MEMORY_BYTES, false}));
    printf("# %-10s %-8s %-7s %8s %8s %8s %8s %8s %8s   GB/s of result\n", "type", "op", "isa", "cache", "cache 4",
           "memory", "stream", "memory 4", "stream 4");
    for (int dtype = 0; dtype < GY_DTYPES; dtype++) {
        for (int op = 0; op < GY_OPS; op++) {
            bool sum_again = op == GYRE_AVERAGE || op == GYRE_PREMUL_SUM;

            if (sum_again || !gy_op_valid(op, (gyre_dtype)dtype) ||
                (argc > 1 && strcmp(argv[1], gyre_dtype_name((gyre_dtype)dtype)) != 0) ||
                (argc > 2 && strcmp(argv[2], gyre_op_name((gyre_op)op)) != 0))
                continue;
            for (int i = 0; (kernels = gy_kernels_usable(i)) != NULL; i++)
                print_row(kernels, (gyre_dtype)dtype, (gyre_op)op);
        }
    }
    gy_fp_leave(saved);
    return 0;
}
