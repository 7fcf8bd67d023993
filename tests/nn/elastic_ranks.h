/* A rank of an elastic run, as the tests want it. It trains with a strategy of the library, and dies at a place of a
 * step, is slow, or has no descriptors, as the plan says. It records on a shared page which rows of which step it
 * has computed. */
#ifndef GYRE_TESTS_NN_ELASTIC_RANKS_H
#define GYRE_TESTS_NN_ELASTIC_RANKS_H

#include <gyre/nn.h>
#include <stdatomic.h>

#include "support/launcher.h"

#define STEPS_MOST 256
#define PARAMS_MOST 8192
#define LOG_MOST 32
#define BATCH 64
#define LAST_DEATH 80 /* step at which the parent's last one is due; there are 92 */

enum place { BEGINNING, BEFORE, BACKWARD, UPDATED, PLACES };

struct kill {
    int rank;
    uint64_t step;
    enum place place;
};

struct page {
    _Atomic uint64_t step[RANKS_MOST]; /* which a rank computes */
    _Atomic int deaths;                /* that the parent has still to bring about: no rank ends before */
    struct end {
        gyre_status status;
        uint64_t hash;
        int ranks;
        double loss;
        double least, latest,
            given; /* test losses: of the best epoch, of the last one, of the model that the run gave */
        char sentence[400];
    } end[RANKS_MOST];
    struct gyre_nn_membership log[LOG_MOST];
    size_t logs;
    double params[PARAMS_MOST];
    unsigned char rows[STEPS_MOST][RANKS_MOST][BATCH]; /* how often a rank has computed a row of a step, and ... */
    int ranks_then[STEPS_MOST][RANKS_MOST];            /* ... among how many, the last time */
};

struct plan {
    const char *strategy, *settings;
    gyre_nn_optimizer_kind optimizer;
    gyre_dtype dtype;
    int least;
    const struct kill *kills;
    size_t nkills;
    const struct gyre_nn_membership *replay;
    size_t replays;
    int joiners; /* processes beside the ranks, that join */
    int awaited; /* ranks; a step takes long while there are fewer */
    const char *checkpoint, *resume;
    uint64_t stop_after;
    bool full;  /* rank 1 has no descriptor left for a while, and the check for joiners needs one */
    bool worse; /* every epoch has ten times the rate of the one before, and the run has patience */
    bool slow;  /* rank 1 takes ten times as long for everything, and in three steps longer than the stall clock */
};

extern struct page *page; /* shared by the ranks and their parent, which sets it up */
extern struct plan plan;  /* of the run that begins; set before the ranks are forked */

/* The whole life of a rank after its fork. `rank` stays its number on the page, whatever it is in later epochs. */
void elastic_rank(int rank);

#endif
