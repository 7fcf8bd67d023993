/* NumPy's array format, versions 1 to 3: "\x93NUMPY", version, header length (16 or 32 bits, little-endian), the text
 * of a Python dictionary {'descr': '<f4', 'fortran_order': False, 'shape': (rows, columns), }, then the elements. Of
 * the dictionary the three values are searched by their keys. The label is the last column. Every length is checked
 * against the file before it is used. */
#include "base/error.h"
#include "data/dataset.h"

#include <endian.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct npy {
    char type[4]; /* "<f4", … */
    size_t rows, columns, element;
    const uint8_t *data;
    size_t size; /* bytes of data */
};

static bool known_type(struct npy *npy)
{
    static const struct {
        const char *name;
        size_t size;
    } types[] = {{"<f4", 4}, {"<f8", 8}, {"|u1", 1}, {"<i4", 4}, {"<i8", 8}};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (strcmp(types[i].name, npy->type) == 0) {
            npy->element = types[i].size;
            return true;
        }
    return false;
}

static gyre_status refuse(const char *name, const char *why)
{
    return gy_nn_fail(GYRE_INVALID_ARGUMENT, "%s %s", name, why);
}

/* `text` ends with a 0. */
static gyre_status parse_header(const char *text, const char *name, struct npy *npy)
{
    const char *type = strstr(text, "'descr':"), *order = strstr(text, "'fortran_order':"),
               *shape = strstr(text, "'shape':");
    char word[8] = "";
    unsigned long long rows = 0, columns = 0;
    int end = 0;
    if (!type || !order || !shape || sscanf(order, "'fortran_order': %7[A-Za-z]", word) != 1)
        return refuse(name, "is no NumPy array: its header has no type, order and shape");
    if (sscanf(type, "'descr': '%3[^']'", npy->type) != 1 || !known_type(npy))
        return refuse(name, "has elements that are none of float32, float64, uint8, int32 and int64, little-endian: "
                            "save array.astype(\"float32\")");
    if (sscanf(shape, "'shape': (%12llu, %12llu)%n", &rows, &columns, &end) != 2 || end == 0 || rows == 0 ||
        columns < 2)
        return refuse(name, "is no array of two dimensions, samples by features with the label last");
    if (strcmp(word, "False") != 0)
        return refuse(name, "is in Fortran order: save numpy.ascontiguousarray(array)");
    npy->rows = (size_t)rows;
    npy->columns = (size_t)columns;
    return GYRE_SUCCESS;
}

static gyre_status parse(const struct gy_nn_bytes *bytes, const char *name, struct npy *npy)
{
    const uint8_t *b = bytes->data;
    size_t begin = 10, length, total;
    char text[4096];
    if (bytes->size >= 4 && memcmp(b, "PK\3\4", 4) == 0)
        return refuse(name, "is an archive of arrays (.npz): save one array with numpy.save");
    if (bytes->size < 12 || memcmp(b, "\x93NUMPY", 6) != 0 || b[6] < 1 || b[6] > 3)
        return refuse(name, "is no NumPy array of version 1 to 3, as numpy.save writes it");
    length = (size_t)b[8] | (size_t)b[9] << 8;
    if (b[6] > 1) {
        begin = 12;
        length |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
    }
    if (length >= sizeof(text) || length > bytes->size - begin)
        return refuse(name, "is damaged or cut short: its header is longer than a header may be, or than the file");
    memcpy(text, b + begin, length);
    text[length] = 0;
    npy->data = b + begin + length;
    npy->size = bytes->size - begin - length;
    gyre_status status = parse_header(text, name, npy);
    if (status == GYRE_SUCCESS && (__builtin_mul_overflow(npy->rows, npy->columns, &total) ||
                                   __builtin_mul_overflow(total, npy->element, &total) || total != npy->size))
        status = gy_nn_fail(GYRE_INVALID_ARGUMENT,
                            "%s is damaged or cut short: %zu times %zu elements of %zu bytes, and %zu bytes are there",
                            name, npy->rows, npy->columns, npy->element, npy->size);
    return status;
}

static double element(const struct npy *npy, size_t index)
{
    const uint8_t *at = npy->data + index * npy->element;
    uint64_t bits64;
    uint32_t bits32;
    if (npy->element == 1)
        return *at;
    if (npy->element == 4) {
        memcpy(&bits32, at, sizeof(bits32));
        bits32 = le32toh(bits32);
        float value;
        memcpy(&value, &bits32, sizeof(value));
        return npy->type[1] == 'f' ? (double)value : (double)(int32_t)bits32;
    }
    memcpy(&bits64, at, sizeof(bits64));
    bits64 = le64toh(bits64);
    double value;
    memcpy(&value, &bits64, sizeof(value));
    return npy->type[1] == 'f' ? value : (double)(int64_t)bits64;
}

static gyre_status copy_row(const struct npy *npy, size_t row, const char *name, gyre_nn_dataset *data)
{
    for (size_t c = 0; c < npy->columns; c++) {
        double value = element(npy, row * npy->columns + c);
        bool label = c == data->features;
        if (!isfinite((float)value))
            return gy_nn_fail(GYRE_INVALID_ARGUMENT, "%s, row %zu, column %zu: %g is no finite number of float32", name,
                              row, c, value);
        if (!label)
            data->x[row * data->features + c] = (float)value;
        else if (value < 0 || value >= GY_NN_LARGEST_CLASS || value != floor(value))
            return gy_nn_fail(GYRE_INVALID_ARGUMENT, "%s, row %zu: the label %g is not an integer from 0 to %d", name,
                              row, value, GY_NN_LARGEST_CLASS - 1);
        else
            data->labels[row] = (int32_t)value;
    }
    return GYRE_SUCCESS;
}

gyre_status gy_nn_npy_parse(const struct gy_nn_bytes *bytes, const char *name, gyre_nn_dataset **data_p)
{
    struct npy npy = {0};
    gyre_nn_dataset *data;
    gyre_status status = parse(bytes, name, &npy);
    if (status != GYRE_SUCCESS)
        return status;
    status = gy_nn_dataset_alloc(npy.rows, npy.columns - 1, 1, &data);
    for (size_t row = 0; status == GYRE_SUCCESS && row < npy.rows; row++) {
        status = copy_row(&npy, row, name, data);
        if (status != GYRE_SUCCESS)
            gyre_nn_dataset_free(data);
    }
    if (status == GYRE_SUCCESS)
        *data_p = data;
    return status;
}

gyre_status gy_nn_npy_open(const char *path, gyre_nn_dataset **data_p)
{
    struct gy_nn_bytes bytes;
    gyre_nn_dataset *data = NULL;
    gyre_status status = gy_nn_bytes_read(path, &bytes, NULL);
    if (status != GYRE_SUCCESS)
        return status;
    status = gy_nn_npy_parse(&bytes, path, &data);
    free(bytes.data);
    return status == GYRE_SUCCESS && data ? gy_nn_dataset_finish(data, path, data_p) : status;
}
