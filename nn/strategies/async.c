/* async: gossip. No rank waits for another: each makes steps of its own optimiser, gives its parameters to one
 * neighbour after the other, and mixes in what has arrived.
 *
 *     send      w ← w/2;  the neighbour gets (w, x)           only if it has taken what was sent before; else not now
 *     arrival   x ← (a·w·x + b·v·y)/(a·w + b·v);  w ← w + v   of whatever (v, y) is there
 *
 * (Weights as in push-sum, Kempe, Dobra and Gehrke, 2003, and GoSGD, Blot et al., 2016; asynchronous as AD-PSGD, Lian
 * et al., 2018.) a and b are 1; for parameters that are t steps behind they are 1/(1 + t/fade). So old parameters count
 * less, as in staleness-aware SGD (Zhang et al., 2016); otherwise ranks that run in bursts would slow one another. A
 * slow rank takes messages less often and is skipped by the others. With GYRE_PROGRESS_THREAD arrivals go on while
 * ranks compute.
 * Invariant: Σ w over ranks and messages is the number of ranks. With a = b = 1, only training changes Σ w·x, by which
 * the model is defined; a message never does, whatever the timing. Neighbours stand 1, 2, 4 … ranks away
 * (`exponential`) or 1 (`ring`). So if all ranks keep step, each round is a doubly stochastic matrix and every w stays
 * 1. wait=yes: ranks keep step, and every run has the same bits. Otherwise the mixing depends on time, and so do the
 * bits. A checkpoint has the exact state of every rank.
 * All ranks meet for reports and checkpoints. A rank that is there passes arrivals on with nearly all its weight, so
 * that the model stays with the ranks that still train. When all are there, each edge ends with a last message;
 * after it no request is left. */
#include "strategies/strategies.h"
#include "strategies/vector.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { EVERY, GRAPH, WAIT, FADE };
enum { MIX, LAST };

static const char *const graphs[] = {"exponential", "ring", NULL}, *const answers[] = {"no", "yes", NULL};

static const struct gyre_nn_setting settings[] = {
    {.name = "every", .value = 1, .least = 1, .most = 1e9, .choices = gy_nn_whole, .help = "steps between messages"},
    {.name = "graph", .most = 1, .choices = graphs, .help = "neighbours: 1, 2, 4 ... ranks away, or 1"},
    {.name = "wait", .most = 1, .choices = answers, .help = "ranks keep step, and bits do not depend on time"},
    {.name = "fade", .value = 1, .most = 1e9, .help = "parameters so many steps behind count half; 0: as all others"},
    {0},
};

struct header {
    double kind, weight, step;
    double unused; /* the parameters begin at 32 bytes */
};

#define HALF 0.5
#define NEARLY_ALL (1 - 0x1p-20) /* some weight has to stay with the parameters that are here */
#define LEAST_WEIGHT (1.0 / 64)  /* a rank whose neighbours take and do not give keeps so much */
#define MOST_NEIGHBOURS 32       /* log2 of the largest number of ranks */
#define REQUESTS (2 * MOST_NEIGHBOURS + 1)

struct edge {
    int to, from;            /* this rank's neighbours at one distance */
    unsigned char *out, *in; /* messages, gyre's while there is a request */
    bool last, over;         /* draining: the last message is on its way; the neighbour's has come */
};

struct async {
    struct gyre_nn_run run;
    gyre_comm *comm; /* of its own, for its receives are always under way; NULL: one rank */
    size_t count, bytes;
    struct gy_vector params, grads;
    struct edge edges[MOST_NEIGHBOURS];
    gyre_request *requests[REQUESTS]; /* receives, then sends; the last one: all ranks are at a meeting */
    double taken;                     /* messages */
    size_t nedges;
    double state[3]; /* weight, rounds, steps */
    double staleness[GYRE_NN_STALENESS_BINS];
};

enum { WEIGHT, ROUNDS, STEPS };

