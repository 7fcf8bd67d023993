/* sync with ahead=yes, where a step's gradients arrive while the next forward runs:
 *
 * - the same bits as with ahead=no: every optimiser, an MLP and a transformer with dropout, unequal and empty
 *   shards, pieces, buckets of all sizes, ranks compared and checkpoints written in between, whose runs go on to the
 *   same bits
 * - finish does not wait, and a module waits for its own buckets alone, in the order that sync.c promises
 * - by default it is done between hosts, without clipping; in an elastic run no bucket is delayed for it
 * - what is under way ends first: before buckets leave again, gradients get other memory, or clipping; and before a
 *   checkpoint, whose wait is time of training
 * - a rank that dies meanwhile is named by the next forward, and again by a later call; no checkpoint is written
 *
 * The second is shown without a clock: the other rank is played by hand, and sends a bucket only after it has been
 * told that rank 0 went on without it; a rank that waited for it would wait until its deadline. */
#include "model/model.h"

#include "support/launcher.h"

struct how {
    bool transformer;
    gyre_nn_optimizer_kind kind;
    size_t batch, accumulate, bucket_bytes;
};

/* 61 divides the digits into unequal shards, 3 leave a rank of four without samples. A bucket of 0 is a single one. */
static const struct how cases[] = {
    {false, GYRE_NN_SGD, 61, 1, 1024}, {false, GYRE_NN_MOMENTUM, 3, 1, 1024}, {false, GYRE_NN_NESTEROV, 61, 3, 4096},
    {false, GYRE_NN_ADAM, 61, 1, 0},   {true, GYRE_NN_ADAM, 9, 1, 2048},      {true, GYRE_NN_ADAMW, 3, 1, 20000},
};

static char text_file[64], checkpoint_file[64], other_file[64];
static double last_loss;

static void on_report(void *user, const struct gyre_nn_report *report)
{
    (void)user;
    last_loss = report->loss + report->test_loss;
}

static uint64_t train(gyre_comm *comm, const struct how *how, const char *settings, uint64_t stop, bool write,
                      bool resume)
{
    struct gyre_nn_train_options options = gyre_nn_train_defaults();
    struct gyre_nn_train_result result;
    gyre_nn_dataset *data = NULL;
    gyre_nn_model *model = NULL;
    size_t hidden = 24;
    options.settings = settings;
    options.epochs = 2;
    options.batch = how->batch;
    options.accumulate = how->accumulate;
    options.stop_after = stop;
    options.optimizer = gyre_nn_optimizer_defaults(how->kind);
    options.bucket_bytes = how->bucket_bytes;
    options.check_every = 4;
    options.checkpoint_every = 7;
    options.checkpoint = write ? checkpoint_file : NULL;
    options.resume = resume ? checkpoint_file : NULL;
    options.report = on_report;
    if (how->transformer) {
        OK(comm, gyre_nn_text_open(text_file, 16, &data));
        OK(comm, gyre_nn_transformer(16, data->classes, 24, 2, 2, 0.1, GYRE_FLOAT32, 1, &model));
    } else {
        OK(comm, gyre_nn_dataset_open("digits", &data));
        OK(comm, gyre_nn_mlp(64, &hidden, 1, GYRE_NN_RELU, 10, GYRE_FLOAT32, 1, &model));
    }
    if (gyre_nn_train(model, data, comm, &options, &result) != GYRE_SUCCESS)
        rank_fail("%s: %s", settings, gyre_nn_last_error());
    gyre_nn_free(model);
    gyre_nn_dataset_free(data);
    return result.params_xxh3;
}

