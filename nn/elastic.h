/* What a training run needs to outlive its ranks: the state after the last step that was completed, and how those who are
 * left come to it. Used by train.c; replay.c repeats a run's memberships. */
#ifndef GY_NN_ELASTIC_H
#define GY_NN_ELASTIC_H

#include <gyre/nn.h>

struct gy_nn_elastic {
    struct gyre_nn_elastic how;
    gyre_comm **comm; /* the caller's: always the communicator of those who are left; NULL in it: one rank */
    struct gyre_nn_run *run;
    /* After step position.step, which is complete; `valid` where this rank has it. */
    void *saved[3]; /* parameters, the optimiser's state */
    uint64_t optimizer_steps;
    struct gyre_nn_position position;
    bool valid;
    int64_t looked; /* when rank 0 last asked everyone to look for newcomers */
    bool look;      /* it has, in the step that is being computed */
    /* Of a replay. */
    gyre_comm *part; /* those who take part; NULL: none was made yet */
    size_t turn;     /* of the replay's memberships: the next */
    bool idle;       /* this rank is none of them */
};

/* `run` is open, of one rank, and has what this rank resumed; has: this rank has the state that the run begins with.
 * Collective. close does not end the run. */
gyre_status gy_nn_elastic_open(struct gy_nn_elastic *elastic, struct gyre_nn_run *run, bool has,
                               struct gyre_nn_position *position);
void gy_nn_elastic_close(struct gy_nn_elastic *elastic);

/* Collective, at the end of a step: the cost of all ranks' rows, and proof that these are each row of the batch once. */
gyre_status gy_nn_elastic_count(struct gy_nn_elastic *elastic, struct gyre_nn_step *step);
/* Collective, behind a step that is complete: lets in who wants to join, where the step's count has said that it is time. */
gyre_status gy_nn_elastic_grow(struct gy_nn_elastic *elastic);
/* This step is complete on this rank: what it goes back to from now on. */
void gy_nn_elastic_save(struct gy_nn_elastic *elastic, const struct gyre_nn_position *position);

/* The end of a part of the run, in success or failure: everyone who is left comes here. *done_p: it has succeeded on all
 * of them. Otherwise those who are left are a new communicator, all with the state after the last complete step, and
 * *position_p says which. */
gyre_status gy_nn_elastic_settle(struct gy_nn_elastic *elastic, gyre_status status, struct gyre_nn_position *position_p,
                                 bool *done_p);

/* The run goes on with the ranks of `comm`, all of them with the state of who has most of it. */
gyre_status gy_nn_elastic_reform(struct gy_nn_elastic *elastic, gyre_comm *comm);
/* Lets go of the communicator that the run has used. */
void gy_nn_elastic_leave(struct gy_nn_elastic *elastic);
/* All ranks of `comm` get the state of the one that has most of it, or go back to their own where all have the same. */
gyre_status gy_nn_elastic_align(struct gy_nn_elastic *elastic, gyre_comm *comm);

/* Whether the next membership begins before this step; makes the change, on all ranks of the world: a rank that takes no
 * part stays inside until it does, or all changes are over; the end: everyone is a member again. */
bool gy_nn_replay_due(const struct gy_nn_elastic *elastic, const struct gyre_nn_position *position);
gyre_status gy_nn_replay_turn(struct gy_nn_elastic *elastic, struct gyre_nn_position *position_p);
gyre_status gy_nn_replay_end(struct gy_nn_elastic *elastic, struct gyre_nn_position *position_p);

#endif
