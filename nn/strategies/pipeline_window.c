/* The exchange between stages: one-sided, so that a stage can go on although its peer is not inside gyre.
 *
 *     stage a                                        stage b
 *       forward(m)   ── put value, signal ──▶  landing m mod L ── wait ──▶ forward(m)
 *       landing m mod L  ◀── put gradient, signal ──  backward(m)
 *
 * A message would need its receiver to ask for it while its sender computes: on two cores a step took three times as
 * long. Inside a host a put is a copy to the memory from which the other stage computes.
 * A landing is free when it is written, without a message that says so. Let L be at least the number of
 * micro-batches that any stage has in flight. forward(m) of a comes after its backward(m − L). That waited for b's
 * gradient, which b gave at the end of its own backward(m − L). And b gives the gradient of m after a's forward(m),
 * which comes after a's backward(m − L). Consecutive steps are ordered in the same way, as all micro-batches have
 * come back by the end of a step. */
#include <stdlib.h>

#include "strategies/pipeline.h"

#define ALIGN ((size_t)16) /* elements: 64 bytes at least */

static size_t landing_size(const struct gy_edge *edge, size_t samples)
{
    return (edge->size * samples + ALIGN - 1) / ALIGN * ALIGN;
}

/* Elements before inlet `k` of a stage with these edges. */
static size_t inlet_first(const struct gy_pipeline *p, const struct gy_edges *edges, size_t k, size_t samples)
{
    size_t first = 0;
    for (size_t i = 0; i < k; i++)
        first += p->landings * landing_size(i < edges->nin ? &edges->in[i] : &edges->out[i - edges->nin], samples);
    return first;
}

static const struct gy_edge *edge_of(const struct gy_pipeline *p, size_t k)
{
    return k < p->edges.nin ? &p->edges.in[k] : &p->edges.out[k - p->edges.nin];
}

/* The inlet at the other end of edge `k`: what goes up comes in there by an edge in, what goes down by one out. */
static gyre_status find_outlet(struct gy_pipeline *p, size_t k, size_t samples)
{
    const struct gy_edge *mine = edge_of(p, k);
    struct gy_edges theirs;
    bool up = k >= p->edges.nin;
    gyre_status status = gy_edges_make(p->run.model, p->places, p->stages, mine->peer, &theirs);
    if (status != GYRE_SUCCESS)
        return status;
    size_t at = up ? 0 : theirs.nin, end = up ? theirs.nin : theirs.nin + theirs.nout;
    while (at < end) {
        const struct gy_edge *edge = up ? &theirs.in[at] : &theirs.out[at - theirs.nin];
        if (edge->value == mine->value && edge->peer == p->stage)
            break;
        at++;
    }
    p->outlets[k] = (struct gy_pipeline_outlet){inlet_first(p, &theirs, at, samples), (unsigned)at};
    gy_edges_free(&theirs);
    return GYRE_SUCCESS;
}

void gy_pipeline_disconnect(struct gy_pipeline *p)
{
    if (p->memory)
        gyre_mem_free(p->run.comm, p->memory);
    free(p->inlets);
    free(p->outlets);
    p->memory = NULL;
    p->window = NULL;
    p->inlets = NULL;
    p->outlets = NULL;
}

static gyre_status make_outlets(struct gy_pipeline *p, size_t samples)
{
    size_t n = p->edges.nin + p->edges.nout;
    gyre_status status = GYRE_SUCCESS;
    p->inlets = calloc(n + 1, sizeof(*p->inlets));
    p->outlets = calloc(n + 1, sizeof(*p->outlets));
    if (!p->inlets || !p->outlets)
        return gyre_nn_fail(GYRE_NO_MEMORY, NULL, "no memory for the edges of a pipeline");
    for (size_t k = 0; k < n && status == GYRE_SUCCESS; k++) {
        p->inlets[k].first = inlet_first(p, &p->edges, k, samples);
        status = find_outlet(p, k, samples);
    }
    return status;
}

gyre_status gy_pipeline_connect(struct gy_pipeline *p, size_t samples)
{
    size_t n = p->edges.nin + p->edges.nout;
    gyre_status status = p->window ? gyre_window_destroy(p->window) : GYRE_SUCCESS;
    p->window = NULL;
    gy_pipeline_disconnect(p);
    if (status != GYRE_SUCCESS || !p->pipe)
        return status ? gyre_nn_fail(status, p->pipe, "taking stages apart") : status;
    if (n > GYRE_WINDOW_SIGNALS)
        return gyre_nn_fail(GYRE_UNSUPPORTED, NULL,
                            "a stage of this pipeline has more than 32 values to take and give");
    status = make_outlets(p, samples);
    if (status != GYRE_SUCCESS)
        return status;
    size_t bytes = (inlet_first(p, &p->edges, n, samples) + 1) * gy_pipeline_element(p);
    status = gyre_mem_alloc(p->run.comm, bytes, &p->memory);
    status = status ? status : gyre_window_create(p->pipe, p->memory, bytes, &p->window);
    return status ? gyre_nn_fail(status, p->pipe, "connecting the stages of a pipeline") : status;
}

void *gy_pipeline_landing(const struct gy_pipeline *p, size_t k, size_t m)
{
    size_t place = p->inlets[k].first + m % p->landings * landing_size(edge_of(p, k), p->capacity);
    return (char *)p->memory + place * gy_pipeline_element(p);
}

gyre_status gy_pipeline_give(struct gy_pipeline *p, size_t k, size_t m, const void *values, size_t count)
{
    const struct gy_edge *edge = edge_of(p, k);
    size_t place = p->outlets[k].first + m % p->landings * landing_size(edge, p->capacity);
    gyre_status status = gyre_window_put(p->window, values, count * edge->size, gyre_nn_dtype(p->run.model),
                                         (int)edge->peer, place * gy_pipeline_element(p));
    status = status ? status : gyre_window_signal(p->window, (int)edge->peer, p->outlets[k].signal);
    return status ? gyre_nn_fail(status, p->pipe,
                                 k < p->edges.nin ? "giving gradients to the stage below"
                                                  : "giving activations to the stage above")
                  : status;
}

gyre_status gy_pipeline_take(struct gy_pipeline *p, size_t k)
{
    gyre_status status = gyre_window_wait(p->window, (unsigned)k, ++p->inlets[k].arrived);
    return status ? gyre_nn_fail(status, p->pipe,
                                 k < p->edges.nin ? "waiting for activations from the stage below"
                                                  : "waiting for gradients from the stage above")
                  : status;
}
