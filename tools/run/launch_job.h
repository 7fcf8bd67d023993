/* A job of gyre-run's while it runs. One thread touches it. It is shared by launch.c (the loop), spawn.c (the start of
 * a rank), launch_order.c (the order of ends), launch_control.c (orders from gyre-run to an agent) and exit_policy.c
 * (the meaning of an end). */
#ifndef GYRE_TOOLS_LAUNCH_JOB_H
#define GYRE_TOOLS_LAUNCH_JOB_H

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

#include "run/launch.h"
#include "run/line_prefix.h"
#include "run/rank_end.h"
#include "run/rendezvous_env.h"
#include "run/restart_backoff.h"

enum gy_launch_phase { RUNNING, GRACE, TERMINATING, KILLING };

struct gy_launch_rank {
    pid_t pid; /* 0: it could not be started again */
    int end;   /* pidfd, −1: none */
    bool ended, joiner;
    bool ending; /* its process was, when another's failure was the first to be seen */
    bool struck; /* dead by our own hand; its end has not come here yet */
    struct gy_restart again;
    int64_t wake_ms; /* stopped until then; 0: not stopped */
    struct gy_label out, err;
};

struct gy_launch_job {
    const struct gy_launch *launch;
    struct gy_launch_rank *ranks;
    char *gpus; /* that the ranks take in turns; NULL: not set */
    int started, alive;
    enum gy_launch_phase phase;
    int64_t deadline_ms;
    int status;           /* what the tool will exit with */
    char outcome[256];    /* last line, "" when all is well */
    bool killed;          /* the outcome is a death by signal */
    int64_t succeeded_ms; /* elastic: when a rank ended with 0; no rank is started after that; 0: not yet */
    struct gy_chaos chaos;
    int64_t began_ms;
    sigset_t old_mask;
    int signals; /* signalfd */
    int order;   /* epoll instance over the pidfds, −1: none yet */
    struct gy_rendezvous rendezvous;
    int keyboard; /* pipe to rank 0 when stdin is a terminal, −1: none */
    int control;  /* from gyre-run, −1: none */
    size_t ordered;
    unsigned char orders[16]; /* `ordered` bytes of an unfinished frame */
};

int64_t gy_launch_now_ms(void);

/* Writes a line of the tool to stderr. */
__attribute__((format(printf, 2, 3))) void gy_launch_tell(const struct gy_launch_job *job, const char *format, ...);

/* Enters a phase: signals the ranks and sets the deadline. */
void gy_launch_enter(struct gy_launch_job *job, enum gy_launch_phase phase);
/* Sends a signal to all ranks and ends the job; after SIGTERM already, kills it. */
void gy_launch_interrupt(struct gy_launch_job *job, int number);

/* launch_control.c. Does what gyre-run orders; the descriptor is readable or at its end. */
void gy_launch_obey(struct gy_launch_job *job);

/* spawn.c. Starts a rank. Returns 0 or the errno of the failure; waits until exec has succeeded or failed. */
int gy_launch_start_rank(struct gy_launch_job *job, int rank, bool again);
/* Kills what is left of a rank that has ended, and starts the rank again as a joiner. */
void gy_launch_start_again(struct gy_launch_job *job, int rank);

/* launch_order.c. Begins to watch a rank that has started. Without pidfds (Linux before 5.3) it does nothing. */
void gy_launch_order_watch(struct gy_launch_job *job, int rank);
/* Ends the watch of a rank whose process is about to be reaped or replaced. */
void gy_launch_order_forget(struct gy_launch_job *job, int rank);
/* Writes the watched ranks that have ended since the last call, at most `most`, in the order of their ends. Returns
 * their number. */
int gy_launch_order_next(const struct gy_launch_job *job, int *ranks, int most);
void gy_launch_order_close(struct gy_launch_job *job);

/* exit_policy.c. Decides what the end of a rank, as waitid() reports it, means for the job: nothing, a restart that
 * becomes due, or the outcome with which the job ends. */
void gy_launch_judge(struct gy_launch_job *job, int rank, const siginfo_t *info);
/* Stores which processes are ending now, as the first failure becomes known. */
void gy_launch_note_endings(struct gy_launch_job *job);
/* Returns the end of a rank, as exit_policy.c sees it before it judges. */
struct gy_rank_end gy_launch_end_of(const struct gy_launch_job *job, int rank, const siginfo_t *info);

#endif
