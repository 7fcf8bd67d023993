/* Every sample exactly once per epoch, for any world size and batch; and the fixed split of the digits. */
#include <criterion/criterion.h>
#include <gyre/nn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES 1000

static void count_uses(int ranks, size_t batch, const uint32_t *order, int *uses)
{
    for (size_t at = 0; at < SAMPLES; at += batch) {
        size_t rows = SAMPLES - at < batch ? SAMPLES - at : batch, first, count, covered = 0;
        for (int rank = 0; rank < ranks; rank++) {
            gyre_nn_shard(rows, rank, ranks, &first, &count);
            cr_assert_eq(first, covered);
            for (size_t i = 0; i < count; i++)
                uses[order[at + first + i]]++;
            covered += count;
        }
        cr_assert_eq(covered, rows);
    }
}

Test(shuffle, each_sample_once_for_every_world_size)
{
    uint32_t order[SAMPLES];
    gyre_nn_shuffle(5, 3, order, SAMPLES);
    for (int ranks = 1; ranks <= 130; ranks++) {
        for (size_t batch = 1; batch <= 333; batch += 83) {
            int uses[SAMPLES] = {0};
            count_uses(ranks, batch, order, uses);
            for (int i = 0; i < SAMPLES; i++)
                cr_assert_eq(uses[i], 1, "%d ranks, batch %zu: sample %d is used %d times", ranks, batch, i, uses[i]);
        }
    }
}

Test(shuffle, depends_on_seed_and_epoch_alone)
{
    uint32_t a[SAMPLES], b[SAMPLES];
    gyre_nn_shuffle(1, 2, a, SAMPLES);
    gyre_nn_shuffle(1, 2, b, SAMPLES);
    cr_assert_eq(memcmp(a, b, sizeof(a)), 0);
    gyre_nn_shuffle(1, 3, b, SAMPLES);
    cr_assert_neq(memcmp(a, b, sizeof(a)), 0);
    gyre_nn_shuffle(2, 2, b, SAMPLES);
    cr_assert_neq(memcmp(a, b, sizeof(a)), 0);
}

Test(digits, are_1797_split_80_to_20_in_every_class)
{
    gyre_nn_dataset *data = NULL;
    int all[10] = {0}, test[10] = {0}, seen[1797] = {0};
    cr_assert_eq(gyre_nn_dataset_open("digits", &data), GYRE_SUCCESS, "%s", gyre_nn_last_error());
    cr_assert_eq(data->samples, 1797);
    cr_assert_eq(data->features, 64);
    cr_assert_eq(data->classes, 10);
    for (size_t i = 0; i < data->samples; i++)
        all[data->labels[i]]++;
    for (size_t i = 0; i < data->ntest; i++) {
        test[data->labels[data->test[i]]]++;
        seen[data->test[i]]++;
    }
    for (size_t i = 0; i < data->ntrain; i++)
        seen[data->train[i]]++;
    for (int i = 0; i < 1797; i++)
        cr_assert_eq(seen[i], 1);
    for (int c = 0; c < 10; c++)
        cr_assert_eq(test[c], (all[c] * 2 + 5) / 10);
    for (size_t i = 0; i < data->samples * 64; i++)
        cr_assert(data->x[i] >= 0 && data->x[i] <= 1);
    gyre_nn_dataset_free(data);
}

static const char *write_text(const char *text)
{
    static char name[64];
    strcpy(name, "/tmp/gyre_nn_csv_XXXXXX");
    int fd = mkstemp(name);
    cr_assert(fd >= 0);
    FILE *file = fdopen(fd, "w");
    fputs(text, file);
    fclose(file);
    return name;
}

static gyre_status open_text(const char *text, gyre_nn_dataset **data_p)
{
    char name[80];
    const char *path = write_text(text);
    snprintf(name, sizeof(name), "csv:%s", path);
    gyre_status status = gyre_nn_dataset_open(name, data_p);
    remove(path);
    return status;
}

