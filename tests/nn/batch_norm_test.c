/* Batch norm and the model cnn on several ranks: what a forward on N ranks leaves has the bits of one rank's forward of
 * the whole batch, unequal and empty shards included; gradients are its gradients within rounding, and training ends
 * within 1e-9 in fp64. Every strategy trains it, and a run that is cut goes on to the same bits. deterministic has the
 * same bits on any number of ranks, zero those of sync, and pipeline those of accumulated pieces. */
#include "model/model.h"

#include <math.h>

#include "support/launcher.h"

#define RANKS 4

static const struct gyre_nn_image digit = {.height = 8, .width = 8, .channels = 1};
static gyre_nn_dataset *data;
static char file[64];
static uint64_t *hashes; /* of deterministic, by the number of ranks */

static gyre_nn_model *make(gyre_comm *comm, gyre_dtype dtype, uint64_t seed)
{
    gyre_nn_model *model = NULL;
    OK(comm, gyre_nn_cnn(&digit, (size_t[]){5, 6}, 2, (size_t[]){12}, 1, 0.1, 10, dtype, seed, &model));
    return model;
}

static void pass(gyre_comm *comm, gyre_nn_model *model, size_t first, size_t count, gyre_nn_sync *sync)
{
    size_t element = model->backend->element;
    void *x = calloc((count + 1) * 64, element);
    int32_t *labels = calloc(count + 1, sizeof *labels);
    gyre_nn_dataset_gather(data, data->train + first, count, gyre_nn_dtype(model), x, labels);
    gyre_nn_zero_grads(model);
    gyre_nn_train_mode(model, 1, 2, first);
    OK(comm, gyre_nn_forward(model, x, count, NULL));
    OK(comm, gyre_nn_evaluate(model, labels, NULL, NULL, NULL));
    OK(comm, gyre_nn_backward(model, sync ? gyre_nn_sync_passed : NULL, sync));
    free(x);
    free(labels);
}

static double apart(const gyre_nn_model *a, const gyre_nn_model *b)
{
    double largest = 0;
    for (size_t i = 0; i < a->count; i++)
        if (a->backend->dtype == GYRE_FLOAT64)
            largest = fmax(largest, fabs(((double *)a->grads)[i] - ((double *)b->grads)[i]));
        else
            largest = fmax(largest, fabs((double)((float *)a->grads)[i] - (double)((float *)b->grads)[i]));
    return largest;
}

/* The first eight modules are the two blocks. The dense layers above them go by CBLAS, whose bits are not promised. */
static void compare_values(const gyre_nn_model *many, const gyre_nn_model *one, size_t first, size_t count)
{
    for (size_t i = 0; i < 8; i++) {
        size_t bytes = gy_nn_shape_size(many->modules[i].out) * many->backend->element;
        if (memcmp(many->tape.y[i], (char *)one->tape.y[i] + first * bytes, count * bytes) != 0)
            rank_fail("module %zu, a %s, of samples from %zu on has other bits than on one rank", i,
                      many->modules[i].ops->name, first);
    }
}

static void compare_pass(gyre_comm *comm, gyre_dtype dtype, size_t batch)
{
    gyre_nn_model *many = make(comm, dtype, 3), *one = NULL;
    gyre_nn_sync *sync = NULL;
    size_t first, count;
    OK(comm, gyre_nn_clone(many, &one));
    OK(comm, gyre_nn_sync_attach(many, NULL, comm, 1024, &sync));
    gyre_nn_shard(batch, gyre_comm_rank(comm), gyre_comm_size(comm), &first, &count);
    for (int round = 0; round < 2; round++) {
        gyre_nn_sync_begin(sync);
        pass(comm, many, first, count, sync);
        OK(comm, gyre_nn_sync_reduce(sync));
        pass(comm, one, 0, batch, NULL);
        compare_values(many, one, first, count);
        double bound = dtype == GYRE_FLOAT64 ? 1e-12 : 2e-3, largest = apart(many, one);
        if (!(largest <= bound))
            rank_fail("batch %zu: gradients differ by %g", batch, largest);
    }
    gyre_nn_sync_detach(sync);
    CHECK(many->comm == NULL && many->syncs == 0);
    pass(comm, many, 0, 7, NULL); /* by itself: nothing is gathered any more */
    gyre_nn_free(many);
    gyre_nn_free(one);
}

static struct gyre_nn_train_options options_of(const char *strategy, const char *settings)
{
    struct gyre_nn_train_options options = gyre_nn_train_defaults();
    options.strategy = gyre_nn_strategy_find(strategy);
    options.settings = settings;
    options.epochs = 2;
    options.batch = 61;
    options.bucket_bytes = 1024;
    options.check_every = 5;
    return options;
}

