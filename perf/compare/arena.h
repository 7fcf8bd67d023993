/* The memory that the ranks of one launch share, and its barrier: the harness's own, so that no library is measured
 * with its own clock. The orchestrator makes a memfd and passes its path (/proc/PID/fd/N); it has no name, so
 * nothing is left behind. */
#ifndef GYRE_COMPARE_ARENA_H
#define GYRE_COMPARE_ARENA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GY_RANKS_MOST 64
#define GY_CALLS_MOST 4096

/* One writer each: the rank itself. */
struct gy_stamps {
    int64_t start[GY_CALLS_MOST], end[GY_CALLS_MOST]; /* ns of CLOCK_MONOTONIC */
    uint64_t tcp_bytes;
    double chain_ns, work_ns; /* pace.h */
};

struct gy_arena {
    int rank, ranks;
    bool oversubscribed; /* more ranks than cores: waiting yields */
    uint64_t barriers;
    struct gy_stamps *stamps; /* [ranks] */
    _Atomic(int64_t) *shared; /* one word, written by rank 0 before a barrier and read by all after it */
    unsigned char
        *extra; /* behind all that: zeroed when the launch begins, for libraries that are no library (perf/limits) */
    size_t extra_bytes;
    struct gy_arena_line *lines;
    struct gy_arena_line *exchange; /* of ranks 0 and 1, which count the exchanges between them */
    uint64_t exchanges;
};

void gy_arena_open(struct gy_arena *arena, const char *path, int rank, int ranks, bool oversubscribed);

/* Returns when every rank has called it. Ends the process with a message when the process of another rank ends, and
 * after a minute and a half. */
void gy_arena_barrier(struct gy_arena *arena);

/* Waits until *word has reached `value`, with the barrier's way of waiting and its patience. */
void gy_arena_wait(const struct gy_arena *arena, const _Atomic(uint64_t) *word, uint64_t value);

/* Returns the microseconds for a cache line to go from rank 0 to rank 1 and back. Both ranks call it, each on a core
 * of its own; the others wait in a barrier meanwhile. The result is the least of several rounds, as other processes
 * may run on the two cores in between. */
double gy_arena_round_trip(struct gy_arena *arena);

/* Keeps this process, and what it starts, on the `rank`-th usable core, counted round. Gives the number of cores. */
int gy_arena_pin(int rank);

int64_t gy_now(void);

#endif
