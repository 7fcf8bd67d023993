/* Safetensors, decoded and written. The decoder checks in this order: header length against the bytes, JSON, each
 * tensor's type and shape against its offsets, and then that the tensors, sorted by offset, tile the data exactly. */
#include "io/safetensors.h"

#include "base/aside.h"

#include "base/error.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    const char *name;
    gyre_dtype dtype;
} types[] = {{"F32", GYRE_FLOAT32}, {"F64", GYRE_FLOAT64}, {"I32", GYRE_INT32}};
#define NTYPES (sizeof(types) / sizeof(types[0]))

static size_t size_of(gyre_dtype dtype)
{
    return dtype == GYRE_FLOAT64 ? 8 : 4;
}

static bool parse_type(const json_t *value, gyre_dtype *dtype_p)
{
    const char *text = json_string_value(value);
    for (size_t i = 0; text && i < NTYPES; i++) {
        if (strcmp(types[i].name, text) == 0) {
            *dtype_p = types[i].dtype;
            return true;
        }
    }
    return false;
}

static bool parse_size(const json_t *value, size_t *size_p)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *size_p = (size_t)json_integer_value(value);
    return true;
}

static bool parse_shape(const json_t *shape, struct gy_st_tensor *tensor)
{
    size_t rank = json_array_size(shape);
    if (!json_is_array(shape) || rank > GY_ST_LARGEST_RANK)
        return false;
    tensor->rank = (int)rank;
    tensor->count = 1;
    for (size_t i = 0; i < rank; i++)
        if (!parse_size(json_array_get(shape, i), &tensor->shape[i]) ||
            __builtin_mul_overflow(tensor->count, tensor->shape[i], &tensor->count))
            return false;
    return true;
}

/* One entry of the header; its data inside [data, data + size). */
static bool parse_tensor(const char *name, const json_t *entry, const uint8_t *data, size_t size,
                         struct gy_st_tensor *tensor)
{
    const json_t *offsets = json_object_get(entry, "data_offsets");
    size_t first, last, bytes;
    *tensor = (struct gy_st_tensor){.name = name};
    if (!json_is_object(entry) || json_array_size(offsets) != 2)
        return false;
    if (!parse_type(json_object_get(entry, "dtype"), &tensor->dtype) ||
        !parse_shape(json_object_get(entry, "shape"), tensor))
        return false;
    if (!parse_size(json_array_get(offsets, 0), &first) || !parse_size(json_array_get(offsets, 1), &last))
        return false;
    if (first > last || last > size || __builtin_mul_overflow(tensor->count, size_of(tensor->dtype), &bytes) ||
        bytes != last - first)
        return false;
    tensor->data = data + first;
    return true;
}

static int compare_tensors(const void *a, const void *b)
{
    const struct gy_st_tensor *x = a, *y = b;
    if (x->data != y->data)
        return (const char *)x->data < (const char *)y->data ? -1 : 1;
    return (x->count > y->count) - (x->count < y->count); /* empty tensors first */
}

static bool tiles(const struct gy_st_file *file, const uint8_t *data, size_t size)
{
    const uint8_t *at = data;
    for (size_t i = 0; i < file->ntensors; i++) {
        if ((const uint8_t *)file->tensors[i].data != at)
            return false;
        at += file->tensors[i].count * size_of(file->tensors[i].dtype);
    }
    return at == data + size;
}

static gyre_status parse_tensors(struct gy_st_file *file, const uint8_t *data, size_t size, const char *name)
{
    const char *key;
    json_t *entry;
    file->tensors = calloc(json_object_size(file->header) + 1, sizeof(*file->tensors));
    if (!file->tensors)
        return gy_nn_fail(GYRE_NO_MEMORY, "no memory for the %zu tensors of %s", json_object_size(file->header), name);
    json_object_foreach (file->header, key, entry) {
        if (strcmp(key, "__metadata__") == 0)
            continue;
        if (!parse_tensor(key, entry, data, size, &file->tensors[file->ntensors]))
            return gy_nn_fail(GYRE_INVALID_ARGUMENT,
                              "%s is damaged or cut short: type, shape and offsets of the tensor \"%.64s\" do not fit "
                              "its %zu bytes of data",
                              name, key, size);
        file->ntensors++;
    }
    qsort(file->tensors, file->ntensors, sizeof(*file->tensors), compare_tensors);
    if (!tiles(file, data, size))
        return gy_nn_fail(GYRE_INVALID_ARGUMENT,
                          "%s is damaged or cut short: its tensors overlap, or do not cover its %zu bytes of data",
                          name, size);
    return GYRE_SUCCESS;
}

