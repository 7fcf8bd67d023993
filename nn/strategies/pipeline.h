/* What a rank of a pipeline has: its stage, and room for the micro-batches that are in flight. */
#ifndef GY_NN_PIPELINE_H
#define GY_NN_PIPELINE_H

#include "strategies/edges.h"

/* The settings of the strategy, in their order. */
enum { STAGES, MICRO, SCHEDULE, RECOMPUTE, BALANCE, MEMORY, SAMPLES };

struct gy_pipeline_slot {
    gyre_nn_tape *tape; /* NULL where forwards are done again: then slot 0's serves all */
    void *data;         /* the model's input, where the stage takes it */
    void **x, **down;   /* of each edge in: its value; its gradient */
    void **up;          /* of each edge out: its value */
    gyre_request **down_requests, **up_requests;
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
    size_t capacity;     /* samples that a slot has room for */
    bool recompute;
    struct gy_pipeline_slot *slots;
    void *dy, *targets;
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
/* After a resume the stages are those of the run before. */
gyre_status gy_pipeline_settle(struct gy_pipeline *p);

#endif
