/* A run on disk: parameters by name, the optimiser's arrays, and the position (with the generator's state: seed and
 * epoch) as text. Numbers are stored as their bytes, so a resumed run goes on bit for bit. Reading checks everything
 * first and copies then: a file that does not fit leaves the model as it was. */
#include "base/error.h"
#include "base/plain.h"
#include "base/require.h"
#include "data/dataset.h"
#include "io/safetensors.h"
#include "optimize/optimizer.h"
#include "run/run_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT "gyre-nn 1"
static const char *const slot_names[2] = {"optimizer.0", "optimizer.1"};
static const char *const kind_names[] = {"sgd", "momentum", "nesterov", "adam", "adamw"};

static struct gy_st_tensor of_param(const gyre_nn_model *model, size_t index)
{
    const struct gyre_nn_tensor *tensor = gyre_nn_tensor(model, index);
    size_t element = gyre_nn_dtype(model) == GYRE_FLOAT64 ? 8 : 4;
    struct gy_st_tensor out = {
        .name = tensor->name,
        .dtype = gyre_nn_dtype(model),
        .rank = tensor->rank,
        .count = tensor->rows * tensor->cols,
        .data = (char *)gyre_nn_params(model) + tensor->offset * element,
    };
    out.shape[0] = out.rank == 2 ? tensor->rows : tensor->cols;
    out.shape[1] = out.rank == 2 ? tensor->cols : 0;
    return out;
}

/* What stands beside model and optimiser: the state of a strategy. */
struct beside {
    const char *strategy;
    const gyre_nn_optimizer
        *of; /* whose state is among the arrays, in parts or of each rank; or NULL: only its kind counts */
    int ranks;
    const struct gyre_nn_array *arrays;
    size_t narrays;
};

static const struct beside nothing = {.strategy = "sync", .ranks = 1};

static struct gy_st_tensor of_array(const struct gyre_nn_array *array, int ranks)
{
    struct gy_st_tensor out = {.name = array->name,
                               .dtype = array->dtype,
                               .rank = 1,
                               .shape = {array->count},
                               .count = array->count,
                               .data = array->data};
    if (array->placement == GYRE_NN_LOCAL) {
        out.rank = 2;
        out.shape[0] = (size_t)ranks;
        out.shape[1] = array->count / (size_t)ranks;
    }
    return out;
}

/* What a checkpoint of this model holds; returns the number of tensors, at most tensor_count + 2 + narrays. */
static size_t list_tensors(const gyre_nn_model *model, const gyre_nn_optimizer *optimizer, const struct beside *beside,
                           struct gy_st_tensor *out)
{
    size_t n = gyre_nn_tensor_count(model), count = gyre_nn_param_count(model);
    for (size_t i = 0; i < n; i++)
        out[i] = of_param(model, i);
    for (int slot = 0; slot < 2; slot++) {
        void *state = optimizer ? gyre_nn_optimizer_state(optimizer, slot) : NULL;
        if (state)
            out[n++] = (struct gy_st_tensor){.name = slot_names[slot],
                                             .dtype = gyre_nn_dtype(model),
                                             .rank = 1,
                                             .shape = {count},
                                             .count = count,
                                             .data = state};
    }
    for (size_t i = 0; i < beside->narrays; i++)
        out[n++] = of_array(&beside->arrays[i], beside->ranks);
    return n;
}

void gy_nn_note_alphabet(gyre_nn_model *model, const gyre_nn_dataset *data)
{
    size_t used = 0;
    *model->alphabet = '\0';
    for (size_t c = 0; data->alphabet && c < data->classes && used + 2 < sizeof(model->alphabet); c++)
        used += (size_t)snprintf(model->alphabet + used, 3, "%02x", (unsigned char)data->alphabet[c]);
}

static bool put_text(json_t *metadata, const char *key, const char *text)
{
    return json_object_set_new(metadata, key, json_string(text)) == 0;
}

static bool put(json_t *metadata, const char *key, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRIu64, value);
    return put_text(metadata, key, text);
}

static const char *kind_of(const gyre_nn_optimizer *optimizer)
{
    return kind_names[gyre_nn_optimizer_get_kind(optimizer)];
}

