/* stale: bounded staleness. The gradients of step t are applied at step t + s, and until then their sum travels:
 *
 *     step       t            t+1          t+2 = t+s
 *     rank       backward     backward     backward, then the update with the gradients of t
 *     network    all_reduce ─────────────▶
 *
 * A rank may therefore be s steps ahead of the slowest, and no more (the bound of Ho et al., 2013; a delayed update as
 * in Langford, Smola and Zinkevich, 2009, "Slow learners are fast"). The delay is always s and never what the network
 * made of it, so every rank makes the same update, and every run has the same bits; s = 0 is `sync`, bit for bit. The
 * updates of the last s steps of a run never come.
 * On f = λx²/2 the iteration is x ← x − rλ·x[−s], which converges while rλ < 2·cos(sπ/(2s + 1)).
 * Invariant: slot t mod (s + 1) holds the gradients of step t from its zeroing to their update; `rows` of it is 0 when
 * it holds none. */
#include "strategies/strategies.h"
#include "strategies/vector.h"

#include <stdio.h>
#include <stdlib.h>

#define MOST_STEPS 16

struct slot {
    gyre_nn_sync *buckets;
    struct gy_vector grads;
    void *own;   /* where `buckets` gave no memory */
    bool flying; /* its sum has been started, and not been waited for */
};

struct stale {
    struct gyre_nn_run run;
    size_t count, nslots; /* parameters; s + 1 */
    struct slot slots[MOST_STEPS + 1];
    size_t at; /* the slot that the model's gradients are in; nslots: the model's own memory, before the first step */
    double rows[MOST_STEPS + 1];
    double staleness[GYRE_NN_STALENESS_BINS];
};

static const struct gyre_nn_setting settings[] = {
    {.name = "steps",
     .value = 2,
     .most = MOST_STEPS,
     .choices = gy_nn_whole,
     .help = "between gradients and their update; 0: sync"},
    {0},
};

static void go_to(struct stale *stale, size_t slot)
{
    stale->at = slot;
    gyre_nn_place_grads(stale->run.model, slot < stale->nslots ? stale->slots[slot].grads.data : NULL);
}

static void close(void *self)
{
    struct stale *stale = self;
    for (size_t i = 0; i < stale->nslots; i++)
        gyre_nn_sync_detach(stale->slots[i].buckets);
    gyre_nn_place_grads(stale->run.model, NULL);
    for (size_t i = 0; i < stale->nslots; i++)
        free(stale->slots[i].own);
    free(stale);
}

/* Attaching moves the gradients where ranks can share them; a slot that is not moved gets memory of its own. */
static gyre_status open_slot(struct stale *stale, struct slot *slot)
{
    gyre_nn_model *model = stale->run.model;
    gyre_nn_place_grads(model, NULL);
    void *before = gyre_nn_grads(model);
    gyre_status status = gyre_nn_sync_attach(model, stale->run.optimizer, stale->run.comm, stale->run.bucket_bytes,
                                             &slot->buckets);
    if (status != GYRE_SUCCESS)
        return status;
    slot->grads = (struct gy_vector){gyre_nn_dtype(model), gyre_nn_grads(model)};
    if (slot->grads.data != before)
        return status;
    slot->own = slot->grads.data = calloc(stale->count, gyre_dtype_size(slot->grads.dtype));
    return slot->own ? status : gyre_nn_fail(GYRE_NO_MEMORY, NULL, "no memory for the gradients of a step");
}

static gyre_status open(const struct gyre_nn_run *run, void **self_p)
{
    struct stale *stale = calloc(1, sizeof(*stale));
    gyre_status status = GYRE_SUCCESS;
    if (!stale)
        return gyre_nn_fail(GYRE_NO_MEMORY, NULL, "no memory for the strategy stale");
    stale->run = *run;
    stale->count = gyre_nn_param_count(run->model);
    stale->nslots = (size_t)run->settings[0] + 1;
    for (size_t i = 0; i < stale->nslots && status == GYRE_SUCCESS; i++)
        status = open_slot(stale, &stale->slots[i]);
    if (status != GYRE_SUCCESS) {
        close(stale);
        return status;
    }
    go_to(stale, stale->nslots);
    *self_p = stale;
    return GYRE_SUCCESS;
}

