/* The promise of the defaults: 97 % on the digits, median of five seeds. And resuming: a run cut in two ends with the
 * same bits. */
#include <criterion/criterion.h>
#include <gyre/nn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static gyre_nn_dataset *digits(void)
{
    gyre_nn_dataset *data = NULL;
    cr_assert_eq(gyre_nn_dataset_open("digits", &data), GYRE_SUCCESS, "%s", gyre_nn_last_error());
    return data;
}

static struct gyre_nn_train_result train(const gyre_nn_dataset *data, const struct gyre_nn_train_options *options,
                                         gyre_dtype dtype)
{
    struct gyre_nn_train_result result;
    gyre_nn_model *model = NULL;
    size_t hidden = 128;
    cr_assert_eq(gyre_nn_mlp(64, &hidden, 1, GYRE_NN_RELU, 10, dtype, options->seed, &model), GYRE_SUCCESS);
    cr_assert_eq(gyre_nn_train(model, data, NULL, options, &result), GYRE_SUCCESS, "%s", gyre_nn_last_error());
    gyre_nn_free(model);
    return result;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

Test(train, digits_reach_97_percent_in_the_median_of_five_seeds)
{
    gyre_nn_dataset *data = digits();
    double accuracy[5];
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct gyre_nn_train_options options = gyre_nn_train_defaults();
        options.seed = seed;
        accuracy[seed - 1] = train(data, &options, GYRE_FLOAT32).accuracy;
    }
    qsort(accuracy, 5, sizeof(accuracy[0]), compare);
    printf("test accuracy of five seeds: %.4f to %.4f, median %.4f\n", accuracy[0], accuracy[4], accuracy[2]);
    cr_assert_geq(accuracy[2], 0.97);
    gyre_nn_dataset_free(data);
}

static void check_resume(gyre_nn_optimizer_kind kind, gyre_dtype dtype, uint64_t cut)
{
    gyre_nn_dataset *data = digits();
    char path[64];
    snprintf(path, sizeof(path), "/tmp/gyre_nn_resume_%d", (int)getpid());
    struct gyre_nn_train_options options = gyre_nn_train_defaults();
    options.epochs = 4;
    options.batch = 100; /* 1,437 samples: the last batch of an epoch is smaller */
    options.optimizer = gyre_nn_optimizer_defaults(kind);
    options.clip_norm = 1;
    struct gyre_nn_train_result whole = train(data, &options, dtype);
    options.checkpoint = path;
    options.stop_after = cut;
    struct gyre_nn_train_result part = train(data, &options, dtype);
    cr_assert_eq(part.steps, cut);
    cr_assert_neq(part.params_xxh3, whole.params_xxh3);
    options.stop_after = 0;
    options.resume = path;
    options.checkpoint = NULL;
    struct gyre_nn_train_result rest = train(data, &options, dtype);
    cr_assert_eq(rest.steps, whole.steps);
    cr_assert_eq(rest.params_xxh3, whole.params_xxh3, "cut at step %d", (int)cut);
    remove(path);
    gyre_nn_dataset_free(data);
}

Test(train, resume_is_exact_inside_an_epoch)
{
    check_resume(GYRE_NN_ADAM, GYRE_FLOAT32, 20);
}
Test(train, resume_is_exact_between_epochs)
{
    check_resume(GYRE_NN_NESTEROV, GYRE_FLOAT64, 30);
}

Test(train, accumulation_gives_the_same_model_within_rounding)
{
    gyre_nn_dataset *data = digits();
    struct gyre_nn_train_options options = gyre_nn_train_defaults();
    options.epochs = 3;
    double whole = train(data, &options, GYRE_FLOAT64).loss;
    options.accumulate = 5;
    cr_assert_float_eq(train(data, &options, GYRE_FLOAT64).loss, whole, 1e-9);
    gyre_nn_dataset_free(data);
}

/* A user's strategy whose before_step finds zeros, and leaves something that the step's gradients come on top of. */
struct starter {
    struct gyre_nn_run run;
    size_t count;
};

enum { FOUND_OTHERS, LOST, STARTED, OUTCOMES };
static size_t outcomes[OUTCOMES];

static gyre_status starter_open(const struct gyre_nn_run *run, void **self_p)
{
    struct starter *self = malloc(sizeof(*self));
    *self = (struct starter){*run, gyre_nn_param_count(run->model)};
    *self_p = self;
    return GYRE_SUCCESS;
}

static gyre_status starter_before_step(void *user, const struct gyre_nn_step *step)
{
    struct starter *self = user;
    float *grads = gyre_nn_grads(self->run.model);
    (void)step;
    for (size_t i = 0; i < self->count; i++) {
        outcomes[FOUND_OTHERS] += grads[i] != 0;
        grads[i] += 1e6F;
    }
    return GYRE_SUCCESS;
}

