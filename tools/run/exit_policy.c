/* What the end of a rank means. Without restarts the first failure is the outcome on the job. With restarts a failed
 * rank is due to start again, until its restarts are used up or too few ranks are left. The last rank to end is the
 * outcome then. */
#include "run/launch_job.h"

#include <stdio.h>
#include <string.h>

#include "run/agent_report.h"

#define ENDS 0x4 /* PF_EXITING among the kernel's flags of a process: proc(5), stat */

/* True if the process has begun to end, or has ended. */
static bool is_ending(pid_t pid)
{
    char path[40], text[512] = "";
    unsigned flags = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    size_t got = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[got] = '\0';
    const char *name_end = strrchr(text, ')');
    return name_end && sscanf(name_end + 1, " %*c %*d %*d %*d %*d %*d %u", &flags) == 1 && flags & ENDS;
}

void gy_launch_note_endings(struct gy_launch_job *job)
{
    for (int i = 0; i < job->started; i++)
        job->ranks[i].ending = !job->ranks[i].ended && is_ending(job->ranks[i].pid);
}

struct gy_rank_end gy_launch_end_of(const struct gy_launch_job *job, int rank, const siginfo_t *info)
{
    return (struct gy_rank_end){
        .rank = job->rendezvous.first + rank,
        .pid = (int)job->ranks[rank].pid,
        .by_signal = info->si_code != CLD_EXITED,
        .status = info->si_status,
        .early = job->phase == RUNNING || (job->phase == GRACE && job->ranks[rank].ending),
    };
}

/* Stores the first failure. A later death replaces it if that process was already ending when the failure was seen,
 * and was killed by a signal. Its death is then the cause, and the exit status a consequence: a dying process closes
 * its connections, and peers notice that before the parent can see the end. */
static void judge_plain(struct gy_launch_job *job, const struct gy_rank_end *end)
{
    char how[96];
    if ((!end->by_signal && end->status == 0) || !end->early || (job->outcome[0] && (job->killed || !end->by_signal)))
        return;
    if (!job->outcome[0] && !end->by_signal)
        gy_launch_note_endings(job);
    job->killed = end->by_signal;
    job->status = gy_rank_end_status(end);
    snprintf(job->outcome, sizeof job->outcome, "rank %d (pid %d) %s", end->rank, end->pid,
             gy_rank_end_describe(end, how, sizeof how));
}

/* The decision where ranks may fail: nothing happens, the rank is due to start again, or the job ends. */
static void judge_elastic(struct gy_launch_job *job, int rank, const struct gy_rank_end *end)
{
    struct gy_launch_rank *it = &job->ranks[rank];
    const struct gy_launch *launch = job->launch;
    bool failed = end->by_signal || end->status != 0;
    int64_t now = gy_launch_now_ms(); /* one for all: the pause that is told is the whole one */
    char how[96];
    if (!failed && !job->succeeded_ms)
        job->succeeded_ms = now;
    if (job->phase != RUNNING || !failed)
        return;
    gy_rank_end_describe(end, how, sizeof how);
    if (job->succeeded_ms) {
        gy_launch_tell(job, "rank %d (pid %d) %s, after others had come to their end", rank, (int)it->pid, how);
        return;
    }
    bool again = gy_restart_failed(&it->again, now, it->joiner && !end->by_signal, launch->restarts);
    if (again)
        gy_launch_tell(job, "rank %d (pid %d) %s; it starts again in %.2f s (%d of %d)", rank, (int)it->pid, how,
                       (double)(it->again.due_ms - now) / 1000, it->again.failures, launch->restarts);
    else
        gy_launch_tell(job, "rank %d (pid %d) %s, and is given up after %d starts", rank, (int)it->pid, how,
                       it->again.failures + 1);
    if (job->alive >= launch->least)
        return;
    job->status = gy_rank_end_status(end);
    snprintf(job->outcome, sizeof job->outcome, "%d rank%s left, fewer than --min %d; the last to go, rank %d, %s",
             job->alive, job->alive == 1 ? " is" : "s are", launch->least, rank, how);
}

void gy_launch_judge(struct gy_launch_job *job, int rank, const siginfo_t *info)
{
    const struct gy_rank_end end = gy_launch_end_of(job, rank, info);
    if (job->launch->elastic)
        judge_elastic(job, rank, &end);
    else
        judge_plain(job, &end);
    if (job->control >= 0)
        gy_agent_report_end(job->launch->link->reports, &end);
}