static void bits(int rank)
{
    gyre_comm *comm = rank_begin(100);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct how *how = &cases[i];
        uint64_t plain = train(comm, how, "ahead=no", 27, false, false);
        double loss = last_loss;
        uint64_t ahead = train(comm, how, "ahead=yes", 27, false, false);
        if (ahead != plain || !(loss == last_loss))
            rank_fail("case %zu: %016llx ahead, %016llx at once; loss %a and %a", i, (unsigned long long)ahead,
                      (unsigned long long)plain, last_loss, loss);
        uint64_t cut = train(comm, how, "ahead=yes", 18, true, false);
        OK(comm, gyre_barrier(comm));
        uint64_t rest = train(comm, how, "ahead=yes", 27, false, true);
        if (rest != plain || cut == plain || !(loss == last_loss))
            rank_fail("case %zu, cut at step 18: %016llx, and not %016llx", i, (unsigned long long)rest,
                      (unsigned long long)plain);
        OK(comm, gyre_barrier(comm)); /* the file is for all ranks */
        if (rank == 0 && getenv("GYRE_TEST_VERBOSE"))
            printf("case %zu: %016llx\n", i, (unsigned long long)plain);
    }
    OK(comm, gyre_comm_destroy(comm));
}

/* ---- By hand: 3010 parameters in nine buckets, module 0 has [0, 2600), the last one the rest
 * ------------------------- */

#define BUCKET 335
#define BUCKETS 9
#define LOWER 2600

static const size_t leaving[BUCKETS] = {1, 2, 4, 5, 7, 8, 6, 3, 0};

static struct told {
    volatile int finished, lower, ended;
} * told;

struct hand {
    gyre_comm *comm;
    gyre_nn_model *model;
    gyre_nn_optimizer *optimizer;
    gyre_nn_sync *sync;
    float x[64];
    int32_t label;
};

static void open_hand(struct hand *hand)
{
    size_t hidden = 40;
    struct gyre_nn_optimizer_config config = gyre_nn_optimizer_defaults(GYRE_NN_ADAM);
    OK(hand->comm, gyre_nn_mlp(64, &hidden, 1, GYRE_NN_TANH, 10, GYRE_FLOAT32, 1, &hand->model));
    CHECK(gyre_nn_param_count(hand->model) == 3010);
    OK(hand->comm, gyre_nn_optimizer_create(hand->model, &config, &hand->optimizer));
    OK(hand->comm, gyre_nn_sync_attach(hand->model, hand->optimizer, hand->comm, BUCKET * sizeof(float), &hand->sync));
    CHECK(gyre_nn_sync_bucket_count(hand->sync) == BUCKETS);
    gyre_nn_sync_ahead(hand->sync, true);
    for (int i = 0; i < 64; i++)
        hand->x[i] = (float)(i % 7) - 3;
    hand->label = 4;
}

static void close_hand(struct hand *hand)
{
    gyre_nn_sync_detach(hand->sync);
    gyre_nn_optimizer_free(hand->optimizer);
    gyre_nn_free(hand->model);
}

static gyre_status step_of(struct hand *hand, size_t rows, double clip)
{
    gyre_nn_renew_grads(hand->model);
    gyre_nn_sync_begin(hand->sync);
    gyre_status status = gyre_nn_forward(hand->model, hand->x, 1, NULL);
    status = status ? status : gyre_nn_evaluate(hand->model, &hand->label, NULL, NULL, NULL);
    status = status ? status : gyre_nn_backward(hand->model, gyre_nn_sync_passed, hand->sync);
    return status ? status : gyre_nn_sync_finish(hand->sync, 0.01, rows, clip);
}

static gyre_status step(struct hand *hand)
{
    return step_of(hand, 2, 0);
}

/* What rank 0 does and sees. The reference is a step without another rank: the other's gradients are 0. */
static void go_on(struct hand *hand)
{
    const struct gyre_nn_model *model = hand->model;
    float before[3010];
    struct hand alone = {.comm = NULL};
    open_hand(&alone);
    memcpy(before, model->params, sizeof before);
    CHECK(memcmp(before, alone.model->params, sizeof before) == 0);
    OK(NULL, step(&alone));
    const float *wanted = gyre_nn_params(alone.model), *have = model->params;
    OK(hand->comm, step(hand));
    CHECK(memcmp(before, have, sizeof before) == 0); /* nothing has arrived */
    told->finished = 1;
    OK(hand->comm, model->settle(model->settle_user, 0, LOWER));
    CHECK(memcmp(wanted, have, LOWER * sizeof *have) == 0);
    size_t held = 3010 - BUCKET;
    CHECK(memcmp(before + held, have + held, BUCKET * sizeof *have) == 0 && model->settle);
    told->lower = 1;
    OK(hand->comm, gyre_nn_forward(hand->model, hand->x, 1, NULL));
    CHECK(memcmp(wanted, have, sizeof before) == 0 && !model->settle);
    /* And once more, for the counts of the step before; what is read has moved. */
    OK(NULL, step(&alone));
    OK(hand->comm, step(hand));
    CHECK(model->settle && memcmp(wanted, gyre_nn_params(hand->model), sizeof before) == 0 && !model->settle);
    CHECK(memcmp(gyre_nn_optimizer_state(alone.optimizer, 1), gyre_nn_optimizer_state(hand->optimizer, 1),
                 sizeof before) == 0);
    close_hand(&alone);
}

