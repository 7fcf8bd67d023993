/* pipeline: the modules of the model are divided over stages, one rank each; a batch flows through them in micro-batches.
 * Activations go up by one message per micro-batch, their gradients come down by another:
 *
 *     gpipe   stage 0   F0 F1 F2 F3             B0 B1 B2 B3        all forwards, then all backwards; at most
 *             stage 1      F0 F1 F2 F3    B0 B1 B2 B3              `micro` micro-batches in flight
 *
 *     1f1b    stage 0   F0 F1    B0 F2 B1 F3 B2    B3              a backward as soon as there is one; at most
 *             stage 1      F0 B0 F1 B1 F2 B2 F3 B3                 stages − stage in flight
 *
 * (Huang et al., 2019: GPipe; Narayanan et al., 2019: PipeDream's 1F1B, here with a flush per step.) Gradients add up in
 * the order of the micro-batches in both, so the result has the bits of one rank that accumulates as many pieces.
 * recompute: a stage keeps the inputs of micro-batches alone, and does their forward again before backward; dropout
 * draws the same. With fewer stages than ranks there are several pipelines, each with its part of the batch, and stages
 * of the same number sum their gradients.
 * Invariant: slot m mod depth belongs to micro-batch m from its forward to its backward, and to its messages until they
 * have left. */
#include "strategies/partition.h"
#include "strategies/strategies.h"
#include "strategies/vector.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STAGES, MICRO, SCHEDULE, RECOMPUTE };

static const char *const schedules[] = {"1f1b", "gpipe", NULL}, *const answers[] = {"no", "yes", NULL};

static const struct gyre_nn_setting settings[] = {
    {.name = "stages", .most = 1024, .help = "of a pipeline; divides the ranks; 0: as many as ranks and model allow"},
    {.name = "micro", .value = 4, .least = 1, .most = 1024, .help = "micro-batches of a batch"},
    {.name = "schedule", .most = 1, .choices = schedules, .help = "order of forwards and backwards"},
    {.name = "recompute", .most = 1, .choices = answers, .help = "keep inputs alone, and do forwards again"},
    {0},
};

struct slot {
    gyre_nn_tape *tape; /* NULL where forwards are done again: then slot 0's serves all */
    void *x, *up, *down;
    gyre_request *up_request, *down_request;
};

struct pipeline {
    struct gyre_nn_run run;
    gyre_comm *pipe, *peers; /* the ranks of this pipeline; this stage of every pipeline; NULL: alone */
    size_t stages, stage, pipelines, index;
    size_t *places, *counts;      /* of each stage: its modules; its parameters */
    size_t first, count;          /* this stage's parameters */
    size_t micro, depth;          /* micro-batches of a step; slots */
    size_t capacity;              /* samples that a slot has room for */
    size_t in_values, out_values; /* of a sample, below and above the stage */
    bool recompute;
    struct slot *slots;
    void *dy, *data_x;
    int32_t *labels;
    double in_flight, peak; /* micro-batches; peak: the most ever */
    const struct gyre_nn_batch *batch;
    const struct gyre_nn_step *now;
};

static bool is_last(const struct pipeline *p)
{
    return p->stage + 1 == p->stages;
}

static size_t element(const struct pipeline *p)
{
    return gyre_dtype_size(gyre_nn_dtype(p->run.model));
}

static void free_buffers(struct pipeline *p)
{
    for (size_t i = 0; i < p->depth && p->slots; i++) {
        gyre_wait(&p->slots[i].up_request); /* of a step that failed */
        gyre_wait(&p->slots[i].down_request);
        free(p->slots[i].x);
        free(p->slots[i].up);
        free(p->slots[i].down);
        p->slots[i].x = p->slots[i].up = p->slots[i].down = NULL;
    }
    free(p->dy);
    free(p->data_x);
    free(p->labels);
    p->dy = p->data_x = p->labels = NULL;
    p->capacity = 0;
}

static void close(void *self)
{
    struct pipeline *p = self;
    free_buffers(p);
    for (size_t i = 0; i < p->depth && p->slots; i++)
        gyre_nn_tape_free(p->slots[i].tape);
    gyre_comm_destroy(p->pipe);
    gyre_comm_destroy(p->peers);
    free(p->slots);
    free(p->places);
    free(p->counts);
    free(p);
}

