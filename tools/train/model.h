/* The model that gyre-train makes of its options, and the text that the model writes. */
#ifndef GYRE_TRAIN_MODEL_H
#define GYRE_TRAIN_MODEL_H

#include <gyre/nn.h>

#define LARGEST_DEPTH 16

enum model_kind {
    MODEL_MLP,
    MODEL_AUTOENCODER,
    MODEL_LSTM,
    MODEL_TRANSFORMER,
    MODEL_RECOMMENDER,
    MODEL_CNN,
    MODEL_COUNT
};

/* 0, and an nhidden of 0, mean: not given. */
struct model_options {
    enum model_kind kind;
    size_t hidden[LARGEST_DEPTH];
    size_t nhidden;
    size_t channels[LARGEST_DEPTH];
    size_t nchannels;
    struct gyre_nn_image image;
    gyre_nn_activation activation;
    gyre_dtype dtype;
    size_t width, heads, blocks, context;
    double dropout;
};

extern const char *const model_names[MODEL_COUNT + 1]; /* ends with NULL */

/* Fills in the options that were not given. Exits with status 2 at an option that the kind does not use. */
void model_options_settle(struct model_options *options, const char *data);
gyre_status model_open_data(const struct model_options *options, const char *name, gyre_nn_dataset **data_p);
gyre_status model_make(const struct model_options *options, const gyre_nn_dataset *data, uint64_t seed,
                       gyre_nn_model **model_p);
/* Prints `count` bytes of text, with which the model continues the beginning of the data. */
gyre_status model_write_text(gyre_nn_model *model, const gyre_nn_dataset *data, size_t count, uint64_t seed);

#endif