static gyre_status starter_update(void *user, const struct gyre_nn_step *step)
{
    struct starter *self = user;
    float *grads = gyre_nn_grads(self->run.model);
    for (size_t i = 0; i < self->count; i++) {
        outcomes[grads[i] > 9e5F ? STARTED : LOST]++;
        grads[i] -= 1e6F;
    }
    gyre_nn_optimizer_begin(self->run.optimizer);
    gyre_nn_optimizer_update(self->run.optimizer, 0, self->count, step->rate, 1 / (double)step->rows);
    return GYRE_SUCCESS;
}

Test(train, before_step_of_a_user_finds_zeros_and_may_add_to_them)
{
    static const gyre_nn_strategy strategy = {
        .size = sizeof(strategy),
        .name = "starter",
        .open = starter_open,
        .close = free,
        .before_step = starter_before_step,
        .update = starter_update,
    };
    gyre_nn_dataset *data = digits();
    struct gyre_nn_train_options options = gyre_nn_train_defaults();
    options.strategy = &strategy;
    options.stop_after = 5;
    options.accumulate = 2;
    train(data, &options, GYRE_FLOAT32);
    cr_assert_eq(outcomes[FOUND_OTHERS], 0);
    cr_assert_eq(outcomes[LOST], 0);
    cr_assert_gt(outcomes[STARTED], 0);
    gyre_nn_dataset_free(data);
}

static gyre_status status_of(const gyre_nn_dataset *data, const struct gyre_nn_train_options *options)
{
    gyre_nn_model *model = NULL;
    size_t hidden = 128;
    cr_assert_eq(gyre_nn_mlp(64, &hidden, 1, GYRE_NN_RELU, 10, GYRE_FLOAT32, 1, &model), GYRE_SUCCESS);
    gyre_status status = gyre_nn_train(model, data, NULL, options, NULL);
    gyre_nn_free(model);
    return status;
}

/* In place: the file has the key under another name, as if it had none. */
static void forget_key(const char *path, const char *key)
{
    FILE *file = fopen(path, "r+b");
    cr_assert_not_null(file);
    char start[8192];
    size_t n = fread(start, 1, sizeof(start), file), length = strlen(key), at = 0;
    while (at + length < n && memcmp(start + at, key, length) != 0)
        at++;
    cr_assert_lt(at + length, n, "%s is not in %s", key, path);
    cr_assert_eq(fseek(file, (long)at + 1, SEEK_SET), 0);
    cr_assert_eq(fputc('O', file), 'O');
    cr_assert_eq(fclose(file), 0);
}

/* Without its strategy the optimiser's state has no place. */
static void refuse_alone(const char *path)
{
    gyre_nn_model *model = NULL;
    gyre_nn_optimizer *optimizer = NULL;
    struct gyre_nn_position position;
    struct gyre_nn_optimizer_config config = gyre_nn_optimizer_defaults(GYRE_NN_ADAM);
    size_t hidden = 128;
    cr_assert_eq(gyre_nn_mlp(64, &hidden, 1, GYRE_NN_RELU, 10, GYRE_FLOAT32, 1, &model), GYRE_SUCCESS);
    cr_assert_eq(gyre_nn_optimizer_create(model, &config, &optimizer), GYRE_SUCCESS);
    cr_assert_eq(gyre_nn_checkpoint_read(path, model, optimizer, &position), GYRE_INVALID_ARGUMENT);
    cr_assert(strstr(gyre_nn_last_error(), "go on with that strategy"), "%s", gyre_nn_last_error());
    gyre_nn_optimizer_free(optimizer);
    gyre_nn_free(model);
}

/* Numbers that no run can mean: refused before anything is trained, and before memory is reckoned with them. */
Test(train, numbers_that_mean_nothing_are_refused)
{
    gyre_nn_dataset *data = digits();
    const struct gyre_nn_train_options good = gyre_nn_train_defaults();
    struct gyre_nn_train_options bad[14];
    for (size_t i = 0; i < 14; i++)
        bad[i] = good;
    bad[0].accumulate = SIZE_MAX;
    bad[1].accumulate = (size_t)INT32_MAX + 1;
    bad[2].clip_norm = -1;
    bad[3].clip_norm = NAN;
    bad[4].schedule.kind = (gyre_nn_schedule_kind)99;
    bad[5].schedule.rate = NAN;
    bad[6].schedule.rate = -1;
    bad[7].schedule.floor = INFINITY;
    bad[8].schedule.factor = -0.5;
    bad[9].optimizer.momentum = 1;
    bad[10].optimizer.beta1 = 1;
    bad[11].optimizer.beta2 = -0.1;
    bad[12].optimizer.epsilon = NAN;
    bad[13].optimizer.weight_decay = NAN;
    for (size_t i = 0; i < 14; i++)
        cr_expect_eq(status_of(data, &bad[i]), GYRE_INVALID_ARGUMENT, "%zu", i);
    struct gyre_nn_train_options large = good;
    large.batch = SIZE_MAX; /* all samples, in one step */
    large.epochs = 1;
    cr_expect_eq(status_of(data, &large), GYRE_SUCCESS, "%s", gyre_nn_last_error());
    gyre_nn_dataset_free(data);
}