static bool describe(json_t *metadata, const gyre_nn_model *model, const gyre_nn_optimizer *optimizer,
                     const struct gyre_nn_position *position, const struct beside *beside)
{
    char cost[40], best[40];
    locale_t before = gy_plain_begin();
    snprintf(cost, sizeof(cost), "%a", position->cost);
    snprintf(best, sizeof(best), "%a", position->best);
    gy_plain_end(before);
    bool ok = put_text(metadata, "format", FORMAT) && put_text(metadata, "generator", "splitmix64(seed, epoch)") &&
              put(metadata, "seed", position->seed) && put(metadata, "epoch", position->epoch) &&
              put(metadata, "sample", position->sample) && put(metadata, "step", position->step) &&
              put_text(metadata, "cost", cost) && put_text(metadata, "best", best) &&
              put(metadata, "waited", position->waited) && put_text(metadata, "strategy", beside->strategy) &&
              put(metadata, "ranks", (uint64_t)beside->ranks);
    if (ok && (optimizer || beside->of))
        ok = put_text(metadata, "optimizer", kind_of(optimizer ? optimizer : beside->of));
    if (ok && optimizer)
        ok = put(metadata, "optimizer_steps", gyre_nn_optimizer_steps(optimizer));
    return ok && (!*model->alphabet || put_text(metadata, "alphabet", model->alphabet));
}

static gyre_status write_file(const char *path, const gyre_nn_model *model, const gyre_nn_optimizer *optimizer,
                              const struct gyre_nn_position *position, const struct beside *beside)
{
    gyre_status status = gy_nn_optimizer_check_whole(optimizer, model, "a checkpoint");
    status = status ? status : gyre_nn_settle(model); /* a step that has failed half way is no checkpoint */
    if (status != GYRE_SUCCESS)
        return status;
    struct gy_st_tensor *tensors = calloc(gyre_nn_tensor_count(model) + 2 + beside->narrays, sizeof(*tensors));
    json_t *metadata = json_object();
    if (!tensors || !metadata || !describe(metadata, model, optimizer, position, beside)) {
        free(tensors);
        json_decref(metadata);
        return gy_nn_fail(GYRE_NO_MEMORY, "no memory to write %s", path);
    }
    size_t n = list_tensors(model, optimizer, beside, tensors);
    status = gy_st_write(path, tensors, n, metadata);
    json_decref(metadata);
    free(tensors);
    return status;
}

gyre_status gyre_nn_checkpoint_write(const char *path, const gyre_nn_model *model, const gyre_nn_optimizer *optimizer,
                                     const struct gyre_nn_position *position)
{
    GY_NN_REQUIRE(path, model, position);
    return write_file(path, model, optimizer, position, &nothing);
}

static bool check_arrays(const char *function, int ranks, const struct gyre_nn_array *arrays, size_t narrays)
{
    bool bad = ranks < 1 || narrays > GYRE_NN_MOST_ARRAYS;
    for (size_t i = 0; arrays && i < narrays && !bad; i++)
        bad = !arrays[i].data || (unsigned)arrays[i].placement > GYRE_NN_SHARDED ||
              (arrays[i].dtype != GYRE_FLOAT32 && arrays[i].dtype != GYRE_FLOAT64) ||
              !memchr(arrays[i].name, 0, sizeof(arrays[i].name));
    if (bad)
        gy_nn_fail(GYRE_INVALID_ARGUMENT,
                   "%s: %d ranks and %zu arrays: at least one rank is needed, and at most %d arrays, each with a name, "
                   "data, a placement, and the type float32 or float64",
                   function, ranks, narrays, GYRE_NN_MOST_ARRAYS);
    return !bad;
}

gyre_status gyre_nn_checkpoint_write_arrays(const char *path, const gyre_nn_model *model,
                                            const gyre_nn_optimizer *optimizer, const struct gyre_nn_position *position,
                                            const char *strategy, int ranks, const struct gyre_nn_array *arrays,
                                            size_t narrays)
{
    GY_NN_REQUIRE(path, model, position, strategy);
    if (!check_arrays(__func__, ranks, arrays, narrays))
        return GYRE_INVALID_ARGUMENT;
    if (narrays > 0)
        GY_NN_REQUIRE(arrays);
    struct beside beside = {.strategy = strategy, .ranks = ranks, .arrays = arrays, .narrays = narrays};
    return write_file(path, model, optimizer, position, &beside);
}

