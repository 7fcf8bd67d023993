/* Training apart, exchanging every H steps:
 *
 *     step      1 … H         H+1 … H+D        H+D+1 …
 *     rank      local steps   local steps      local steps, from the outer step's result
 *     network                 all_reduce ───▶ outer step
 *
 * Each rank makes steps of its own optimiser with the mean gradient of its own rows. After H of them its parameters
 * join a weighted mean: the weight of a rank is its share of the rows since the exchange before, so that unequal shards
 * count as much as they have trained. D steps later (D = `delay`, 0: at once) comes the outer step.
 * Invariants: the outer step is a function of counters that all ranks have alike and of the mean, which has the same
 * bits everywhere; so has replicated state. The outer step comes D steps after the exchange began, however long that
 * took, so that timing changes no bit. `mean` belongs to gyre while an exchange is under way. */
#include "strategies/periodic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct gy_vector make(const struct gy_nn_periodic *self)
{
    return (struct gy_vector){self->params.dtype, calloc(self->count, gyre_dtype_size(self->params.dtype))};
}

static bool make_exchanges(struct gy_nn_periodic *self)
{
    size_t size = self->run.bucket_bytes / gyre_dtype_size(self->params.dtype);
    size = size == 0 || size > self->count ? self->count : size;
    self->nexchanges = (self->count + size - 1) / size;
    self->exchanges = calloc(self->nexchanges, sizeof(*self->exchanges));
    for (size_t i = 0; i < self->nexchanges && self->exchanges; i++) {
        self->exchanges[i].first = i * size;
        self->exchanges[i].count = i + 1 < self->nexchanges ? size : self->count - i * size;
    }
    return self->exchanges != NULL;
}

/* What is set counts, in a run that goes on from one with another `every` too. */
static double period_of(const struct gy_nn_periodic *self)
{
    double every = self->run.settings[GY_NN_EVERY] > 0 ? self->run.settings[GY_NN_EVERY] : INFINITY;
    return self->adaptive ? fmin(self->counts[GY_NN_PERIOD], every) : every;
}

static bool make_memory(struct gy_nn_periodic *self)
{
    self->mean = make(self);
    self->sent = self->run.settings[GY_NN_DELAY] > 0 ? make(self) : self->params;
    bool ok = make_exchanges(self) && self->mean.data && self->sent.data;
    for (int i = 0; i < GY_NN_OUTER_ARRAYS && self->outer->arrays[i].name && ok; i++) {
        self->arrays[i] = make(self);
        ok = self->arrays[i].data != NULL;
        if (ok && self->outer->arrays[i].params)
            gy_vector_copy(0, self->count, self->params, self->arrays[i]);
    }
    return ok;
}

gyre_status gy_nn_periodic_open(const struct gyre_nn_run *run, const struct gy_nn_outer *outer, void **self_p)
{
    struct gy_nn_periodic *self = calloc(1, sizeof(*self));
    gyre_dtype dtype = gyre_nn_dtype(run->model);
    if (!self)
        return gyre_nn_fail(GYRE_NO_MEMORY, NULL, "no memory for a strategy");
    self->run = *run;
    self->outer = outer;
    self->count = gyre_nn_param_count(run->model);
    self->params = (struct gy_vector){dtype, gyre_nn_params(run->model)};
    self->grads = (struct gy_vector){dtype, gyre_nn_grads(run->model)};
    self->counts[GY_NN_PERIOD] = outer->between ? 0 : period_of(self);
    self->counts[GY_NN_DUE] = -1;
    if (!make_memory(self)) {
        gy_nn_periodic_close(self);
        return gyre_nn_fail(GYRE_NO_MEMORY, NULL, "no memory for the state of a strategy");
    }
    *self_p = self;
    return GYRE_SUCCESS;
}

void gy_nn_periodic_close(void *user)
{
    struct gy_nn_periodic *self = user;
    for (size_t i = 0; i < self->nexchanges && self->exchanges; i++)
        gyre_wait(&self->exchanges[i].request); /* under way where a run ended before the outer step */
    for (int i = 0; i < GY_NN_OUTER_ARRAYS; i++)
        free(self->arrays[i].data);
    if (self->sent.data != self->params.data)
        free(self->sent.data);
    free(self->mean.data);
    free(self->exchanges);
    free(self);
}

