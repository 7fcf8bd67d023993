/* What strategies must equal, in fp64 within 1e-12, shards unequal and even empty:
 *
 *     one rank = sync = average:every=1 with plain SGD            Adam, clipping, every=2 and delay must differ
 *     average = slowmo(β=0, α=1) = bmuf(η=0, ζ=1) = diloco(lr 1, μ 0), each with every=3
 *     easgd(β=1, α=1/p): the centre is the mean of the parameters before
 *     easgd, admm: without an exchange so far, the model is that of an exchange at the end
 *
 * Every rank trains them all, one after the other, and checks for itself; the ranks' parameters have the same bits. */
#include <gyre/nn.h>
#include <math.h>

#include "support/launcher.h"

struct trained {
    double *params;
    size_t count;
    uint64_t hash;
};

struct how {
    const char *strategy, *settings;
    gyre_nn_optimizer_kind kind;
    double clip;
    size_t batch, steps;
};

static gyre_nn_dataset *data;

static struct trained train(gyre_comm *comm, struct how how)
{
    struct gyre_nn_train_options options = gyre_nn_train_defaults();
    struct gyre_nn_train_result result;
    gyre_nn_model *model = NULL;
    size_t hidden = 12;
    options.strategy = gyre_nn_strategy_find(how.strategy);
    CHECK(options.strategy != NULL);
    options.settings = how.settings;
    options.batch = how.batch ? how.batch : 61;
    options.epochs = 100;
    options.stop_after = how.steps ? how.steps : 30;
    options.clip_norm = how.clip;
    options.optimizer = gyre_nn_optimizer_defaults(how.kind);
    options.schedule.rate = how.kind == GYRE_NN_ADAM ? 3e-3 : 0.1;
    options.bucket_bytes = 1024;
    options.check_every = 3;
    OK(comm, gyre_nn_mlp(64, &hidden, 1, GYRE_NN_TANH, 10, GYRE_FLOAT64, 1, &model));
    gyre_status status = gyre_nn_train(model, data, comm, &options, &result);
    if (status != GYRE_SUCCESS)
        rank_fail("%s:%s: %s", how.strategy, how.settings ? how.settings : "", gyre_nn_last_error());
    struct trained out = {.count = gyre_nn_param_count(model), .hash = result.params_xxh3};
    out.params = malloc(out.count * sizeof(double));
    memcpy(out.params, gyre_nn_params(model), out.count * sizeof(double));
    gyre_nn_free(model);
    uint64_t first = out.hash;
    if (comm) {
        OK(comm, gyre_broadcast(comm, &first, &first, 1, GYRE_UINT64, 0));
        if (first != out.hash)
            rank_fail("%s: other bits than on rank 0", how.strategy);
    }
    return out;
}

static double difference(struct trained a, struct trained b)
{
    double largest = 0;
    for (size_t i = 0; i < a.count; i++)
        largest = fmax(largest, fabs(a.params[i] - b.params[i]));
    return largest;
}

static void compare(gyre_comm *comm, struct trained wanted, struct how how, bool equal)
{
    struct trained got = train(comm, how);
    double largest = difference(wanted, got);
    if (equal ? !(largest <= 1e-12) : !(largest > 1e-6))
        rank_fail("%s:%s differs by %g", how.strategy, how.settings ? how.settings : "", largest);
    if (gyre_comm_rank(comm) == 0)
        printf("%d ranks, batch %zu, %s:%s%s: %.3g\n", gyre_comm_size(comm), how.batch, how.strategy,
               how.settings ? how.settings : "", equal ? "" : " must differ", largest);
    free(got.params);
}

/* A batch of 61 gives unequal shards; 3 samples leave one of four ranks without any. */
static void equal_to_one_rank(gyre_comm *comm, size_t batch)
{
    struct trained one = train(NULL, (struct how){"sync", NULL, .batch = batch});
    compare(comm, one, (struct how){"sync", NULL, .batch = batch}, true);
    compare(comm, one, (struct how){"average", "every=1", .batch = batch}, true);
    compare(comm, one, (struct how){"average", "every=7,from=30", .batch = batch}, true);
    compare(comm, one, (struct how){"average", "every=2", .batch = batch}, false);
    compare(comm, one, (struct how){"average", "every=2,delay=1", .batch = batch}, false);
    compare(comm, one, (struct how){"average", "every=1", .batch = batch, .clip = 0.05}, false);
    free(one.params);
    one = train(NULL, (struct how){"sync", NULL, GYRE_NN_ADAM, .batch = batch});
    compare(comm, one, (struct how){"sync", NULL, GYRE_NN_ADAM, .batch = batch}, true);
    compare(comm, one, (struct how){"average", "every=1", GYRE_NN_ADAM, .batch = batch}, false);
    free(one.params);
    one = train(NULL, (struct how){"sync", NULL, .batch = batch, .clip = 0.05});
    compare(comm, one, (struct how){"sync", NULL, .batch = batch, .clip = 0.05}, true);
    compare(comm, one, (struct how){"average", "every=1", .batch = batch, .clip = 0.05}, false);
    free(one.params);
}

