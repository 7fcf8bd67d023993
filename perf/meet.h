/* Where the ranks of one host meet between two measured calls, independently of gyre: a page of shared memory with a
 * barrier and every rank's time stamps. Across hosts there is no common clock, and the longest of the ranks' own times
 * counts. */
#ifndef GYRE_PERF_MEET_H
#define GYRE_PERF_MEET_H

#include <stdbool.h>
#include <stdint.h>

#include <gyre/gyre.h>

struct gy_bootstrap;

/* Finds the ranks of this host through `comm` (collective) and pins this rank to a core. NULL: it said why on stderr.
 * */
struct gy_bootstrap *gy_bootstrap_open(gyre_comm *comm, bool pin);
void gy_bootstrap_close(struct gy_bootstrap *meet);

bool gy_bootstrap_one_host(const struct gy_bootstrap *meet);
/* Returns when all ranks of this host have called it. Ends the program with a message on stderr when the world of the
 * communicator fails meanwhile, as it does when a rank dies, or when a rank does not come within a minute. */
void gy_bootstrap_barrier(struct gy_bootstrap *meet);
/* Publishes this rank's start and end (ns, CLOCK_MONOTONIC) of one call, and waits for those of the others. Returns
 * the call's time in ns on this host. With one host it is from the latest start to the latest end, else the longest
 * of its ranks' own times. *whole_p: from the earliest start to the latest end. Where ranks share cores some may end
 * before the last one has had its turn to start, and only this is the time of the call. */
int64_t gy_bootstrap_time(struct gy_bootstrap *meet, int64_t start, int64_t end, int64_t *whole_p);

#endif