static void close(void *self)
{
    struct async *async = self;
    gyre_comm_destroy(async->comm); /* what is left of a run that failed ends with it */
    for (size_t i = 0; i < REQUESTS; i++)
        gyre_wait(&async->requests[i]);
    for (size_t i = 0; i < async->nedges; i++) {
        free(async->edges[i].out);
        free(async->edges[i].in);
    }
    free(async);
}

static gyre_status make_edges(struct async *async)
{
    int ranks = async->run.ranks, rank = async->run.rank;
    for (int far = 1; far < ranks; far *= 2) {
        struct edge *edge = &async->edges[async->nedges++];
        edge->to = (int)(((long)rank + far) % ranks);
        edge->from = (int)(((long)rank + ranks - far) % ranks);
        edge->out = calloc(1, async->bytes);
        edge->in = calloc(1, async->bytes);
        if (!edge->out || !edge->in)
            return gyre_nn_fail(GYRE_NO_MEMORY, NULL, "no memory for the messages of the strategy async");
        if (async->run.settings[GRAPH] > 0)
            break;
    }
    return GYRE_SUCCESS;
}

static gyre_status open(const struct gyre_nn_run *run, void **self_p)
{
    struct async *async = calloc(1, sizeof(*async));
    if (!async)
        return gyre_nn_fail(GYRE_NO_MEMORY, NULL, "no memory for the strategy async");
    gyre_dtype dtype = gyre_nn_dtype(run->model);
    async->run = *run;
    async->count = gyre_nn_param_count(run->model);
    async->bytes = sizeof(struct header) + async->count * gyre_dtype_size(dtype);
    async->params = (struct gy_vector){dtype, gyre_nn_params(run->model)};
    async->grads = (struct gy_vector){dtype, gyre_nn_grads(run->model)};
    async->state[WEIGHT] = 1;
    gyre_status status = make_edges(async);
    if (status == GYRE_SUCCESS && run->comm) {
        status = gyre_comm_duplicate(run->comm, &async->comm);
        if (status != GYRE_SUCCESS)
            gyre_nn_fail(status, run->comm, "a communicator for gossip");
    }
    if (status != GYRE_SUCCESS) {
        close(async);
        return status;
    }
    *self_p = async;
    return GYRE_SUCCESS;
}

static void passed(void *self, size_t lower)
{
    struct async *async = self;
    (void)lower;
    if (async->comm)
        gyre_progress(async->comm); /* an error stays, and is found by the next call */
}

/* The mean over ranks of ranks·g/Σrows is the gradient of the whole batch, whatever the shards. */
static void step_alone(struct async *async, const struct gyre_nn_step *step)
{
    if (step->rows == 0)
        return;
    double scale = (double)async->run.ranks / (double)step->global_rows;
    scale = gy_vector_clip(async->run.model, async->grads, scale, async->run.clip_norm);
    gyre_nn_optimizer_begin(async->run.optimizer);
    gyre_nn_optimizer_update(async->run.optimizer, 0, async->count, step->rate, scale);
}

/* A message with `share` of this rank's weight and its parameters; share 0: the last one. */
static void write_message(struct async *async, unsigned char *message, double share)
{
    struct header header = {.kind = share > 0 ? MIX : LAST, .step = async->state[STEPS]};
    header.weight = async->state[WEIGHT] * share;
    async->state[WEIGHT] -= header.weight;
    memcpy(message, &header, sizeof(header));
    if (share > 0)
        memcpy(message + sizeof(header), async->params.data, async->bytes - sizeof(header));
}

/* What is old counts less: parameters that are `age` steps behind. */
static double faded(const struct async *async, double age)
{
    double fade = async->run.settings[FADE];
    return fade > 0 && age > 0 ? 1 / (1 + age / fade) : 1;
}

