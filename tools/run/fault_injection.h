/* Faults at random, the same ones for the same seed: what --chaos does to the ranks of gyre-run. */
#ifndef GYRE_TOOLS_CHAOS_H
#define GYRE_TOOLS_CHAOS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum gy_chaos_kind { GY_CHAOS_KILL, GY_CHAOS_STOP, GY_CHAOS_CUT };

struct gy_chaos {
    double rate; /* faults per second; 0: none */
    uint64_t state;
    /* The next fault. */
    uint64_t number;
    int64_t at_ms; /* since the ranks were started */
    enum gy_chaos_kind kind;
    int rank;
    int64_t stop_ms; /* how long a stop takes */
    uint64_t dice;   /* which connection a cut is of */
};

/* "SEED,RATE". False: it is not. */
bool gy_chaos_parse(const char *text, struct gy_chaos *chaos_p);
/* Draws the next fault: a function of seed, rate, number of ranks, and how many were drawn before. */
void gy_chaos_next(struct gy_chaos *chaos, int ranks);

/* Silences one of the TCP connections of process `pid`, a child: from now on nothing comes in there, as if the network
 * dropped it. Which one is written to `text`, or why there is none. What passes inside of a host by other ways no network
 * can cut, nor does this. Needs no privilege but what lets a parent look into its child (pidfd_getfd). */
bool gy_chaos_cut(pid_t pid, uint64_t dice, char *text, size_t bytes);

#endif
