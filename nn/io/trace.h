/* Spans of a training step, collected in a ring; a NULL trace costs one comparison. */
#ifndef GY_NN_TRACE_H
#define GY_NN_TRACE_H

#include <gyre/nn.h>
#include <time.h>

enum gy_nn_span {
    GY_NN_SPAN_FORWARD,
    GY_NN_SPAN_BACKWARD, /* index: module */
    GY_NN_SPAN_WAIT,     /* index: bucket; the caller waits */
    GY_NN_SPAN_UPDATE,   /* index: bucket */
    GY_NN_SPAN_REDUCE,   /* index: bucket; from start to completion, beside the others */
    GY_NN_SPAN_COUNT,
};

static inline int64_t gy_nn_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline int64_t gy_nn_trace_now(const gyre_nn_trace *trace)
{
    return trace ? gy_nn_now() : 0;
}

/* A span from `start` until now. */
void gy_nn_trace_add(gyre_nn_trace *trace, enum gy_nn_span span, int32_t index, int64_t start);

#endif