static void mix(struct async *async, unsigned char *message)
{
    struct header header;
    memcpy(&header, message, sizeof(header));
    struct gy_vector other = {async->params.dtype, message + sizeof(header)};
    double age = async->state[STEPS] - header.step;
    double mine = async->state[WEIGHT] * faded(async, -age), theirs = header.weight * faded(async, age);
    double share = theirs > 0 ? theirs / (mine + theirs) : 0; /* nearly nothing of nearly nothing is 0 at last */
    gy_vector_blend(0, async->count, share, other, 1 - share, async->params);
    async->state[WEIGHT] += header.weight;
    async->taken++;
    async->staleness[(size_t)fmin(fmax(age, 0), GYRE_NN_STALENESS_BINS - 1)]++;
}

static void arrived(struct async *async, struct edge *edge)
{
    struct header header;
    memcpy(&header, edge->in, sizeof(header));
    edge->over = header.kind == LAST;
    if (!edge->over)
        mix(async, edge->in);
}

/* Mixes in what has come on an edge, and receives on. */
static gyre_status take(struct async *async, size_t i)
{
    struct edge *edge = &async->edges[i];
    gyre_request **request = &async->requests[i];
    while (!edge->over) {
        gyre_status status = GYRE_SUCCESS;
        if (!*request)
            status = gyre_recv_start(async->comm, edge->in, async->bytes, GYRE_UINT8, edge->from, request);
        status = status ? status : gyre_test(request);
        if (status != GYRE_SUCCESS)
            return status == GYRE_IN_PROGRESS ? GYRE_SUCCESS : status;
        arrived(async, edge);
    }
    return GYRE_SUCCESS;
}

/* Sends a share of this rank's weight to a neighbour that has taken the message before. *left_p: the message has
 * left. A neighbour that has not taken it may be waiting for this core. */
static gyre_status give(struct async *async, size_t i, double share, bool *left_p)
{
    struct edge *edge = &async->edges[i];
    gyre_request **request = &async->requests[MOST_NEIGHBOURS + i];
    gyre_status status = gyre_test(request);
    *left_p = false;
    if (status == GYRE_IN_PROGRESS) {
        sched_yield();
        return GYRE_SUCCESS;
    }
    if (status != GYRE_SUCCESS)
        return status;
    write_message(async, edge->out, share);
    *left_p = true;
    return gyre_send_start(async->comm, edge->out, async->bytes, GYRE_UINT8, edge->to, request);
}

static gyre_status keep_step(struct async *async, size_t i)
{
    struct edge *edge = &async->edges[i];
    write_message(async, edge->out, HALF);
    gyre_status status = gyre_sendrecv(async->comm, edge->out, async->bytes, edge->to, edge->in, async->bytes,
                                       edge->from, GYRE_UINT8);
    if (status == GYRE_SUCCESS)
        mix(async, edge->in);
    return status;
}

static gyre_status round_of(struct async *async)
{
    size_t turn = (size_t)async->state[ROUNDS]++ % async->nedges;
    gyre_status status = GYRE_SUCCESS;
    bool left;
    if (async->run.settings[WAIT] > 0)
        return keep_step(async, turn);
    for (size_t i = 0; i < async->nedges && status == GYRE_SUCCESS; i++)
        status = take(async, i);
    return status || async->state[WEIGHT] < LEAST_WEIGHT ? status : give(async, turn, HALF, &left);
}

static gyre_status update(void *self, const struct gyre_nn_step *step)
{
    struct async *async = self;
    step_alone(async, step);
    async->state[STEPS]++;
    if (!async->comm || fmod(async->state[STEPS], async->run.settings[EVERY]) != 0)
        return GYRE_SUCCESS;
    gyre_status status = round_of(async);
    return status ? gyre_nn_fail(status, async->comm, "gossip") : status;
}

static bool drained(const struct async *async)
{
    for (size_t i = 0; i < async->nedges; i++)
        if (!async->edges[i].over || !async->edges[i].last || async->requests[MOST_NEIGHBOURS + i])
            return false;
    return true;
}

/* Takes the messages that are there. For each it passes on nearly all of the weight, so that the weight is with the
 * ranks that still train. */