gyre_status gy_nn_checkpoint_write_run(const char *path, const struct gyre_nn_run *run,
                                       const struct gyre_nn_position *position, const struct gyre_nn_array *arrays,
                                       size_t narrays)
{
    bool whole = run->strategy->optimizer == GYRE_NN_REPLICATED;
    struct beside beside = {run->strategy->name, whole ? NULL : run->optimizer, run->ranks, arrays, narrays};
    return write_file(path, run->model, whole ? run->optimizer : NULL, position, &beside);
}

static gyre_status get(const struct gy_st_file *file, const char *path, const char *key, uint64_t *value_p)
{
    const char *text = gy_st_metadata(file, key);
    char *stop = NULL;
    unsigned long long value = text ? strtoull(text, &stop, 10) : 0;
    if (!text || *text < '0' || *text > '9' || *stop)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "%s is no checkpoint of gyre: \"%s\" is missing from its metadata",
                          path, key);
    *value_p = value;
    return GYRE_SUCCESS;
}

static bool same_shape(const struct gy_st_tensor *a, const struct gy_st_tensor *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->shape, b->shape, (size_t)a->rank * sizeof(a->shape[0])) == 0;
}

static gyre_status read_position(const struct gy_st_file *file, const char *path, struct gyre_nn_position *position)
{
    const char *format = gy_st_metadata(file, "format"), *cost = gy_st_metadata(file, "cost");
    if (!format || strcmp(format, FORMAT) != 0)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT,
                          "%s is no checkpoint of gyre: its format is \"%.32s\", not \"" FORMAT "\"", path,
                          format ? format : "(none)");
    char *stop = NULL;
    position->cost = cost ? gy_plain_number(cost, &stop) : 0;
    if (!cost || stop == cost || *stop)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "%s is no checkpoint of gyre: \"cost\" is missing from its metadata",
                          path);
    const char *best = gy_st_metadata(file, "best"); /* files of before there was patience have none */
    position->best = best ? gy_plain_number(best, NULL) : 0;
    position->waited = 0;
    if (best && get(file, path, "waited", &position->waited) != GYRE_SUCCESS)
        return GYRE_INVALID_ARGUMENT;
    gyre_status status = get(file, path, "seed", &position->seed);
    status = status ? status : get(file, path, "epoch", &position->epoch);
    status = status ? status : get(file, path, "sample", &position->sample);
    status = status ? status : get(file, path, "step", &position->step);
    return status;
}

/* Optimisers of different kinds may have the same number of arrays and must not use each other's. Where the state is
 * among a strategy's arrays, files from before the kind was written are not checked. */
static gyre_status check_optimizer(const struct gy_st_file *file, const char *path, const gyre_nn_optimizer *optimizer,
                                   const struct beside *beside, uint64_t *steps)
{
    const char *kind = gy_st_metadata(file, "optimizer");
    const gyre_nn_optimizer *mine = optimizer ? optimizer : beside->of;
    if (mine && (optimizer || kind) && (!kind || strcmp(kind, kind_of(mine)) != 0))
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "%s was written with the optimiser %.32s, and this run uses %s", path,
                          kind ? kind : "(none)", kind_of(mine));
    if (optimizer && !gy_st_metadata(file, "optimizer_steps"))
        return gy_nn_fail(GYRE_INVALID_ARGUMENT,
                          "%s has the optimiser's state as its strategy divides it over the ranks: go on with that "
                          "strategy, or read the model alone",
                          path);
    return optimizer ? get(file, path, "optimizer_steps", steps) : GYRE_SUCCESS;
}

/* Files of before there were strategies are those of sync. Local state is of so many ranks. */
static gyre_status check_strategy(const struct gy_st_file *file, const char *path, const struct beside *beside)
{
    const char *strategy = gy_st_metadata(file, "strategy"), *ranks = gy_st_metadata(file, "ranks");
    bool local = false;
    strategy = strategy ? strategy : nothing.strategy;
    for (size_t i = 0; i < beside->narrays; i++)
        local = local || beside->arrays[i].placement == GYRE_NN_LOCAL;
    if (strcmp(strategy, beside->strategy) != 0)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "%s was written with the strategy %.32s, and this run uses %s", path,
                          strategy, beside->strategy);
    if (local && (!ranks || atoi(ranks) != beside->ranks))
        return gy_nn_fail(
            GYRE_INVALID_ARGUMENT, "%s holds what %.8s ranks had each, and this run has %d%s: start as many", path,
            ranks ? ranks : "(no)", beside->ranks, beside->ranks == 1 ? ", or is elastic, which is the same" : "");
    return GYRE_SUCCESS;
}

