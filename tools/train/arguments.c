/* One table of options; the parser stores each in a field. Options of the optimiser are collected first and applied
 * at the end, because those that were not given take the defaults of the chosen optimiser. */
#include "train/arguments.h"

#include "common/options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_MODEL = 1000,
    KEY_HIDDEN,
    KEY_ACTIVATION,
    KEY_DTYPE,
    KEY_WIDTH,
    KEY_BLOCKS,
    KEY_HEADS,
    KEY_DROPOUT,
    KEY_CONTEXT,
    KEY_CHANNELS,
    KEY_IMAGE,
    KEY_SAMPLE,
    KEY_PREDICT,
    KEY_EXPLAIN,
    KEY_PATIENCE,
    KEY_DATA,
    KEY_STRATEGY,
    KEY_CHECK,
    KEY_STALENESS,
    KEY_PIPELINE,
    KEY_RECOMPUTE,
    KEY_DETERMINISTIC,
    KEY_ELASTIC,
    KEY_LEAST,
    KEY_MEMBERSHIP,
    KEY_REPLAY,
    KEY_BATCH,
    KEY_EPOCHS,
    KEY_STEPS,
    KEY_ACCUMULATE,
    KEY_SEED,
    KEY_OPTIMIZER,
    KEY_LR,
    KEY_MOMENTUM,
    KEY_WEIGHT_DECAY,
    KEY_SCHEDULE,
    KEY_WARMUP,
    KEY_CLIP,
    KEY_BUCKET,
    KEY_METRICS,
    KEY_CHECKPOINT,
    KEY_CHECKPOINT_EVERY,
    KEY_RESUME,
    KEY_TRACE,
    KEY_MEASURE,
    KEY_ROUNDS,
    KEY_VERIFY,
    KEY_QUIET,
    KEY_BLAS_THREADS,
    KEY_THREADS,
    KEY_PROGRESS_THREAD,
};

