/* Before a run: checks that all ranks want the same one. */
#ifndef GY_NN_AGREE_H
#define GY_NN_AGREE_H

#include <gyre/nn.h>

/* Collective. GYRE_MISMATCH on every rank, with the same message, if model, data or options of a rank differ from
 * rank 0's in anything that must be equal. The communicator remains usable. comm may be NULL. */
gyre_status gy_nn_agree(gyre_comm *comm, const gyre_nn_model *model, const gyre_nn_dataset *data,
                        const struct gyre_nn_train_options *options);

#endif
