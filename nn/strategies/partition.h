/* Which modules each stage of a pipeline has. */
#ifndef GY_NN_PARTITION_H
#define GY_NN_PARTITION_H

#include <gyre/nn.h>

/* places[0 … stages]: stage s has modules [places[s], places[s + 1]), so that the largest estimated work of a stage is as
 * small as can be. INVALID_ARGUMENT: the model cannot be cut into so many stages; or NO_MEMORY. */
gyre_status gy_nn_partition(const gyre_nn_model *model, size_t stages, size_t *places);

#endif
