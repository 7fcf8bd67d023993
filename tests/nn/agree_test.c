/* Ranks that want different runs: each of them gets the same sentence, which says what differs, before a step is made, and
 * the communicator goes on to train what all want. Some of these runs would have ended well, with a model that nobody had
 * asked for, and one would have waited for ever. */
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

static void body(int rank)
{
    gyre_comm *comm = rank_begin(60);
    OK(comm, gyre_nn_dataset_open("digits", &data));
    numbers(comm, rank == 2);
    ways(comm, rank == 2);
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