static const struct argp_option options[] = {
    {"model", KEY_MODEL, "M", 0, "mlp (default), autoencoder, lstm, transformer, recommender or cnn", 1},
    {"hidden", KEY_HIDDEN, "N,N...", 0, "sizes of the hidden layers (default 128; autoencoder 48,16; recommender 32)",
     1},
    {"activation", KEY_ACTIVATION, "A", 0, "relu (default), tanh, sigmoid or gelu", 1},
    {"dtype", KEY_DTYPE, "T", 0, "float32 (default) or float64", 1},
    {"width", KEY_WIDTH, "N", 0, "size of a symbol's vector (default 32 for lstm and recommender, 64 for transformer)",
     1},
    {"blocks", KEY_BLOCKS, "N", 0, "blocks of the transformer (default 2)", 1},
    {"heads", KEY_HEADS, "N", 0, "attention heads of a block (default 4; recommender 2)", 1},
    {"dropout", KEY_DROPOUT, "P", 0, "share of zeros in training of lstm, transformer and cnn (default 0)", 1},
    {"context", KEY_CONTEXT, "N", 0, "steps of a sample of text (default 64)", 1},
    {"channels", KEY_CHANNELS, "N,N...", 0,
     "channels of the cnn's blocks, each of which halves the image (default 32,64)", 1},
    {"image", KEY_IMAGE, "HxWxC", 0,
     "shape of a sample of csv or npy for the cnn: rows, columns, channels, in this order (digits and idx know theirs)",
     1},
    {"data", KEY_DATA, "D", 0,
     "digits (default, built in), idx:DIR, csv:FILE, npy:FILE, text:FILE, or sessions[:SEED] for the recommender", 1},
    {"strategy", KEY_STRATEGY, "S", 0,
     "how ranks share the work: sync (default), or another, with settings: NAME:NAME=VALUE,...; help lists them", 2},
    {"staleness", KEY_STALENESS, "S", 0, "gradients are applied S steps later: --strategy stale:steps=S", 2},
    {"pipeline", KEY_PIPELINE, "N", 0, "layers divided over N ranks each: --strategy pipeline:stages=N", 2},
    {"recompute", KEY_RECOMPUTE, NULL, 0, "... and their forwards done again, which saves activations", 2},
    {"deterministic", KEY_DETERMINISTIC, NULL, 0, "the same bits on any number of ranks: --strategy deterministic", 2},
    {"elastic", KEY_ELASTIC, NULL, 0,
     "a rank that dies costs the step in flight, or what was done since the last average: the others go on (sync, "
     "deterministic, average and its kin)",
     2},
    {"min", KEY_LEAST, "N", 0, "... as long as N of them are left (default 1)", 2},
    {"membership", KEY_MEMBERSHIP, "FILE", 0, "... and write how many ranks there were from which step on", 2},
    {"replay-membership", KEY_REPLAY, "FILE", 0,
     "with as many ranks, from the same steps on, as the elastic run that wrote FILE; without a failure", 2},
    {"check", KEY_CHECK, "N", 0, "compare the ranks' state every N steps (default 100; 0: never)", 2},
    {"batch", KEY_BATCH, "GLOBAL", 0, "samples of a step, divided over the ranks (default 64)", 2},
    {"epochs", KEY_EPOCHS, "E", 0, "passes over the training samples (default 30)", 2},
    {"patience", KEY_PATIENCE, "N", 0, "stop when the test loss has not fallen for N epochs (default: never)", 2},
    {"steps", KEY_STEPS, "N", 0, "stop when the run has made N steps", 2},
    {"accumulate", KEY_ACCUMULATE, "K", 0, "compute a batch in K pieces, communicate once (default 1)", 2},
    {"seed", KEY_SEED, "S", 0, "of the weights and of the shuffle (default 1)", 2},
    {"optimizer", KEY_OPTIMIZER, "O", 0, "sgd, momentum, nesterov, adam (default) or adamw", 3},
    {"lr", KEY_LR, "RATE", 0, "learning rate (default 0.003; 0.1 for sgd, 0.05 for momentum and nesterov)", 3},
    {"momentum", KEY_MOMENTUM, "M", 0, "of momentum and nesterov (default 0.9)", 3},
    {"weight-decay", KEY_WEIGHT_DECAY, "W", 0, "(default 0; 0.01 for adamw)", 3},
    {"schedule", KEY_SCHEDULE, "S", 0,
     "cosine (default), constant, or step[:EVERY[:FACTOR]] in steps (default 1000:0.1)", 3},
    {"warmup", KEY_WARMUP, "N", 0, "steps over which the rate rises (default 0)", 3},
    {"clip", KEY_CLIP, "NORM", 0, "largest norm of a gradient (default: no clipping)", 3},
    {"bucket", KEY_BUCKET, "BYTES", 0, "size of a gradient bucket, with k or M (default 256k)", 4},
    {"blas-threads", KEY_BLAS_THREADS, "N", 0,
     "threads for matrix products (default: OPENBLAS_NUM_THREADS, or the cores divided by the ranks of the host)", 4},
    {"threads", KEY_THREADS, "SxN", 0, "threads of each rank: samples divided by S, neurons by N (default 1x1)", 4},
    {"progress-thread", KEY_PROGRESS_THREAD, NULL, 0,
     "a thread of gyre makes progress beside backward (default: progress between layers)", 4},
    {"metrics", KEY_METRICS, "FILE", 0, "write one JSON object per epoch, and a final one", 5},
    {"checkpoint", KEY_CHECKPOINT, "FILE", 0, "write a safetensors checkpoint after each epoch", 5},
    {"checkpoint-every", KEY_CHECKPOINT_EVERY, "N", 0, "... or every N steps", 5},
    {"resume", KEY_RESUME, "FILE", 0, "go on from a checkpoint", 5},
    {"trace", KEY_TRACE, "FILE", 0, "write a timeline in the Chrome trace format", 5},
    {"measure-overlap", KEY_MEASURE, NULL, 0, "after training, measure how much communication hides behind computation",
     6},
    {"rounds", KEY_ROUNDS, "N", 0, "rounds of that measurement (default 25)", 6},
    {"verify-single", KEY_VERIFY, NULL, 0, "after training, train the same on one rank and compare", 6},
    {"sample", KEY_SAMPLE, "N", 0, "after training on text, write N bytes of it", 6},
    {"predict", KEY_PREDICT, "FILE", 0, "after training, write the model's answers to the test samples, as CSV", 6},
    {"explain", KEY_EXPLAIN, "N", 0, "after training, show what the answers to N test samples rest on: recommender", 6},
    {"quiet", KEY_QUIET, NULL, 0, "no progress line", 6},
    {0},
};

