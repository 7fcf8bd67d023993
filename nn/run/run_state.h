/* A run's state on disk, with the best parameters so far of a run that has patience. */
#ifndef GY_NN_RUN_STATE_H
#define GY_NN_RUN_STATE_H

#include <gyre/nn.h>

#define GY_NN_BEST_NAME "best.params"

/* Of every rank alike. NULL parameters: the run keeps none. */
struct gy_nn_best {
    void *params; /* of the consensus, after the epoch whose test loss was the lowest */
    bool stands;  /* the run is over: they are its model */
};

/* gyre_nn_run_save and gyre_nn_run_resume. Where the best stands it is written as the model. A file without the
 * best, from a run without patience, gives a position that has seen no loss yet. */
gyre_status gy_nn_run_save(struct gyre_nn_run *run, const char *path, const struct gyre_nn_position *position,
                           const struct gy_nn_best *best);
gyre_status gy_nn_run_resume(struct gyre_nn_run *run, const char *path, const struct gy_nn_best *best,
                             struct gyre_nn_position *position_p);

/* checkpoint.c: as gyre_nn_checkpoint_write_arrays and …_read_arrays, for a run: the optimiser's kind is written and
 * compared also where the optimiser's state is among the arrays. Not collective. */
gyre_status gy_nn_checkpoint_write_run(const char *path, const struct gyre_nn_run *run,
                                       const struct gyre_nn_position *position, const struct gyre_nn_array *arrays,
                                       size_t narrays);
gyre_status gy_nn_checkpoint_read_run(const char *path, struct gyre_nn_run *run, struct gyre_nn_position *position_p,
                                      const struct gyre_nn_array *arrays, size_t narrays);
/* checkpoint.c: tells whether the data's classes are bytes of text. Checkpoints of the model contain that from now
 * on, and a checkpoint of another text is refused. */
void gy_nn_note_alphabet(gyre_nn_model *model, const gyre_nn_dataset *data);

#endif
