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