Test(csv, header_crlf_and_standardised_columns)
{
    gyre_nn_dataset *data = NULL;
    cr_assert_eq(open_text("a,b,label\r\n1,7,0\r\n2,7,0\r\n3,7,0\r\n4,7,1\r\n5,7,1\r\n6,7,1", &data), GYRE_SUCCESS,
                 "%s", gyre_nn_last_error());
    cr_assert_eq(data->samples, 6);
    cr_assert_eq(data->features, 2);
    cr_assert_eq(data->classes, 2);
    cr_assert_eq(data->ntest, 2);
    double sum = 0;
    for (size_t i = 0; i < data->ntrain; i++) {
        sum += (double)data->x[2 * data->train[i]];
        cr_assert_eq(data->x[2 * data->train[i] + 1], 0);
    }
    cr_assert_float_eq(sum, 0, 1e-6);
    gyre_nn_dataset_free(data);
}

Test(csv, damaged_files_are_refused_with_their_line)
{
    gyre_nn_dataset *data = NULL;
    static const char *const bad[] = {"",          "1\n2\n",   "1,2,0\n1,0\n", "1,2,0\n1,x,0\n", "1,2,0\n1,2,0,4\n",
                                      "1,2,0.5\n", "1,2,-1\n", "1,nan,1\n",    "1,2,99999999\n", "head,er\n"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        cr_assert_eq(open_text(bad[i], &data), GYRE_INVALID_ARGUMENT, "text %zu", i);
        cr_assert_gt(strlen(gyre_nn_last_error()), 10);
    }
    open_text("1,2,0\n1,x,0\n", &data);
    cr_assert(strstr(gyre_nn_last_error(), "line 2, column 2"), "%s", gyre_nn_last_error());
    cr_assert_eq(gyre_nn_dataset_open("csv:/nowhere", &data), GYRE_SYSTEM);
    cr_assert_eq(gyre_nn_dataset_open("mnist", &data), GYRE_INVALID_ARGUMENT);
}

static void write_idx(const char *folder, const char *name, const char *bytes, size_t size)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    cr_assert(file && fwrite(bytes, 1, size, file) == size);
    fclose(file);
}

#define IMAGES(n, pixels) "\0\0\x08\x03\0\0\0" n "\0\0\0\x01\0\0\0\x02" pixels
#define LABELS(n, labels) "\0\0\x08\x01\0\0\0" n labels
#define WRITE(folder, name, text) write_idx(folder, name, text, sizeof(text) - 1)

Test(idx, files_of_the_mnist_kind)
{
    char folder[] = "/tmp/gyre_nn_idx_XXXXXX", name[64], command[64];
    gyre_nn_dataset *data = NULL;
    cr_assert(mkdtemp(folder));
    snprintf(name, sizeof(name), "idx:%s", folder);
    WRITE(folder, "train-images-idx3-ubyte", IMAGES("\x02", "\x00\xff\x33\x00"));
    WRITE(folder, "train-labels-idx1-ubyte", LABELS("\x02", "\x01\x00"));
    WRITE(folder, "t10k-images-idx3-ubyte", IMAGES("\x01", "\xff\xff"));
    WRITE(folder, "t10k-labels-idx1-ubyte", LABELS("\x01", "\x01"));
    snprintf(command, sizeof(command), "gzip %s/t10k-*", folder);
    cr_assert_eq(system(command), 0);
    cr_assert_eq(gyre_nn_dataset_open(name, &data), GYRE_SUCCESS, "%s", gyre_nn_last_error());
    cr_assert(data->samples == 3 && data->features == 2 && data->classes == 2 && data->ntrain == 2 && data->ntest == 1);
    cr_assert(data->x[1] == 1 && data->x[2] == 51.0f / 255 && data->x[4] == 1 && data->labels[0] == 1);
    gyre_nn_dataset_free(data);
    WRITE(folder, "train-images-idx3-ubyte", IMAGES("\x02", "\x00\xff\x33")); /* a pixel short */
    cr_assert_eq(gyre_nn_dataset_open(name, &data), GYRE_INVALID_ARGUMENT);
    cr_assert(strstr(gyre_nn_last_error(), "should hold 2×1×2 bytes and holds 3"), "%s", gyre_nn_last_error());
    WRITE(folder, "train-images-idx3-ubyte", IMAGES("\x01", "\x00\xff")); /* an image short */
    cr_assert_eq(gyre_nn_dataset_open(name, &data), GYRE_INVALID_ARGUMENT);
    WRITE(folder, "train-images-idx3-ubyte", "\0\0\x08");
    cr_assert_eq(gyre_nn_dataset_open(name, &data), GYRE_INVALID_ARGUMENT);
    snprintf(command, sizeof(command), "rm -r %s", folder);
    cr_assert_eq(system(command), 0);
}
