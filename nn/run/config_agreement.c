/* Compares, before the first step, what all ranks of a run must pass alike. Otherwise ranks with different settings
 * would train a model that no setting describes, fail in the middle with a message about collectives, or wait for
 * messages that are never sent. Long inputs, which are the model's modules and the data, are compared by their hash.
 * The hash is taken only here: once in a run each rank reads its data from beginning to end. Every rank has the
 * whole model and the whole data, whatever part of them its strategy makes it compute. The first parameters are not
 * compared, as rank 0 sends them to all ranks. */
#include "run/config_agreement.h"

#include "base/error.h"
#include "model/evaluate.h"
#include "model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum kind { COUNT, REAL, OPAQUE };

static const struct {
    const char *name;
    enum kind kind;
} fields[] = {
    {"the model's parameters", COUNT},
    {"the type of the model's elements", OPAQUE},
    {"the shape of the model's input", OPAQUE},
    {"modules of the model", COUNT},
    {"the kinds of the model's modules", OPAQUE},
    {"the settings of the model's modules", OPAQUE},
    {"where the model's modules take their inputs from", OPAQUE},
    {"the model's cost", OPAQUE},
    {"samples", COUNT},
    {"training samples", COUNT},
    {"test samples", COUNT},
    {"features of a sample", COUNT},
    {"classes", COUNT},
    {"labels of a sample", COUNT},
    {"the alphabet of the data", OPAQUE},
    {"the names of the classes", OPAQUE},
    {"the values of the samples", OPAQUE},
    {"the labels of the samples", OPAQUE},
    {"which samples are for training", OPAQUE},
    {"which samples are for testing", OPAQUE},
    {"batch", COUNT},
    {"epochs", COUNT},
    {"accumulate", COUNT},
    {"seed", COUNT},
    {"the optimizer", OPAQUE},
    {"the optimizer's momentum", REAL},
    {"the optimizer's beta1", REAL},
    {"the optimizer's beta2", REAL},
    {"the optimizer's epsilon", REAL},
    {"weight_decay", REAL},
    {"the kind of schedule", OPAQUE},
    {"the learning rate", REAL},
    {"the schedule's factor", REAL},
    {"the schedule's floor", REAL},
    {"warmup", COUNT},
    {"the schedule's every", COUNT},
    {"the schedule's total", COUNT},
    {"clip_norm", REAL},
    {"bucket_bytes", COUNT},
    {"the strategy", OPAQUE},
    {"the strategy's settings", OPAQUE},
    {"check_every", COUNT},
    {"whether there are checkpoints", OPAQUE},
    {"checkpoint_every", COUNT},
    {"whether the run is resumed", OPAQUE},
    {"stop_after", COUNT},
    {"whether there are reports", OPAQUE},
    {"patience", COUNT},
    {"whether staleness is counted", OPAQUE},
};

#define FIELDS (sizeof(fields) / sizeof(fields[0]))
#define MODEL_FIELDS 8
#define DATA_FIELDS 12
#define OPTION_FIELDS (FIELDS - MODEL_FIELDS - DATA_FIELDS)

static uint64_t bits(double value)
{
    uint64_t word;
    memcpy(&word, &value, sizeof(word));
    return word;
}

static uint64_t hash_name(const char *name, uint64_t before)
{
    return XXH3_64bits_withSeed(name, strlen(name), before);
}

/* Field by field: the padding of the struct has undefined bytes. */
static uint64_t hash_settings(const struct gy_nn_config *c, uint64_t before)
{
    const uint64_t all[] = {c->outputs,    c->symbols,        c->heads,  bits(c->rate), c->causal,  c->relu, c->first,
                            c->shape.time, c->shape.features, c->kernel, c->stride,     c->padding, c->bias};
    return XXH3_64bits_withSeed(all, sizeof(all), before);
}

static uint64_t hash_inputs(const struct gy_nn_module *module, uint64_t before)
{
    uint64_t all[1 + GY_NN_MOST_INPUTS] = {module->ninputs};
    for (size_t k = 0; k < module->ninputs; k++)
        all[1 + k] = module->from[k];
    return XXH3_64bits_withSeed(all, sizeof(all), before);
}

static void put_model(const gyre_nn_model *model, uint64_t words[MODEL_FIELDS])
{
    const uint64_t shape[] = {model->in.time, model->in.features, model->in.height};
    uint64_t kinds = 0, settings = 0, inputs = 0;
    for (size_t i = 0; i < model->nmodules; i++) {
        kinds = hash_name(model->modules[i].ops->name, kinds);
        settings = hash_settings(&model->modules[i].config, settings);
        inputs = hash_inputs(&model->modules[i], inputs);
    }
    const uint64_t all[MODEL_FIELDS] = {
        gyre_nn_param_count(model),
        (uint64_t)gyre_nn_dtype(model),
        XXH3_64bits(shape, sizeof(shape)),
        model->nmodules,
        kinds,
        settings,
        inputs,
        hash_name(model->cost->name, 0),
    };
    memcpy(words, all, sizeof(all));
}

static uint64_t hash_names(const gyre_nn_dataset *data)
{
    uint64_t hash = 0;
    for (size_t c = 0; data->names && data->names[c]; c++)
        hash = hash_name(data->names[c], hash);
    return hash;
}

