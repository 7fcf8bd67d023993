/* pipeline: the modules of the model are divided over stages, one rank each. A batch flows through them in
 * micro-batches. Activations go up by one message per micro-batch, their gradients come down by another:
 *
 *     gpipe   stage 0   F0 F1 F2 F3             B0 B1 B2 B3        all forwards, then all backwards; at most
 *             stage 1      F0 F1 F2 F3    B0 B1 B2 B3              `micro` micro-batches in flight
 *
 *     1f1b    stage 0   F0 F1    B0 F2 B1 F3 B2    B3              a backward as soon as there is one; at most
 *             stage 1      F0 B0 F1 B1 F2 B2 F3 B3                 stages − stage in flight
 *
 * (Huang et al., 2019: GPipe; Narayanan et al., 2019: PipeDream's 1F1B, here with a flush per step.) In both, gradients
 * add up in the order of the micro-batches, so the result has the bits of one rank that accumulates as many pieces.
 * recompute: a stage keeps only the inputs of micro-batches, and repeats their forward before backward; dropout draws
 * the same. With fewer stages than ranks there are several pipelines, each with its part of the batch. Stages of the
 * same number sum their gradients.
 * A stage takes and gives all values that its modules need (edges.h). So branches that depend on the input alone are
 * computed side by side, by stages that do not wait for one another. The stages are balanced by times that rank 0
 * measures when the run begins, within a bound on memory. The modules of each stage are state, so a resumed run
 * continues with the same stages.
 * Invariant: slot m mod depth belongs to micro-batch m from its forward to its backward. */
#include "strategies/pipeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "strategies/strategies.h"
#include "strategies/vector.h"

static const char *const schedules[] = {"1f1b", "gpipe", NULL}, *const answers[] = {"no", "yes", NULL};
static const char *const balances[] = {"times", "estimate", NULL};

static const struct gyre_nn_setting settings[] = {
    {.name = "stages",
     .most = 1024,
     .choices = gy_nn_whole,
     .help = "of a pipeline; divides the ranks; 0: as many as ranks and model allow"},
    {.name = "micro", .value = 4, .least = 1, .most = 1024, .choices = gy_nn_whole, .help = "micro-batches of a batch"},
    {.name = "schedule", .most = 1, .choices = schedules, .help = "order of forwards and backwards"},
    {.name = "recompute", .most = 1, .choices = answers, .help = "keep inputs alone, and do forwards again"},
    {.name = "balance", .most = 1, .choices = balances, .help = "of the stages: by measured times, or by arithmetic"},
    {.name = "memory",
     .most = 1e15,
     .choices = gy_nn_whole,
     .help = "bytes that a stage may use; 0: as many as it likes"},
    {.name = "samples",
     .value = 16,
     .least = 1,
     .most = 1e6,
     .choices = gy_nn_whole,
     .help = "of a micro-batch, for times and memory"},
    {0},
};

/* Micro-batch m of this pipeline's part of the batch. */
static size_t place_of(const struct gy_pipeline *p, size_t m, size_t *first_p)
{
    size_t from, many, first, count;
    gyre_nn_shard(p->batch->samples, (int)p->index, (int)p->pipelines, &from, &many);
    gyre_nn_shard(many, (int)m, (int)p->micro, &first, &count);
    *first_p = from + first;
    return count;
}

static gyre_status run_forward(struct gy_pipeline *p, size_t m, size_t first, size_t count)
{
    const struct gy_pipeline_slot *slot = &p->slots[m % p->depth];
    gyre_nn_tape *tape = p->recompute ? p->slots[0].tape : slot->tape;
    if (p->edges.input)
        gyre_nn_tape_set_input(tape, 0, slot->data);
    for (size_t k = 0; k < p->edges.nin; k++)
        gyre_nn_tape_set_input(tape, p->edges.in[k].value, gy_pipeline_landing(p, k, m));
    gyre_nn_train_mode(p->run.model, p->batch->seed, p->now->number, first);
    return gyre_nn_tape_forward(tape, NULL, count, NULL);
}

