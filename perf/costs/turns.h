/* What the programs of this folder share: times of two ways taken in turns, and what is said of their ratios. */
#ifndef GYRE_COSTS_TURNS_H
#define GYRE_COSTS_TURNS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <gyre/gyre.h>

#define TURNS_MOST 1000

static inline int64_t turns_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline int64_t turns_now(void)
{
    return turns_clock(CLOCK_MONOTONIC);
}

/* A call that fails ends the program: there is nothing left to measure. */
static inline void turns_expect(const gyre_comm *comm, gyre_status status, const char *what)
{
    if (status == GYRE_SUCCESS)
        return;
    fprintf(stderr, "%s: %s: %s\n", what, gyre_status_name(status), gyre_last_error(comm));
    exit(1);
}

#define EXPECT(comm, call) turns_expect(comm, call, #call)

static inline int turns_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct turns_quartiles {
    double low, middle, high;
};

/* Of `count` > 0 values, which it sorts. */
static inline struct turns_quartiles turns_quartiles(double *values, size_t count)
{
    qsort(values, count, sizeof *values, turns_compare);
    return (struct turns_quartiles){values[count / 4], values[count / 2], values[(3 * count - 1) / 4]};
}

/* A row of the table: the medians of two ways, and of the second one's times by the first one's. Sorts all three. */
static inline void turns_row(size_t bytes, double *first, double *second, double *ratios, size_t rounds)
{
    struct turns_quartiles ratio = turns_quartiles(ratios, rounds);
    printf("%10zu %14.2f %14.2f %8.2f   (%.2f to %.2f)\n", bytes, turns_quartiles(first, rounds).middle,
           turns_quartiles(second, rounds).middle, ratio.middle, ratio.low, ratio.high);
}

/* A whole number above zero from the command line. */
static inline long turns_number(const char *program, const char *text, long most)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (end != text && *end == '\0' && value >= 1 && value <= most)
        return value;
    fprintf(stderr, "%s: '%s' is no number from 1 to %ld\n", program, text, most);
    exit(2);
}

#endif
