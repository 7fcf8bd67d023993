/* The command line of gyre-train. */
#ifndef GYRE_TRAIN_ARGUMENTS_H
#define GYRE_TRAIN_ARGUMENTS_H

#include <gyre/nn.h>

#define LARGEST_DEPTH 16

struct arguments {
    const char *data;
    size_t hidden[LARGEST_DEPTH];
    size_t nhidden;
    gyre_nn_activation activation;
    gyre_dtype dtype;
    struct gyre_nn_train_options train;
    const char *metrics, *trace;
    size_t rounds; /* of the overlap measurement */
    bool measure_overlap, verify_single, progress_thread, quiet;
};

/* Exits with status 2 and one line where an argument is wrong. */
void arguments_parse(int argc, char **argv, struct arguments *arguments_p);

#endif