static gyre_status forward(struct gy_pipeline *p, size_t m)
{
    struct gy_pipeline_slot *slot = &p->slots[m % p->depth];
    size_t first, count = place_of(p, m, &first);
    gyre_dtype dtype = gyre_nn_dtype(p->run.model);
    gyre_status status = GYRE_SUCCESS;
    p->in_flight++;
    p->peak = fmax(p->peak, p->in_flight);
    if (count == 0)
        return status;
    if (p->edges.input)
        gyre_nn_dataset_gather(p->batch->data, p->batch->rows + first, count, dtype, slot->data, p->labels);
    for (size_t k = 0; k < p->edges.nin && status == GYRE_SUCCESS; k++)
        status = gy_pipeline_take(p, k);
    if (status != GYRE_SUCCESS || (gy_pipeline_is_last(p) && p->recompute))
        return status;
    status = run_forward(p, m, first, count);
    gyre_nn_tape *tape = p->recompute ? p->slots[0].tape : slot->tape;
    for (size_t k = 0; k < p->edges.nout && status == GYRE_SUCCESS; k++)
        status = gy_pipeline_give(p, p->edges.nin + k, m, gyre_nn_tape_output(tape, p->edges.out[k].value), count);
    return status;
}

/* Gradients come from above; those of one value in the order in which one rank would add them up, from the top. */
static gyre_status take_gradients(struct gy_pipeline *p, gyre_nn_tape *tape, size_t m)
{
    for (size_t k = p->edges.nout; k-- > 0;) {
        gyre_status status = gy_pipeline_take(p, p->edges.nin + k);
        if (status != GYRE_SUCCESS)
            return status;
        gyre_nn_tape_add_gradient(tape, p->edges.out[k].value, gy_pipeline_landing(p, p->edges.nin + k, m));
    }
    return GYRE_SUCCESS;
}

/* Of the last stage's outputs. */
static gyre_status find_cost(struct gy_pipeline *p, gyre_nn_tape *tape, struct gyre_nn_step *step, size_t first,
                             size_t count, double *cost_p)
{
    bool itself = gyre_nn_cost_of(p->run.model) == GYRE_NN_RECONSTRUCTION;
    gyre_nn_dataset_gather(p->batch->data, p->batch->rows + first, count, gyre_nn_dtype(p->run.model), p->targets,
                           p->labels);
    step->rows += count * gyre_nn_output_steps(p->run.model);
    return gyre_nn_tape_evaluate(tape, itself ? NULL : p->labels, itself ? p->targets : NULL, cost_p);
}

static gyre_status backward(struct gy_pipeline *p, struct gyre_nn_step *step, size_t m)
{
    struct gy_pipeline_slot *slot = &p->slots[m % p->depth];
    gyre_nn_tape *tape = p->recompute ? p->slots[0].tape : slot->tape;
    size_t first, count = place_of(p, m, &first);
    gyre_status status = GYRE_SUCCESS;
    double cost = 0;
    p->in_flight--;
    if (count == 0)
        return status;
    if (p->recompute)
        status = run_forward(p, m, first, count);
    if (status != GYRE_SUCCESS)
        return status;
    if (gy_pipeline_is_last(p))
        status = find_cost(p, tape, step, first, count, &cost);
    else
        cost = gyre_nn_tape_side_cost(tape);
    step->cost += rint(cost * 0x1p20) * 0x1p-20; /* exact sums, as in train.c */
    status = status || gy_pipeline_is_last(p) ? status : take_gradients(p, tape, m);
    status = status ? status : gyre_nn_tape_backward(tape, NULL, NULL);
    for (size_t k = p->edges.nin; k-- > 0 && status == GYRE_SUCCESS;)
        status = gy_pipeline_give(p, k, m, gyre_nn_tape_input_gradient(tape, p->edges.in[k].value), count);
    return status;
}

