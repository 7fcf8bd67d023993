/* The stage of a rank: its modules, the stages with which it exchanges values, and memory for its micro-batches.
 * Invariant: `places`, which every rank has alike, decides everything else here; `kept` is a copy of it as a strategy's
 * state, and differs from it only between a resume and the next gy_pipeline_settle. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "strategies/partition.h"
#include "strategies/pipeline.h"

static void free_buffers(struct gy_pipeline *p)
{
    for (size_t i = 0; i < p->depth && p->slots; i++) {
        free(p->slots[i].data);
        p->slots[i].data = NULL;
    }
    free(p->targets);
    free(p->labels);
    p->targets = NULL;
    p->labels = NULL;
    p->capacity = 0;
}

static void free_slots(struct gy_pipeline *p)
{
    free_buffers(p);
    for (size_t i = 0; i < p->depth && p->slots; i++)
        gyre_nn_tape_free(p->slots[i].tape);
    free(p->slots);
    p->slots = NULL;
    gy_edges_free(&p->edges);
}

void gy_pipeline_close(void *self)
{
    struct gy_pipeline *p = self;
    gyre_comm_destroy(p->pipe); /* and its window; unlike gyre_window_destroy it waits for no rank */
    gy_pipeline_disconnect(p);
    gyre_comm_destroy(p->peers);
    free_slots(p);
    free(p->places);
    free(p->counts);
    free(p->kept);
    free(p);
}

/* Collective over the pipe, as every rank of it asks for the same. */
gyre_status gy_pipeline_reserve(struct gy_pipeline *p, const gyre_nn_dataset *data, size_t samples)
{
    if (samples <= p->capacity)
        return GYRE_SUCCESS;
    free_buffers(p);
    bool ok = true;
    for (size_t i = 0; i < p->depth && ok; i++) {
        p->slots[i].data = calloc(samples * data->features, gy_pipeline_element(p));
        ok = p->slots[i].data;
    }
    p->targets = calloc(samples * data->features, gy_pipeline_element(p));
    p->labels = calloc(samples * data->steps, sizeof(*p->labels));
    if (!ok || !p->targets || !p->labels)
        return gyre_nn_fail(GYRE_NO_MEMORY, NULL, "no memory for the micro-batches of a pipeline");
    gyre_status status = gy_pipeline_connect(p, samples);
    p->capacity = status ? 0 : samples;
    return status;
}

/* The least times that rank 0 has measured, on every rank: all of them make the same partition. */
static gyre_status measure(struct gy_pipeline *p, double *times)
{
    size_t n = gyre_nn_module_count(p->run.model) + 1;
    gyre_status status = GYRE_SUCCESS;
    if (p->run.rank == 0)
        status = gy_nn_measure(p->run.model, (size_t)p->run.settings[SAMPLES], times);
    if (!p->run.comm || status != GYRE_SUCCESS)
        return status;
    status = gyre_broadcast(p->run.comm, times, times, n, GYRE_FLOAT64, 0);
    return status ? gyre_nn_fail(status, p->run.comm, "the broadcast of the layers' times") : status;
}

static size_t most_stages(const gyre_nn_model *model)
{
    size_t most = 0;
    for (size_t i = 1; i <= gyre_nn_module_count(model); i++)
        most += gyre_nn_cut_values(model, i) > 0;
    return most;
}

/* Bytes with which so many stages fit: the least, within a hundredth. */
static double memory_needed(struct gy_pipeline *p, size_t stages, struct gy_nn_balance balance)
{
    double least = balance.memory, most = fmax(2 * least, 1024);
    for (balance.memory = most; gy_nn_partition(p->run.model, stages, &balance, p->places) && most < 1e18; most *= 2)
        balance.memory = 2 * most;
    while (most > 1.01 * least + 1) {
        balance.memory = (least + most) / 2;
        if (gy_nn_partition(p->run.model, stages, &balance, p->places))
            least = balance.memory;
        else
            most = balance.memory;
    }
    return most;
}

/* `stages`: the number wanted, or the largest one that was tried. */
static gyre_status refuse(struct gy_pipeline *p, size_t stages, const struct gy_nn_balance *balance)
{
    char text[256];
    size_t ranks = (size_t)p->run.ranks, most = most_stages(p->run.model);
    if (stages > 0 && ranks % stages != 0)
        snprintf(text, sizeof(text), "strategy pipeline: %zu stages do not divide %zu rank%s", stages, ranks,
                 ranks == 1 ? "" : "s");
    else if (stages > most)
        snprintf(text, sizeof(text), "strategy pipeline: this model can be cut into %zu stages at most, not %zu", most,
                 stages);
    else
        snprintf(text, sizeof(text),
                 "strategy pipeline: the model cannot be cut into %zu stage%s, each within its memory of %.0f bytes; "
                 "memory=%.0f, or fewer samples, would do",
                 stages, stages == 1 ? "" : "s", balance->memory, ceil(memory_needed(p, stages, *balance)));
    return gyre_nn_fail(GYRE_INVALID_ARGUMENT, NULL, text);
}

