/* What a training run needs to survive failed ranks: the state after the last complete step, and how the ranks that
 * are left reach it. Used by train.c; replay.c repeats a run's memberships. */
#ifndef GY_NN_ELASTIC_H
#define GY_NN_ELASTIC_H

#include "run/run_state.h"

/* Of what is kept: parameters, the optimiser's state, the best parameters so far of a run that has patience. */
enum { GY_NN_KEPT_BEST = 3, GY_NN_KEPT };

struct gy_nn_elastic {
    struct gyre_nn_elastic how;
    gyre_comm **comm; /* the caller's: always the communicator of the ranks that are left; NULL in it: one rank */
    struct gyre_nn_run *run;
    const char *resume; /* a file that the run begins with, or NULL */
    void *best;         /* the run's: gy_nn_best.params, or NULL */
    bool first;         /* this process has been there from the beginning */
    /* After step position.step, which is complete; `valid` where this rank has it. */
    void *saved[GY_NN_KEPT];
    uint64_t optimizer_steps;
    struct gy_nn_kept { /* the strategy's arrays that all ranks have alike; bytes 0: the others */
        void *saved, *arriving;
        size_t bytes;
    } arrays[GYRE_NN_MOST_ARRAYS];
    struct gyre_nn_position position;
    bool valid;
    bool complete; /* the step just computed is one to go back to */
    /* Since the last count: of this rank, and rows of all. */
    double cost;
    size_t rows, global_rows;
    int64_t looked; /* when rank 0 last asked all ranks to check for joiners */
    bool look;      /* it has, in the step that is being computed */
    /* Of a replay. */
    gyre_comm *part; /* the ranks that take part; NULL: none was made yet */
    size_t turn;     /* of the replay's memberships: the next */
    bool idle;       /* this rank is none of them */
};

/* `run` is open, of one rank. The lowest rank that was there from the beginning begins or resumes the run, and sends
 * its state to the others. Collective. close does not end the run. */
gyre_status gy_nn_elastic_open(struct gy_nn_elastic *elastic, struct gyre_nn_run *run,
                               struct gyre_nn_position *position);
void gy_nn_elastic_close(struct gy_nn_elastic *elastic);

/* At the end of a step. Where the run may return to this step (`complete`), collective: gives the cost of all ranks'
 * rows since the last count, and checks that they are each row of the batches once. Otherwise gives 0. */
gyre_status gy_nn_elastic_count(struct gy_nn_elastic *elastic, struct gyre_nn_step *step);
/* Collective: the cost of what has not been counted yet. */
gyre_status gy_nn_elastic_gather(struct gy_nn_elastic *elastic, double *cost_p);
/* Collective, after a complete step: lets processes join, if the step's count has said that it is time. */
gyre_status gy_nn_elastic_grow(struct gy_nn_elastic *elastic);
/* Saves the state after this step, which is complete on this rank. */
gyre_status gy_nn_elastic_save(struct gy_nn_elastic *elastic, const struct gyre_nn_position *position);

/* Collective: rank 0 writes the state to `path`, and every rank gets the result. If ranks train apart it is the
 * state after the last exchange, for any number of ranks, unless the run is over and its best parameters stand. */
gyre_status gy_nn_elastic_checkpoint(struct gy_nn_elastic *elastic, const char *path,
                                     const struct gyre_nn_position *position, const struct gy_nn_best *best);

/* The end of a part of the run, in success or failure: every rank that is left calls it. *done_p: it has succeeded
 * on all of them. Otherwise the ranks that are left are a new communicator, all with the state after the last
 * complete step, which *position_p names. */
gyre_status gy_nn_elastic_settle(struct gy_nn_elastic *elastic, gyre_status status, struct gyre_nn_position *position_p,
                                 bool *done_p);

/* Continues the run with the ranks of `comm`, all with the most advanced state among them. */
gyre_status gy_nn_elastic_reform(struct gy_nn_elastic *elastic, gyre_comm *comm);
/* Releases the communicator that the run has used. */
void gy_nn_elastic_leave(struct gy_nn_elastic *elastic);
/* All ranks of `comm` get the most advanced state among them, or return to their own if all have the same. */
gyre_status gy_nn_elastic_align(struct gy_nn_elastic *elastic, gyre_comm *comm);

/* ---- snapshot.c ---- */

gyre_status gy_nn_elastic_make_memory(struct gy_nn_elastic *elastic);
void gy_nn_elastic_free_memory(struct gy_nn_elastic *elastic);
/* True if the state that all ranks have alike is enough to continue from here. */
bool gy_nn_elastic_settled(const struct gyre_nn_run *run);
/* Copies the strategy's arrays that are kept: into what is saved, or back. */
gyre_status gy_nn_elastic_copy_arrays(struct gy_nn_elastic *elastic, bool back);
/* All but the arrays, for which there has to be a strategy. */
void gy_nn_elastic_restore(struct gy_nn_elastic *elastic);
/* Collective: the state of rank `source`, to all, where it is restored but for the arrays. */
gyre_status gy_nn_elastic_spread(struct gy_nn_elastic *elastic, gyre_comm *comm, int source);
/* This rank begins the run, or goes on from its file. Not collective. */
gyre_status gy_nn_elastic_begin(struct gy_nn_elastic *elastic);

/* ---- replay.c ---- */

/* True if the next membership begins before this step. Makes the change, on all ranks of the world. A rank that
 * takes no part stays inside until it does, or all changes are over. At the end all ranks have the result and the
 * model, as the ranks that take part show it. */
bool gy_nn_replay_due(const struct gy_nn_elastic *elastic, const struct gyre_nn_position *position);
gyre_status gy_nn_replay_turn(struct gy_nn_elastic *elastic, struct gyre_nn_position *position_p);
gyre_status gy_nn_replay_end(struct gy_nn_elastic *elastic, struct gyre_nn_train_result *result);

#endif