/* The same class may stand for different bytes in two texts. A model without text, and files from before the
 * alphabet was written, are not checked. */
static gyre_status check_alphabet(const struct gy_st_file *file, const char *path, const gyre_nn_model *model)
{
    const char *theirs = gy_st_metadata(file, "alphabet");
    if (!theirs || !*model->alphabet || strcmp(theirs, model->alphabet) == 0)
        return GYRE_SUCCESS;
    return gy_nn_fail(GYRE_INVALID_ARGUMENT,
                      "%s was trained on text with other bytes than this one: %zu there and %zu here, and not the same",
                      path, strlen(theirs) / 2, strlen(model->alphabet) / 2);
}

/* A model without text of its own gets the file's alphabet, and writes it from now on. An alphabet that gyre_nn did
 * not write is ignored. */
static void take_alphabet(const struct gy_st_file *file, gyre_nn_model *model)
{
    const char *theirs = gy_st_metadata(file, "alphabet");
    size_t length = theirs ? strlen(theirs) : 0;
    if (*model->alphabet || length % 2 != 0 || length >= sizeof(model->alphabet) ||
        (theirs && strspn(theirs, "0123456789abcdef") != length))
        return;
    memcpy(model->alphabet, theirs ? theirs : "", length + 1);
}

/* "128 × 64 float32" */
static const char *shape_text(const struct gy_st_tensor *tensor, char text[64])
{
    size_t used = 0;
    *text = 0;
    for (int i = 0; i < tensor->rank && used < 40; i++)
        used += (size_t)snprintf(text + used, 64 - used, "%zu%s", tensor->shape[i], i + 1 < tensor->rank ? " × " : " ");
    snprintf(text + used, 64 - used, "%s", gyre_dtype_name(tensor->dtype));
    return text;
}

static gyre_status refuse_shape(const char *path, const struct gy_st_tensor *mine, const struct gy_st_tensor *theirs)
{
    char there[64], here[64];
    if (!theirs)
        return gy_nn_fail(
            GYRE_INVALID_ARGUMENT,
            "%s does not fit this model: the tensor %s is missing; it was written by another model or with "
            "other settings",
            path, mine->name);
    return gy_nn_fail(GYRE_INVALID_ARGUMENT,
                      "%s does not fit this model: the tensor %s has another type or shape, %s there and %s here", path,
                      mine->name, shape_text(theirs, there), shape_text(mine, here));
}

/* Arrays of the file that this run does not have would be lost: a layer, or an exchange under way. Only the best
 * model so far may be lost, in a run without patience. A call for the model alone (`whole` false) does not need a
 * strategy's arrays. */
static gyre_status check_rest(const struct gy_st_file *file, const char *path, const struct gy_st_tensor *mine,
                              size_t n, bool whole)
{
    for (size_t t = 0; t < file->ntensors; t++) {
        const char *name = file->tensors[t].name;
        bool of_model = *name >= '0' && *name <= '9', known = strcmp(name, GY_NN_BEST_NAME) == 0;
        for (size_t i = 0; i < n && !known; i++)
            known = strcmp(mine[i].name, name) == 0;
        if (!known && (whole || of_model))
            return gy_nn_fail(
                GYRE_INVALID_ARGUMENT,
                "%s does not fit this %s: it has %.64s, for which there is no place here; it was written by "
                "another model or with other settings",
                path, of_model ? "model" : "run", name);
    }
    return GYRE_SUCCESS;
}

