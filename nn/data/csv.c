/* Comma-separated values as RFC 4180 describes them, read by libcsv: one sample per record, the label in the last
 * column. Fields may be quoted, with separators, line ends and doubled quotes inside. The separator is comma,
 * semicolon or tab: the one most frequent in the first line. Between records, empty lines and lines that begin with
 * # are skipped, and so is a byte order mark. The text is read twice: to count records and columns, then to fill the
 * data set. So nothing is allocated before its size is known. A first record of which no field is a number is a
 * header. If the first sample's label is no number, labels are names, and the classes are the names in the order of
 * their bytes. */
#include "base/error.h"
#include "base/plain.h"
#include "data/dataset.h"

#include <csv.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    const char *name; /* of the file */
    unsigned char separator;
    size_t line;    /* on which the record begins */
    size_t column;  /* fields of the record so far */
    size_t records; /* that have ended, the header too */
    size_t columns; /* of the first record */
    bool begun;     /* inside a record */
    bool numbers;   /* the first record has one */
    bool last;      /* the last field that was read is a number */
    bool header, named;
    gyre_nn_dataset *data; /* to fill; NULL: records are counted */
    char **labels;         /* names, of each sample */
    gyre_status status;
};

/* The whole field is a finite number, but for blanks around it. libcsv puts a 0 behind it. */
static bool read_number(const char *field, size_t length, double *value_p)
{
    char *stop;
    *value_p = gy_plain_number(field, &stop);
    while (stop > field && (*stop == ' ' || *stop == '\t'))
        stop++;
    return stop > field && stop == field + length && isfinite((float)*value_p);
}

static void count_field(struct reader *reader, const char *field, size_t length)
{
    double value;
    if (reader->records > 1)
        return;
    reader->last = read_number(field, length, &value);
    reader->numbers |= reader->records == 0 && reader->last;
}

static gyre_status fill_name(struct reader *reader, size_t row, const char *field, size_t length)
{
    if (length == 0 || strlen(field) != length)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "%s, line %zu: the label is empty, or no text", reader->name,
                          reader->line);
    reader->labels[row] = strdup(field);
    return reader->labels[row] ? GYRE_SUCCESS
                               : gy_nn_fail(GYRE_NO_MEMORY, "no memory for the labels of %s", reader->name);
}

static gyre_status fill_label(struct reader *reader, size_t row, const char *field, size_t length)
{
    double value;
    if (reader->named)
        return fill_name(reader, row, field, length);
    if (!read_number(field, length, &value))
        return gy_nn_fail(
            GYRE_INVALID_ARGUMENT,
            "%s, line %zu, column %zu: the label is no finite number, and that of the first sample is one",
            reader->name, reader->line, reader->columns);
    if (value < 0 || value >= GY_NN_LARGEST_CLASS || value != floor(value))
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "%s, line %zu: the label %g is not an integer from 0 to %d",
                          reader->name, reader->line, value, GY_NN_LARGEST_CLASS - 1);
    reader->data->labels[row] = (int32_t)value;
    return GYRE_SUCCESS;
}

static gyre_status fill_field(struct reader *reader, const char *field, size_t length)
{
    size_t row = reader->records - reader->header;
    double value;
    if (reader->header && reader->records == 0)
        return GYRE_SUCCESS;
    if (reader->column >= reader->columns)
        return GYRE_SUCCESS; /* the end of the record says how many there are */
    if (reader->column + 1 == reader->columns)
        return fill_label(reader, row, field, length);
    if (!read_number(field, length, &value))
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "%s, line %zu, column %zu: no finite number", reader->name,
                          reader->line, reader->column + 1);
    reader->data->x[row * reader->data->features + reader->column] = (float)value;
    return GYRE_SUCCESS;
}

static void on_field(void *field, size_t length, void *user)
{
    struct reader *reader = user;
    if (reader->status == GYRE_SUCCESS && reader->data)
        reader->status = fill_field(reader, field, length);
    else if (reader->status == GYRE_SUCCESS)
        count_field(reader, field, length);
    reader->column++;
}

static void on_record(int end, void *user)
{
    (void)end;
    struct reader *reader = user;
    if (reader->records == 0) {
        reader->columns = reader->column;
        reader->header = !reader->numbers;
    }
    if (!reader->data && reader->records == reader->header)
        reader->named = !reader->last;
    if (reader->status == GYRE_SUCCESS && reader->column != reader->columns)
        reader->status = gy_nn_fail(GYRE_INVALID_ARGUMENT,
                                    "%s, line %zu: %zu columns; %zu expected, as in the first line", reader->name,
                                    reader->line, reader->column, reader->columns);
    reader->records++;
    reader->column = 0;
    reader->begun = false;
}

/* Between records: a line of blanks, or of comment. */
static bool is_skipped(const char *line, const char *end)
{
    if (*line == '#')
        return true;
    while (line < end && (*line == ' ' || *line == '\t' || *line == '\r' || *line == '\n'))
        line++;
    return line == end;
}

static gyre_status refuse(const struct reader *reader, int code)
{
    if (code == CSV_ENOMEM || code == CSV_ETOOBIG)
        return gy_nn_fail(GYRE_NO_MEMORY, "no memory for a field of %s", reader->name);
    return gy_nn_fail(GYRE_INVALID_ARGUMENT,
                      "%s, line %zu: a quote inside of a field that does not begin with one, or one that does not end",
                      reader->name, reader->line);
}

