/* A world that grows and shrinks, of processes that may die, and what their launcher may ask of it.
 *
 * Every process has a bit of its own, which it adds in one all_reduce after the other: a sum says exactly which
 * processes were in it. After each third one the ranks grow. After each change all survivors must come to the sum of
 * just these, with dense ranks and the members' order kept; a deadline that only a hang exceeds decides (mortals.h). */
#ifndef GYRE_TESTS_SYSTEM_GROW_WORLD_H
#define GYRE_TESTS_SYSTEM_GROW_WORLD_H

#include <stdatomic.h>
#include <stddef.h>

#include "system/mortals.h"

#define GROW_STOP_BIT (UINT64_C(1) << 50) /* in a sum: the launcher has ended the world */

/* Shared by all processes. */
struct grow_page {
    _Atomic int stop;
    char address[128]; /* of the member that is rank 1 in the first world */
    struct report {
        _Atomic uint64_t mask, calls;   /* of the last good sum; how many since the world is this one */
        _Atomic int epoch, rank, ended; /* ended: a status, with which the process is out; −1: REFUSED */
        _Atomic int before;             /* its rank in the world before, −1: none */
        char address[128];              /* its own, for joiners; written before `epoch` */
        char why[1024];                 /* the error message with which it last shrank, or came in vain */
    } of[MORTALS_MOST];
};

extern struct grow_page *grow_page;
extern const char *grow_address; /* where the next joiner goes; NULL: to the file */
extern bool grow_inherits;       /* the first world changes an attribute that joiners are not started with */

/* What a process of the world does, member or joiner, until the launcher ends it or it is out. */
void grow_run(int own);

/* ---- the launcher ---- */

/* A first world of so many; they have summed up. */
void grow_begin(int ranks);
/* One more, a joiner: its number. */
int grow_start(void (*body)(int own));
/* Until all that live have summed up just themselves. */
void grow_await(void);
bool grow_has_summed(int own);
/* Until the survivors have gone on with just one another, and have grown, or been about to, since. */
void grow_await_going_on(void);
/* Ranks are dense, and of two members the older one has the lower rank. */
void grow_check_order(void);
int grow_with_rank(int rank);
void grow_tell(int own);
/* Of all processes: the survivors end well, the others by what was done to them. */
void grow_end(void);

/* ---- scenarios of grow_stops.c ---- */

void grow_freeze(int ranks);
void grow_halt(int ranks, int rounds);
void grow_host_halts(int ranks, int joiners);

#endif
