#include "report.h"

#include <math.h>
#include <stdlib.h>

#include "common/output.h"

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

void gy_times_compute(int64_t *times, size_t count, struct gy_times *times_p)
{
    double sum = 0;
    qsort(times, count, sizeof *times, compare);
    for (size_t i = 0; i < count; i++)
        sum += (double)times[i];
    size_t middle = count / 2, rank99 = (count * 99 + 99) / 100; /* nearest rank, from 1 */
    double median = count % 2 ? (double)times[middle] : ((double)times[middle - 1] + (double)times[middle]) / 2;
    *times_p = (struct gy_times){
        .min = (double)times[0] / 1e3,
        .median = median / 1e3,
        .mean = sum / (double)count / 1e3,
        .p99 = (double)times[rank99 - 1] / 1e3,
        .max = (double)times[count - 1] / 1e3,
    };
}

void gy_report_head(FILE *stream)
{
    fprintf(stream, "#\n#%69s%40s\n", "out-of-place", "in-place");
    fprintf(stream, "#%12s %12s %11s %7s %6s %9s %7s %7s %7s  %9s %7s %7s %7s\n", "size", "count", "type", "redop",
            "root", "time", "algbw", "busbw", "#wrong", "time", "algbw", "busbw", "#wrong");
    fprintf(stream, "#%12s %12s %11s %7s %6s %9s %7s %7s %7s  %9s %7s %7s %7s\n", "(B)", "(elements)", "", "", "",
            "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "");
}

static void print_result(FILE *stream, const struct gy_result *result)
{
    if (isnan(result->shown_us)) {
        fprintf(stream, " %9s %7s %7s %7s", "N/A", "N/A", "N/A", "N/A");
        return;
    }
    fprintf(stream, " %9.2f %7.3f %7.3f ", result->shown_us, result->algbw, result->busbw);
    if (result->wrong < 0)
        fprintf(stream, "%7s", "N/A");
    else
        fprintf(stream, "%7ld", result->wrong);
}

static const char *op_name(const struct gy_case *it)
{
    return gy_kind_reduces(it->kind) ? gyre_op_name(it->op) : "none";
}

static int root_of(const struct gy_case *it)
{
    return gy_kind_has_root(it->kind) ? it->root : -1;
}

void gy_report_row(FILE *stream, const struct gy_case *it, const struct gy_result *out, const struct gy_result *in)
{
    fprintf(stream, " %12zu %12zu %11s %7s %6d", it->bytes, it->count, gyre_dtype_name(it->dtype), op_name(it),
            root_of(it));
    print_result(stream, out);
    fputc(' ', stream);
    print_result(stream, in);
    fputc('\n', stream);
    gy_output_flush(stream);
}

void gy_report_end(FILE *stream, long wrong, double busbw)
{
    if (wrong < 0)
        fprintf(stream, "# Out of bounds values : not checked\n");
    else
        fprintf(stream, "# Out of bounds values : %ld %s\n", wrong, wrong ? "FAILED" : "OK");
    fprintf(stream, "# Avg bus bandwidth    : %g\n#\n", busbw);
    gy_output_flush(stream);
}

static void put_number(FILE *stream, const char *name, double value, const char *end)
{
    if (isnan(value))
        fprintf(stream, "\"%s\":null%s", name, end);
    else
        fprintf(stream, "\"%s\":%.6g%s", name, value, end);
}

/* Names here are gyre's own or were checked against its lists: nothing needs escaping. */
void gy_report_json(FILE *stream, const struct gy_case *it, const char *algorithm, const char *transport,
                    const struct gy_result *result)
{
    const struct gy_times *time = &result->time_us;
    fprintf(stream, "{\"collective\":\"%s\",\"algorithm\":\"%s\",\"transport\":\"%s\",\"ranks\":%d,\"bytes\":%zu,",
            gy_kind_name(it->kind), algorithm, transport, it->size, it->bytes);
    fprintf(stream, "\"count\":%zu,\"dtype\":\"%s\",\"op\":\"%s\",\"root\":%d,\"in_place\":%s,\"time_us\":{", it->count,
            gyre_dtype_name(it->dtype), op_name(it), root_of(it), it->in_place ? "true" : "false");
    put_number(stream, "min", time->min, ",");
    put_number(stream, "median", time->median, ",");
    put_number(stream, "mean", time->mean, ",");
    put_number(stream, "p99", time->p99, ",");
    put_number(stream, "max", time->max, "},");
    put_number(stream, "whole_us", result->whole_us, ",");
    put_number(stream, "algbw", result->algbw, ",");
    put_number(stream, "busbw", result->busbw, ",");
    if (result->wrong < 0)
        fprintf(stream, "\"wrong\":null}\n");
    else
        fprintf(stream, "\"wrong\":%ld}\n", result->wrong);
    gy_output_flush(stream);
}
