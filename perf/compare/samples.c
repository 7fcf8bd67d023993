#include "samples.h"

#include <stdlib.h>

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double sorted_quantile(const double *values, size_t count, double share)
{
    double place = share * (double)(count - 1);
    size_t below = (size_t)place;
    if (below + 1 >= count)
        return values[count - 1];
    return values[below] + (place - (double)below) * (values[below + 1] - values[below]);
}

double gy_samples_quantile(double *values, size_t count, double share)
{
    qsort(values, count, sizeof *values, by_value);
    return sorted_quantile(values, count, share);
}

static double times[GY_CALLS_MOST];

static struct gy_samples summarise(const struct gy_stamps *stamps, int ranks, size_t calls)
{
    int64_t first = INT64_MAX, last = INT64_MIN;
    double sum = 0;
    for (int rank = 0; rank < ranks; rank++) {
        first = stamps[rank].start[0] < first ? stamps[rank].start[0] : first;
        last = stamps[rank].end[calls - 1] > last ? stamps[rank].end[calls - 1] : last;
    }
    for (size_t call = 0; call < calls; call++)
        sum += times[call];
    qsort(times, calls, sizeof *times, by_value);
    return (struct gy_samples){
        .median_us = sorted_quantile(times, calls, 0.5),
        .low_us = sorted_quantile(times, calls, 0.25),
        .high_us = sorted_quantile(times, calls, 0.75),
        .least_us = times[0],
        .mean_us = sum / (double)calls,
        .wall_us = (double)(last - first) / 1e3 / (double)calls,
    };
}

static int64_t latest_start(const struct gy_stamps *stamps, int ranks, size_t call)
{
    int64_t start = INT64_MIN;
    for (int rank = 0; rank < ranks; rank++)
        start = stamps[rank].start[call] > start ? stamps[rank].start[call] : start;
    return start;
}

struct gy_samples gy_samples_make(const struct gy_stamps *stamps, int ranks, size_t calls)
{
    for (size_t call = 0; call < calls; call++) {
        int64_t end = INT64_MIN;
        for (int rank = 0; rank < ranks; rank++)
            end = stamps[rank].end[call] > end ? stamps[rank].end[call] : end;
        times[call] = (double)(end - latest_start(stamps, ranks, call)) / 1e3;
    }
    return summarise(stamps, ranks, calls);
}

double gy_samples_period(const struct gy_stamps *stamps, int ranks, size_t calls)
{
    for (size_t call = 0; call + 1 < calls; call++)
        times[call] = (double)(latest_start(stamps, ranks, call + 1) - latest_start(stamps, ranks, call)) / 1e3;
    return gy_samples_quantile(times, calls - 1, 0.5);
}

struct gy_samples gy_samples_make_osu(const struct gy_stamps *stamps, int ranks, size_t calls)
{
    for (size_t call = 0; call < calls; call++) {
        times[call] = 0;
        for (int rank = 0; rank < ranks; rank++)
            times[call] += (double)(stamps[rank].end[call] - stamps[rank].start[call]) / 1e3 / ranks;
    }
    return summarise(stamps, ranks, calls);
}
