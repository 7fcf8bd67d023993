/* For tests in which processes die, are stopped or come late: a launcher (support/launcher.h) that tells them apart.
 *
 *    mortals_begin ─▶ mortals_start … ─▶ mortals_await, mortals_kill, mortals_reap … ─▶ mortals_end          one job
 *
 * A job's processes are numbered from 0 in the order of their starts; it meets in a folder of its own. Every wait
 * has a deadline that only a hang exceeds: then, and whenever mortals_give_up is called, all that is known of each
 * process is printed, all are ended, and the test has failed. GYRE_TEST_SEED repeats a run's choices, not its
 * timing; GYRE_TEST_HOLD leaves a failed job as it is for a debugger.
 *
 * Where a process is to be stopped is counted in its own calls of send, recv and connect, which this program has its
 * own of. */
#ifndef GYRE_TESTS_SYSTEM_MORTALS_H
#define GYRE_TESTS_SYSTEM_MORTALS_H

#include "support/launcher.h"

#define MORTALS_MOST 48
#define MORTALS_HANG_NS INT64_C(40000000000)

struct mortals {
    int hosts;                /* that they pretend to be on; 0: as the machine is */
    void (*tell)(int own);    /* prints what process `own` has come to; set by the test */
    char folder[32];          /* where this job meets */
    pid_t pids[MORTALS_MOST]; /* 0: it has been waited for */
    int started;
    uint64_t alive;           /* the test has not killed them */
    int deaths[MORTALS_MOST]; /* of all jobs, by number */
};
extern struct mortals mortals;

/* From GYRE_TEST_SEED, or the time; printed. Below `below`: in each process other numbers. */
void mortals_seed(void);
uint64_t mortals_draw(uint64_t below);
/* A random order of 0 … ranks−1 in which the last is each number in turn, over the jobs: all numbers die equally
 * often. */
void mortals_shuffle(int *order, int ranks, int job);

void mortals_begin(void);
/* The folder goes, whatever is in it. */
void mortals_end(void);
/* One more process, its number. ranks > 0: of a world of so many; 0: a joiner (GYRE_JOIN). prepare: what else its
 * environment has; NULL is allowed. */
int mortals_start(int ranks, void (*prepare)(int own), void (*body)(int own));

static inline bool mortals_lives(int own)
{
    return mortals.alive >> own & 1;
}
/* It does not count as living any more; it may have been stopped. */
void mortals_forget(int own);
void mortals_kill(int own);
/* It stops itself (SIGSTOP) at the `calls`-th call from now on by which it takes part in meetings, joining, the overlay
 * or agreements; collectives make others, and are not counted. 0: it does not. Before its start: mortals.started is its
 * number. */
void mortals_stop_at(int own, int calls);
/* It stops itself at the `welcomes`-th WELCOME from now on that it would send as rank 0, before a byte of it has left:
 * the growing is agreed on then, and this joiner does not know. Without GYRE_INTEGRITY only. */
void mortals_stop_at_welcome(int own, int welcomes);
bool mortals_has_stopped(int own);
/* Until it has; false: `ready` holds of all that live, and it does not stop any more. */
bool mortals_await_stop(int own, bool (*ready)(int own));
void mortals_wake(int own);
/* True if it has ended. Then mortals_wait returns at once. */
bool mortals_has_ended(int own);
/* Until it ends: its status, as waitpid gives it. reap: killed, or with success. */
int mortals_wait(int own);
void mortals_reap(int own, bool killed);
/* Until `ready` holds of each of `who`, none of which ends before. */
void mortals_await(uint64_t who, bool (*ready)(int own));
_Noreturn void mortals_give_up(const char *what);
/* One job after the other, until `most` processes have died. `run` is given the job's number and an order as
 * mortals_shuffle makes it, and returns how many have died in it. Prints how many of each number have. */
void mortals_run_jobs(const char *scenario, int ranks, int most, int (*run)(int ranks, const int *order, int job));

#endif