static void identities(gyre_comm *comm, const char *delay)
{
    char settings[96];
    static const char *const same[][2] = {{"slowmo", "beta=0,alpha=1"},
                                          {"bmuf", "eta=0,zeta=1"},
                                          {"bmuf", "eta=0,zeta=1,momentum=classic"},
                                          {"diloco", "lr=1,mu=0"}};
    static const char *const other[][2] = {{"slowmo", "beta=0.5"}, {"bmuf", "eta=0.5"}, {"diloco", "lr=0.7"}};
    snprintf(settings, sizeof settings, "every=3%s", delay);
    struct trained average = train(comm, (struct how){.strategy = "average", .settings = settings});
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        snprintf(settings, sizeof settings, "every=3%s,%s", delay, same[i][1]);
        compare(comm, average, (struct how){.strategy = same[i][0], .settings = settings}, true);
    }
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
        snprintf(settings, sizeof settings, "every=3%s,%s", delay, other[i][1]);
        compare(comm, average, (struct how){.strategy = other[i][0], .settings = settings}, false);
    }
    free(average.params);
}

/* Until the first exchange the ranks are those of one-shot averaging, whose result is the mean of the parameters; with
 * β = 1 that is the centre, whatever α. From the second on α shows, whose default is β/p. */
static void elastic(gyre_comm *comm)
{
    char settings[64];
    struct trained mean = train(comm, (struct how){"average", "every=0", .steps = 5});
    compare(comm, mean, (struct how){"easgd", "every=5,beta=1", .steps = 5}, true);
    compare(comm, mean, (struct how){"easgd", "every=5,beta=1", .steps = 9}, true);
    compare(comm, mean, (struct how){"easgd", "every=5,beta=0.9", .steps = 5}, false);
    free(mean.params);
    struct trained centre = train(comm, (struct how){"easgd", "every=5,beta=1", .steps = 10});
    snprintf(settings, sizeof settings, "every=5,beta=1,alpha=%.17g", 1.0 / gyre_comm_size(comm));
    compare(comm, centre, (struct how){.strategy = "easgd", .settings = settings, .steps = 10}, true);
    compare(comm, centre, (struct how){"easgd", "every=5,beta=1,alpha=0.9", .steps = 10}, false);
    free(centre.params);
}

/* While periods do not shrink, adaptive averaging is averaging; then it is not. The dual of admm is 0 until its first
 * exchange, and with ρ = 0 nothing pulls: its first consensus is the mean. */
static void others(gyre_comm *comm)
{
    struct trained average = train(comm, (struct how){"average", "every=6", .steps = 12});
    compare(comm, average, (struct how){"average", "every=6,adaptive=yes", .steps = 12}, true);
    free(average.params);
    average = train(comm, (struct how){"average", "every=6", .steps = 90});
    compare(comm, average, (struct how){"average", "every=6,adaptive=yes", .steps = 90}, false);
    free(average.params);
    average = train(comm, (struct how){"average", "every=5", .steps = 5});
    compare(comm, average, (struct how){"admm", "every=5,rho=0", .steps = 5}, true);
    compare(comm, average, (struct how){"admm", "every=5,rho=1", .steps = 5}, false);
    free(average.params);
}

/* The exchange that every=0 promises for the end, and that a run which ends inside its first period has not had, nor
 * one whose first exchange is still under way; and a second period ends with the model of the first. */
static void at_the_end(gyre_comm *comm, const char *strategy, const char *own, size_t batch)
{
    static const char *const unmet[] = {"every=0", "every=1000", "every=0,delay=2", "every=6,delay=4"};
    char settings[64];
    snprintf(settings, sizeof settings, "every=7,%s", own);
    struct trained met = train(comm, (struct how){strategy, settings, .steps = 7, .batch = batch});
    for (size_t i = 0; i < sizeof unmet / sizeof unmet[0]; i++) {
        snprintf(settings, sizeof settings, "%s,%s", unmet[i], own);
        compare(comm, met, (struct how){strategy, settings, .steps = 7, .batch = batch}, true);
    }
    snprintf(settings, sizeof settings, "every=7,%s", own);
    compare(comm, met, (struct how){strategy, settings, .steps = 9, .batch = batch}, true);
    free(met.params);
    struct trained alone = train(NULL, (struct how){strategy, settings, .steps = 7, .batch = batch});
    snprintf(settings, sizeof settings, "every=0,%s", own);
    struct trained unmet_alone = train(NULL, (struct how){strategy, settings, .steps = 7, .batch = batch});
    if (!(difference(alone, unmet_alone) <= 1e-12))
        rank_fail("%s:%s alone differs by %g", strategy, settings, difference(alone, unmet_alone));
    free(alone.params);
    free(unmet_alone.params);
}

static void body(int rank)
{
    (void)rank;
    gyre_comm *comm = rank_begin(100);
    OK(comm, gyre_nn_dataset_open("digits", &data));
    equal_to_one_rank(comm, 61);
    equal_to_one_rank(comm, 3);
    identities(comm, "");
    identities(comm, ",delay=2");
    elastic(comm);
    others(comm);
    at_the_end(comm, "easgd", "beta=1", 61);
    at_the_end(comm, "easgd", "beta=0.8", 3);
    at_the_end(comm, "admm", "rho=0.1", 61);
    at_the_end(comm, "admm", "rho=0.1", 3);
    gyre_nn_dataset_free(data);
    OK(comm, gyre_comm_destroy(comm));
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    bool good = launch(4, body, 100, "exactness on 4 ranks");
    return launch(3, body, 100, "exactness on 3 ranks") && good ? 0 : 1;
}
