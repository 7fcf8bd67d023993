/* The command line of gyre-train. */
#ifndef GYRE_TRAIN_ARGUMENTS_H
#define GYRE_TRAIN_ARGUMENTS_H

#include "train/model.h"

struct arguments {
    const char *data;
    struct model_options model;
    struct gyre_nn_train_options train;
    const char *metrics, *trace, *predict;
    size_t rounds;  /* of the overlap measurement */
    size_t sample;  /* bytes of text to write */
    size_t explain; /* test samples to explain */
    bool measure_overlap, verify_single, progress_thread, quiet;
    bool elastic;
    int least;                                  /* ranks of an elastic run */
    const char *membership, *replay_membership; /* files */
};

/* Exits with status 2 and one line where an argument is wrong. */
void arguments_parse(int argc, char **argv, struct arguments *arguments_p);
/* True if the model is divided over ranks, so that one rank cannot train it in the same way. */
bool arguments_divide_layers(const struct gyre_nn_train_options *train);

#endif
