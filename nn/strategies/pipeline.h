/* What a rank of a pipeline has: its stage, and room for the micro-batches that are in flight. */
#ifndef GY_NN_PIPELINE_H
#define GY_NN_PIPELINE_H

#include "strategies/edges.h"

/* The settings of the strategy, in their order. */
enum { STAGES, MICRO, SCHEDULE, RECOMPUTE, BALANCE, MEMORY, SAMPLES };

struct gy_pipeline_slot {
    gyre_nn_tape *tape; /* NULL where forwards are done again: then slot 0's serves all */
    void *data;         /* the model's input, where the stage takes it */
};

/* What comes in over one edge: the values of an edge in, the gradients of an edge out. */
struct gy_pipeline_inlet {
    size_t first;     /* element of the window where its landings begin: `landings` times samples × size */
    uint64_t arrived; /* messages awaited so far */
};

/* Where what goes out over one edge comes in. */
struct gy_pipeline_outlet {
    size_t first;
    unsigned signal;
};

struct gy_pipeline {
    struct gyre_nn_run run;
    gyre_comm *pipe, *peers; /* the ranks of this pipeline; this stage of every pipeline; NULL: alone */
    size_t stages, stage, pipelines, index;
    size_t *places, *counts; /* of each stage: its modules; its parameters */
    double *kept;            /* places, as state: a resumed run's may differ until it is settled */
    struct gy_edges edges;
    size_t first, count; /* this stage's parameters */
    size_t micro, depth; /* micro-batches of a step; slots */
    size_t landings;     /* of each inlet; micro-batch m's is m mod landings */
    gyre_window *window; /* over the pipe; NULL: alone */
    void *memory;        /* that it exposes: the inlets of the edges in, then of the edges out */
    struct gy_pipeline_inlet *inlets;
    struct gy_pipeline_outlet *outlets;
    size_t capacity; /* samples that a slot has room for */
    bool recompute;
    struct gy_pipeline_slot *slots;
    void *targets;
    int32_t *labels;
    double in_flight, peak; /* micro-batches; peak: the most ever */
    const struct gyre_nn_batch *batch;
    const struct gyre_nn_step *now;
};

static inline bool gy_pipeline_is_last(const struct gy_pipeline *p)
{
    return p->stage + 1 == p->stages;
}

static inline size_t gy_pipeline_element(const struct gy_pipeline *p)
{
    return gyre_dtype_size(gyre_nn_dtype(p->run.model));
}

/* The hooks open and close of the strategy. */
gyre_status gy_pipeline_open(const struct gyre_nn_run *run, void **self_p);
void gy_pipeline_close(void *self);
/* Room for micro-batches of so many samples of the data. */
gyre_status gy_pipeline_reserve(struct gy_pipeline *p, const gyre_nn_dataset *data, size_t samples);
/* Edge in `k`, or edge out `k − nin`. give: `count` samples of micro-batch m go to the stage at its other end: a
 * value up, a gradient down. take: waits for what comes over the edge. landing: where that lies, until the
 * micro-batch has gone through backward. */
gyre_status gy_pipeline_give(struct gy_pipeline *p, size_t k, size_t m, const void *values, size_t count);
gyre_status gy_pipeline_take(struct gy_pipeline *p, size_t k);
void *gy_pipeline_landing(const struct gy_pipeline *p, size_t k, size_t m);
/* Collective over the pipe. Room for landings of so many samples each; what there was before ends. */
gyre_status gy_pipeline_connect(struct gy_pipeline *p, size_t samples);
/* Local. */
void gy_pipeline_disconnect(struct gy_pipeline *p);
/* After a resume the stages are those of the run before. */
gyre_status gy_pipeline_settle(struct gy_pipeline *p);

#endif
