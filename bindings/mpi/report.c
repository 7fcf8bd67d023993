#include "report.h"

#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static atomic_ulong sums[GM_CALLS], passed[GM_CALLS];

void gm_report_add(const unsigned long taken[GM_CALLS])
{
    for (int call = 0; call < GM_CALLS; call++)
        atomic_fetch_add_explicit(&sums[call], taken[call], memory_order_relaxed);
}

void gm_report_passed(enum gm_call call)
{
    atomic_fetch_add_explicit(&passed[call], 1, memory_order_relaxed);
}

static size_t append(char *line, size_t at, size_t bytes, atomic_ulong *numbers)
{
    for (int call = 0; call < GM_CALLS; call++) {
        unsigned long number = atomic_load_explicit(&numbers[call], memory_order_relaxed);
        if (number > 0 && at < bytes)
            at += (size_t)snprintf(line + at, bytes - at, " %s=%lu", gm_call_name((enum gm_call)call), number);
    }
    return at;
}

void gm_report_print(void)
{
    const char *wanted = getenv("GYREMPI_REPORT");
    char line[2048];
    int rank = 0;

    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!wanted || (strcmp(wanted, "all") != 0 && rank != 0))
        return;
    size_t at = (size_t)snprintf(line, sizeof(line), "gyre-mpi: rank %d: taken over:", rank);
    at = append(line, at, sizeof(line), sums);
    if (at < sizeof(line))
        at += (size_t)snprintf(line + at, sizeof(line) - at, "; left to MPI:");
    append(line, at, sizeof(line), passed);
    fprintf(stderr, "%s\n", line);
}