static bool under_way(const struct gy_nn_periodic *self)
{
    return self->counts[GY_NN_DUE] >= 0;
}

void gy_nn_periodic_passed(void *user, size_t lower)
{
    struct gy_nn_periodic *self = user;
    (void)lower;
    if (under_way(self) && self->run.comm)
        gyre_progress(self->run.comm); /* an error stays, and is found by the wait */
}

/* The step of this rank alone. A rank without rows does nothing, and weighs nothing. */
static void step_alone(struct gy_nn_periodic *self, const struct gyre_nn_step *step)
{
    if (step->rows == 0)
        return;
    if (self->outer->pull)
        self->outer->pull(self, step->rows);
    double scale = gy_vector_clip(self->run.model, self->grads, 1 / (double)step->rows, self->run.clip_norm);
    gyre_nn_optimizer_begin(self->run.optimizer);
    gyre_nn_optimizer_update(self->run.optimizer, 0, self->count, step->rate, scale);
}

static void contribute(struct gy_nn_periodic *self, size_t first, size_t count, double weight)
{
    if (self->outer->contribute)
        self->outer->contribute(self, first, count, weight);
    else
        gy_vector_scale(first, count, weight, self->params, self->mean);
}

static double weight_of(const struct gy_nn_periodic *self)
{
    const double *counts = self->counts;
    return counts[GY_NN_GLOBAL_ROWS] > 0 ? counts[GY_NN_ROWS] / counts[GY_NN_GLOBAL_ROWS] : 1.0 / self->run.ranks;
}

/* Wang and Joshi (2019), AdaComm: periods shrink with the square root of the loss. The sums of costs are exact, see
 * train.c. */
static gyre_status adapt(struct gy_nn_periodic *self)
{
    double cost = self->counts[GY_NN_COST], *first = &self->counts[GY_NN_FIRST_LOSS];
    double most = self->run.settings[GY_NN_EVERY];
    gyre_status status = GYRE_SUCCESS;
    if (self->run.comm)
        status = gyre_all_reduce(self->run.comm, &cost, &cost, 1, GYRE_FLOAT64, GYRE_SUM);
    if (status != GYRE_SUCCESS)
        return gyre_nn_fail(status, self->run.comm, "summing the loss of a period");
    double loss = cost / self->counts[GY_NN_GLOBAL_ROWS];
    if (*first == 0)
        *first = loss;
    double period = *first > 0 ? ceil(most * sqrt(loss / *first)) : most;
    self->counts[GY_NN_PERIOD] = period >= 1 ? fmin(period, most) : 1;
    return GYRE_SUCCESS;
}

static gyre_status begin_exchange(struct gy_nn_periodic *self, const struct gyre_nn_step *step)
{
    gyre_status status = self->adaptive ? adapt(self) : GYRE_SUCCESS;
    double weight = weight_of(self);
    if (self->sent.data != self->params.data)
        gy_vector_copy(0, self->count, self->params, self->sent);
    for (size_t i = 0; i < self->nexchanges && status == GYRE_SUCCESS; i++) {
        struct gy_nn_exchange *part = &self->exchanges[i];
        void *mean = gy_vector_at(self->mean, part->first);
        contribute(self, part->first, part->count, weight);
        if (self->run.comm)
            status = gyre_all_reduce_start(self->run.comm, mean, mean, part->count, self->mean.dtype, GYRE_SUM,
                                           &part->request);
    }
    if (status != GYRE_SUCCESS)
        return gyre_nn_fail(status, self->run.comm, "starting to average the parameters");
    self->counts[GY_NN_TAKEN] = self->counts[GY_NN_ROWS] = self->counts[GY_NN_GLOBAL_ROWS] = 0;
    self->counts[GY_NN_COST] = 0;
    self->counts[GY_NN_RATE] = step->rate;
    self->counts[GY_NN_DUE] = (double)step->number < self->sync_until ? 0 : self->run.settings[GY_NN_DELAY];
    return GYRE_SUCCESS;
}

