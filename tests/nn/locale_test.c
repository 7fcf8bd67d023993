/* A program in German has numbers with commas. What nn reads and writes has points all the same: samples, settings,
 * checkpoints, traces. */
#include <criterion/criterion.h>
#include <gyre/nn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/comma.h"

static char path[64];

static void begin(void)
{
    snprintf(path, sizeof(path), "/tmp/gyre_nn_locale_%d", (int)getpid());
    cr_assert(comma_begin());
}

static void end(void)
{
    unlink(path);
}

TestSuite(locale, .init = begin, .fini = end, .timeout = 60);

static bool file_has(const char *text)
{
    static char bytes[1 << 20];
    FILE *file = fopen(path, "re");

    cr_assert_not_null(file);
    size_t size = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    return memmem(bytes, size, text, strlen(text)) != NULL;
}

Test(locale, samples_have_points)
{
    gyre_nn_dataset *data;
    char name[80];
    FILE *file = fopen(path, "we");

    cr_assert_not_null(file);
    for (int i = 0; i < 20; i++)
        fprintf(file, "%d.5,2.%d5e1,%d\n", i, i % 7, i % 2);
    fclose(file);
    snprintf(name, sizeof(name), "csv:%s", path);
    cr_assert_eq(gyre_nn_dataset_open(name, &data), GYRE_SUCCESS, "%s", gyre_nn_last_error());
    gyre_nn_dataset_free(data);
}

Test(locale, settings_have_points)
{
    const gyre_nn_strategy *slowmo = gyre_nn_strategy_find("slowmo");
    double values[GYRE_NN_MOST_SETTINGS];

    cr_assert_eq(gyre_nn_strategy_parse(slowmo, "beta=0.25", values), GYRE_SUCCESS, "%s", gyre_nn_last_error());
    for (size_t i = 0; slowmo->settings[i].name; i++)
        cr_assert(strcmp(slowmo->settings[i].name, "beta") != 0 || values[i] == 0.25);
}

Test(locale, checkpoints_have_points)
{
    struct gyre_nn_position position = {.seed = 1, .cost = 0.1, .best = 2.5}, found;
    gyre_nn_model *model;
    size_t hidden = 4;

    cr_assert_eq(gyre_nn_mlp(8, &hidden, 1, GYRE_NN_RELU, 3, GYRE_FLOAT32, 1, &model), GYRE_SUCCESS);
    cr_assert_eq(gyre_nn_checkpoint_write(path, model, NULL, &position), GYRE_SUCCESS);
    cr_assert(file_has("\"0x1.999999999999ap-4\""));
    cr_assert_eq(gyre_nn_checkpoint_read(path, model, NULL, &found), GYRE_SUCCESS, "%s", gyre_nn_last_error());
    cr_assert(found.cost == 0.1 && found.best == 2.5);
    gyre_nn_free(model);
}

Test(locale, traces_have_points)
{
    struct gyre_nn_train_options options = gyre_nn_train_defaults();
    struct gyre_nn_train_result result;
    gyre_nn_dataset *data;
    gyre_nn_model *model;
    gyre_nn_trace *trace;
    size_t hidden = 8;

    cr_assert_eq(gyre_nn_dataset_open("digits", &data), GYRE_SUCCESS, "%s", gyre_nn_last_error());
    cr_assert_eq(gyre_nn_mlp(64, &hidden, 1, GYRE_NN_RELU, 10, GYRE_FLOAT32, 1, &model), GYRE_SUCCESS);
    cr_assert_eq(gyre_nn_trace_create(1000, &trace), GYRE_SUCCESS);
    options.stop_after = 2;
    options.trace = trace;
    cr_assert_eq(gyre_nn_train(model, data, NULL, &options, &result), GYRE_SUCCESS, "%s", gyre_nn_last_error());
    cr_assert_eq(gyre_nn_trace_write(trace, NULL, path), GYRE_SUCCESS, "%s", gyre_nn_last_error());
    cr_assert(file_has("\"ts\":0.000,\"dur\":"));
    char text[8];
    snprintf(text, sizeof(text), "%.1f", 0.5);
    cr_assert_str_eq(text, "0,5", "and the program keeps its own");
    gyre_nn_trace_free(trace);
    gyre_nn_free(model);
    gyre_nn_dataset_free(data);
}