static gyre_status before_step(void *self, const struct gyre_nn_step *step)
{
    struct stale *stale = self;
    size_t slot = step->number % stale->nslots;
    if (slot != stale->at) { /* the first step, perhaps of a run that was resumed: what was zeroed is no slot */
        go_to(stale, slot);
        gyre_nn_zero_grads(stale->run.model);
    }
    gyre_nn_sync_begin(stale->slots[slot].buckets);
    stale->slots[slot].flying = true;
    stale->rows[slot] = (double)step->global_rows;
    return GYRE_SUCCESS;
}

static void passed(void *self, size_t lower)
{
    struct stale *stale = self;
    gyre_nn_sync_passed(stale->slots[stale->at].buckets, lower);
}

/* Waits for the sum in a slot that is the model's place of gradients. */
static gyre_status land(struct slot *slot)
{
    gyre_status status = slot->flying ? gyre_nn_sync_reduce(slot->buckets) : GYRE_SUCCESS;
    slot->flying = false;
    return status;
}

/* The update of the oldest slot, which is the model's place then and is the next step's. */
static gyre_status apply(struct stale *stale, size_t slot, double rate)
{
    const struct gyre_nn_run *run = &stale->run;
    gyre_status status = land(&stale->slots[slot]);
    if (status != GYRE_SUCCESS)
        return status;
    double scale = gy_vector_clip(run->model, stale->slots[slot].grads, 1 / stale->rows[slot], run->clip_norm);
    gyre_nn_optimizer_begin(run->optimizer);
    gyre_nn_optimizer_update(run->optimizer, 0, stale->count, rate, scale);
    return GYRE_SUCCESS;
}

static gyre_status update(void *self, const struct gyre_nn_step *step)
{
    struct stale *stale = self;
    size_t delay = stale->nslots - 1, oldest = (step->number + 1) % stale->nslots;
    gyre_status status = GYRE_SUCCESS;
    if (delay == 0)
        status = gyre_nn_sync_finish(stale->slots[0].buckets, step->rate, step->global_rows, stale->run.clip_norm);
    else
        gyre_nn_sync_passed(stale->slots[stale->at].buckets, 0); /* all has left, of a rank without rows too */
    go_to(stale, oldest);
    if (delay > 0 && stale->rows[oldest] > 0)
        status = apply(stale, oldest, step->rate);
    if (stale->rows[oldest] > 0)
        stale->staleness[delay < GYRE_NN_STALENESS_BINS ? delay : GYRE_NN_STALENESS_BINS - 1]++;
    stale->rows[oldest] = 0;
    stale->slots[oldest].flying = false;
    return status;
}

/* What is under way is waited for, not applied. */
static gyre_status arrays(void *self, struct gyre_nn_array *arrays_p, size_t *count_p)
{
    struct stale *stale = self;
    size_t n = 0, at = stale->at;
    gyre_status status = GYRE_SUCCESS;
    for (size_t i = 0; i < stale->nslots && stale->nslots > 1; i++, n++) {
        go_to(stale, i);
        status = status ? status : land(&stale->slots[i]);
        arrays_p[n] = (struct gyre_nn_array){
            .data = stale->slots[i].grads.data, .count = stale->count, .dtype = stale->slots[i].grads.dtype};
        snprintf(arrays_p[n].name, sizeof(arrays_p[n].name), "stale.%zu", i);
    }
    go_to(stale, at);
    arrays_p[n++] = (struct gyre_nn_array){
        .name = "stale.rows", .data = stale->rows, .count = stale->nslots, .dtype = GYRE_FLOAT64};
    arrays_p[n++] = (struct gyre_nn_array){
        .name = "staleness", .data = stale->staleness, .count = GYRE_NN_STALENESS_BINS, .dtype = GYRE_FLOAT64};
    *count_p = n;
    return status;
}

const gyre_nn_strategy gy_nn_stale = {
    .size = sizeof(gyre_nn_strategy),
    .name = "stale",
    .help = "bounded staleness: gradients are applied some steps later, and travel meanwhile",
    .settings = settings,
    .open = open,
    .close = close,
    .before_step = before_step,
    .passed = passed,
    .update = update,
    .arrays = arrays,
};