struct parse {
    struct arguments out;
    double rate, momentum, decay; /* NaN: not given */
    int blas_threads, stages;
    bool recompute;
    const char *way; /* the option that has said how ranks share the work, or NULL */
};

static double real(const char *option, const char *text, double least)
{
    char *stop;
    double value = strtod(text, &stop);
    if (stop == text || *stop || !isfinite(value) || value < least)
        gy_options_refuse("%s: \"%s\" is no number of at least %g", option, text, least);
    return value;
}

/* Returns the number of sizes. */
static size_t parse_sizes(const char *option, const char *text, size_t sizes[LARGEST_DEPTH])
{
    char *copy = strdup(text), *rest = copy;
    size_t count = 0;
    if (!copy)
        gy_options_refuse("%s: no memory", option);
    for (char *word; (word = strsep(&rest, ","));) { /* an empty one is no number */
        if (count == LARGEST_DEPTH)
            gy_options_refuse("%s: at most %d layers", option, LARGEST_DEPTH);
        sizes[count++] = (size_t)gy_options_integer(option, word, 1, 1 << 20);
    }
    free(copy);
    return count;
}

/* "HxWxC" */
static void parse_image(struct gyre_nn_image *image, const char *text)
{
    size_t sizes[3] = {0};
    char *stop = NULL;
    const char *at = text;
    for (int i = 0; i < 3; i++) {
        unsigned long value = *at >= '1' && *at <= '9' ? strtoul(at, &stop, 10) : 0;
        if (value == 0 || value > 65536 || *stop != (i < 2 ? 'x' : '\0'))
            gy_options_refuse("--image '%s' is no HxWxC, such as 28x28x1", text);
        sizes[i] = value;
        at = stop + 1;
    }
    *image = (struct gyre_nn_image){.height = sizes[0], .width = sizes[1], .channels = sizes[2]};
}

/* NAME[:EVERY[:FACTOR]], with nothing behind it: trailing text is an error. */
static void parse_schedule(struct gyre_nn_schedule *schedule, const char *text)
{
    static const char *const names[] = {"constant", "step", "cosine", NULL};
    char *copy = strdup(text), *rest = copy;
    if (!copy)
        gy_options_refuse("--schedule: no memory");
    schedule->kind = (gyre_nn_schedule_kind)gy_options_choice("--schedule", strsep(&rest, ":"), names);
    if (rest && schedule->kind != GYRE_NN_STEP)
        gy_options_refuse("--schedule: only step takes numbers");
    if (rest)
        schedule->every = (uint64_t)gy_options_integer("--schedule", strsep(&rest, ":"), 1, INT32_MAX);
    if (rest)
        schedule->factor = real("--schedule", rest, 0);
    free(copy);
}

