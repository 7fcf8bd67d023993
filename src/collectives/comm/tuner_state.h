/* A communicator's state of the autotuner for shared memory (shm/autotune.h). */
#ifndef GY_COLLECTIVES_COMM_TUNER_STATE_H
#define GY_COLLECTIVES_COMM_TUNER_STATE_H

#include "collectives/schedule/schedule.h"

#define GY_TUNER_VARIANTS 4 /* most variants of a decision */

/* The arbiter rank's record of a collective and an octave of sizes. */
struct gy_tuner_entry {
    uint32_t calls;                    /* since the last measurement phase; before the first, since the start */
    uint32_t pause;                    /* calls between phases */
    uint32_t least[GY_TUNER_VARIANTS]; /* nanoseconds: the fastest call, or the second fastest on shared cores */
    uint32_t first[GY_TUNER_VARIANTS]; /* the fastest */
    size_t bytes;                      /* of the calls that the phase compares */
    uint32_t others;                   /* calls of other sizes or variants since the phase began */
    uint32_t late;                     /* consecutive watched calls that took 1.5 times the phase's time or more */
    uint32_t calm;                     /* calls between a phase and one that late calls trigger */
    uint8_t seen[GY_TUNER_VARIANTS];   /* calls of the phase per variant */
    uint8_t used, tried;               /* the variant in use; the one being measured */
    uint8_t behind;      /* a bit for each variant: far behind in its last measurement, here or on the other side */
    uint8_t skipped;     /* a bit for each that the phase skips */
    bool decided;        /* a phase has been completed */
    bool measuring;      /* a phase is in progress */
    bool oversubscribed; /* the arbiter shares its core: call times include other ranks' time slices */
};

enum gy_tune_decision { GY_TUNE_INPUT, GY_TUNE_PUBLISH, GY_TUNE_OUTPUT, GY_TUNE_EXCHANGE, GY_TUNE_DECISIONS };
struct gy_tuner {
    struct gy_tuner_entry *choice[GY_TUNE_DECISIONS][GY_COLLECTIVES]; /* [GY_TUNER_OCTAVES], NULL until used */
    bool counts; /* a blocking call is in progress that is alone in the context; no other is counted */
    struct gy_tuner_entry *measured; /* the entry that the current call measures; NULL: none */
    int64_t began;
    size_t bytes;
    enum gy_tune_decision decision;
    int source, collective;
    int went;    /* the call's variant, unless the sending side determines it */
    bool mapped; /* the call may use slots although its send buffer lies in gyre's memory */
};

#endif
