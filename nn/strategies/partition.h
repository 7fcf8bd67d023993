/* Which modules each stage of a pipeline has. */
#ifndef GY_NN_PARTITION_H
#define GY_NN_PARTITION_H

#include <gyre/nn.h>

/* What the partition reckons with. */
struct gy_nn_balance {
    const double *times; /* [places]: seconds of the modules below each place; NULL: an estimate of their arithmetic */
    double memory;       /* bytes that a stage may use; 0: as many as it likes */
    size_t samples;      /* of a micro-batch */
    size_t in_flight;    /* the most micro-batches in flight; in 1F1B a stage has no more than there are stages above */
};

/* places[0 … stages]: stage s has modules [places[s], places[s + 1]). The slowest stage is as fast as its memory
 * allows. INVALID_ARGUMENT: the model cannot be cut so; or NO_MEMORY. */
gyre_status gy_nn_partition(const gyre_nn_model *model, size_t stages, const struct gy_nn_balance *balance,
                            size_t *places);

/* Bytes of a stage: its parameters, their gradients and two arrays of the optimiser; activations of so many samples. */
double gy_nn_stage_memory(const gyre_nn_model *model, size_t first, size_t last, double samples);

/* times[0 … module_count]: of the modules below each place, forward and backward of `samples` samples. The times are
 * the least of some rounds, between places at which the model may be cut. Local; the parameters stay, the gradients
 * become 0. */
gyre_status gy_nn_measure(gyre_nn_model *model, size_t samples, double *times);

#endif