static void wait_for(gyre_comm *comm, const volatile int *word)
{
    while (!*word) { /* the alarm is the deadline */
        OK(comm, gyre_progress(comm));
        usleep(100);
    }
}

/* The other rank: zeros, in buckets that leave as rank 0's do, but not before rank 0 has gone on. */
static void follow(struct hand *hand)
{
    gyre_request *requests[BUCKETS] = {NULL};
    float *grads = gyre_nn_grads(hand->model);
    for (int round = 0; round < 2; round++) {
        if (round == 0)
            wait_for(hand->comm, &told->finished);
        memset(grads, 0, 3010 * sizeof *grads);
        for (size_t i = 0; i < BUCKETS; i++) {
            size_t first, count;
            gyre_nn_sync_bucket(hand->sync, leaving[i], &first, &count);
            if (i + 1 == BUCKETS && round == 0)
                wait_for(hand->comm, &told->lower);
            OK(hand->comm, gyre_all_reduce_start(hand->comm, grads + first, grads + first, count, GYRE_FLOAT32,
                                                 GYRE_SUM, &requests[i]));
        }
        for (size_t i = 0; i < BUCKETS; i++)
            OK(hand->comm, gyre_wait(&requests[i]));
    }
}

static void by_hand(int rank)
{
    struct hand hand = {.comm = rank_begin(60)};
    open_hand(&hand);
    if (rank == 0)
        go_on(&hand);
    else
        follow(&hand);
    OK(hand.comm, gyre_barrier(hand.comm));
    close_hand(&hand);
    OK(hand.comm, gyre_comm_destroy(hand.comm));
}

/* Two ranks with the same sample do what one does alone: its gradient, twice, over two rows. */
static void in_between(int rank)
{
    (void)rank;
    struct hand hand = {.comm = rank_begin(60)}, alone = {.comm = NULL};
    static float other[3010];
    open_hand(&hand);
    open_hand(&alone);
    const struct gyre_nn_model *model = hand.model;
    const float *one = alone.model->grads, *sum = model->grads;
    OK(NULL, step_of(&alone, 1, 0));
    OK(hand.comm, step(&hand));
    gyre_nn_sync_begin(hand.sync);
    OK(hand.comm, gyre_nn_sync_reduce(hand.sync)); /* the step's sum once more */
    for (size_t i = 0; i < 3010; i++)
        CHECK(sum[i] == 4 * one[i]);
    CHECK(!model->settle && memcmp(alone.model->params, model->params, sizeof other) == 0);
    OK(NULL, step_of(&alone, 1, 1e9));
    OK(hand.comm, step_of(&hand, 2, 1e9));
    CHECK(!model->settle && memcmp(alone.model->params, model->params, sizeof other) == 0);
    OK(NULL, step_of(&alone, 1, 0));
    OK(hand.comm, step(&hand));
    gyre_nn_place_grads(hand.model, other);
    CHECK(!model->settle && memcmp(alone.model->params, model->params, sizeof other) == 0);
    OK(hand.comm, gyre_barrier(hand.comm));
    close_hand(&hand);
    close_hand(&alone);
    OK(hand.comm, gyre_comm_destroy(hand.comm));
}

