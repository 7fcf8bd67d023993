/* A strategy as a user writes one, with public calls only: signs of gradients, of which the majority wins (signSGD with
 * majority vote; Bernstein et al., 2018), each rank with a momentum of its own. It trains; its state is in checkpoints,
 * so that a run that is cut goes on to the same bits; a checkpoint of another strategy or number of ranks is refused; a
 * hook that fails ends the run with its error message; and a rank whose parameters went astray is named. */
#include <gyre/nn.h>

#include "support/launcher.h"

#define RANKS 4

struct votes {
    struct gyre_nn_run run;
    size_t count;
    float *momentum; /* of this rank */
    int8_t *signs;
};

static void votes_close(void *self)
{
    struct votes *votes = self;
    free(votes->momentum);
    free(votes->signs);
    free(votes);
}

static gyre_status votes_open(const struct gyre_nn_run *run, void **self_p)
{
    struct votes *votes = calloc(1, sizeof *votes);
    votes->run = *run;
    votes->count = gyre_nn_param_count(run->model);
    votes->momentum = calloc(votes->count, sizeof *votes->momentum);
    votes->signs = calloc(votes->count, sizeof *votes->signs);
    *self_p = votes;
    return GYRE_SUCCESS;
}

static int fail_at = -1, stray_at = -1;

static gyre_status votes_update(void *self, const struct gyre_nn_step *step)
{
    struct votes *votes = self;
    const float *grads = gyre_nn_grads(votes->run.model);
    float *params = gyre_nn_params(votes->run.model), keep = (float)votes->run.settings[0];
    if ((int)step->number == fail_at)
        return gyre_nn_fail(GYRE_INVALID_ARGUMENT, NULL, "the vote is off");
    for (size_t i = 0; i < votes->count; i++) {
        votes->momentum[i] = keep * votes->momentum[i] + grads[i];
        votes->signs[i] = (int8_t)((votes->momentum[i] > 0) - (votes->momentum[i] < 0));
    }
    gyre_status status = gyre_all_reduce(votes->run.comm, votes->signs, votes->signs, votes->count, GYRE_INT8,
                                         GYRE_SUM);
    if (status != GYRE_SUCCESS)
        return gyre_nn_fail(status, votes->run.comm, "the vote");
    for (size_t i = 0; i < votes->count; i++)
        params[i] -= (float)step->rate * (float)((votes->signs[i] > 0) - (votes->signs[i] < 0));
    if ((int)step->number == stray_at && votes->run.rank == 2)
        params[7] = 1;
    return GYRE_SUCCESS;
}

static gyre_status votes_arrays(void *self, struct gyre_nn_array *arrays, size_t *count_p)
{
    struct votes *votes = self;
    arrays[0] = (struct gyre_nn_array){.name = "votes.momentum",
                                       .data = votes->momentum,
                                       .count = votes->count,
                                       .dtype = GYRE_FLOAT32,
                                       .placement = GYRE_NN_LOCAL};
    *count_p = 1;
    return GYRE_SUCCESS;
}

static const struct gyre_nn_setting votes_settings[] = {
    {.name = "keep", .help = "momentum", .value = 0.9, .least = 0, .most = 1},
    {0},
};

static const gyre_nn_strategy votes_strategy = {
    .size = sizeof votes_strategy,
    .name = "votes",
    .help = "the majority's signs",
    .settings = votes_settings,
    .open = votes_open,
    .close = votes_close,
    .update = votes_update,
    .arrays = votes_arrays,
};

static char file[64];

static struct gyre_nn_train_options options_of(const gyre_nn_strategy *strategy)
{
    struct gyre_nn_train_options options = gyre_nn_train_defaults();
    options.strategy = strategy;
    options.settings = strategy == &votes_strategy ? "keep=0.8" : NULL;
    options.epochs = 4;
    options.batch = 61;
    options.schedule.rate = 5e-3;
    options.optimizer = gyre_nn_optimizer_defaults(GYRE_NN_SGD);
    options.check_every = 10;
    return options;
}

static gyre_status train(gyre_comm *comm, const struct gyre_nn_train_options *options,
                         struct gyre_nn_train_result *result_p)
{
    static gyre_nn_dataset *data;
    gyre_nn_model *model = NULL;
    size_t hidden = 32;
    OK(comm, data ? GYRE_SUCCESS : gyre_nn_dataset_open("digits", &data));
    OK(comm, gyre_nn_mlp(64, &hidden, 1, GYRE_NN_RELU, 10, GYRE_FLOAT32, 1, &model));
    gyre_status status = gyre_nn_train(model, data, comm, options, result_p);
    gyre_nn_free(model);
    return status;
}