/* The outer step of running statistics is their mean, whatever the method. A momentum could make a variance
 * negative. */
static void average(struct gy_nn_periodic *self, size_t first, size_t count)
{
    gy_nn_periodic_restart(self, first, count, self->mean);
    for (int i = 0; i < GY_NN_OUTER_ARRAYS && self->outer->arrays[i].name; i++)
        if (self->outer->arrays[i].params)
            gy_vector_copy(first, count, self->mean, self->arrays[i]);
}

static void combine(struct gy_nn_periodic *self, size_t first, size_t count)
{
    size_t end = first + count;
    for (size_t i = 0; i < gyre_nn_tensor_count(self->run.model); i++) {
        const struct gyre_nn_tensor *tensor = gyre_nn_tensor(self->run.model, i);
        size_t low = tensor->offset > first ? tensor->offset : first, high = tensor->offset + tensor->cols;
        high = high < end ? high : end;
        if (low >= high || !gyre_nn_tensor_is_statistic(self->run.model, i))
            continue;
        if (low > first)
            self->outer->combine(self, first, low - first);
        average(self, low, high - low);
        first = high;
    }
    if (first < end)
        self->outer->combine(self, first, end - first);
}

static gyre_status end_exchange(struct gy_nn_periodic *self)
{
    for (size_t i = 0; i < self->nexchanges; i++) {
        struct gy_nn_exchange *part = &self->exchanges[i];
        gyre_status status = gyre_wait(&part->request);
        if (status != GYRE_SUCCESS)
            return gyre_nn_fail(status, self->run.comm, "averaging the parameters");
        combine(self, part->first, part->count);
    }
    self->counts[GY_NN_DUE] = -1;
    if (!self->adaptive)
        self->counts[GY_NN_PERIOD] = period_of(self);
    return GYRE_SUCCESS;
}

gyre_status gy_nn_periodic_update(void *user, const struct gyre_nn_step *step)
{
    struct gy_nn_periodic *self = user;
    double *counts = self->counts;
    gyre_status status = GYRE_SUCCESS;
    step_alone(self, step);
    counts[GY_NN_TAKEN]++;
    counts[GY_NN_ROWS] += (double)step->rows;
    counts[GY_NN_GLOBAL_ROWS] += (double)step->global_rows;
    counts[GY_NN_COST] += step->cost;
    bool begin = counts[GY_NN_TAKEN] >= period_of(self) || (double)step->number < self->sync_until;
    if (under_way(self) && (--counts[GY_NN_DUE] <= 0 || begin))
        status = end_exchange(self);
    if (begin && status == GYRE_SUCCESS)
        status = begin_exchange(self, step);
    if (begin && status == GYRE_SUCCESS && counts[GY_NN_DUE] == 0)
        status = end_exchange(self);
    return status;
}

void gy_nn_periodic_restart(struct gy_nn_periodic *self, size_t first, size_t count, struct gy_vector start)
{
    if (self->sent.data == self->params.data) {
        gy_vector_copy(first, count, start, self->params);
        return;
    }
    gy_vector_add(first, count, -1, self->sent, self->params);
    gy_vector_add(first, count, 1, start, self->params);
}

static struct gyre_nn_array array_of(const struct gy_nn_periodic *self, const char *name, struct gy_vector vector,
                                     gyre_nn_placement placement)
{
    struct gyre_nn_array array = {
        .data = vector.data, .count = self->count, .dtype = vector.dtype, .placement = placement};
    strncpy(array.name, name, sizeof(array.name) - 1);
    return array;
}

