/* The common part of the strategies whose ranks train alone and average every H steps. Each strategy has an `outer`
 * step in a file of its own, and state for it, which is replicated or local. */
#ifndef GY_NN_PERIODIC_H
#define GY_NN_PERIODIC_H

#include "strategies/vector.h"

#define GY_NN_OUTER_ARRAYS 2

struct gy_nn_periodic;

struct gy_nn_outer {
    struct {
        const char *name; /* NULL: no more */
        gyre_nn_placement placement;
        bool params; /* begins as the parameters; else as zeros */
    } arrays[GY_NN_OUTER_ARRAYS];
    /* Before the optimiser's step: may change the gradients, which are sums over `rows` rows. Or NULL. */
    void (*pull)(struct gy_nn_periodic *self, size_t rows);
    /* mean = weight · (what is to be averaged). NULL: the parameters. */
    void (*contribute)(struct gy_nn_periodic *self, size_t first, size_t count, double weight);
    /* The outer step of [first, first + count): `mean` holds Σ over ranks of the contributions, and is free to
     * change. */
    void (*combine)(struct gy_nn_periodic *self, size_t first, size_t count);
    /* Writes the model of now. NULL: after an outer step the parameters, which are equal on all ranks; else their
     * mean. between: it is the model between outer steps too. */
    void (*model)(struct gy_nn_periodic *self, struct gy_vector out);
    bool between;
    /* For a method that is `between`, before its first outer step: `out` holds Σ weight · parameters, and becomes
     * the model that an outer step of now would give. NULL: it is that model already. */
    void (*first_model)(struct gy_nn_periodic *self, struct gy_vector out);
};

/* How often. The settings of each of these strategies begin with GY_NN_PERIOD_SETTINGS, in this order. */
enum { GY_NN_EVERY, GY_NN_DELAY, GY_NN_OWN };
#define GY_NN_PERIOD_SETTINGS(every)                                      \
    {.name = "every",                                                     \
     .value = every,                                                      \
     .most = 1e9,                                                         \
     .choices = gy_nn_whole,                                              \
     .help = "steps between exchanges; 0: only at the end"},              \
    {                                                                     \
        .name = "delay", .value = 0, .most = 1e9, .choices = gy_nn_whole, \
        .help = "steps that go on while an exchange is under way"         \
    }

/* Counters, in double because they are in checkpoints as an array. */
enum gy_nn_count {
    GY_NN_TAKEN,       /* steps since the exchange before */
    GY_NN_ROWS,        /* of this rank, since then */
    GY_NN_GLOBAL_ROWS, /* of all */
    GY_NN_COST,        /* of this rank */
    GY_NN_DUE,         /* steps until the outer step of an exchange under way; −1: there is none */
    GY_NN_RATE,        /* learning rate at the exchange */
    GY_NN_OWN_COUNTS,  /* those before are a rank's own, and begin anew with it; those behind are all ranks' */
    GY_NN_PERIOD = GY_NN_OWN_COUNTS, /* steps of this period, where they change; else 0 before the first outer step */
    GY_NN_FIRST_LOSS,                /* of the first period, 0 before it is over */
    GY_NN_COUNTS,
};

struct gy_nn_exchange {
    size_t first, count;
    gyre_request *request;
};

struct gy_nn_periodic {
    struct gyre_nn_run run;
    const struct gy_nn_outer *outer;
    size_t count; /* parameters */
    struct gy_vector params, grads, mean;
    struct gy_vector sent; /* the parameters that the mean is of: `params`, or a copy where there is a delay */
    struct gy_vector arrays[GY_NN_OUTER_ARRAYS];
    double counts[GY_NN_COUNTS];
    double sync_until; /* step before which every step averages; see average */
    bool adaptive;
    struct gy_nn_exchange *exchanges; /* one per bucket */
    size_t nexchanges;
};

/* The hooks of a strategy; open is called by the method's own, with its outer step. */
gyre_status gy_nn_periodic_open(const struct gyre_nn_run *run, const struct gy_nn_outer *outer, void **self_p);
void gy_nn_periodic_close(void *self);
void gy_nn_periodic_passed(void *self, size_t lower);
gyre_status gy_nn_periodic_update(void *self, const struct gyre_nn_step *step);
gyre_status gy_nn_periodic_arrays(void *self, struct gyre_nn_array *arrays, size_t *count_p);
gyre_status gy_nn_periodic_consensus(void *self, void *params);
bool gy_nn_periodic_common(void *self, void *params);

/* For methods after which all ranks continue from `start`: params = start, plus the training since the exchange
 * began. */
void gy_nn_periodic_restart(struct gy_nn_periodic *self, size_t first, size_t count, struct gy_vector start);

#define GY_NN_PERIODIC_HOOKS                                                                           \
    .params = GYRE_NN_LOCAL, .optimizer = GYRE_NN_LOCAL, .open = open, .close = gy_nn_periodic_close,  \
    .passed = gy_nn_periodic_passed, .update = gy_nn_periodic_update, .arrays = gy_nn_periodic_arrays, \
    .consensus = gy_nn_periodic_consensus, .common = gy_nn_periodic_common

#endif
