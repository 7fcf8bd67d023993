/* The safetensors format: a little-endian 64-bit header length, a JSON object {name: {dtype, shape, data_offsets}}, the
 * data. "__metadata__" maps strings to strings. The decoder works on bytes in memory, believes nothing and is
 * fuzzed. */
#ifndef GY_NN_SAFETENSORS_H
#define GY_NN_SAFETENSORS_H

#include <gyre/nn.h>
#include <jansson.h>

#define GY_ST_LARGEST_HEADER ((size_t)100 << 20)
#define GY_ST_LARGEST_RANK 8

struct gy_st_tensor {
    const char *name; /* belongs to the file's header */
    gyre_dtype dtype; /* F32, F64 and I32 are understood */
    int rank;
    size_t shape[GY_ST_LARGEST_RANK];
    size_t count;     /* elements */
    const void *data; /* into the bytes decoded, or what to write */
};

struct gy_st_file {
    struct gy_st_tensor *tensors; /* in the order of their data */
    size_t ntensors;
    json_t *header;
};

/* Decodes; the data pointers lead into `bytes`. Guarantee: every tensor lies inside the bytes, tensors do not overlap
 * and leave no hole, and nothing is read outside [bytes, bytes+size). `name` is for the error message. */
gyre_status gy_st_decode(const void *bytes, size_t size, const char *name, struct gy_st_file *file_p);
void gy_st_free(struct gy_st_file *file);
const struct gy_st_tensor *gy_st_find(const struct gy_st_file *file, const char *name);
const char *gy_st_metadata(const struct gy_st_file *file, const char *key); /* NULL if it is not there */

/* Writes to path.new, flushes, renames, flushes the folder: a crash leaves the old file or the new one. metadata:
 * an object of strings; borrowed. */
gyre_status gy_st_write(const char *path, const struct gy_st_tensor *tensors, size_t ntensors, json_t *metadata);

#endif