static void refused(gyre_comm *comm, const struct gyre_nn_train_options *options, gyre_status wanted, const char *text)
{
    struct gyre_nn_train_result result;
    gyre_status status = train(comm, options, &result);
    if (status != wanted || !strstr(gyre_nn_last_error(), text))
        rank_fail("%s: '%s' instead of '%s'", gyre_status_name(status), gyre_nn_last_error(), text);
}

static void body(int rank)
{
    struct gyre_nn_train_result whole, half, rest;
    gyre_comm *comm = rank_begin(100), *pair;
    struct gyre_nn_train_options options = options_of(&votes_strategy);
    CHECK(train(comm, &options, &whole) == GYRE_SUCCESS);
    if (whole.accuracy < 0.9)
        rank_fail("an accuracy of %g", whole.accuracy);

    options.stop_after = 29; /* inside the second epoch */
    options.checkpoint = file;
    CHECK(train(comm, &options, &half) == GYRE_SUCCESS && half.params_xxh3 != whole.params_xxh3);
    options.stop_after = 0;
    options.checkpoint = NULL;
    options.resume = file;
    CHECK(train(comm, &options, &rest) == GYRE_SUCCESS);
    CHECK(rest.params_xxh3 == whole.params_xxh3 && rest.steps == whole.steps);

    struct gyre_nn_train_options other = options_of(NULL);
    other.resume = file;
    refused(comm, &other, GYRE_INVALID_ARGUMENT,
            rank ? "rank 0: " : "was written with the strategy votes, and this run uses sync");
    OK(comm, gyre_comm_split(comm, rank < 2 ? 0 : -1, rank, &pair));
    if (pair)
        refused(pair, &options, GYRE_INVALID_ARGUMENT,
                rank ? "rank 0: " : "holds what 4 ranks had each, and this run has 2");
    OK(comm, gyre_comm_destroy(pair));

    options = options_of(&votes_strategy);
    options.settings = "kept=1";
    refused(comm, &options, GYRE_INVALID_ARGUMENT, "strategy votes: \"kept\" is none of its settings");
    options.settings = "keep=2";
    refused(comm, &options, GYRE_INVALID_ARGUMENT, "\"keep=2\" is out of bounds");
    options.settings = "keep";
    refused(comm, &options, GYRE_INVALID_ARGUMENT, "is no name=value");
    options.strategy = gyre_nn_strategy_find("compressed");
    options.settings = "share=0.1";
    refused(comm, &options, GYRE_INVALID_ARGUMENT, "by=bf16 has no share, which is of by=topk");
    options.settings = "by=topk,rank=2";
    refused(comm, &options, GYRE_INVALID_ARGUMENT, "by=topk has no rank, which is of by=powersgd");
    options.settings = NULL;
    gyre_nn_strategy other_version = votes_strategy;
    options.strategy = &other_version;
    for (int way = 0; way < 3; way++) { /* shorter, longer, never set */
        other_version.size = way == 2 ? 0 : sizeof other_version + (way ? 8 : (size_t)-8);
        refused(comm, &options, GYRE_INVALID_ARGUMENT, "a strategy needs its size");
    }
    options.strategy = &votes_strategy;
    fail_at = 5;
    refused(comm, &options, GYRE_INVALID_ARGUMENT, "the vote is off");
    fail_at = -1;
    stray_at = 12; /* one comparison later it is found */
    refused(comm, &options, GYRE_MISMATCH, "the state of 1 of 4 ranks differs from that of most others: rank 2");
    options.check_every = 1000; /* more than the run has: at its end */
    refused(comm, &options, GYRE_MISMATCH, "the state of 1 of 4 ranks differs from that of most others: rank 2");
    OK(comm, gyre_comm_destroy(comm));
}

int main(void)
{
    char folder[] = "/tmp/gyre-strategy-XXXXXX";
    CHECK(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/checkpoint", folder);
    bool good = launch(RANKS, body, 100, "a strategy of a user");
    unlink(file);
    rmdir(folder);
    return good ? 0 : 1;
}