/* Room for micro-batches of so many samples of the data. */
static gyre_status reserve(struct pipeline *p, const gyre_nn_dataset *data, size_t samples)
{
    if (samples <= p->capacity)
        return GYRE_SUCCESS;
    free_buffers(p);
    bool ok = true;
    for (size_t i = 0; i < p->depth; i++) {
        p->slots[i].x = calloc(samples * p->in_values, element(p));
        p->slots[i].up = calloc(samples * p->out_values, element(p));
        p->slots[i].down = calloc(samples * p->in_values, element(p));
        ok = ok && p->slots[i].x && p->slots[i].up && p->slots[i].down;
    }
    p->dy = calloc(samples * p->out_values, element(p));
    p->data_x = calloc(samples * data->features, element(p));
    p->labels = calloc(samples * data->steps, sizeof(*p->labels));
    if (!ok || !p->dy || !p->data_x || !p->labels)
        return gyre_nn_fail(GYRE_NO_MEMORY, NULL, "no memory for the micro-batches of a pipeline");
    p->capacity = samples;
    return GYRE_SUCCESS;
}

/* The largest number of stages that divides the ranks and that the model can be cut into. */
static gyre_status divide(struct pipeline *p)
{
    size_t ranks = (size_t)p->run.ranks, wanted = (size_t)p->run.settings[STAGES];
    p->places = calloc(ranks + 1, sizeof(*p->places));
    p->counts = calloc(ranks, sizeof(*p->counts));
    gyre_status status = p->places && p->counts ? GYRE_INVALID_ARGUMENT : GYRE_NO_MEMORY;
    for (size_t stages = ranks; stages > 0 && status == GYRE_INVALID_ARGUMENT; stages--)
        if (ranks % stages == 0 && (wanted == 0 || wanted == stages)) {
            status = gy_nn_partition(p->run.model, stages, p->places);
            p->stages = stages;
        }
    if (status == GYRE_NO_MEMORY)
        gyre_nn_fail(status, NULL, "no memory for the strategy pipeline");
    else if (status != GYRE_SUCCESS)
        gyre_nn_fail(
            status, NULL,
            "strategy pipeline: these stages do not divide the ranks, or the model cannot be cut into so many");
    return status;
}

static gyre_status split(struct pipeline *p)
{
    int stages = (int)p->stages;
    gyre_status status = GYRE_SUCCESS;
    if (!p->run.comm)
        return status;
    if (p->stages > 1)
        status = gyre_comm_split(p->run.comm, p->run.rank / stages, p->run.rank, &p->pipe);
    /* divide gave at least one stage, which the analyser forgets. NOLINTNEXTLINE(clang-analyzer-core.DivideZero) */
    int number = p->run.rank % stages;
    if (p->pipelines > 1 && status == GYRE_SUCCESS)
        status = gyre_comm_split(p->run.comm, number, p->run.rank, &p->peers);
    return status ? gyre_nn_fail(status, p->run.comm, "dividing the ranks into stages") : status;
}

static gyre_status make_slots(struct pipeline *p)
{
    size_t first = p->places[p->stage], last = p->places[p->stage + 1], ahead = p->stages - p->stage;
    p->in_values = gyre_nn_cut_values(p->run.model, first);
    p->out_values = gyre_nn_cut_values(p->run.model, last);
    p->depth = p->run.settings[SCHEDULE] > 0 || p->micro < ahead ? p->micro : ahead;
    p->slots = calloc(p->depth ? p->depth : 1, sizeof(*p->slots));
    gyre_status status = p->slots ? GYRE_SUCCESS : gyre_nn_fail(GYRE_NO_MEMORY, NULL, "no memory for a pipeline");
    for (size_t i = 0; i < (p->recompute ? 1 : p->depth) && status == GYRE_SUCCESS; i++)
        status = gyre_nn_tape_create(p->run.model, first, last, &p->slots[i].tape);
    return status;
}

static gyre_status open(const struct gyre_nn_run *run, void **self_p)
{
    struct pipeline *p = calloc(1, sizeof(*p));
    if (!p)
        return gyre_nn_fail(GYRE_NO_MEMORY, NULL, "no memory for the strategy pipeline");
    p->run = *run;
    p->micro = run->settings[MICRO] > 1 ? (size_t)run->settings[MICRO] : 1;
    p->recompute = run->settings[RECOMPUTE] > 0;
    gyre_status status = divide(p);
    if (status != GYRE_SUCCESS) {
        close(p);
        return status;
    }
    p->pipelines = (size_t)run->ranks / p->stages;
    p->stage = (size_t)run->rank % p->stages;
    p->index = (size_t)run->rank / p->stages;
    for (size_t s = 0; s < p->stages; s++)
        p->counts[s] = gyre_nn_cut_offset(run->model, p->places[s + 1]) - gyre_nn_cut_offset(run->model, p->places[s]);
    p->first = gyre_nn_cut_offset(run->model, p->places[p->stage]);
    p->count = p->counts[p->stage];
    status = split(p);
    status = status ? status : make_slots(p);
    if (status != GYRE_SUCCESS) {
        close(p);
        return status;
    }
    *self_p = p;
    return GYRE_SUCCESS;
}

