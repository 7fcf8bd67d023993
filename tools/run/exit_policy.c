/* What the end of a rank means. Without restarts the first failure is the verdict on the job. With restarts a failed
 * rank is due to start again, until its restarts are used up or too few ranks are left. The last rank to end is the
 * verdict then. */
#include "run/launch_job.h"

#include <stdio.h>
#include <string.h>

#define ENDS 0x4 /* PF_EXITING among the kernel's flags of a process: proc(5), stat */

static const char *describe_end(const siginfo_t *info, char *text, size_t bytes)
{
    if (info->si_code != CLD_EXITED)
        snprintf(text, bytes, "was killed by signal %d (%s)", info->si_status, strsignal(info->si_status));
    else
        snprintf(text, bytes, "ended with exit status %d", info->si_status);
    return text;
}

/* Returns the exit status in the form that a shell uses. */
static int exit_status(const siginfo_t *info)
{
    return info->si_code != CLD_EXITED ? 128 + info->si_status : info->si_status;
}

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

static void note_who_ends(struct gy_launch_job *job)
{
    for (int i = 0; i < job->started; i++)
        job->ranks[i].ending = !job->ranks[i].ended && is_ending(job->ranks[i].pid);
}

/* Stores the first failure. A later death replaces it if that process was already ending when the failure was seen,
 * and was killed by a signal. Its death is then the cause, and the exit status a consequence: a dying process closes
 * its connections, and peers notice that before the parent can see the end. */
static void judge_plain(struct gy_launch_job *job, int rank, const siginfo_t *info)
{
    bool by_signal = info->si_code != CLD_EXITED;
    if (!by_signal && info->si_status == 0)
        return;
    bool caused = job->phase == GRACE && job->ranks[rank].ending;
    if ((job->phase != RUNNING && !caused) || (job->verdict[0] && (job->killed || !by_signal)))
        return;
    char how[96];
    if (!job->verdict[0] && !by_signal)
        note_who_ends(job);
    job->killed = by_signal;
    job->status = exit_status(info);
    snprintf(job->verdict, sizeof job->verdict, "rank %d (pid %d) %s", rank, (int)job->ranks[rank].pid,
             describe_end(info, how, sizeof how));
}

/* The decision where ranks may fail: nothing happens, the rank is due to start again, or the job ends. */
static void judge_elastic(struct gy_launch_job *job, int rank, const siginfo_t *info)
{
    struct gy_launch_rank *it = &job->ranks[rank];
    const struct gy_launch *launch = job->launch;
    bool by_signal = info->si_code != CLD_EXITED;
    int64_t now = gy_launch_now_ms(); /* one for all: the pause that is told is the whole one */
    char how[96];
    if (!by_signal && info->si_status == 0 && !job->succeeded_ms)
        job->succeeded_ms = now;
    if (job->phase != RUNNING || (!by_signal && info->si_status == 0))
        return;
    describe_end(info, how, sizeof how);
    if (job->succeeded_ms) {
        gy_launch_tell(job, "rank %d (pid %d) %s, after others had come to their end", rank, (int)it->pid, how);
        return;
    }
    bool again = gy_restart_failed(&it->again, now, it->joiner && !by_signal, launch->restarts);
    if (again)
        gy_launch_tell(job, "rank %d (pid %d) %s; it starts again in %.2f s (%d of %d)", rank, (int)it->pid, how,
                       (double)(it->again.due_ms - now) / 1000, it->again.failures, launch->restarts);
    else
        gy_launch_tell(job, "rank %d (pid %d) %s, and is given up after %d starts", rank, (int)it->pid, how,
                       it->again.failures + 1);
    if (job->alive >= launch->least)
        return;
    job->status = exit_status(info);
    snprintf(job->verdict, sizeof job->verdict, "%d rank%s left, fewer than --min %d; the last to go, rank %d, %s",
             job->alive, job->alive == 1 ? " is" : "s are", launch->least, rank, how);
}

void gy_launch_judge(struct gy_launch_job *job, int rank, const siginfo_t *info)
{
    if (job->launch->elastic)
        judge_elastic(job, rank, info);
    else
        judge_plain(job, rank, info);
}