/* A model that learns without labels ignores them. */
static void put_data(const gyre_nn_model *model, const gyre_nn_dataset *data, uint64_t words[DATA_FIELDS])
{
    size_t labels = gy_nn_labelled(model) ? data->samples * data->steps : 0;
    const uint64_t all[DATA_FIELDS] = {
        data->samples,
        data->ntrain,
        data->ntest,
        data->features,
        data->classes,
        data->steps,
        XXH3_64bits(data->alphabet, data->alphabet ? data->classes : 0),
        labels > 0 ? hash_names(data) : 0,
        XXH3_64bits(data->x, data->samples * data->features * sizeof(*data->x)),
        XXH3_64bits(data->labels, labels * sizeof(*data->labels)),
        XXH3_64bits(data->train, data->ntrain * sizeof(*data->train)),
        XXH3_64bits(data->test, data->ntest * sizeof(*data->test)),
    };
    memcpy(words, all, sizeof(all));
}

/* Nothing is read of a strategy that will be refused. */
static void put_strategy(const struct gyre_nn_train_options *o, uint64_t words[2])
{
    double values[GYRE_NN_MOST_SETTINGS] = {0};
    const gyre_nn_strategy *strategy = o->strategy ? o->strategy : gyre_nn_strategy_find("sync");
    words[0] = words[1] = 0;
    if (strategy->size != sizeof(*strategy) || !strategy->name)
        return;
    words[0] = XXH3_64bits(strategy->name, strlen(strategy->name));
    if (gyre_nn_strategy_parse(strategy, o->settings, values) == GYRE_SUCCESS)
        words[1] = XXH3_64bits(values, sizeof(values));
}

static void put_options(const struct gyre_nn_train_options *o, uint64_t words[OPTION_FIELDS])
{
    const struct gyre_nn_optimizer_config *p = &o->optimizer;
    const struct gyre_nn_schedule *s = &o->schedule;
    uint64_t way[2];
    put_strategy(o, way);
    const uint64_t all[OPTION_FIELDS] = {
        o->batch,
        o->epochs,
        o->accumulate,
        o->resume ? 0 : o->seed, /* the file's counts */
        (uint64_t)p->kind,
        bits(p->momentum),
        bits(p->beta1),
        bits(p->beta2),
        bits(p->epsilon),
        bits(p->weight_decay),
        (uint64_t)s->kind,
        bits(s->rate),
        bits(s->factor),
        bits(s->floor),
        s->warmup,
        s->every,
        s->total,
        bits(o->clip_norm),
        o->bucket_bytes,
        way[0],
        way[1],
        o->check_every,
        o->checkpoint != NULL,
        o->checkpoint_every,
        o->resume != NULL,
        o->stop_after,
        o->report != NULL,
        o->patience,
        o->staleness != NULL,
    };
    memcpy(words, all, sizeof(all));
}

static void print_word(char *text, size_t room, size_t field, uint64_t word)
{
    double value;
    memcpy(&value, &word, sizeof(value));
    if (fields[field].kind == REAL)
        snprintf(text, room, "%.9g", value);
    else
        snprintf(text, room, "%llu", (unsigned long long)word);
}

static gyre_status differ(size_t field, int rank, uint64_t first, uint64_t other)
{
    char theirs[32], its[32];
    if (fields[field].kind == OPAQUE)
        return gy_nn_fail(GYRE_MISMATCH, "ranks 0 and %d do not agree on %s", rank, fields[field].name);
    print_word(theirs, sizeof(theirs), field, first);
    print_word(its, sizeof(its), field, other);
    return gy_nn_fail(GYRE_MISMATCH, "ranks do not agree on %s: %s on rank 0, %s on rank %d", fields[field].name,
                      theirs, its, rank);
}

gyre_status gy_nn_agree(gyre_comm *comm, const gyre_nn_model *model, const gyre_nn_dataset *data,
                        const struct gyre_nn_train_options *options)
{
    int ranks = comm ? gyre_comm_size(comm) : 1;
    uint64_t mine[FIELDS];
    if (ranks == 1)
        return GYRE_SUCCESS;
    put_model(model, mine); /* in the order of `fields` */
    put_data(model, data, mine + MODEL_FIELDS);
    put_options(options, mine + MODEL_FIELDS + DATA_FIELDS);
    uint64_t *all = calloc((size_t)ranks, sizeof(mine));
    if (!all)
        return gy_nn_fail(GYRE_NO_MEMORY, "no memory to compare what %d ranks want", ranks);
    gyre_status status = gyre_all_gather(comm, mine, all, FIELDS, GYRE_UINT64);
    if (status != GYRE_SUCCESS)
        gy_nn_fail_comm(status, comm, "comparing what the ranks want");
    for (size_t field = 0; field < FIELDS; field++)
        for (int rank = 1; rank < ranks && status == GYRE_SUCCESS; rank++)
            if (all[(size_t)rank * FIELDS + field] != all[field])
                status = differ(field, rank, all[field], all[(size_t)rank * FIELDS + field]);
    free(all);
    return status;
}