/* Micro-batch m of this pipeline's part of the batch. */
static size_t place_of(const struct pipeline *p, size_t m, size_t *first_p)
{
    size_t from, many, first, count;
    gyre_nn_shard(p->batch->samples, (int)p->index, (int)p->pipelines, &from, &many);
    gyre_nn_shard(many, (int)m, (int)p->micro, &first, &count);
    *first_p = from + first;
    return count;
}

/* Copies and sends; the copy's last message has left before. */
static gyre_status send(struct pipeline *p, const void *values, void *copy, size_t count, size_t peer,
                        gyre_request **request)
{
    gyre_status status = gyre_wait(request);
    if (status != GYRE_SUCCESS)
        return status;
    memcpy(copy, values, count * element(p));
    return gyre_send_start(p->pipe, copy, count, gyre_nn_dtype(p->run.model), (int)peer, request);
}

static gyre_status run_forward(struct pipeline *p, struct slot *slot, size_t first, size_t count, const void **y_p)
{
    gyre_nn_tape *tape = p->recompute ? p->slots[0].tape : slot->tape;
    gyre_nn_train_mode(p->run.model, p->batch->seed, p->now->number, first);
    return gyre_nn_tape_forward(tape, slot->x, count, y_p);
}

static gyre_status forward(struct pipeline *p, size_t m)
{
    struct slot *slot = &p->slots[m % p->depth];
    size_t first, count = place_of(p, m, &first);
    gyre_dtype dtype = gyre_nn_dtype(p->run.model);
    gyre_status status = GYRE_SUCCESS;
    const void *y = NULL;
    p->in_flight++;
    p->peak = fmax(p->peak, p->in_flight);
    if (count == 0)
        return status;
    if (p->stage == 0)
        gyre_nn_dataset_gather(p->batch->data, p->batch->rows + first, count, dtype, slot->x, p->labels);
    else
        status = gyre_recv(p->pipe, slot->x, count * p->in_values, dtype, (int)p->stage - 1);
    if (status != GYRE_SUCCESS)
        return gyre_nn_fail(status, p->pipe, "receiving activations from the stage below");
    if (is_last(p) && p->recompute)
        return status;
    status = run_forward(p, slot, first, count, &y);
    if (status != GYRE_SUCCESS || is_last(p))
        return status;
    status = send(p, y, slot->up, count * p->out_values, p->stage + 1, &slot->up_request);
    return status ? gyre_nn_fail(status, p->pipe, "sending activations to the stage above") : status;
}

/* The cost of the last stage's outputs, or the gradient that comes from above. */
static gyre_status find_gradient(struct pipeline *p, gyre_nn_tape *tape, struct gyre_nn_step *step, size_t first,
                                 size_t count)
{
    gyre_dtype dtype = gyre_nn_dtype(p->run.model);
    double cost = 0;
    if (!is_last(p)) {
        gyre_status status = gyre_recv(p->pipe, p->dy, count * p->out_values, dtype, (int)p->stage + 1);
        return status ? gyre_nn_fail(status, p->pipe, "receiving gradients from the stage above") : status;
    }
    bool itself = gyre_nn_cost_of(p->run.model) == GYRE_NN_RECONSTRUCTION;
    gyre_nn_dataset_gather(p->batch->data, p->batch->rows + first, count, dtype, p->data_x, p->labels);
    gyre_status status = gyre_nn_tape_evaluate(tape, itself ? NULL : p->labels, itself ? p->data_x : NULL, &cost);
    step->cost += rint(cost * 0x1p20) * 0x1p-20; /* exact sums, as in train.c */
    step->rows += count * gyre_nn_output_steps(p->run.model);
    return status;
}

static gyre_status backward(struct pipeline *p, struct gyre_nn_step *step, size_t m)
{
    struct slot *slot = &p->slots[m % p->depth];
    gyre_nn_tape *tape = p->recompute ? p->slots[0].tape : slot->tape;
    size_t first, count = place_of(p, m, &first);
    gyre_status status = GYRE_SUCCESS;
    const void *dx = NULL;
    p->in_flight--;
    if (count == 0)
        return status;
    if (p->recompute)
        status = run_forward(p, slot, first, count, NULL);
    status = status ? status : find_gradient(p, tape, step, first, count);
    status = status ? status : gyre_nn_tape_backward(tape, is_last(p) ? NULL : p->dy, &dx);
    if (status != GYRE_SUCCESS || p->stage == 0)
        return status;
    status = send(p, dx, slot->down, count * p->in_values, p->stage - 1, &slot->down_request);
    return status ? gyre_nn_fail(status, p->pipe, "sending gradients to the stage below") : status;
}

