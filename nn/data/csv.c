/* Comma-separated numbers, one sample per line, the label in the last column. Two passes over the text: count lines and
 * columns, then fill; so nothing is allocated before its size is known. A first line of which no field is a number is a
 * header: a sample whose first value is missing is none, and is refused. A byte order mark, as spreadsheets write it, is
 * passed over. */
#include "data/dataset.h"
#include "error.h"
#include "plain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct csv {
    const char *name;
    const char *at, *end;
    size_t line;
};

static bool next_line(struct csv *csv, const char **first_p, const char **last_p)
{
    while (csv->at < csv->end) {
        const char *first = csv->at;
        const char *stop = memchr(first, '\n', (size_t)(csv->end - first));
        const char *last = stop ? stop : csv->end;
        csv->at = stop ? stop + 1 : csv->end;
        csv->line++;
        if (last > first && last[-1] == '\r')
            last--;
        if (last == first)
            continue;
        *first_p = first;
        *last_p = last;
        return true;
    }
    return false;
}

/* The number that begins at `first`; behind it, but for blanks, the comma or the line's end, *stop_p. */
static bool read_number(const char *first, const char *last, double *value_p, const char **stop_p)
{
    char *stop;
    *value_p = gy_plain_number(first, &stop);
    if (stop == first || stop > last || !isfinite((float)*value_p))
        return false;
    while (stop < last && (*stop == ' ' || *stop == '\t'))
        stop++;
    *stop_p = stop;
    return stop == last || *stop == ',';
}

static bool is_header(const char *first, const char *last)
{
    double value;
    const char *stop;
    for (; first <= last; first = stop + 1) {
        if (read_number(first, last, &value, &stop))
            return false;
        stop = first < last ? memchr(first, ',', (size_t)(last - first)) : NULL;
        if (!stop)
            return true;
    }
    return true;
}

#define MARK "\xEF\xBB\xBF"

static const char *begin_of(const struct gy_nn_bytes *text)
{
    bool marked = text->size >= strlen(MARK) && memcmp(text->data, MARK, strlen(MARK)) == 0;
    return (const char *)text->data + (marked ? strlen(MARK) : 0);
}

static size_t columns_of(const char *first, const char *last)
{
    size_t columns = 1;
    for (; first < last; first++)
        columns += *first == ',';
    return columns;
}

/* A number ends at the comma or the line's end: the text ends with a 0. */
static gyre_status parse_line(const struct csv *csv, const char *first, const char *last, gyre_nn_dataset *data,
                              size_t row)
{
    float *x = data->x + row * data->features;
    for (size_t c = 0; c <= data->features; c++) {
        const char *stop;
        double value;
        bool end = c == data->features;
        if (!read_number(first, last, &value, &stop) || (stop == last) != end)
            return gy_nn_fail(GYRE_INVALID_ARGUMENT,
                              "%s, line %zu, column %zu: no finite number followed by %s; %zu columns expected, as in "
                              "the first line",
                              csv->name, csv->line, c + 1, end ? "the line's end" : "a comma", data->features + 1);
        if (!end)
            x[c] = (float)value;
        else if (value < 0 || value >= GY_NN_LARGEST_CLASS || value != floor(value))
            return gy_nn_fail(GYRE_INVALID_ARGUMENT, "%s, line %zu: the label %g is not an integer from 0 to %d",
                              csv->name, csv->line, value, GY_NN_LARGEST_CLASS - 1);
        else
            data->labels[row] = (int32_t)value;
        first = stop + 1;
    }
    return GYRE_SUCCESS;
}

gyre_status gy_nn_csv_parse(const struct gy_nn_bytes *text, const char *name, gyre_nn_dataset **data_p)
{
    const char *start = begin_of(text), *end = (const char *)text->data + text->size, *first, *last;
    struct csv csv = {.name = name, .at = start, .end = end};
    size_t rows = 0, columns = 0;
    bool header = false;
    for (; next_line(&csv, &first, &last); rows++) {
        if (rows == 0) {
            header = is_header(first, last);
            columns = columns_of(first, last);
        }
    }
    rows -= header;
    if (rows == 0 || columns < 2) {
        gy_nn_fail(GYRE_INVALID_ARGUMENT,
                   "%s holds no samples: numbers separated by commas are expected, the label last", name);
        return GYRE_INVALID_ARGUMENT;
    }
    gyre_nn_dataset *data;
    gyre_status status = gy_nn_dataset_alloc(rows, columns - 1, 1, &data);
    if (status != GYRE_SUCCESS)
        return status;
    csv = (struct csv){.name = name, .at = start, .end = end};
    if (header)
        next_line(&csv, &first, &last);
    for (size_t row = 0; status == GYRE_SUCCESS && next_line(&csv, &first, &last); row++)
        status = parse_line(&csv, first, last, data, row);
    if (status != GYRE_SUCCESS)
        gyre_nn_dataset_free(data);
    else
        *data_p = data;
    return status;
}

gyre_status gy_nn_csv_open(const char *path, gyre_nn_dataset **data_p)
{
    struct gy_nn_bytes text;
    gyre_nn_dataset *data;
    gyre_status status = gy_nn_bytes_read(path, &text, NULL);
    if (status != GYRE_SUCCESS)
        return status;
    status = gy_nn_csv_parse(&text, path, &data);
    free(text.data);
    return status == GYRE_SUCCESS ? gy_nn_dataset_finish(data, path, data_p) : status;
}
