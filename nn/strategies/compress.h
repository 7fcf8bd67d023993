/* The interface of the codecs. Before `exchange`, `residual` holds this rank's part of the mean gradient, and what it
 * could not send before. Afterwards `grads` holds the sum of what all ranks sent, with the same bits on each, and
 * `residual` what this rank has still to send.
 * Invariant: over the ranks, Σ residual(before) = grads + Σ residual(after), but for rounding. */
#ifndef GY_NN_COMPRESS_H
#define GY_NN_COMPRESS_H

#include "strategies/vector.h"

struct gy_nn_compress {
    struct gyre_nn_run run;
    size_t count; /* parameters */
    struct gy_vector params, grads, residual;
    const struct gy_nn_codec *codec;
    void *work; /* the codec's, made by its open and freed by its close */
};

struct gy_nn_codec {
    const char *name;
    gyre_status (*open)(struct gy_nn_compress *self);
    void (*close)(struct gy_nn_compress *self);
    gyre_status (*exchange)(struct gy_nn_compress *self);
    /* State beside the residual, appended at arrays[*count_p]. Or NULL. */
    void (*arrays)(struct gy_nn_compress *self, struct gyre_nn_array *arrays, size_t *count_p);
};

/* The settings, in the order of the strategy's. */
enum { GY_NN_BY, GY_NN_SHARE, GY_NN_RANK };

extern const struct gy_nn_codec gy_nn_codec_bf16, gy_nn_codec_int8, gy_nn_codec_topk, gy_nn_codec_powersgd;

#endif
