/* The ranks of a fault test, seen from their launcher: forks of a process that has no threads and no library state.
 * They share one page with it, for time stamps and reports. */
#ifndef GYRE_TESTS_SYSTEM_FAULT_RANKS_H
#define GYRE_TESTS_SYSTEM_FAULT_RANKS_H

#include <stdbool.h>
#include <stdint.h>

#include <gyre/gyre.h>

#include "fault_noise.h"

#define FAULT_RANKS_MOST 64

/* Written by the rank, read by the launcher. Times are CLOCK_MONOTONIC, in nanoseconds. */
struct fault_report {
    uint64_t calls;           /* finished well; read with acquire */
    int done;                 /* the rest is valid; read with acquire */
    gyre_status status;       /* of the last call, or of the creation */
    bool met;                 /* it has a communicator */
    int64_t entered_ns;       /* the last call was entered */
    int64_t when_ns;          /* the last call, or the creation, returned */
    struct fault_turns turns; /* until then */
    char text[1024];          /* gyre_last_error */
};

/* What the ranks of one round do: calls of the mix `seed`, until one fails or `calls` are done, then destroy. */
struct fault_round {
    int ranks, victim; /* victim −1: none */
    int hosts;         /* this many GYRE_HOST_ID, in blocks of ranks; 0: as the machine is */
    uint64_t seed, calls;
    /* Called on the rank before each call, or NULL. */
    void (*before)(const struct fault_round *round, int rank, uint64_t number);
};

void fault_ranks_start(const struct fault_round *round);
const struct fault_report *fault_ranks_report(int rank);
/* Returns when every rank has finished `calls` calls. */
void fault_ranks_wait_calls(uint64_t calls);
/* Returns when every rank but the victim has reported, or fails: after `seconds` a rank hangs. */
void fault_ranks_wait_reports(double seconds);
/* Waits likewise, but no longer than it takes to sleep `naps` times for a millisecond. true: all have reported. */
bool fault_ranks_wait_naps(int naps);
/* Sends the victim a signal; the time just before that. Returns after a SIGKILL when the victim has ended. */
int64_t fault_ranks_hit(int signal_number);
/* When the launcher saw that. */
int64_t fault_ranks_ended(void);
/* How long the victim, to end, another survivor, to pass it on, and this one had to wait for a core since the victim
 * was hit, less what all the ranks used of the cores. Only after all have reported, and the victim has died. */
int64_t fault_ranks_waited(int rank);
/* So much time passes at once for all ranks: what is left of a meeting's. */
void fault_ranks_pass_time(int64_t ns);
/* Every rank but the victim ends by itself, in order; then nothing is left. */
void fault_ranks_end(void);

/* Prints all reports, ends the ranks and fails. */
__attribute__((format(printf, 1, 2))) _Noreturn void fault_fail(const char *format, ...);
#define REQUIRE(condition, ...)      \
    do {                             \
        if (!(condition))            \
            fault_fail(__VA_ARGS__); \
    } while (0)

#endif