/* beside NULL: the model and its optimiser, whatever the strategy. */
static gyre_status apply(const struct gy_st_file *file, const char *path, gyre_nn_model *model,
                         gyre_nn_optimizer *optimizer, const struct beside *beside, struct gyre_nn_position *position_p)
{
    struct gyre_nn_position position;
    uint64_t steps = 0;
    bool whole = beside != NULL;
    beside = beside ? beside : &nothing;
    gyre_status status = read_position(file, path, &position);
    if (status == GYRE_SUCCESS && whole)
        status = check_strategy(file, path, beside);
    status = status ? status : check_optimizer(file, path, optimizer, beside, &steps);
    status = status ? status : check_alphabet(file, path, model);
    if (status != GYRE_SUCCESS)
        return status;
    struct gy_st_tensor *mine = calloc(gyre_nn_tensor_count(model) + 2 + beside->narrays, sizeof(*mine));
    if (!mine)
        return gy_nn_fail(GYRE_NO_MEMORY, "no memory to read %s", path);
    size_t n = list_tensors(model, optimizer, beside, mine);
    for (size_t i = 0; i < n && status == GYRE_SUCCESS; i++) {
        const struct gy_st_tensor *theirs = gy_st_find(file, mine[i].name);
        if (!theirs && strcmp(mine[i].name, GY_NN_BEST_NAME) == 0)
            position.best = 0; /* of a run without patience */
        else if (!theirs || !same_shape(theirs, &mine[i]))
            status = refuse_shape(path, &mine[i], theirs);
    }
    status = status ? status : check_rest(file, path, mine, n, whole);
    for (size_t i = 0; i < n && status == GYRE_SUCCESS; i++) {
        const struct gy_st_tensor *theirs = gy_st_find(file, mine[i].name);
        if (!theirs)
            continue;
        memcpy((void *)(uintptr_t)mine[i].data, theirs->data, theirs->count * (theirs->dtype == GYRE_FLOAT64 ? 8 : 4));
    }
    free(mine);
    if (status != GYRE_SUCCESS)
        return status;
    if (optimizer)
        gyre_nn_optimizer_set_steps(optimizer, steps);
    take_alphabet(file, model);
    *position_p = position;
    return GYRE_SUCCESS;
}

static gyre_status read_file(const char *path, gyre_nn_model *model, gyre_nn_optimizer *optimizer,
                             const struct beside *beside, struct gyre_nn_position *position_p)
{
    struct gy_nn_bytes bytes;
    struct gy_st_file file;
    gyre_status status = gy_nn_optimizer_check_whole(optimizer, model, "a checkpoint");
    status = status ? status : gy_nn_bytes_read(path, &bytes, NULL);
    if (status != GYRE_SUCCESS)
        return status;
    status = gy_st_decode(bytes.data, bytes.size, path, &file);
    if (status == GYRE_SUCCESS) {
        status = apply(&file, path, model, optimizer, beside, position_p);
        gy_st_free(&file);
    }
    free(bytes.data);
    return status;
}

gyre_status gyre_nn_checkpoint_read(const char *path, gyre_nn_model *model, gyre_nn_optimizer *optimizer,
                                    struct gyre_nn_position *position_p)
{
    GY_NN_REQUIRE(path, model, position_p);
    return read_file(path, model, optimizer, NULL, position_p);
}

gyre_status gyre_nn_checkpoint_read_arrays(const char *path, gyre_nn_model *model, gyre_nn_optimizer *optimizer,
                                           struct gyre_nn_position *position_p, const char *strategy, int ranks,
                                           const struct gyre_nn_array *arrays, size_t narrays)
{
    GY_NN_REQUIRE(path, model, position_p, strategy);
    if (!check_arrays(__func__, ranks, arrays, narrays))
        return GYRE_INVALID_ARGUMENT;
    if (narrays > 0)
        GY_NN_REQUIRE(arrays);
    struct beside beside = {.strategy = strategy, .ranks = ranks, .arrays = arrays, .narrays = narrays};
    return read_file(path, model, optimizer, &beside, position_p);
}

gyre_status gy_nn_checkpoint_read_run(const char *path, struct gyre_nn_run *run, struct gyre_nn_position *position_p,
                                      const struct gyre_nn_array *arrays, size_t narrays)
{
    bool whole = run->strategy->optimizer == GYRE_NN_REPLICATED;
    struct beside beside = {run->strategy->name, whole ? NULL : run->optimizer, run->ranks, arrays, narrays};
    return read_file(path, run->model, whole ? run->optimizer : NULL, &beside, position_p);
}