static error_t parse_model(int key, char *arg, struct parse *parse)
{
    static const char *const activations[] = {"relu", "tanh", "sigmoid", "gelu", NULL}, *const dtypes[] = {
                                                                                            "float32", "float64", NULL};
    struct model_options *out = &parse->out.model;
    switch (key) {
    case KEY_MODEL: out->kind = (enum model_kind)gy_options_choice("--model", arg, model_names); break;
    case KEY_HIDDEN: out->nhidden = parse_sizes("--hidden", arg, out->hidden); break;
    case KEY_CHANNELS: out->nchannels = parse_sizes("--channels", arg, out->channels); break;
    case KEY_IMAGE: parse_image(&out->image, arg); break;
    case KEY_ACTIVATION:
        out->activation = (gyre_nn_activation)(GYRE_NN_RELU + gy_options_choice("--activation", arg, activations));
        break;
    case KEY_DTYPE: out->dtype = gy_options_choice("--dtype", arg, dtypes) ? GYRE_FLOAT64 : GYRE_FLOAT32; break;
    case KEY_WIDTH: out->width = (size_t)gy_options_integer("--width", arg, 1, 1 << 20); break;
    case KEY_BLOCKS: out->blocks = (size_t)gy_options_integer("--blocks", arg, 1, 1 << 10); break;
    case KEY_HEADS: out->heads = (size_t)gy_options_integer("--heads", arg, 1, 1 << 20); break;
    case KEY_CONTEXT: out->context = (size_t)gy_options_integer("--context", arg, 1, 65536); break;
    case KEY_DROPOUT:
        out->dropout = real("--dropout", arg, 0);
        if (out->dropout >= 1)
            gy_options_refuse("--dropout '%s' is not below 1", arg);
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static void print_setting(const struct gyre_nn_setting *setting)
{
    char value[32];
    if (setting->choices && setting->choices[0])
        snprintf(value, sizeof(value), "%s", setting->choices[(int)setting->value]);
    else
        snprintf(value, sizeof(value), "%g", setting->value);
    printf("    %s=%s\t%s\n", setting->name, value, setting->help);
    for (size_t i = 0; setting->choices && setting->choices[i]; i++)
        printf("%s%s%s", i ? ", " : "        one of ", setting->choices[i], setting->choices[i + 1] ? "" : "\n");
}

static void list_strategies(void)
{
    const gyre_nn_strategy *strategy;
    for (size_t i = 0; (strategy = gyre_nn_strategy_at(i)); i++) {
        printf("%s\t%s\n", strategy->name, strategy->help);
        for (const struct gyre_nn_setting *s = strategy->settings; s && s->name; s++)
            print_setting(s);
    }
    exit(0);
}

/* NAME or NAME:SETTINGS */
static void parse_strategy(struct gyre_nn_train_options *train, const char *text)
{
    double values[GYRE_NN_MOST_SETTINGS];
    char name[32];
    size_t length = strcspn(text, ":");
    if (strcmp(text, "help") == 0)
        list_strategies();
    snprintf(name, sizeof(name), "%.*s", (int)(length < sizeof(name) ? length : sizeof(name)), text);
    train->strategy = gyre_nn_strategy_find(name);
    train->settings = text[length] ? text + length + 1 : NULL;
    if (!train->strategy)
        gy_options_refuse("--strategy: there is none named \"%.*s\"; --strategy help lists them", (int)length, text);
    if (gyre_nn_strategy_parse(train->strategy, train->settings, values) != GYRE_SUCCESS)
        gy_options_refuse("--strategy: %s", gyre_nn_last_error());
}

/* Refuses two options that name different ways: one of them would be ignored without a message. */
static void choose_way(struct parse *parse, const char *option)
{
    if (parse->way && strcmp(parse->way, option) != 0)
        gy_options_refuse("%s and %s are two ways of sharing the work: give one of them", parse->way, option);
    parse->way = option;
}

static void parse_staleness(struct gyre_nn_train_options *train, const char *text)
{
    static char settings[32];
    snprintf(settings, sizeof(settings), "steps=%lld", (long long)gy_options_integer("--staleness", text, 0, 16));
    train->strategy = gyre_nn_strategy_find("stale");
    train->settings = settings;
}

bool arguments_divide_layers(const struct gyre_nn_train_options *train)
{
    return train->strategy && strcmp(train->strategy->name, "pipeline") == 0;
}

static void apply_pipeline(const struct parse *parse, struct gyre_nn_train_options *train)
{
    static char settings[48];
    if (parse->recompute && parse->stages == 0)
        gy_options_refuse("--recompute goes with --pipeline N");
    if (parse->stages == 0)
        return;
    if (parse->way)
        gy_options_refuse("--pipeline is a strategy of its own: leave the other one out");
    snprintf(settings, sizeof(settings), "stages=%d,recompute=%s", parse->stages, parse->recompute ? "yes" : "no");
    train->strategy = gyre_nn_strategy_find("pipeline");
    train->settings = settings;
}

/* "SxN" */
static void parse_threads(const char *text)
{
    char *stop;
    unsigned long samples = strtoul(text, &stop, 10), neurons = *stop == 'x' ? strtoul(stop + 1, &stop, 10) : 0;
    if (*text < '1' || *text > '9' || *stop || neurons == 0)
        gy_options_refuse("--threads '%s' is no SxN, such as 2x1", text);
    if (gyre_nn_set_threads(samples, neurons) != GYRE_SUCCESS)
        gy_options_refuse("--threads: %s", gyre_nn_last_error());
}

static error_t parse_run(int key, char *arg, struct parse *parse)
{
    struct gyre_nn_train_options *train = &parse->out.train;
    switch (key) {
    case KEY_STRATEGY:
        choose_way(parse, "--strategy");
        parse_strategy(train, arg);
        break;
    case KEY_DETERMINISTIC:
        choose_way(parse, "--deterministic");
        parse_strategy(train, "deterministic");
        break;
    case KEY_PIPELINE: parse->stages = (int)gy_options_integer("--pipeline", arg, 1, 1024); break;
    case KEY_RECOMPUTE: parse->recompute = true; break;
    case KEY_STALENESS:
        choose_way(parse, "--staleness");
        parse_staleness(train, arg);
        break;
    case KEY_ELASTIC: parse->out.elastic = true; break;
    case KEY_LEAST: parse->out.least = (int)gy_options_integer("--min", arg, 1, INT32_MAX); break;
    case KEY_MEMBERSHIP: parse->out.membership = arg; break;
    case KEY_REPLAY: parse->out.replay_membership = arg; break;
    case KEY_CHECK: train->check_every = (uint64_t)gy_options_integer("--check", arg, 0, INT64_MAX); break;
    case KEY_BATCH: train->batch = (size_t)gy_options_integer("--batch", arg, 1, INT32_MAX); break;
    case KEY_EPOCHS: train->epochs = (size_t)gy_options_integer("--epochs", arg, 1, INT32_MAX); break;
    case KEY_STEPS: train->stop_after = (uint64_t)gy_options_integer("--steps", arg, 1, INT64_MAX); break;
    case KEY_ACCUMULATE: train->accumulate = (size_t)gy_options_integer("--accumulate", arg, 1, 1 << 20); break;
    case KEY_SEED: train->seed = (uint64_t)gy_options_integer("--seed", arg, 0, INT64_MAX); break;
    case KEY_BUCKET: train->bucket_bytes = gy_options_bytes("--bucket", arg, (size_t)1 << 40); break;
    case KEY_BLAS_THREADS: parse->blas_threads = (int)gy_options_integer("--blas-threads", arg, 1, 1024); break;
    case KEY_THREADS: parse_threads(arg); break;
    case KEY_PROGRESS_THREAD: parse->out.progress_thread = true; break;
    case KEY_METRICS: parse->out.metrics = arg; break;
    case KEY_CHECKPOINT: train->checkpoint = arg; break;
    case KEY_CHECKPOINT_EVERY:
        train->checkpoint_every = (uint64_t)gy_options_integer("--checkpoint-every", arg, 1, INT64_MAX);
        break;
    case KEY_RESUME: train->resume = arg; break;
    case KEY_TRACE: parse->out.trace = arg; break;
    case KEY_MEASURE: parse->out.measure_overlap = true; break;
    case KEY_ROUNDS: parse->out.rounds = (size_t)gy_options_integer("--rounds", arg, 1, 1 << 20); break;
    case KEY_SAMPLE: parse->out.sample = (size_t)gy_options_integer("--sample", arg, 1, 1 << 30); break;
    case KEY_PREDICT: parse->out.predict = arg; break;
    case KEY_EXPLAIN: parse->out.explain = (size_t)gy_options_integer("--explain", arg, 1, INT32_MAX); break;
    case KEY_PATIENCE: train->patience = (size_t)gy_options_integer("--patience", arg, 1, INT32_MAX); break;
    case KEY_VERIFY: parse->out.verify_single = true; break;
    case KEY_QUIET: parse->out.quiet = true; break;
    default: return parse_model(key, arg, parse);
    }
    return 0;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    static const char *const optimizers[] = {"sgd", "momentum", "nesterov", "adam", "adamw", NULL};
    struct parse *parse = state->input;
    struct arguments *out = &parse->out;
    switch (key) {
    case ARGP_KEY_INIT: gy_options_init(state); break;
    case ARGP_KEY_ARG: gy_options_refuse("\"%s\" is not understood", arg);
    case KEY_DATA:
        if (strcmp(arg, "digits") != 0 && strncmp(arg, "idx:", 4) != 0 && strncmp(arg, "csv:", 4) != 0 &&
            strncmp(arg, "npy:", 4) != 0 && strncmp(arg, "text:", 5) != 0 && strcmp(arg, "sessions") != 0 &&
            strncmp(arg, "sessions:", 9) != 0)
            gy_options_refuse("--data '%s' is none of digits, idx:DIR, csv:FILE, npy:FILE, text:FILE, sessions", arg);
        out->data = arg;
        break;
    case KEY_OPTIMIZER:
        out->train.optimizer.kind = (gyre_nn_optimizer_kind)gy_options_choice("--optimizer", arg, optimizers);
        break;
    case KEY_LR: parse->rate = real("--lr", arg, 0); break;
    case KEY_MOMENTUM: parse->momentum = real("--momentum", arg, 0); break;
    case KEY_WEIGHT_DECAY: parse->decay = real("--weight-decay", arg, 0); break;
    case KEY_SCHEDULE: parse_schedule(&out->train.schedule, arg); break;
    case KEY_WARMUP: out->train.schedule.warmup = (uint64_t)gy_options_integer("--warmup", arg, 0, INT64_MAX); break;
    case KEY_CLIP: out->train.clip_norm = real("--clip", arg, 0); break;
    default: return parse_run(key, arg, parse);
    }
    return 0;
}

static void apply_momentum(const struct parse *parse, struct gyre_nn_optimizer_config *optimizer)
{
    if (isnan(parse->momentum))
        return;
    if (optimizer->kind != GYRE_NN_MOMENTUM && optimizer->kind != GYRE_NN_NESTEROV)
        gy_options_refuse("--momentum is of --optimizer momentum or nesterov");
    if (parse->momentum >= 1)
        gy_options_refuse("--momentum %g is not below 1: steps would grow without end", parse->momentum);
    optimizer->momentum = parse->momentum;
}

static const double default_rates[] = {0.1, 0.05, 0.05, 3e-3, 3e-3};

void arguments_parse(int argc, char **argv, struct arguments *arguments_p)
{
    static const struct argp argp = {
        options,
        parse_option,
        NULL,
        "Trains a model, on one rank or, started by gyre-run, torchrun, mpirun or srun, on many.\v"
        "The defaults train the built-in handwritten digits to more than 97 % test accuracy.",
        NULL,
        NULL,
        NULL};
    struct parse parse = {
        .out = {.data = "digits", .model = {.dtype = GYRE_FLOAT32}, .rounds = 25},
        .rate = NAN,
        .momentum = NAN,
        .decay = NAN,
    };
    parse.out.train = gyre_nn_train_defaults();
    gy_options_parse("gyre-train", &argp, 0, argc, argv, &parse);
    struct gyre_nn_train_options *train = &parse.out.train;
    train->optimizer = gyre_nn_optimizer_defaults(train->optimizer.kind);
    train->schedule.rate = isnan(parse.rate) ? default_rates[train->optimizer.kind] : parse.rate;
    apply_momentum(&parse, &train->optimizer);
    if (!isnan(parse.decay))
        train->optimizer.weight_decay = parse.decay;
    apply_pipeline(&parse, train);
    model_options_settle(&parse.out.model, parse.out.data);
    if ((parse.out.least || parse.out.membership) && !parse.out.elastic)
        gy_options_refuse("--min and --membership go with --elastic");
    if (train->checkpoint_every && !train->checkpoint)
        gy_options_refuse("--checkpoint-every goes with --checkpoint FILE");
    if (parse.out.replay_membership && parse.out.elastic)
        gy_options_refuse("--replay-membership repeats a run without its failures: leave --elastic out");
    if (parse.out.sample && strncmp(parse.out.data, "text:", 5) != 0)
        gy_options_refuse("--sample writes text: it needs --data text:FILE");
    if (parse.out.explain && parse.out.model.kind != MODEL_RECOMMENDER)
        gy_options_refuse("--explain is for --model recommender, whose attention tells");
    if (parse.out.verify_single && train->resume && arguments_divide_layers(train))
        gy_options_refuse(
            "--verify-single: one rank cannot go on from the state of a pipeline's stages: leave --resume out");
    if (parse.out.verify_single && train->resume && train->checkpoint && strcmp(train->resume, train->checkpoint) == 0)
        gy_options_refuse("--verify-single starts from --resume once more: give --checkpoint another file");
    if (parse.blas_threads > 0)
        gyre_nn_set_blas_threads(parse.blas_threads);
    *arguments_p = parse.out;
}