/* All records of [at, end). Lines go to libcsv one by one, so that each record's is known. */
static gyre_status read_all(struct reader *reader, const char *at, const char *end)
{
    struct csv_parser parser;
    size_t line = 0;
    if (csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI | CSV_APPEND_NULL) != 0)
        return gy_nn_fail(GYRE_NO_MEMORY, "no memory to read %s", reader->name);
    csv_set_delim(&parser, reader->separator);
    reader->records = reader->column = 0;
    while (at < end && reader->status == GYRE_SUCCESS) {
        const char *stop = memchr(at, '\n', (size_t)(end - at)), *next = stop ? stop + 1 : end;
        size_t length = (size_t)(next - at);
        line++;
        if (reader->begun || !is_skipped(at, next)) {
            reader->line = reader->begun ? reader->line : line;
            reader->begun = true;
            if (csv_parse(&parser, at, length, on_field, on_record, reader) != length)
                reader->status = refuse(reader, csv_error(&parser));
        }
        at = next;
    }
    if (reader->status == GYRE_SUCCESS && csv_fini(&parser, on_field, on_record, reader) != 0)
        reader->status = refuse(reader, csv_error(&parser));
    csv_free(&parser);
    return reader->status;
}

/* Of comma, semicolon and tab that which the first line has most of outside of quotes. */
static unsigned char find_separator(const char *at, const char *end)
{
    static const char separators[] = ",;\t";
    size_t counts[3] = {0}, best = 0;
    bool quoted = false;
    while (at < end && is_skipped(at, at + strcspn(at, "\n") + (at + strcspn(at, "\n") < end)))
        at += strcspn(at, "\n") + 1;
    for (; at < end && (quoted || *at != '\n'); at++) {
        const char *which = *at && !quoted ? strchr(separators, *at) : NULL;
        quoted ^= *at == '"';
        if (which)
            counts[which - separators]++;
    }
    for (size_t i = 1; i < 3; i++)
        best = counts[i] > counts[best] ? i : best;
    return (unsigned char)separators[best];
}

static int compare_names(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    return x && y ? strcmp(x, y) : 0; /* each sample has one */
}

/* Numbers the names of all samples, and gives the data set those that there are, in their order. */
static gyre_status number_names(struct reader *reader)
{
    gyre_nn_dataset *data = reader->data;
    size_t count = 0;
    char **sorted = calloc(data->samples + 1, sizeof(*sorted));
    if (!sorted)
        return gy_nn_fail(GYRE_NO_MEMORY, "no memory for the labels of %s", reader->name);
    memcpy(sorted, reader->labels, data->samples * sizeof(*sorted));
    qsort(sorted, data->samples, sizeof(*sorted), compare_names);
    for (size_t i = 0; i < data->samples; i++)
        if (count == 0 || strcmp(sorted[i], sorted[count - 1]) != 0)
            sorted[count++] = sorted[i];
    gyre_status status = GYRE_SUCCESS;
    if (count > GY_NN_LARGEST_CLASS)
        status = gy_nn_fail(GYRE_INVALID_ARGUMENT, "%s has %zu labels; at most %d are allowed", reader->name, count,
                            GY_NN_LARGEST_CLASS);
    for (size_t i = 0; i < data->samples && status == GYRE_SUCCESS; i++) {
        char **found = bsearch(&reader->labels[i], sorted, count, sizeof(*sorted), compare_names);
        data->labels[i] = found ? (int32_t)(found - sorted) : 0;
    }
    if (status == GYRE_SUCCESS)
        status = gy_nn_dataset_name(data, sorted, count);
    free(sorted);
    return status;
}

static gyre_status fill(struct reader *reader, const char *start, const char *end)
{
    size_t samples = reader->data->samples;
    reader->labels = reader->named ? calloc(samples, sizeof(*reader->labels)) : NULL;
    if (reader->named && !reader->labels)
        return gy_nn_fail(GYRE_NO_MEMORY, "no memory for the labels of %s", reader->name);
    gyre_status status = read_all(reader, start, end);
    if (status == GYRE_SUCCESS && reader->named)
        status = number_names(reader);
    for (size_t i = 0; reader->labels && i < samples; i++)
        free(reader->labels[i]);
    free(reader->labels);
    return status;
}

#define MARK "\xEF\xBB\xBF"

gyre_status gy_nn_csv_parse(const struct gy_nn_bytes *text, const char *name, gyre_nn_dataset **data_p)
{
    const char *start = (const char *)text->data, *end = start + text->size;
    start += text->size >= strlen(MARK) && memcmp(start, MARK, strlen(MARK)) == 0 ? strlen(MARK) : 0;
    struct reader reader = {.name = name, .separator = find_separator(start, end)};
    gyre_status status = read_all(&reader, start, end);
    if (status != GYRE_SUCCESS)
        return status;
    if (reader.records <= reader.header || reader.columns < 2)
        return gy_nn_fail(
            GYRE_INVALID_ARGUMENT,
            "%s holds no samples: numbers separated by commas, semicolons or tabs are expected, the label "
            "last",
            name);
    status = gy_nn_dataset_alloc(reader.records - reader.header, reader.columns - 1, 1, &reader.data);
    if (status != GYRE_SUCCESS)
        return status;
    status = fill(&reader, start, end);
    if (status != GYRE_SUCCESS)
        gyre_nn_dataset_free(reader.data);
    else
        *data_p = reader.data;
    return status;
}

gyre_status gy_nn_csv_open(const char *path, gyre_nn_dataset **data_p)
{
    struct gy_nn_bytes text = {0};
    gyre_nn_dataset *data = NULL;
    gyre_status status = gy_nn_bytes_read(path, &text, NULL);
    if (status != GYRE_SUCCESS)
        return status;
    status = gy_nn_csv_parse(&text, path, &data);
    free(text.data);
    return status == GYRE_SUCCESS ? gy_nn_dataset_finish(data, path, data_p) : status;
}
