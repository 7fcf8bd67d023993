/* What gyre-perf says: nccl-tests' columns on stdout and, on request, JSON: one object per row and placement. */
#ifndef GYRE_PERF_REPORT_H
#define GYRE_PERF_REPORT_H

#include <stdio.h>

#include "collective.h"

/* Microseconds. In streaming mode only the mean is known; the rest is NaN and null in JSON. */
struct gy_times {
    double min, median, mean, p99, max;
};

struct gy_result {
    struct gy_times time_us;
    double shown_us; /* the one in the column: median or mean; NaN: not measured */
    double whole_us; /* median from the earliest start to the latest end; NaN: streaming, or several hosts */
    double algbw, busbw;
    long wrong; /* −1: not checked */
};

/* Of `count` > 0 times in ns, which it sorts. */
void gy_times_compute(int64_t *times, size_t count, struct gy_times *times_p);
void gy_report_head(FILE *stream);
void gy_report_row(FILE *stream, const struct gy_case *it, const struct gy_result *out, const struct gy_result *in);
/* nccl-tests' last lines: wrong elements of all rows (−1: not checked), mean of the rows' bus bandwidths. */
void gy_report_end(FILE *stream, long wrong, double busbw);
void gy_report_json(FILE *stream, const struct gy_case *it, const char *algorithm, const char *transport,
                    const struct gy_result *result);

#endif