static void death(int rank)
{
    struct hand hand = {.comm = rank_begin(60)};
    struct gyre_nn_position at = {0};
    open_hand(&hand);
    if (rank == 1) {
        wait_for(hand.comm, &told->ended);
        kill(getpid(), SIGKILL);
    }
    OK(hand.comm, step(&hand));
    told->ended = 1;
    GIVES(GYRE_PEER_DEAD, hand.comm, gyre_nn_forward(hand.model, hand.x, 1, NULL));
    CHECK(strstr(gyre_nn_last_error(), "rank 1"));
    GIVES(GYRE_PEER_DEAD, hand.comm, gyre_nn_settle(hand.model));
    CHECK(gyre_nn_params(hand.model) != NULL);
    gyre_nn_model *copy = NULL;
    GIVES(GYRE_PEER_DEAD, hand.comm, gyre_nn_clone(hand.model, &copy));
    GIVES(GYRE_PEER_DEAD, hand.comm, gyre_nn_checkpoint_write(other_file, hand.model, hand.optimizer, &at));
    CHECK(access(other_file, F_OK) != 0);
    close_hand(&hand);
    gyre_comm_destroy(hand.comm);
}

/* A step of the strategy as it is by default; true if something is under way after it. */
static bool leaves_something(gyre_comm *comm, double clip)
{
    struct hand hand = {.comm = NULL};
    struct gyre_nn_optimizer_config config = gyre_nn_optimizer_defaults(GYRE_NN_SGD);
    struct gyre_nn_step now = {.rate = 0.01, .global_rows = 2};
    struct gyre_nn_run run;
    size_t hidden = 40;
    OK(comm, gyre_nn_mlp(64, &hidden, 1, GYRE_NN_TANH, 10, GYRE_FLOAT32, 1, &hand.model));
    OK(comm, gyre_nn_run_open(hand.model, comm, &config, NULL, NULL, 1024, clip, &run));
    gyre_nn_renew_grads(hand.model);
    OK(comm, run.strategy->before_step(run.self, &now));
    OK(comm, gyre_nn_forward(hand.model, hand.x, 1, NULL));
    OK(comm, gyre_nn_evaluate(hand.model, &hand.label, NULL, NULL, NULL));
    OK(comm, gyre_nn_backward(hand.model, run.strategy->passed, run.self));
    OK(comm, run.strategy->update(run.self, &now));
    bool left = hand.model->settle != NULL;
    gyre_nn_run_close(&run);
    CHECK(!hand.model->settle); /* closing ends it */
    gyre_nn_free(hand.model);
    return left;
}

static void defaults(int rank)
{
    bool several = getenv("TEST_HOSTS") != NULL;
    if (several)
        launch_set_number("GYRE_HOST_ID", rank);
    gyre_comm *comm = rank_begin(60);
    CHECK(leaves_something(comm, 0) == several);
    CHECK(!leaves_something(comm, 1));
    OK(comm, gyre_comm_destroy(comm));
}

/* ---- Runs
 * ------------------------------------------------------------------------------------------------------------ */

enum { LATE_MS = 20, LATE_STEPS = 4 };

static gyre_status first_update(void *self, const struct gyre_nn_step *step)
{
    gyre_status status = gyre_nn_strategy_find("sync")->update(self, step);
    told->finished++;
    return status;
}

/* Its buckets leave now; rank 0 has long finished. */
static gyre_status late_update(void *self, const struct gyre_nn_step *step)
{
    while (told->finished <= (int)step->number) /* the alarm is the deadline */
        usleep(100);
    usleep(LATE_MS * 1000);
    return gyre_nn_strategy_find("sync")->update(self, step);
}

/* What a checkpoint after each step waits for is time of training. */
static void lateness(int rank)
{
    gyre_comm *comm = rank_begin(60);
    gyre_nn_strategy strategy = *gyre_nn_strategy_find("sync");
    struct gyre_nn_train_options options = gyre_nn_train_defaults();
    struct gyre_nn_train_result result;
    gyre_nn_dataset *data = NULL;
    gyre_nn_model *model = NULL;
    size_t hidden = 24;
    strategy.update = rank == 0 ? first_update : late_update;
    strategy.passed = rank == 0 ? strategy.passed : NULL;
    options.strategy = &strategy;
    options.settings = "ahead=yes";
    options.stop_after = LATE_STEPS;
    options.checkpoint_every = 1;
    options.checkpoint = checkpoint_file;
    OK(comm, gyre_nn_dataset_open("digits", &data));
    OK(comm, gyre_nn_mlp(64, &hidden, 1, GYRE_NN_RELU, 10, GYRE_FLOAT32, 1, &model));
    OK(comm, gyre_nn_train(model, data, comm, &options, &result));
    if (result.seconds < 1e-3 * LATE_MS * LATE_STEPS)
        rank_fail("%g s of training", result.seconds);
    gyre_nn_free(model);
    gyre_nn_dataset_free(data);
    OK(comm, gyre_comm_destroy(comm));
}