Test(train, samples_that_are_not_there_cannot_be_tested)
{
    gyre_nn_dataset *data = digits();
    gyre_nn_model *model = NULL;
    double loss = -1, accuracy = -1;
    cr_assert_eq(gyre_nn_mlp(64, NULL, 0, GYRE_NN_RELU, 10, GYRE_FLOAT32, 1, &model), GYRE_SUCCESS);
    uint32_t rows[] = {0, (uint32_t)data->samples - 1, (uint32_t)data->samples};
    cr_assert_eq(gyre_nn_test(model, data, rows, 2, NULL, &loss, &accuracy), GYRE_SUCCESS);
    cr_assert_eq(gyre_nn_test(model, data, rows, 3, NULL, &loss, &accuracy), GYRE_INVALID_ARGUMENT);
    cr_assert_str_eq(gyre_nn_last_error(), "there is no sample 1797 to test: there are 1797");
    gyre_nn_free(model);
    gyre_nn_dataset_free(data);
}

/* Its momenta would be taken for those of another kind. */
static void check_kind(const char *strategy)
{
    gyre_nn_dataset *data = digits();
    char path[64];
    snprintf(path, sizeof(path), "/tmp/gyre_nn_kind_%d", (int)getpid());
    struct gyre_nn_train_options options = gyre_nn_train_defaults();
    options.strategy = gyre_nn_strategy_find(strategy);
    options.checkpoint = path;
    options.stop_after = 5;
    cr_assert_eq(status_of(data, &options), GYRE_SUCCESS, "%s", gyre_nn_last_error());
    options.checkpoint = NULL;
    options.resume = path;
    options.stop_after = 7;
    options.optimizer = gyre_nn_optimizer_defaults(GYRE_NN_ADAMW);
    cr_assert_eq(status_of(data, &options), GYRE_INVALID_ARGUMENT, "%s", strategy);
    cr_assert(strstr(gyre_nn_last_error(), "written with the optimiser adam, and this run uses adamw"), "%s",
              gyre_nn_last_error());
    if (options.strategy->optimizer != GYRE_NN_REPLICATED) {
        refuse_alone(path);
        forget_key(path, "\"optimizer\"");
        cr_assert_eq(status_of(data, &options), GYRE_SUCCESS, "a file of before: %s", gyre_nn_last_error());
    }
    options.optimizer = gyre_nn_optimizer_defaults(GYRE_NN_ADAM);
    cr_assert_eq(status_of(data, &options), GYRE_SUCCESS, "%s", gyre_nn_last_error());
    remove(path);
    gyre_nn_dataset_free(data);
}

Test(train, another_kind_of_optimizer_is_refused_where_its_state_is_replicated)
{
    check_kind("sync");
}
Test(train, another_kind_of_optimizer_is_refused_where_its_state_is_local)
{
    check_kind("average");
}
Test(train, another_kind_of_optimizer_is_refused_where_its_state_is_sharded)
{
    check_kind("zero");
}

/* Two samples, whose outputs are so far apart that the cost of the right ones is 0 to the last bit. */
Test(train, patience_ends_a_run_whose_test_loss_is_0)
{
    float x[] = {1, -1};
    int32_t labels[] = {0, 1};
    uint32_t rows[] = {0, 1};
    gyre_nn_dataset data = {.samples = 2,
                            .features = 1,
                            .classes = 2,
                            .steps = 1,
                            .x = x,
                            .labels = labels,
                            .train = rows,
                            .test = rows,
                            .ntrain = 2,
                            .ntest = 2};
    char path[64];
    gyre_nn_model *model = NULL;
    struct gyre_nn_train_result result;
    struct gyre_nn_position position = {0};
    struct gyre_nn_train_options options = gyre_nn_train_defaults();
    snprintf(path, sizeof(path), "/tmp/gyre_nn_patience_%d", (int)getpid());
    options.patience = 3;
    options.checkpoint = path;
    for (uint64_t cut = 2; cut <= 4; cut += 2) { /* of 2 epochs, and then to the end */
        cr_assert_eq(gyre_nn_mlp(1, NULL, 0, GYRE_NN_RELU, 2, GYRE_FLOAT32, 1, &model), GYRE_SUCCESS);
        memcpy(gyre_nn_params(model), (float[]){1e3F, -1e3F, 0, 0}, 4 * sizeof(float));
        options.stop_after = cut == 2 ? cut : 0;
        options.resume = cut == 2 ? NULL : path;
        cr_assert_eq(gyre_nn_train(model, &data, NULL, &options, &result), GYRE_SUCCESS, "%s", gyre_nn_last_error());
        cr_assert_eq(result.loss, 0);
        cr_assert_eq(result.steps, cut, "%d", (int)result.steps);
        cr_assert_eq(gyre_nn_checkpoint_read(path, model, NULL, &position), GYRE_SUCCESS, "%s", gyre_nn_last_error());
        cr_assert(position.best > 0 && position.waited == cut - 1, "%g, %d", position.best, (int)position.waited);
        gyre_nn_free(model);
    }
    remove(path);
}