static gyre_status relay(struct async *async)
{
    double before = async->taken;
    gyre_status status = GYRE_SUCCESS;
    bool left;
    for (size_t i = 0; i < async->nedges && status == GYRE_SUCCESS; i++)
        status = take(async, i);
    for (; async->nedges > 0 && async->taken > before && status == GYRE_SUCCESS; before++)
        status = give(async, (size_t)async->state[ROUNDS]++ % async->nedges, NEARLY_ALL, &left);
    return status;
}

/* Waits until one of the requests is complete; a message is mixed in. */
static gyre_status await(struct async *async)
{
    ptrdiff_t index = -1;
    gyre_status status = gyre_wait_any(async->requests, REQUESTS, &index);
    if (status == GYRE_SUCCESS && index >= 0 && index < MOST_NEIGHBOURS)
        arrived(async, &async->edges[index]);
    return status;
}

/* Collective. Ranks that are here relay until all are; then each edge ends with its last message. */
static gyre_status drain(struct async *async)
{
    int32_t here = 1;
    gyre_request **all_here = &async->requests[REQUESTS - 1];
    gyre_status status = GYRE_SUCCESS;
    if (!async->comm || async->run.settings[WAIT] > 0)
        return status;
    status = gyre_all_reduce_start(async->run.comm, &here, &here, 1, GYRE_INT32, GYRE_SUM, all_here);
    while (status == GYRE_SUCCESS && *all_here) {
        status = relay(async);
        status = status ? status : await(async);
    }
    while (status == GYRE_SUCCESS && !drained(async)) {
        for (size_t i = 0; i < async->nedges && status == GYRE_SUCCESS; i++) {
            status = take(async, i);
            if (status == GYRE_SUCCESS && !async->edges[i].last)
                status = give(async, i, 0, &async->edges[i].last);
        }
        status = status ? status : await(async);
    }
    for (size_t i = 0; i < async->nedges; i++)
        async->edges[i].over = async->edges[i].last = false;
    return status ? gyre_nn_fail(status, async->comm, "the last messages of gossip") : status;
}

static gyre_status arrays(void *self, struct gyre_nn_array *arrays_p, size_t *count_p)
{
    struct async *async = self;
    gyre_status status = drain(async);
    arrays_p[0] = (struct gyre_nn_array){.name = "async.state", .data = async->state, .count = 3};
    arrays_p[1] = (struct gyre_nn_array){
        .name = "staleness", .data = async->staleness, .count = GYRE_NN_STALENESS_BINS};
    for (size_t i = 0; i < 2; i++) {
        arrays_p[i].dtype = GYRE_FLOAT64;
        arrays_p[i].placement = GYRE_NN_LOCAL;
    }
    *count_p = 2;
    return status;
}

/* Σ w·x / Σ w. */
static gyre_status consensus(void *self, void *params)
{
    struct async *async = self;
    struct gy_vector out = {async->params.dtype, params};
    gyre_status status = drain(async);
    double sum = async->state[WEIGHT];
    if (status == GYRE_SUCCESS && async->run.comm)
        status = gyre_all_reduce(async->run.comm, &sum, &sum, 1, GYRE_FLOAT64, GYRE_SUM);
    gy_vector_scale(0, async->count, async->state[WEIGHT] / sum, async->params, out);
    if (status == GYRE_SUCCESS && async->run.comm)
        status = gyre_all_reduce(async->run.comm, params, params, async->count, out.dtype, GYRE_SUM);
    return status ? gyre_nn_fail(status, async->run.comm, "averaging the parameters") : status;
}

const gyre_nn_strategy gy_nn_async = {
    .size = sizeof(gyre_nn_strategy),
    .name = "async",
    .help = "gossip: no rank waits for another; parameters are mixed as they arrive",
    .settings = settings,
    .params = GYRE_NN_LOCAL,
    .optimizer = GYRE_NN_LOCAL,
    .open = open,
    .close = close,
    .passed = passed,
    .update = update,
    .arrays = arrays,
    .consensus = consensus,
    .apart = true,
};
