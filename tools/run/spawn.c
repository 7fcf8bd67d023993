/* How a rank starts: its pipes, its process group, its environment for the bootstrap, exec.
 *
 * The child reports a failure before exec through a pipe that exec closes, so the launcher knows at once. The child
 * leads a process group of its own, and dies with the launcher. */
#include "run/launch_job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/affinity.h"
#include "run/frame.h"
#include "run/gpu_list.h"

/* Runs in the child up to exec. A failure is written to `report` as an errno. */
static _Noreturn void become_rank(const struct gy_launch_job *job, int rank, bool again, pid_t parent, int in, int out,
                                  int err, int report)
{
    int problem = 0;
    setpgid(0, 0);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
        _exit(1);
    sigprocmask(SIG_SETMASK, &job->old_mask, NULL);
    signal(SIGPIPE, SIG_DFL); /* which this launcher ignores, and exec would hand on */
    if ((in >= 0 && dup2(in, 0) < 0) || (out >= 0 && dup2(out, 1) < 0) || (err >= 0 && dup2(err, 2) < 0)) {
        problem = errno;
    } else {
        gy_rendezvous_tell(&job->rendezvous, rank, job->launch->ranks, again);
        if (job->launch->bind)
            gy_cores_bind(rank);
        if (job->gpus)
            gy_gpu_list_show(job->gpus, rank);
        execvp(job->launch->path, job->launch->argv);
        problem = errno;
    }
    if (write(report, &problem, sizeof problem) < 0)
        _exit(126);
    _exit(127);
}

/* Returns the stdin of rank `rank`: nothing, the keyboard through a pipe (its group is not the terminal's), or the
 * launcher's own stdin (−1). An agent's stdin belongs to gyre-run. */
static int open_input(struct gy_launch_job *job, int rank, bool again)
{
    int ends[2];
    if (rank > 0 || again || job->launch->link)
        return open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (!isatty(0) || pipe2(ends, O_CLOEXEC))
        return -1;
    job->keyboard = ends[1];
    return ends[0];
}

static void open_labels(struct gy_launch_job *job, int rank, int out, int err)
{
    struct gy_launch_rank *it = &job->ranks[rank];
    const struct gy_launch_link *link = job->launch->link;
    gy_label_open(&it->out, job->rendezvous.first + rank, out, link ? link->reports : STDOUT_FILENO);
    gy_label_open(&it->err, job->rendezvous.first + rank, err, link ? link->reports : STDERR_FILENO);
    it->out.plain = it->err.plain = !job->launch->label;
    it->out.frame = link ? GY_FRAME_OUTPUT : 0;
    it->err.frame = link ? GY_FRAME_ERROR : 0;
}

int gy_launch_start_rank(struct gy_launch_job *job, int rank, bool again)
{
    struct gy_launch_rank *it = &job->ranks[rank];
    int out[2] = {-1, -1}, err[2] = {-1, -1}, report[2], problem = 0;
    int in = open_input(job, rank, again);
    pid_t parent = getpid();
    if (pipe2(report, O_CLOEXEC))
        return errno;
    bool pipes = job->launch->label || job->launch->link;
    if (pipes && (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC)))
        return errno;
    pid_t child = fork();
    if (child == 0)
        become_rank(job, rank, again, parent, in, out[1], err[1], report[1]);
    problem = child < 0 ? errno : 0;
    it->pid = child > 0 ? child : 0;
    close(report[1]);
    if (in >= 0)
        close(in);
    if (out[1] >= 0) {
        close(out[1]);
        close(err[1]);
        open_labels(job, rank, out[0], err[0]);
    }
    if (!problem) {
        job->started += !again;
        job->alive++;
        it->ended = false;
        it->joiner = again;
        gy_launch_order_watch(job, rank);
        gy_restart_began(&it->again, gy_launch_now_ms());
        setpgid(it->pid, it->pid); /* in both processes: a kill of the group then always finds it */
        if (read(report[0], &problem, sizeof problem) != (ssize_t)sizeof problem)
            problem = 0; /* end of file: exec closed it */
    }
    close(report[0]);
    return problem;
}

/* First kills the processes that the old process forked. */
void gy_launch_start_again(struct gy_launch_job *job, int rank)
{
    struct gy_launch_rank *it = &job->ranks[rank];
    kill(-it->pid, SIGKILL);
    gy_launch_order_forget(job, rank);
    gy_label_close(&it->out);
    gy_label_close(&it->err);
    waitpid(it->pid, NULL, 0);
    it->pid = 0; /* from here on the kernel may reuse its number */
    int problem = gy_launch_start_rank(job, rank, true);
    it->again.due_ms = 0;
    if (problem)
        gy_launch_tell(job, "rank %d cannot be started again: %s", rank, strerror(problem));
    else
        gy_launch_tell(job, "rank %d has started again (pid %d)", rank, (int)it->pid);
}
