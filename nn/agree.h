/* Before a run: checks that all ranks want the same one. */
#ifndef GY_NN_AGREE_H
#define GY_NN_AGREE_H

#include <gyre/nn.h>

/* Collective. GYRE_MISMATCH on every rank, with the same message, if model, data or options of a rank differ from
 * rank 0's in anything that must be equal. The communicator remains usable. comm may be NULL. */
gyre_status gy_nn_agree(gyre_comm *comm, const gyre_nn_model *model, const gyre_nn_dataset *data,
                        const struct gyre_nn_train_options *options);

/* Collective, between stages in which a single rank may fail: `status` is this rank's. If ranks have failed, every
 * other rank gets the status of the lowest failed rank, and the message "rank R: " with that rank's. A rank that has
 * failed keeps its own. comm may be NULL. */
gyre_status gy_nn_agree_ready(gyre_comm *comm, gyre_status status);

#endif
