/* The IDX format of the MNIST family: magic 0 0 type dimensions, one big-endian 32-bit size per dimension, then the
 * elements. Images are unsigned bytes in three dimensions, labels in one. Every size is checked against the file before
 * it is used. A folder holds four files, with a part for testing, or two, which gyre's fixed split divides. */
#include "base/error.h"
#include "data/dataset.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct idx {
    struct gy_nn_bytes bytes;
    const uint8_t *items;
    size_t count, item;   /* items and bytes of one */
    size_t height, width; /* of an image */
};

static gyre_status parse(struct idx *idx, const char *path, unsigned dimensions)
{
    const uint8_t *b = idx->bytes.data;
    size_t header = 4 + 4 * (size_t)dimensions, sizes[3] = {0, 1, 1};
    if (idx->bytes.size < header || b[0] || b[1] || b[2] != 8 || b[3] != dimensions)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "%s is no IDX file of unsigned bytes in %u dimensions", path,
                          dimensions);
    for (unsigned d = 0; d < dimensions; d++)
        sizes[d] = (size_t)b[4 + 4 * d] << 24 | (size_t)b[5 + 4 * d] << 16 | (size_t)b[6 + 4 * d] << 8 | b[7 + 4 * d];
    idx->count = sizes[0];
    idx->item = sizes[1] * sizes[2];
    idx->height = sizes[1];
    idx->width = sizes[2];
    size_t total;
    if (idx->count == 0 || idx->item == 0 || __builtin_mul_overflow(idx->count, idx->item, &total) ||
        total != idx->bytes.size - header)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "%s should hold %zu×%zu×%zu bytes and holds %zu", path, sizes[0],
                          sizes[1], sizes[2], idx->bytes.size - header);
    idx->items = b + header;
    return GYRE_SUCCESS;
}

static bool has(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (access(path, F_OK) == 0)
        return true;
    snprintf(path, sizeof(path), "%s/%s.gz", folder, name);
    return access(path, F_OK) == 0;
}

/* FOLDER/NAME, or FOLDER/NAME.gz where the former is missing. */
static gyre_status load(const char *folder, const char *name, unsigned dimensions, struct idx *idx_p)
{
    char path[4096];
    bool missing = false;
    struct idx idx = {0};
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    gyre_status status = gy_nn_bytes_read(path, &idx.bytes, &missing);
    if (status != GYRE_SUCCESS && missing) {
        snprintf(path, sizeof(path), "%s/%s.gz", folder, name);
        status = gy_nn_bytes_read(path, &idx.bytes, &missing);
        if (status != GYRE_SUCCESS && missing)
            return gy_nn_fail(GYRE_SYSTEM, "%s holds neither %s nor %s.gz", folder, name, name);
    }
    if (status != GYRE_SUCCESS)
        return status;
    status = parse(&idx, path, dimensions);
    if (status != GYRE_SUCCESS)
        free(idx.bytes.data);
    else
        *idx_p = idx;
    return status;
}

static void copy_part(gyre_nn_dataset *data, size_t at, const struct idx *images, const struct idx *labels)
{
    for (size_t i = 0; i < images->count * images->item; i++)
        data->x[at * images->item + i] = (float)images->items[i] / 255;
    for (size_t i = 0; i < labels->count; i++)
        data->labels[at + i] = labels->items[i];
}

static void note_image(gyre_nn_dataset *data, const struct idx *images)
{
    data->image = (struct gyre_nn_image){.height = images->height, .width = images->width, .channels = 1};
}

/* Images and labels that are not divided yet. */
static gyre_status open_pair(const char *folder, gyre_nn_dataset **data_p)
{
    struct idx images = {0}, labels = {0};
    gyre_nn_dataset *data = NULL;
    gyre_status status = load(folder, "images-idx3-ubyte", 3, &images);
    status = status ? status : load(folder, "labels-idx1-ubyte", 1, &labels);
    if (status == GYRE_SUCCESS && images.count != labels.count)
        status = gy_nn_fail(GYRE_INVALID_ARGUMENT, "the IDX files of %s do not fit: %zu images with %zu labels", folder,
                            images.count, labels.count);
    if (status == GYRE_SUCCESS)
        status = gy_nn_dataset_alloc(images.count, images.item, 1, &data);
    if (status == GYRE_SUCCESS) {
        copy_part(data, 0, &images, &labels);
        note_image(data, &images);
        status = gy_nn_dataset_split(data, folder);
    }
    free(images.bytes.data);
    free(labels.bytes.data);
    if (status == GYRE_SUCCESS)
        *data_p = data;
    else
        gyre_nn_dataset_free(data);
    return status;
}

gyre_status gy_nn_idx_open(const char *folder, gyre_nn_dataset **data_p)
{
    static const char *const names[4] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
                                         "t10k-labels-idx1-ubyte"};
    struct idx part[4] = {0};
    gyre_nn_dataset *data = NULL;
    gyre_status status = GYRE_SUCCESS;
    if (!has(folder, names[0]) && has(folder, "images-idx3-ubyte"))
        return open_pair(folder, data_p);
    for (int i = 0; i < 4 && status == GYRE_SUCCESS; i++)
        status = load(folder, names[i], i % 2 == 0 ? 3 : 1, &part[i]);
    if (status == GYRE_SUCCESS && (part[0].count != part[1].count || part[2].count != part[3].count ||
                                   part[0].item != part[2].item || part[0].height != part[2].height))
        status = gy_nn_fail(
            GYRE_INVALID_ARGUMENT,
            "the IDX files of %s do not fit: %zu images of %zu pixels with %zu labels for training, %zu of "
            "%zu with %zu for testing",
            folder, part[0].count, part[0].item, part[1].count, part[2].count, part[2].item, part[3].count);
    if (status == GYRE_SUCCESS)
        status = gy_nn_dataset_alloc(part[0].count + part[2].count, part[0].item, 1, &data);
    if (status == GYRE_SUCCESS) {
        copy_part(data, 0, &part[0], &part[1]);
        copy_part(data, part[0].count, &part[2], &part[3]);
        note_image(data, &part[0]);
        status = gy_nn_dataset_split_at(data, part[0].count);
    }
    for (int i = 0; i < 4; i++)
        free(part[i].bytes.data);
    if (status == GYRE_SUCCESS)
        *data_p = data;
    return status;
}
