/* What a communicator keeps for the clock that chooses among ways over shared memory (shm/autotune.h). */
#ifndef GY_COLLECTIVES_COMM_TUNER_STATE_H
#define GY_COLLECTIVES_COMM_TUNER_STATE_H

#include "collectives/schedule/schedule.h"

#define GY_TUNER_VARIANTS 4 /* at most, of a question */

/* What a judge knows of a collective and an octave of sizes. */
struct gy_tuner_entry {
    uint32_t calls; /* since the last trial; at first none has been */
    uint32_t pause; /* calls from that to the next */
    uint32_t least
        [GY_TUNER_VARIANTS]; /* nanoseconds, by each way: the quickest call, or the second where ranks share cores */
    uint32_t first[GY_TUNER_VARIANTS]; /* the quickest */
    size_t bytes;                      /* of the calls that the trial compares */
    uint32_t others;                   /* of other sizes or by another way, since it began */
    uint32_t late; /* watched calls, one after the other, that have taken half as long again as in the trial */
    uint32_t calm; /* calls that lie between a trial and one that late calls begin */
    uint8_t seen[GY_TUNER_VARIANTS]; /* calls of the trial that went so */
    uint8_t used, tried;             /* the way in use; which the trial is at */
    uint8_t behind;      /* a bit for each way: far behind when it was tried last, here or on the other side */
    uint8_t skipped;     /* a bit for each that the trial leaves out */
    bool judged;         /* a trial has been */
    bool trial;          /* is there one? */
    bool oversubscribed; /* the judge shares its core: what calls take has others' turns in it, and differs by them */
};

enum gy_tune_decision { GY_TUNE_INPUT, GY_TUNE_PUBLISH, GY_TUNE_OUTPUT, GY_TUNE_EXCHANGE, GY_TUNE_DECISIONS };
struct gy_tuner {
    struct gy_tuner_entry
        *choice[GY_TUNE_DECISIONS][GY_COLLECTIVES]; /* [GY_TUNER_OCTAVES], NULL until this rank judges the first call */
    bool asks; /* a blocking call is under way that had the context to itself; no other is counted */
    struct gy_tuner_entry *measured; /* the one that the call under way is a part of a trial of; NULL: of none */
    int64_t began;
    size_t bytes;
    enum gy_tune_decision decision;
    int source, collective;
    int went;    /* the way of the call, unless that is for its giver to tell */
    bool mapped; /* the call may go through slots although what is given lies in memory of gyre */
};

#endif
