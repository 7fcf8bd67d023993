/* What the readers of data share: whole files as bytes, and the fixed split. */
#ifndef GY_NN_DATASET_H
#define GY_NN_DATASET_H

#include <gyre/nn.h>

#define GY_NN_LARGEST_FILE ((size_t)8 << 30) /* bytes, unpacked */
#define GY_NN_LARGEST_CLASS 65536            /* labels are below this */

struct gy_nn_bytes {
    uint8_t *data; /* followed by a 0, for text; freed with free() */
    size_t size;
};

/* A file, unpacked if it is gzip. *missing_p (or NULL) tells a missing file from an unreadable one, without an
 * error message. */
gyre_status gy_nn_bytes_read(const char *path, struct gy_nn_bytes *bytes_p, bool *missing_p);
/* A gzip stream in memory. */
gyre_status gy_nn_bytes_unpack(const void *packed, size_t size, const char *name, struct gy_nn_bytes *bytes_p);

/* samples × features and `steps` labels each, zeroed; split lists not made yet. */
gyre_status gy_nn_dataset_alloc(size_t samples, size_t features, size_t steps, gyre_nn_dataset **data_p);
/* Gives the classes copies of these names; NO_MEMORY. */
gyre_status gy_nn_dataset_name(gyre_nn_dataset *data, char *const *names, size_t count);
/* gyre's fixed stratified split, see nn.h. Sets classes, train and test from the labels. */
gyre_status gy_nn_dataset_split(gyre_nn_dataset *data, const char *name);
/* The first ntrain samples are for training, the rest for testing. */
gyre_status gy_nn_dataset_split_at(gyre_nn_dataset *data, size_t ntrain);

/* Each feature to mean 0 and deviation 1 over the training samples; a constant one becomes 0. */
void gy_nn_dataset_standardize(gyre_nn_dataset *data);
/* Splits and standardizes what a file had; it is in *data_p then, or freed. */
gyre_status gy_nn_dataset_finish(gyre_nn_dataset *data, const char *name, gyre_nn_dataset **data_p);

gyre_status gy_nn_csv_parse(const struct gy_nn_bytes *text, const char *name, gyre_nn_dataset **data_p); /* unscaled */
gyre_status gy_nn_csv_open(const char *path, gyre_nn_dataset **data_p);
gyre_status gy_nn_npy_parse(const struct gy_nn_bytes *bytes, const char *name, gyre_nn_dataset **data_p); /* unscaled */
gyre_status gy_nn_npy_open(const char *path, gyre_nn_dataset **data_p);
gyre_status gy_nn_idx_open(const char *folder, gyre_nn_dataset **data_p);
gyre_status gy_nn_digits_open(gyre_nn_dataset **data_p);

#endif