static gyre_status compute(void *self, struct gyre_nn_step *step, const struct gyre_nn_batch *batch)
{
    struct gy_pipeline *p = self;
    size_t pipeline = (batch->samples + p->pipelines - 1) / p->pipelines, f = 0, b = 0, warm;
    gyre_status status = gy_pipeline_settle(p);
    warm = p->depth;
    status = status ? status : gy_pipeline_reserve(p, batch->data, (pipeline + p->micro - 1) / p->micro);
    p->batch = batch;
    p->now = step;
    for (; f + 1 < warm && status == GYRE_SUCCESS; f++)
        status = forward(p, f);
    while (b < p->micro && status == GYRE_SUCCESS) {
        if (f < p->micro)
            status = forward(p, f++);
        status = status ? status : backward(p, step, b++);
    }
    return status;
}

/* The squares are added in the order of the arena, from stage to stage, as one rank adds them. */
static gyre_status clip(struct gy_pipeline *p, double *scale_p)
{
    struct gy_vector grads = {gyre_nn_dtype(p->run.model), gyre_nn_grads(p->run.model)};
    gyre_status status = GYRE_SUCCESS;
    double sum = 0;
    if (p->run.clip_norm <= 0)
        return status;
    if (p->stage > 0)
        status = gyre_recv(p->pipe, &sum, 1, GYRE_FLOAT64, (int)p->stage - 1);
    sum = gy_vector_add_squares(p->run.model, grads, p->first, p->count, sum);
    if (!gy_pipeline_is_last(p) && status == GYRE_SUCCESS)
        status = gyre_send(p->pipe, &sum, 1, GYRE_FLOAT64, (int)p->stage + 1);
    if (p->pipe && status == GYRE_SUCCESS)
        status = gyre_broadcast(p->pipe, &sum, &sum, 1, GYRE_FLOAT64, (int)p->stages - 1);
    *scale_p = gy_vector_clip_part(p->run.model, grads, p->first, p->count, *scale_p, sum, p->run.clip_norm);
    return status;
}

static gyre_status update(void *self, const struct gyre_nn_step *step)
{
    struct gy_pipeline *p = self;
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
    struct gy_pipeline *p = self;
    arrays_p[0] = (struct gyre_nn_array){
        .name = "pipeline.peak", .data = &p->peak, .count = 1, .dtype = GYRE_FLOAT64, .placement = GYRE_NN_LOCAL};
    arrays_p[1] = (struct gyre_nn_array){
        .name = "pipeline.places", .data = p->kept, .count = p->stages + 1, .dtype = GYRE_FLOAT64};
    *count_p = 2;
    return GYRE_SUCCESS;
}

static gyre_status consensus(void *self, void *params)
{
    struct gy_pipeline *p = self;
    gyre_status status = gy_pipeline_settle(p);
    if (status != GYRE_SUCCESS)
        return status;
    struct gy_vector own = {gyre_nn_dtype(p->run.model), gyre_nn_params(p->run.model)}, all = {own.dtype, params};
    gy_vector_copy(p->first, p->count, own, all);
    if (!p->pipe)
        return GYRE_SUCCESS;
    status = gyre_all_gatherv(p->pipe, gy_vector_at(all, p->first), params, p->counts, NULL, own.dtype);
    return status ? gyre_nn_fail(status, p->pipe, "gathering the parameters of the stages") : status;
}

const gyre_nn_strategy gy_nn_pipeline = {
    .size = sizeof(gyre_nn_strategy),
    .name = "pipeline",
    .help = "the model's layers divided over ranks, batches in micro-batches",
    .settings = settings,
    .params = GYRE_NN_LOCAL,
    .optimizer = GYRE_NN_LOCAL,
    .open = gy_pipeline_open,
    .close = gy_pipeline_close,
    .compute = compute,
    .update = update,
    .arrays = arrays,
    .consensus = consensus,
};
