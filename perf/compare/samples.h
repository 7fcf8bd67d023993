/* The statistics of a launch. A call's time is from the latest start to the latest end over the ranks. */
#ifndef GYRE_COMPARE_SAMPLES_H
#define GYRE_COMPARE_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

#include "arena.h"

struct gy_samples {
    double median_us, low_us, high_us, least_us, mean_us; /* low, high: quartiles */
    double wall_us; /* first start to last end, by the number of calls: what lies between calls too */
};

struct gy_samples gy_samples_make(const struct gy_stamps *stamps, int ranks, size_t calls);

/* The same, but a call's time is each rank's own, averaged over the ranks; the OSU benchmarks print their mean. */
struct gy_samples gy_samples_make_osu(const struct gy_stamps *stamps, int ranks, size_t calls);

/* Microseconds from one call to the next, the median: the harness's barrier where the call does nothing. */
double gy_samples_period(const struct gy_stamps *stamps, int ranks, size_t calls);

/* Linear interpolation between the two nearest; sorts `values` in place. */
double gy_samples_quantile(double *values, size_t count, double share);

#endif
