/* Ranks that want different runs: each of them gets the same error message, which says what differs, before a step
 * is made. The communicator continues, and trains what all want. Some of these runs would have ended well, with a
 * model that no rank had asked for, and one would have waited for ever. */
#include <gyre/nn.h>

#include "support/launcher.h"

#define RANKS 3

static gyre_nn_dataset *data;

static void on_report(void *user, const struct gyre_nn_report *report)
{
    (void)user;
    (void)report;
}

static gyre_status train(gyre_comm *comm, const struct gyre_nn_train_options *options, size_t hidden)
{
    gyre_nn_model *model = NULL;
    OK(comm, gyre_nn_mlp(64, &hidden, 1, GYRE_NN_RELU, 10, GYRE_FLOAT32, 1, &model));
    gyre_status status = gyre_nn_train(model, data, comm, options, NULL);
    gyre_nn_free(model);
    return status;
}

static struct gyre_nn_train_options plain(void)
{
    struct gyre_nn_train_options options = gyre_nn_train_defaults();
    options.stop_after = 6;
    return options;
}

static void refused(gyre_comm *comm, const struct gyre_nn_train_options *options, size_t hidden, const char *text)
{
    gyre_status status = train(comm, options, hidden);
    if (status != GYRE_MISMATCH || !strstr(gyre_nn_last_error(), text))
        rank_fail("%s: '%s' instead of '%s'", gyre_status_name(status), gyre_nn_last_error(), text);
}

static void numbers(gyre_comm *comm, bool other)
{
    struct gyre_nn_train_options o = plain();
    o.batch += other;
    refused(comm, &o, 8, "ranks do not agree on batch: 64 on rank 0, 65 on rank 2");
    o = plain();
    o.seed += other;
    refused(comm, &o, 8, "ranks do not agree on seed: 1 on rank 0, 2 on rank 2");
    o = plain();
    o.schedule.rate = other ? 0.25 : 0.5;
    refused(comm, &o, 8, "ranks do not agree on the learning rate: 0.5 on rank 0, 0.25 on rank 2");
    o = plain();
    o.clip_norm = other;
    refused(comm, &o, 8, "ranks do not agree on clip_norm: 0 on rank 0, 1 on rank 2");
    o = plain();
    o.stop_after += other;
    refused(comm, &o, 8, "ranks do not agree on stop_after: 6 on rank 0, 7 on rank 2");
    o = plain();
    o.check_every += other;
    refused(comm, &o, 8, "ranks do not agree on check_every");
    o = plain();
    refused(comm, &o, other ? 9 : 8, "ranks do not agree on the model's parameters: 610 on rank 0, 685 on rank 2");
}

static void ways(gyre_comm *comm, bool other)
{
    struct gyre_nn_train_options o = plain();
    o.strategy = gyre_nn_strategy_find(other ? "sync" : "average");
    refused(comm, &o, 8, "ranks 0 and 2 do not agree on the strategy");
    o.strategy = gyre_nn_strategy_find("async");
    o.settings = other ? "wait=yes,every=3" : "wait=yes";
    refused(comm, &o, 8, "ranks 0 and 2 do not agree on the strategy's settings");
    o.strategy = gyre_nn_strategy_find("bmuf");
    o.settings = other ? "eta=0.25" : "eta=0.5";
    refused(comm, &o, 8, "ranks 0 and 2 do not agree on the strategy's settings");
    o = plain();
    o.optimizer.kind = other ? GYRE_NN_ADAMW : GYRE_NN_ADAM;
    refused(comm, &o, 8, "ranks 0 and 2 do not agree on the optimizer");
    o = plain();
    o.report = other ? on_report : NULL;
    refused(comm, &o, 8, "ranks 0 and 2 do not agree on whether there are reports");
    o = plain();
    o.checkpoint = other ? "/nowhere/file" : NULL;
    refused(comm, &o, 8, "ranks 0 and 2 do not agree on whether there are checkpoints");
}

/* Chains that have as many parameters, however they are made. */
struct shape {
    size_t heads, from;
    double rate;
    gyre_nn_activation activation;
    gyre_nn_cost_kind cost;
};

static gyre_nn_model *chain(gyre_comm *comm, const struct shape *shape)
{
    gyre_nn_layer *layers[2];
    gyre_nn_model *model;
    gyre_nn_layer *top = gyre_nn_input(64);
    layers[0] = top = gyre_nn_dense(top, 8, GYRE_NN_IDENTITY);
    layers[1] = top = gyre_nn_attention(top, shape->heads, false);
    top = gyre_nn_dropout(top, shape->rate);
    top = gyre_nn_residual(top, layers[shape->from]);
    top = gyre_nn_activate(top, shape->activation);
    OK(comm, gyre_nn_new(gyre_nn_cost(top, 10, shape->cost), GYRE_FLOAT32, 1, &model));
    return model;
}