static gyre_status compute(void *self, struct gyre_nn_step *step, const struct gyre_nn_batch *batch)
{
    struct pipeline *p = self;
    size_t pipeline = (batch->samples + p->pipelines - 1) / p->pipelines, f = 0, b = 0, warm = p->depth;
    gyre_status status = reserve(p, batch->data, (pipeline + p->micro - 1) / p->micro);
    p->batch = batch;
    p->now = step;
    for (; f + 1 < warm && status == GYRE_SUCCESS; f++)
        status = forward(p, f);
    while (b < p->micro && status == GYRE_SUCCESS) {
        if (f < p->micro)
            status = forward(p, f++);
        status = status ? status : backward(p, step, b++);
    }
    for (size_t i = 0; i < p->depth && status == GYRE_SUCCESS; i++) {
        status = gyre_wait(&p->slots[i].up_request);
        status = status ? status : gyre_wait(&p->slots[i].down_request);
        if (status != GYRE_SUCCESS)
            return gyre_nn_fail(status, p->pipe, "the last messages of a step");
    }
    return status;
}

/* The squares are added in the order of the arena, from stage to stage, as one rank adds them. */
static gyre_status clip(struct pipeline *p, double *scale_p)
{
    struct gy_vector grads = {gyre_nn_dtype(p->run.model), gyre_nn_grads(p->run.model)};
    gyre_status status = GYRE_SUCCESS;
    double sum = 0;
    if (p->run.clip_norm <= 0)
        return status;
    if (p->stage > 0)
        status = gyre_recv(p->pipe, &sum, 1, GYRE_FLOAT64, (int)p->stage - 1);
    for (size_t i = p->first; i < p->first + p->count; i++)
        sum += gy_vector_get(grads, i) * gy_vector_get(grads, i);
    if (!is_last(p) && status == GYRE_SUCCESS)
        status = gyre_send(p->pipe, &sum, 1, GYRE_FLOAT64, (int)p->stage + 1);
    if (p->pipe && status == GYRE_SUCCESS)
        status = gyre_broadcast(p->pipe, &sum, &sum, 1, GYRE_FLOAT64, (int)p->stages - 1);
    double norm = sqrt(sum) * *scale_p;
    *scale_p = norm > p->run.clip_norm ? *scale_p * (p->run.clip_norm / norm) : *scale_p;
    return status;
}

static gyre_status update(void *self, const struct gyre_nn_step *step)
{
    struct pipeline *p = self;
    struct gy_vector grads = {gyre_nn_dtype(p->run.model), gyre_nn_grads(p->run.model)};
    void *mine = gy_vector_at(grads, p->first);
    double scale = 1 / (double)step->global_rows;
    gyre_status status = GYRE_SUCCESS;
    if (p->peers)
        status = gyre_all_reduce(p->peers, mine, mine, p->count, grads.dtype, GYRE_SUM);
    if (status != GYRE_SUCCESS)
        return gyre_nn_fail(status, p->peers, "summing the gradients of a stage");
    status = clip(p, &scale);
    if (status != GYRE_SUCCESS)
        return gyre_nn_fail(status, p->pipe, "adding up the norm of the gradients");
    gyre_nn_optimizer_begin(p->run.optimizer);
    gyre_nn_optimizer_update(p->run.optimizer, p->first, p->count, step->rate, scale);
    return GYRE_SUCCESS;
}

static gyre_status arrays(void *self, struct gyre_nn_array *arrays_p, size_t *count_p)
{
    struct pipeline *p = self;
    arrays_p[0] = (struct gyre_nn_array){
        .name = "pipeline.peak", .data = &p->peak, .count = 1, .dtype = GYRE_FLOAT64, .placement = GYRE_NN_LOCAL};
    *count_p = 1;
    return GYRE_SUCCESS;
}

static gyre_status consensus(void *self, void *params)
{
    struct pipeline *p = self;
    struct gy_vector own = {gyre_nn_dtype(p->run.model), gyre_nn_params(p->run.model)}, all = {own.dtype, params};
    gy_vector_copy(p->first, p->count, own, all);
    if (!p->pipe)
        return GYRE_SUCCESS;
    gyre_status status = gyre_all_gatherv(p->pipe, gy_vector_at(all, p->first), params, p->counts, NULL, own.dtype);
    return status ? gyre_nn_fail(status, p->pipe, "gathering the parameters of the stages") : status;
}

const gyre_nn_strategy gy_nn_pipeline = {
    .size = sizeof(gyre_nn_strategy),
    .name = "pipeline",
    .help = "the model's layers divided over ranks, batches in micro-batches",
    .settings = settings,
    .params = GYRE_NN_LOCAL,
    .optimizer = GYRE_NN_LOCAL,
    .open = open,
    .close = close,
    .compute = compute,
    .update = update,
    .arrays = arrays,
    .consensus = consensus,
};
