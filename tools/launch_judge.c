/* What the end of a rank means. Without restarts the first failure is the verdict on the job. With them a rank that
 * failed is due to start again, until it is given up or too few are left; the last one to go is the verdict then. */
#include "launch_job.h"

#include <stdio.h>
#include <string.h>

#define LATE_MS 200 /* a death by signal may show this much after what it caused */

static const char *describe_end(const siginfo_t *info, char *text, size_t bytes)
{
    if (info->si_code != CLD_EXITED)
        snprintf(text, bytes, "was killed by signal %d (%s)", info->si_status, strsignal(info->si_status));
    else
        snprintf(text, bytes, "ended with exit status %d", info->si_status);
    return text;
}

/* As a shell would say it. */
static int exit_status(const siginfo_t *info)
{
    return info->si_code != CLD_EXITED ? 128 + info->si_status : info->si_status;
}

/* Remembers the first failure; but a death by signal soon after an exit status was the cause and the status its
 * consequence: a dying process closes its connections, by which others notice, before its parent can see its end. */
static void judge_plain(struct gy_launch_job *job, int rank, const siginfo_t *info)
{
    bool by_signal = info->si_code != CLD_EXITED;
    if (!by_signal && info->si_status == 0)
        return;
    bool late = job->phase == GRACE && gy_launch_now_ms() < job->deadline_ms - GY_LAUNCH_GRACE_MS + LATE_MS;
    if ((job->phase != RUNNING && !late) || (job->verdict[0] && (job->killed || !by_signal)))
        return;
    char how[96];
    job->killed = by_signal;
    job->status = exit_status(info);
    snprintf(job->verdict, sizeof job->verdict, "rank %d (pid %d) %s", rank, (int)job->ranks[rank].pid,
             describe_end(info, how, sizeof how));
}

/* What is left where ranks may fail: nothing happens, or the rank is due to start again, or the job ends. */
static void judge_elastic(struct gy_launch_job *job, int rank, const siginfo_t *info)
{
    struct gy_launch_rank *it = &job->ranks[rank];
    const struct gy_launch *launch = job->launch;
    bool by_signal = info->si_code != CLD_EXITED;
    char how[96];
    if (!by_signal && info->si_status == 0 && !job->succeeded_ms)
        job->succeeded_ms = gy_launch_now_ms();
    if (job->phase != RUNNING || (!by_signal && info->si_status == 0))
        return;
    describe_end(info, how, sizeof how);
    if (job->succeeded_ms) {
        gy_launch_tell(job, "rank %d (pid %d) %s, after others had come to their end", rank, (int)it->pid, how);
        return;
    }
    bool again = gy_restart_failed(&it->again, gy_launch_now_ms(), it->newcomer && !by_signal, launch->restarts);
    if (again)
        gy_launch_tell(job, "rank %d (pid %d) %s; it starts again in %.2f s (%d of %d)", rank, (int)it->pid, how,
                       (double)(it->again.due_ms - gy_launch_now_ms()) / 1000, it->again.failures, launch->restarts);
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