static void modules_refused(gyre_comm *comm, const struct shape *shape, const char *text)
{
    struct gyre_nn_train_options o = plain();
    gyre_nn_model *model = chain(comm, shape);
    gyre_status status = gyre_nn_train(model, data, comm, &o, NULL);
    if (status != GYRE_MISMATCH || !strstr(gyre_nn_last_error(), text))
        rank_fail("%s: '%s' instead of '%s'", gyre_status_name(status), gyre_nn_last_error(), text);
    gyre_nn_free(model);
}

static void modules(gyre_comm *comm, bool other)
{
    const struct shape first = {.heads = 1, .rate = 0.25, .activation = GYRE_NN_RELU};
    struct shape shape = first;
    shape.activation = other ? GYRE_NN_TANH : GYRE_NN_RELU;
    modules_refused(comm, &shape, "ranks 0 and 2 do not agree on the kinds of the model's modules");
    shape.activation = other ? GYRE_NN_IDENTITY : GYRE_NN_RELU;
    modules_refused(comm, &shape, "ranks do not agree on modules of the model: 6 on rank 0, 5 on rank 2");
    shape = first;
    shape.heads += other;
    modules_refused(comm, &shape, "ranks 0 and 2 do not agree on the settings of the model's modules");
    shape = first;
    shape.rate = other ? 0.5 : 0.25;
    modules_refused(comm, &shape, "ranks 0 and 2 do not agree on the settings of the model's modules");
    shape = first;
    shape.from = other;
    modules_refused(comm, &shape, "ranks 0 and 2 do not agree on where the model's modules take their inputs from");
    shape = first;
    shape.cost = other ? GYRE_NN_MEAN_SQUARED_ERROR : GYRE_NN_CROSS_ENTROPY;
    modules_refused(comm, &shape, "ranks 0 and 2 do not agree on the model's cost");
}

/* Data of the same size, changed in one place on one rank, and changed back. */
static void samples(gyre_comm *comm, bool other)
{
    struct gyre_nn_train_options o = plain();
    float value = data->x[data->samples * data->features - 1];
    data->x[data->samples * data->features - 1] = other ? value + 1 : value;
    refused(comm, &o, 8, "ranks 0 and 2 do not agree on the values of the samples");
    data->x[data->samples * data->features - 1] = value;
    int32_t label = data->labels[5];
    data->labels[5] = other ? 9 - label : label;
    refused(comm, &o, 8, "ranks 0 and 2 do not agree on the labels of the samples");
    data->labels[5] = label;
    uint32_t train = data->train[7], test = data->test[3];
    data->train[7] = other ? test : train;
    data->test[3] = other ? train : test;
    refused(comm, &o, 8, "ranks 0 and 2 do not agree on which samples are for training");
    data->train[7] = train;
    refused(comm, &o, 8, "ranks 0 and 2 do not agree on which samples are for testing");
    data->test[3] = test;
    data->ntest -= other;
    refused(comm, &o, 8, "ranks do not agree on test samples");
    data->ntest += other;
}

/* A reconstruction trains without labels, and may have others. */
static void unlabelled(gyre_comm *comm, bool other)
{
    struct gyre_nn_train_options o = plain();
    gyre_nn_model *model;
    size_t hidden = 8;
    int32_t label = data->labels[5];
    data->labels[5] = other ? 9 - label : label;
    OK(comm, gyre_nn_autoencoder(64, &hidden, 1, GYRE_NN_RELU, GYRE_FLOAT32, 1, &model));
    OK(comm, gyre_nn_train(model, data, comm, &o, NULL));
    gyre_nn_free(model);
    data->labels[5] = label;
}

static void body(int rank)
{
    gyre_comm *comm = rank_begin(60);
    OK(comm, gyre_nn_dataset_open("digits", &data));
    numbers(comm, rank == 2);
    ways(comm, rank == 2);
    modules(comm, rank == 2);
    samples(comm, rank == 2);
    unlabelled(comm, rank == 2);
    struct gyre_nn_train_options o = plain();
    o.strategy = rank == 2 ? gyre_nn_strategy_find("sync") : NULL; /* the same */
    CHECK(train(comm, &o, 8) == GYRE_SUCCESS);
    o.strategy = gyre_nn_strategy_find("average"); /* the default, said and not said */
    double every = o.strategy->settings[0].value;
    char text[32];
    snprintf(text, sizeof text, "every=%g", every);
    o.settings = rank == 2 ? text : NULL;
    CHECK(train(comm, &o, 8) == GYRE_SUCCESS);
    gyre_nn_dataset_free(data);
    OK(comm, gyre_comm_destroy(comm));
}

int main(void)
{
    return launch(RANKS, body, 60, "ranks that want different runs") ? 0 : 1;
}