gyre_status gy_st_decode(const void *bytes, size_t size, const char *name, struct gy_st_file *file_p)
{
    struct gy_st_file file = {0};
    uint64_t length;
    if (size < sizeof(length))
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "%s is no safetensors file: it has %zu bytes", name, size);
    memcpy(&length, bytes, sizeof(length));
    length = le64toh(length);
    if (length > size - sizeof(length) || length > GY_ST_LARGEST_HEADER)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT,
                          "%s is no safetensors file, or cut short: a header of %llu bytes in %zu", name,
                          (unsigned long long)length, size);
    const char *text = (const char *)bytes + sizeof(length);
    errno = 0;
    file.header = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, NULL);
    if (!file.header) /* jansson calls a failed allocation bad syntax; what is damaged is so twice */
        file.header = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, NULL);
    if (!file.header && errno == ENOMEM)
        return gy_nn_fail(GYRE_NO_MEMORY, "no memory for the header of %s", name);
    if (!json_is_object(file.header)) {
        gy_st_free(&file);
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "%s is damaged: its header is no JSON object", name);
    }
    gyre_status status = parse_tensors(&file, (const uint8_t *)text + length, size - sizeof(length) - (size_t)length,
                                       name);
    if (status != GYRE_SUCCESS)
        gy_st_free(&file);
    else
        *file_p = file;
    return status;
}

void gy_st_free(struct gy_st_file *file)
{
    free(file->tensors);
    json_decref(file->header);
}

const struct gy_st_tensor *gy_st_find(const struct gy_st_file *file, const char *name)
{
    for (size_t i = 0; i < file->ntensors; i++)
        if (strcmp(file->tensors[i].name, name) == 0)
            return &file->tensors[i];
    return NULL;
}

const char *gy_st_metadata(const struct gy_st_file *file, const char *key)
{
    return json_string_value(json_object_get(json_object_get(file->header, "__metadata__"), key));
}

/* NULL without memory. */
static json_t *describe(const struct gy_st_tensor *tensor, size_t first)
{
    json_t *shape = json_array();
    const char *type = "I32";
    for (size_t i = 0; i < NTYPES; i++)
        if (types[i].dtype == tensor->dtype)
            type = types[i].name;
    for (int i = 0; i < tensor->rank; i++)
        if (json_array_append_new(shape, json_integer((json_int_t)tensor->shape[i]))) {
            json_decref(shape);
            return NULL;
        }
    size_t last = first + tensor->count * size_of(tensor->dtype);
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", type, "shape", shape, "data_offsets", (json_int_t)first,
                     (json_int_t)last);
}

/* The header as text, padded with spaces so that the data begin at a multiple of 8 bytes. NULL without memory. */
static char *encode_header(const struct gy_st_tensor *tensors, size_t ntensors, json_t *metadata, size_t *length_p)
{
    json_t *header = json_object();
    size_t offset = 0;
    bool ok = json_object_set(header, "__metadata__", metadata) == 0;
    for (size_t i = 0; i < ntensors; i++) {
        ok = ok && json_object_set_new(header, tensors[i].name, describe(&tensors[i], offset)) == 0;
        offset += tensors[i].count * size_of(tensors[i].dtype);
    }
    /* Twice: without memory jansson may leave out a part of the text and call it a success. */
    size_t length = ok ? json_dumpb(header, NULL, 0, JSON_COMPACT) : 0, padded = (length + 7) / 8 * 8;
    char *text = length > 0 ? malloc(padded + 1) : NULL;
    if (text && json_dumpb(header, text, length, JSON_COMPACT) != length) {
        free(text);
        text = NULL;
    }
    json_decref(header);
    if (text)
        memset(text + length, ' ', padded - length);
    *length_p = padded;
    return text;
}

static bool write_file(FILE *file, const char *header, size_t length, const struct gy_st_tensor *tensors,
                       size_t ntensors)
{
    uint64_t prefix = htole64((uint64_t)length);
    bool ok = fwrite(&prefix, sizeof(prefix), 1, file) == 1 && fwrite(header, 1, length, file) == length;
    for (size_t i = 0; ok && i < ntensors; i++) {
        size_t size = size_of(tensors[i].dtype);
        ok = fwrite(tensors[i].data, size, tensors[i].count, file) == tensors[i].count;
    }
    return ok;
}

gyre_status gy_st_write(const char *path, const struct gy_st_tensor *tensors, size_t ntensors, json_t *metadata)
{
    struct gy_aside aside;
    gyre_status status = GYRE_SUCCESS;
    size_t length = 0;
    if (!gy_aside_replaceable(path))
        return gy_nn_fail(GYRE_INVALID_ARGUMENT,
                          "cannot write %s: it is a device or a pipe, and a new file would take its place", path);
    char *header = encode_header(tensors, ntensors, metadata, &length);
    if (!header)
        return gy_nn_fail(GYRE_NO_MEMORY, "no memory for the header of %s", path);
    if (!gy_aside_open(&aside, path)) {
        status = errno == EWOULDBLOCK
                     ? gy_nn_fail(GYRE_SYSTEM, "another run is writing %s; give each its own file", path)
                     : gy_nn_fail_system(errno, "cannot create %s.new", path);
        free(header);
        return status;
    }
    bool written = write_file(aside.stream, header, length, tensors, ntensors);
    if (!gy_aside_close(&aside, written))
        status = gy_nn_fail_system(errno, "cannot write %s", path);
    free(header);
    return status;
}
