/* Before a run: do all ranks want the same one? */
#ifndef GY_NN_AGREE_H
#define GY_NN_AGREE_H

#include <gyre/nn.h>

/* Collective. GYRE_MISMATCH on every rank, with the same sentence, if model, data or options of one differ from rank 0's in
 * anything that they have to have alike; the communicator is as good as before. comm may be NULL. */
gyre_status gy_nn_agree(gyre_comm *comm, const gyre_nn_model *model, const gyre_nn_dataset *data,
                        const struct gyre_nn_train_options *options);

#endif