/* The first bucket to leave is the first that is ready. */
static void unheld(int rank)
{
    gyre_comm *comm = rank_begin(60);
    struct gyre_nn_elastic elastic = {.size = sizeof elastic};
    struct gyre_nn_train_options options = gyre_nn_train_defaults();
    gyre_nn_dataset *data = NULL;
    gyre_nn_model *model = NULL;
    char text[8192] = "";
    size_t hidden = 40;
    options.bucket_bytes = BUCKET * sizeof(float);
    options.settings = "ahead=yes";
    options.stop_after = 1;
    OK(comm, gyre_nn_trace_create(256, &options.trace));
    OK(comm, gyre_nn_dataset_open("digits", &data));
    OK(comm, gyre_nn_mlp(64, &hidden, 1, GYRE_NN_RELU, 10, GYRE_FLOAT32, 1, &model));
    OK(comm, gyre_nn_train_elastic(model, data, &comm, &options, &elastic, NULL));
    OK(comm, gyre_nn_trace_write(options.trace, comm, other_file));
    if (rank == 0) {
        FILE *file = fopen(other_file, "re");
        CHECK(file && fread(text, 1, sizeof text - 1, file) > 0 && fclose(file) == 0);
        unlink(other_file);
        const char *first = strstr(text, "\"all_reduce ");
        CHECK(first && strncmp(first, "\"all_reduce 0\"", 14) == 0);
    }
    gyre_nn_trace_free(options.trace);
    gyre_nn_free(model);
    gyre_nn_dataset_free(data);
    OK(comm, gyre_comm_destroy(comm));
}

static void write_text(void)
{
    FILE *file = fopen(text_file, "we");
    CHECK(file != NULL);
    for (int i = 0; i < 500; i++)
        fprintf(file, "%d ", i * i);
    CHECK(fclose(file) == 0);
}

static bool hands(const char *transport)
{
    setenv("GYRE_TRANSPORT", transport, 1);
    memset(told, 0, sizeof *told);
    bool good = launch(2, by_hand, 60, "a rank that goes on");
    good = launch(2, in_between, 60, "what comes between steps") && good;
    launch_may_die = 1;
    good = launch(2, death, 60, "a rank that dies behind the next forward") && good;
    launch_may_die = -1;
    return good;
}

int main(void)
{
    char folder[] = "/tmp/gyre-ahead-XXXXXX";
    setvbuf(stdout, NULL, _IOLBF, 0);
    told = launch_share(sizeof *told);
    CHECK(mkdtemp(folder));
    snprintf(text_file, sizeof text_file, "%s/text", folder);
    snprintf(checkpoint_file, sizeof checkpoint_file, "%s/checkpoint", folder);
    snprintf(other_file, sizeof other_file, "%s/other", folder);
    write_text();
    bool good = hands("shm");
    good = launch(3, bits, 100, "bits over shared memory") && good;
    good = launch(2, unheld, 60, "an elastic run") && good;
    memset(told, 0, sizeof *told);
    good = launch(2, lateness, 60, "a late rank") && good;
    good = hands("tcp") && good;
    good = launch(2, defaults, 60, "one host") && good;
    setenv("TEST_HOSTS", "yes", 1);
    good = launch(2, defaults, 60, "two hosts") && good;
    setenv("GYRE_PROGRESS_THREAD", "1", 1);
    good = launch(4, bits, 100, "bits over TCP, with a thread") && good;
    unlink(checkpoint_file);
    unlink(text_file);
    rmdir(folder);
    return good ? 0 : 1;
}
