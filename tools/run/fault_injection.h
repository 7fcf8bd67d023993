/* Random faults, the same ones for the same seed: what --chaos does to the ranks of gyre-run. */
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

/* Parses "SEED,RATE". False: the text has another form. */
bool gy_chaos_parse(const char *text, struct gy_chaos *chaos_p);
/* Draws the next fault: a function of seed, rate, number of ranks, and how many were drawn before. */
void gy_chaos_next(struct gy_chaos *chaos, int ranks);

/* Silences one of the TCP connections of process `pid`, a child: from now on it drops all that arrives, as if the
 * network did. Writes to `text` which connection it is, or why there is none. Shared memory inside a host is not
 * affected, as a network cannot cut it. Needs no privilege beyond a parent's access to its child (pidfd_getfd). */
bool gy_chaos_cut(pid_t pid, uint64_t dice, char *text, size_t bytes);

#endif