static gyre_nn_model *train(gyre_comm *comm, gyre_dtype dtype, const struct gyre_nn_train_options *options,
                            struct gyre_nn_train_result *result_p)
{
    gyre_nn_model *model = make(comm, dtype, comm && gyre_comm_rank(comm) > 0 ? 9 : 1);
    gyre_status status = gyre_nn_train(model, data, comm, options, result_p);
    if (status != GYRE_SUCCESS)
        rank_fail("%s:%s: %s", options->strategy->name, options->settings ? options->settings : "",
                  gyre_nn_last_error());
    const double *params = gyre_nn_params(model);
    for (size_t i = 0; i < gyre_nn_tensor_count(model) && dtype == GYRE_FLOAT64; i++) {
        const struct gyre_nn_tensor *tensor = gyre_nn_tensor(model, i);
        bool variance = strstr(tensor->name, "running_var") != NULL;
        for (size_t c = 0; variance && c < tensor->cols; c++)
            if (!(params[tensor->offset + c] > 0))
                rank_fail("%s: %s is %g", options->strategy->name, tensor->name, params[tensor->offset + c]);
    }
    return model;
}

/* A batch of 3 leaves a rank of four without samples. */
static void compare_training(gyre_comm *comm, size_t batch, gyre_nn_optimizer_kind kind)
{
    struct gyre_nn_train_options options = options_of("sync", NULL);
    struct gyre_nn_train_result result;
    options.batch = batch;
    options.stop_after = 30;
    options.clip_norm = batch == 64 ? 0.3 : 0;
    options.optimizer = gyre_nn_optimizer_defaults(kind);
    options.schedule.rate = kind == GYRE_NN_ADAM ? 3e-3 : 0.02;
    gyre_nn_model *many = train(comm, GYRE_FLOAT64, &options, &result);
    gyre_nn_model *one = train(NULL, GYRE_FLOAT64, &options, &result);
    double largest = 0;
    for (size_t i = 0; i < many->count; i++)
        largest = fmax(largest, fabs(((double *)many->params)[i] - ((double *)one->params)[i]));
    if (gyre_comm_rank(comm) == 0)
        printf("%d ranks, batch %zu: differs from one rank by %.3g\n", gyre_comm_size(comm), batch, largest);
    if (!(largest <= 1e-9))
        rank_fail("batch %zu: parameters differ by %g", batch, largest);
    gyre_nn_free(many);
    gyre_nn_free(one);
}

/* A rate of 0 leaves all as it is but the statistics, which move the same whether or not gradients are clipped. */
static void compare_clipped(gyre_comm *comm, const char *strategy, const char *settings)
{
    struct gyre_nn_train_options options = options_of(strategy, settings);
    struct gyre_nn_train_result result;
    gyre_nn_model *models[2];
    double moved = 0;
    options.stop_after = 12;
    options.schedule.rate = 0;
    for (int clips = 0; clips < 2; clips++) {
        options.clip_norm = clips * 1e-3;
        models[clips] = train(comm, GYRE_FLOAT64, &options, &result);
    }
    const double *free_ones = models[0]->params, *clipped = models[1]->params;
    for (size_t i = 0; i < models[0]->count; i++)
        if (!(fabs(free_ones[i] - clipped[i]) <= 1e-12))
            rank_fail("%s: with clipping parameter %zu is %g, and not %g", strategy, i, clipped[i], free_ones[i]);
    for (size_t t = 0; t < gyre_nn_tensor_count(models[0]); t++)
        if (strstr(gyre_nn_tensor(models[0], t)->name, "running_var"))
            moved = fmax(moved, fabs(clipped[gyre_nn_tensor(models[0], t)->offset] - 1));
    CHECK(moved > 0.1);
    gyre_nn_free(models[0]);
    gyre_nn_free(models[1]);
}

static void as_one_rank(int rank)
{
    (void)rank;
    gyre_comm *comm = rank_begin(100);
    OK(comm, gyre_nn_dataset_open("digits", &data));
    for (size_t i = 0; i < 3; i++) {
        compare_pass(comm, GYRE_FLOAT64, (size_t[]){64, 61, 3}[i]);
        compare_pass(comm, GYRE_FLOAT32, (size_t[]){64, 61, 3}[i]);
    }
    compare_training(comm, 61, GYRE_NN_ADAM);
    compare_training(comm, 64, GYRE_NN_MOMENTUM);
    compare_training(comm, 3, GYRE_NN_SGD);
    compare_clipped(comm, "sync", NULL);
    compare_clipped(comm, "zero", NULL);
    compare_clipped(comm, "deterministic", NULL);
    compare_clipped(comm, "average", "every=3");
    if (gyre_comm_size(comm) == 2)
        compare_clipped(comm, "pipeline", "stages=2");
    gyre_nn_dataset_free(data);
    OK(comm, gyre_comm_destroy(comm));
}

static uint64_t hash_of(gyre_comm *comm, const char *strategy, const char *settings, size_t accumulate)
{
    struct gyre_nn_train_options options = options_of(strategy, settings);
    struct gyre_nn_train_result result;
    options.accumulate = accumulate;
    options.stop_after = 30;
    gyre_nn_free(train(comm, GYRE_FLOAT32, &options, &result));
    return result.params_xxh3;
}