/* The largest number of stages that divides the ranks and that the model can be cut into. */
static gyre_status divide(struct gy_pipeline *p, const double *times)
{
    size_t ranks = (size_t)p->run.ranks, wanted = (size_t)p->run.settings[STAGES];
    size_t most = most_stages(p->run.model);
    struct gy_nn_balance balance = {.times = times,
                                    .memory = p->run.settings[MEMORY],
                                    .samples = (size_t)p->run.settings[SAMPLES],
                                    .in_flight = p->run.settings[SCHEDULE] > 0 ? p->micro : ranks};
    size_t first = 0;
    gyre_status status = GYRE_INVALID_ARGUMENT;
    for (size_t stages = ranks; stages > 0 && status == GYRE_INVALID_ARGUMENT; stages--)
        if (ranks % stages == 0 && (wanted == 0 || wanted == stages) && stages <= most) {
            first = first ? first : stages;
            status = gy_nn_partition(p->run.model, stages, &balance, p->places);
            p->stages = stages;
        }
    if (status == GYRE_NO_MEMORY)
        gyre_nn_fail(status, NULL, "no memory for the strategy pipeline");
    else if (status != GYRE_SUCCESS)
        status = refuse(p, wanted ? wanted : first, &balance);
    return status;
}

static gyre_status split(struct gy_pipeline *p)
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

static gyre_status make_slot(struct gy_pipeline *p, size_t i)
{
    struct gy_pipeline_slot *slot = &p->slots[i];
    if (p->recompute && i > 0)
        return GYRE_SUCCESS;
    return gyre_nn_tape_create(p->run.model, p->places[p->stage], p->places[p->stage + 1], &slot->tape);
}

/* From the places of the stages all that follows from them. */
static gyre_status set_up(struct gy_pipeline *p)
{
    free_slots(p);
    for (size_t s = 0; s < p->stages; s++)
        p->counts[s] = gyre_nn_cut_offset(p->run.model, p->places[s + 1]) -
                       gyre_nn_cut_offset(p->run.model, p->places[s]);
    p->first = gyre_nn_cut_offset(p->run.model, p->places[p->stage]);
    p->count = p->counts[p->stage];
    gyre_status status = gy_edges_make(p->run.model, p->places, p->stages, p->stage, &p->edges);
    if (status != GYRE_SUCCESS)
        return status;
    p->depth = p->run.settings[SCHEDULE] > 0 || p->micro < p->edges.level + 1 ? p->micro : p->edges.level + 1;
    p->landings = p->run.settings[SCHEDULE] > 0 || p->micro < p->stages ? p->micro : p->stages;
    p->slots = calloc(p->depth ? p->depth : 1, sizeof(*p->slots));
    if (!p->slots)
        return gyre_nn_fail(GYRE_NO_MEMORY, NULL, "no memory for a pipeline");
    for (size_t i = 0; i < p->depth && status == GYRE_SUCCESS; i++)
        status = make_slot(p, i);
    for (size_t s = 0; s <= p->stages; s++)
        p->kept[s] = (double)p->places[s];
    return status;
}

gyre_status gy_pipeline_settle(struct gy_pipeline *p)
{
    bool same = true;
    for (size_t s = 0; s <= p->stages; s++) {
        double place = p->kept[s], least = s ? p->kept[s - 1] + 1 : 0,
               most = (double)gyre_nn_module_count(p->run.model);
        if (!(place >= least && place <= (s ? most : 0)) || (s == p->stages && place < most))
            return gyre_nn_fail(GYRE_INVALID_ARGUMENT, NULL, "the checkpoint's stages are none of this model");
        same = same && (size_t)place == p->places[s];
    }
    for (size_t s = 0; s <= p->stages; s++)
        p->places[s] = (size_t)p->kept[s];
    return same ? GYRE_SUCCESS : set_up(p);
}

static gyre_status open_places(struct gy_pipeline *p)
{
    size_t ranks = (size_t)p->run.ranks, n = gyre_nn_module_count(p->run.model);
    bool measured = p->run.settings[BALANCE] == 0;
    double *times = calloc(n + 1, sizeof(*times));
    p->places = calloc(ranks + 1, sizeof(*p->places));
    p->kept = calloc(ranks + 1, sizeof(*p->kept));
    p->counts = calloc(ranks, sizeof(*p->counts));
    gyre_status status = GYRE_SUCCESS;
    if (!times || !p->places || !p->kept || !p->counts)
        status = gyre_nn_fail(GYRE_NO_MEMORY, NULL, "no memory for the strategy pipeline");
    if (status == GYRE_SUCCESS && measured)
        status = measure(p, times);
    status = status ? status : divide(p, measured ? times : NULL);
    free(times);
    return status;
}

gyre_status gy_pipeline_open(const struct gyre_nn_run *run, void **self_p)
{
    struct gy_pipeline *p = calloc(1, sizeof(*p));
    if (!p)
        return gyre_nn_fail(GYRE_NO_MEMORY, NULL, "no memory for the strategy pipeline");
    p->run = *run;
    p->micro = (size_t)run->settings[MICRO];
    p->recompute = run->settings[RECOMPUTE] > 0;
    gyre_status status = open_places(p);
    if (status == GYRE_SUCCESS) {
        p->pipelines = (size_t)run->ranks / p->stages;
        p->stage = (size_t)run->rank % p->stages;
        p->index = (size_t)run->rank / p->stages;
        status = split(p);
        status = status ? status : set_up(p);
    }
    if (status != GYRE_SUCCESS) {
        gy_pipeline_close(p);
        return status;
    }
    *self_p = p;
    return GYRE_SUCCESS;
}
