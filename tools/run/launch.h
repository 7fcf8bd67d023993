/* Starts the local ranks of a job and stays until all of them have ended. Used by gyre-run and, for --ranks, by
 * gyre-perf. */
#ifndef GYRE_TOOLS_LAUNCH_H
#define GYRE_TOOLS_LAUNCH_H

#include <stdbool.h>

#include "run/fault_injection.h"
#include "run/rendezvous_env.h"

#define GY_LAUNCH_RANKS_MOST 1024

/* How an agent on a host of a larger job is connected to gyre-run. */
struct gy_launch_link {
    int control;                      /* frames from gyre-run; at its end all ranks are killed */
    int reports;                      /* frames to gyre-run: output and ends of the ranks */
    int grace_ms;                     /* time between a failure and SIGTERM, and between SIGTERM and SIGKILL */
    struct gy_rendezvous *rendezvous; /* of the whole job; gy_launch_run ends it */
};

struct gy_launch {
    const char *tool; /* name in messages */
    const char *path; /* program to execute; without a slash it is sought in PATH */
    char *const *argv;
    int ranks;
    bool label;       /* each line of output begins with "[rank] " */
    bool bind;        /* rank i runs on the (i mod cores)-th core of this process's mask */
    const char *gpus; /* gpu_list.h; NULL: the ranks' CUDA_VISIBLE_DEVICES is that of this process */
    /* A rank that fails is started again, as a joiner (GYRE_JOIN=1), and the others go on, unless fewer than `least`
     * are left. A rank may fail at most `restarts` times in a row. The job has succeeded when one rank has. */
    bool elastic;
    int least, restarts;
    struct gy_chaos chaos;
    const struct gy_launch_link *link; /* NULL: the local ranks are the whole job */
};

/* Returns the exit status for the tool. 0: every rank ended with 0 (elastic: one did). Otherwise the status of the
 * first rank that failed (elastic: of the last): 128 + signal for a signal, 126 or 127 when the program cannot be
 * executed. The last line on stderr names the failed rank and the cause; an agent reports it instead. */
int gy_launch_run(const struct gy_launch *launch);

#endif