/* What is under way is waited for, not applied: its mean is state. */
gyre_status gy_nn_periodic_arrays(void *user, struct gyre_nn_array *arrays, size_t *count_p)
{
    struct gy_nn_periodic *self = user;
    size_t n = 0;
    for (size_t i = 0; i < self->nexchanges; i++) {
        gyre_status status = gyre_wait(&self->exchanges[i].request);
        if (status != GYRE_SUCCESS)
            return gyre_nn_fail(status, self->run.comm, "averaging the parameters");
    }
    for (int i = 0; i < GY_NN_OUTER_ARRAYS && self->arrays[i].data; i++)
        arrays[n++] = array_of(self, self->outer->arrays[i].name, self->arrays[i], self->outer->arrays[i].placement);
    if (self->sent.data != self->params.data) {
        arrays[n++] = array_of(self, "exchange.mean", self->mean, GYRE_NN_REPLICATED);
        arrays[n++] = array_of(self, "exchange.sent", self->sent, GYRE_NN_LOCAL);
    }
    arrays[n++] = (struct gyre_nn_array){.name = "exchange.counts",
                                         .data = self->counts,
                                         .count = GY_NN_OWN_COUNTS,
                                         .dtype = GYRE_FLOAT64,
                                         .placement = GYRE_NN_LOCAL};
    arrays[n++] = (struct gyre_nn_array){.name = "exchange.period",
                                         .data = self->counts + GY_NN_OWN_COUNTS,
                                         .count = GY_NN_COUNTS - GY_NN_OWN_COUNTS,
                                         .dtype = GYRE_FLOAT64,
                                         .placement = GYRE_NN_REPLICATED};
    *count_p = n;
    return GYRE_SUCCESS;
}

/* After an outer step: ranks that are apart even then begin at the model. */
bool gy_nn_periodic_common(void *user, void *params)
{
    struct gy_nn_periodic *self = user;
    struct gy_vector out = {self->params.dtype, params};
    if (self->run.settings[GY_NN_DELAY] > 0 || self->counts[GY_NN_TAKEN] > 0 || under_way(self))
        return false;
    if (params && self->outer->model && self->outer->between)
        self->outer->model(self, out);
    else if (params)
        gy_vector_copy(0, self->count, self->params, out);
    return true;
}

/* Of parameters that are apart, weighed as an exchange of now would weigh them. Collective. */
static gyre_status mean_of_now(struct gy_nn_periodic *self, struct gy_vector out)
{
    if (!self->run.comm) {
        gy_vector_copy(0, self->count, self->params, out);
        return GYRE_SUCCESS;
    }
    gy_vector_scale(0, self->count, weight_of(self), self->params, out);
    gyre_status status = gyre_all_reduce(self->run.comm, out.data, out.data, self->count, out.dtype, GYRE_SUM);
    return status ? gyre_nn_fail(status, self->run.comm, "averaging the parameters") : status;
}

/* Running statistics stay their mean. */
static gyre_status make_first_model(struct gy_nn_periodic *self, struct gy_vector out)
{
    struct gy_vector mean = make(self);
    if (!mean.data)
        return gyre_nn_fail(GYRE_NO_MEMORY, NULL, "no memory for a consensus");
    gy_vector_copy(0, self->count, out, mean);
    self->outer->first_model(self, out);
    for (size_t i = 0; i < gyre_nn_tensor_count(self->run.model); i++) {
        const struct gyre_nn_tensor *tensor = gyre_nn_tensor(self->run.model, i);
        if (gyre_nn_tensor_is_statistic(self->run.model, i))
            gy_vector_copy(tensor->offset, tensor->cols, mean, out);
    }
    free(mean.data);
    return GYRE_SUCCESS;
}

/* The decision is made by counters that all ranks have alike. A method with a model of its own between outer steps
 * has no valid one before the first outer step. With every=0, or fewer steps than `every`, the exchange at the end
 * is made here. */
gyre_status gy_nn_periodic_consensus(void *user, void *params)
{
    struct gy_nn_periodic *self = user;
    struct gy_vector out = {self->params.dtype, params};
    bool settled = self->counts[GY_NN_TAKEN] == 0 && !under_way(self);
    bool between = self->outer->between && self->counts[GY_NN_PERIOD] > 0;
    if (self->outer->model && (settled || between)) {
        self->outer->model(self, out);
        return GYRE_SUCCESS;
    }
    if (settled) {
        gy_vector_copy(0, self->count, self->params, out);
        return GYRE_SUCCESS;
    }
    gyre_status status = mean_of_now(self, out);
    if (status == GYRE_SUCCESS && self->outer->first_model)
        status = make_first_model(self, out);
    return status;
}