static void in_any_world(int rank)
{
    gyre_comm *comm = rank_begin(100);
    int ranks = gyre_comm_size(comm);
    OK(comm, gyre_nn_dataset_open("digits", &data));
    uint64_t hash = hash_of(comm, "deterministic", NULL, 1);
    if (rank == 0)
        hashes[ranks] = hash;
    CHECK(hash_of(comm, "zero", NULL, 1) == hash_of(comm, "sync", NULL, 1));
    CHECK(hash_of(comm, "sync", "ahead=yes", 1) == hash_of(comm, "sync", "ahead=no", 1));
    CHECK(hash_of(comm, "stale", "steps=0", 2) == hash_of(comm, "sync", NULL, 2));
    if (ranks == 2) {
        uint64_t pieces = hash_of(NULL, "sync", NULL, 4);
        CHECK(hash_of(comm, "pipeline", "stages=2,micro=4", 1) == pieces);
        CHECK(hash_of(comm, "pipeline", "stages=2,micro=4,recompute=yes", 1) == pieces);
    }
    gyre_nn_dataset_free(data);
    OK(comm, gyre_comm_destroy(comm));
}

static void cut(gyre_comm *comm, const char *strategy, const char *settings)
{
    struct gyre_nn_train_options options = options_of(strategy, settings);
    struct gyre_nn_train_result whole, half, rest;
    options.epochs = 4;
    options.schedule.rate = 1e-2;
    options.clip_norm = 2;
    gyre_nn_free(train(comm, GYRE_FLOAT64, &options, &whole));
    if (gyre_comm_rank(comm) == 0)
        printf("%s:%s: %.2f %%\n", strategy, settings ? settings : "", 100 * whole.accuracy);
    if (!(whole.accuracy > 0.4))
        rank_fail("%s:%s: an accuracy of %g", strategy, settings ? settings : "", whole.accuracy);
    options.stop_after = 29;
    options.checkpoint = file;
    gyre_nn_free(train(comm, GYRE_FLOAT64, &options, &half));
    options.stop_after = 0;
    options.checkpoint = NULL;
    options.resume = file;
    gyre_nn_free(train(comm, GYRE_FLOAT64, &options, &rest));
    if (rest.params_xxh3 != whole.params_xxh3 || half.params_xxh3 == whole.params_xxh3)
        rank_fail("%s:%s: a run that was cut ends with other bits", strategy, settings ? settings : "");
    OK(comm, gyre_barrier(comm)); /* the file is for all ranks */
}

static void refuse(gyre_comm *comm, const char *strategy, const char *text)
{
    struct gyre_nn_train_options options = options_of(strategy, NULL);
    gyre_nn_model *model = make(comm, GYRE_FLOAT32, 1);
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_nn_train(model, data, comm, &options, NULL));
    if (!strstr(gyre_nn_last_error(), text))
        rank_fail("'%s' instead of '%s'", gyre_nn_last_error(), text);
    gyre_nn_free(model);
}

static void by_every_strategy(int rank)
{
    static const char *const ways[][2] = {
        {"sync"},
        {"zero"},
        {"deterministic"},
        {"stale", "steps=2"},
        {"average", "every=6"},
        {"average", "every=7,delay=4"},
        {"bmuf", "every=3,eta=0.5,delay=1"},
        {"slowmo", "every=3"},
        {"diloco", "every=5,delay=2"},
        {"easgd", "every=4,beta=0.5"},
        {"easgd", "every=0"},
        {"admm", "every=4"},
        {"async", "wait=yes"},
        {"pipeline", "stages=2,recompute=yes"},
    };
    (void)rank;
    gyre_comm *comm = rank_begin(200);
    OK(comm, gyre_nn_dataset_open("digits", &data));
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        cut(comm, ways[i][0], ways[i][1]);
    refuse(comm, "compressed", "a batch norm's running statistics travel with the gradients");
    gyre_nn_dataset_free(data);
    OK(comm, gyre_comm_destroy(comm));
}

int main(void)
{
    bool good = true;
    setvbuf(stdout, NULL, _IOLBF, 0);
    snprintf(file, sizeof file, "/tmp/gyre-batch-norm-%d", (int)getpid());
    hashes = launch_share((RANKS + 1) * sizeof *hashes);
    for (int ranks = 2; ranks <= RANKS; ranks++)
        good = launch(ranks, as_one_rank, 110, "as one rank") && good;
    for (int ranks = 1; ranks <= RANKS; ranks++)
        good = launch(ranks, in_any_world, 110, "in any world") && good;
    for (int ranks = 2; ranks <= RANKS; ranks++)
        if (hashes[ranks] != hashes[1]) {
            printf("deterministic has other bits on %d ranks\n", ranks);
            good = false;
        }
    good = launch(RANKS, by_every_strategy, 210, "by every strategy") && good;
    unlink(file);
    return good ? 0 : 1;
}
