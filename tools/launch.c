/* One loop over one signalfd and the ranks' output pipes; for restarts and faults also over their times.
 *
 *   running --a rank fails--> grace (2 s: the others report) --> SIGTERM (2 s) --> SIGKILL
 *   elastic: running --a rank fails, --min are left--> running, and the rank starts again; fewer: as above
 *   running --SIGINT, SIGTERM, SIGHUP--> forwarded at once, then as after SIGTERM; a second one: SIGKILL
 *
 * Invariants. Each rank leads a process group of its own, so that what it forked ends with it. A rank that ended stays
 * a zombie (WNOWAIT) until the very end: its process id, and so its group's, cannot be given to a stranger whom we
 * would kill. Where it is to be started again, what is left of its group is killed first.
 * If the launcher itself is killed, PR_SET_PDEATHSIG ends the ranks. Only rank 0 has stdin. */
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cores.h"
#include "label.h"
#include "meeting.h"
#include "restart.h"

#define GRACE_MS 2000
#define SETTLED_MS 3000    /* a rank that has run so long has probably met the others */
#define NEWCOMERS_MS 10000 /* who joined has so long after the first who has ended in order */
#define LATE_MS 200        /* a death by signal may show this much after what it caused */

enum phase { RUNNING, GRACE, TERMINATING, KILLING };

struct rank {
    pid_t pid; /* 0: it could not be started again */
    bool ended, newcomer;
    bool struck; /* dead by our own hand; its end has not come here yet */
    struct gy_restart again;
    int64_t wake_ms; /* it is stopped until then; 0: it is not */
    struct gy_label out, err;
};

struct job {
    const struct gy_launch *launch;
    struct rank *ranks;
    int started, alive;
    enum phase phase;
    int64_t deadline_ms;
    int status;           /* what the tool will exit with */
    char verdict[256];    /* last line, "" when all is well */
    bool killed;          /* the verdict is a death by signal */
    int64_t succeeded_ms; /* elastic: when a rank ended with 0, and nobody is started any more; 0: not yet */
    struct gy_chaos chaos;
    int64_t began_ms;
    sigset_t old_mask;
    int signals; /* signalfd */
    struct gy_meeting meeting;
    int keyboard; /* pipe to rank 0 when stdin is a terminal, −1: none */
};

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The child's life up to exec; what goes wrong is written to `report` as an errno. */
static _Noreturn void become_rank(const struct job *job, int rank, bool again, pid_t parent, int in, int out, int err,
                                  int report)
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
        gy_meeting_tell(&job->meeting, rank, job->launch->ranks, again);
        if (job->launch->bind)
            gy_cores_bind(rank);
        execvp(job->launch->path, job->launch->argv);
        problem = errno;
    }
    if (write(report, &problem, sizeof problem) < 0)
        _exit(126);
    _exit(127);
}

/* What rank `rank` reads: nothing, the keyboard through a pipe (its group is not the terminal's), or our own stdin
 * (−1). */
static int open_input(struct job *job, int rank, bool again)
{
    int ends[2];
    if (rank > 0 || again)
        return open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (!isatty(0) || pipe2(ends, O_CLOEXEC))
        return -1;
    job->keyboard = ends[1];
    return ends[0];
}

/* 0, or the errno of what failed. */
static int start_rank(struct job *job, int rank, bool again)
{
    struct rank *it = &job->ranks[rank];
    int out[2] = {-1, -1}, err[2] = {-1, -1}, report[2], problem = 0;
    int in = open_input(job, rank, again);
    pid_t parent = getpid();
    if (pipe2(report, O_CLOEXEC))
        return errno;
    if (job->launch->label && (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC)))
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
        gy_label_open(&it->out, rank, out[0], STDOUT_FILENO);
        gy_label_open(&it->err, rank, err[0], STDERR_FILENO);
    }
    if (!problem) {
        job->started += !again;
        job->alive++;
        it->ended = false;
        it->newcomer = again;
        gy_restart_began(&it->again, now_ms());
        setpgid(it->pid, it->pid); /* also here: whoever is first, a kill of the group always finds it */
        if (read(report[0], &problem, sizeof problem) != (ssize_t)sizeof problem)
            problem = 0; /* end of file: exec closed it */
    }
    close(report[0]);
    return problem;
}

static void signal_all(struct job *job, int number)
{
    for (int i = 0; i < job->started; i++)
        if (job->ranks[i].pid > 0)
            kill(-job->ranks[i].pid, number);
}

static void enter(struct job *job, enum phase phase)
{
    job->phase = phase;
    job->deadline_ms = now_ms() + GRACE_MS;
    if (phase == TERMINATING)
        signal_all(job, SIGTERM);
    else if (phase == KILLING)
        signal_all(job, SIGKILL);
}

/* Remembers the first failure; but a death by signal soon after an exit status was the cause and the status its
 * consequence: a dying process closes its connections, by which others notice, before its parent can see its end. */
static void judge(struct job *job, int rank, const siginfo_t *info)
{
    bool by_signal = info->si_code != CLD_EXITED;
    if (!by_signal && info->si_status == 0)
        return;
    bool late = job->phase == GRACE && now_ms() < job->deadline_ms - GRACE_MS + LATE_MS;
    if ((job->phase != RUNNING && !late) || (job->verdict[0] && (job->killed || !by_signal)))
        return;
    job->killed = by_signal;
    job->status = by_signal ? 128 + info->si_status : info->si_status;
    if (by_signal)
        snprintf(job->verdict, sizeof job->verdict, "rank %d (pid %d) was killed by signal %d (%s)", rank,
                 (int)job->ranks[rank].pid, info->si_status, strsignal(info->si_status));
    else
        snprintf(job->verdict, sizeof job->verdict, "rank %d (pid %d) ended with exit status %d", rank,
                 (int)job->ranks[rank].pid, info->si_status);
}

__attribute__((format(printf, 2, 3))) static void tell(const struct job *job, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s: %s\n", job->launch->tool, text);
}

/* What is left where ranks may fail: nothing happens, or the rank is due to start again, or the job ends. */
static void judge_elastic(struct job *job, int rank, const siginfo_t *info)
{
    struct rank *it = &job->ranks[rank];
    const struct gy_launch *launch = job->launch;
    bool by_signal = info->si_code != CLD_EXITED;
    char how[96];
    if (!by_signal && info->si_status == 0 && !job->succeeded_ms)
        job->succeeded_ms = now_ms();
    if (job->phase != RUNNING || (!by_signal && info->si_status == 0))
        return;
    if (by_signal)
        snprintf(how, sizeof how, "was killed by signal %d (%s)", info->si_status, strsignal(info->si_status));
    else
        snprintf(how, sizeof how, "ended with exit status %d", info->si_status);
    if (job->succeeded_ms) {
        tell(job, "rank %d (pid %d) %s, after others had come to their end", rank, (int)it->pid, how);
        return;
    }
    bool again = gy_restart_failed(&it->again, now_ms(), it->newcomer && !by_signal, launch->restarts);
    if (again)
        tell(job, "rank %d (pid %d) %s; it starts again in %.2f s (%d of %d)", rank, (int)it->pid, how,
             (double)(it->again.due_ms - now_ms()) / 1000, it->again.failures, launch->restarts);
    else
        tell(job, "rank %d (pid %d) %s, and is given up after %d starts", rank, (int)it->pid, how,
             it->again.failures + 1);
    if (job->alive >= launch->least)
        return;
    job->status = by_signal ? 128 + info->si_status : info->si_status;
    snprintf(job->verdict, sizeof job->verdict, "%d rank%s left, fewer than --min %d; the last to go, rank %d, %s",
             job->alive, job->alive == 1 ? " is" : "s are", launch->least, rank, how);
}

static void look_for_ends(struct job *job)
{
    for (int i = 0; i < job->started; i++) {
        siginfo_t info = {0};
        struct rank *it = &job->ranks[i];
        if (it->ended || waitid(P_PID, (id_t)it->pid, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid == 0)
            continue;
        it->ended = true;
        job->alive--;
        it->wake_ms = 0;
        it->struck = false;
        if (job->launch->elastic)
            judge_elastic(job, i, &info);
        else
            judge(job, i, &info);
    }
    if (job->phase == RUNNING && job->verdict[0])
        enter(job, GRACE);
}

/* Its old process, and whatever that forked, is out of the way first. */
static void start_again(struct job *job, int rank)
{
    struct rank *it = &job->ranks[rank];
    kill(-it->pid, SIGKILL);
    gy_label_close(&it->out);
    gy_label_close(&it->err);
    waitpid(it->pid, NULL, 0);
    it->pid = 0; /* from here on its number may be a stranger's */
    int problem = start_rank(job, rank, true);
    it->again.due_ms = 0;
    if (problem)
        tell(job, "rank %d cannot be started again: %s", rank, strerror(problem));
    else
        tell(job, "rank %d has started again (pid %d)", rank, (int)it->pid);
}

/* Ranks, beside the one that is to be struck, that probably have what the job is about. */
static int count_settled(const struct job *job)
{
    int settled = 0;
    int64_t now = now_ms();
    for (int i = 0; i < job->started; i++) {
        const struct rank *it = &job->ranks[i];
        bool there = i != job->chaos.rank && !it->ended && !it->struck;
        settled += there && now - it->again.began_ms >= SETTLED_MS;
    }
    return settled;
}

static void strike(struct job *job)
{
    static const char *const names[] = {"kill", "stop", "cut"};
    struct gy_chaos *chaos = &job->chaos;
    struct rank *it = &job->ranks[chaos->rank];
    char what[160] = "";
    if (it->ended || it->struck)
        snprintf(what, sizeof what, "it is not there");
    else if (chaos->kind == GY_CHAOS_CUT)
        gy_chaos_cut(it->pid, chaos->dice, what, sizeof what);
    else if (chaos->kind == GY_CHAOS_KILL && job->launch->elastic && count_settled(job) < job->launch->least)
        snprintf(what, sizeof what, "spared: the others that have run for 3 s are fewer than --min %d",
                 job->launch->least);
    else if (chaos->kind == GY_CHAOS_KILL) {
        kill(-it->pid, SIGKILL);
        it->struck = true;
    } else {
        snprintf(what, sizeof what, "for %.3f s", (double)chaos->stop_ms / 1000);
        kill(-it->pid, SIGSTOP);
        it->wake_ms = now_ms() + chaos->stop_ms;
    }
    tell(job, "chaos %" PRIu64 " at %.3f s: %s rank %d%s%s", chaos->number, (double)chaos->at_ms / 1000,
         names[chaos->kind], chaos->rank, *what ? ": " : "", what);
    gy_chaos_next(chaos, job->launch->ranks);
}

/* Newcomers may be waiting for a world that is no more. */
static bool only_newcomers(const struct job *job)
{
    bool any = false;
    for (int i = 0; i < job->started; i++) {
        const struct rank *it = &job->ranks[i];
        if (!it->ended && !it->newcomer)
            return false;
        any = any || !it->ended;
    }
    return any;
}

/* What is due by now: starts, faults, ends of stops. */
static void look_at_clock(struct job *job)
{
    int64_t now = now_ms();
    for (int i = 0; i < job->started; i++) {
        struct rank *it = &job->ranks[i];
        if (it->wake_ms && (now >= it->wake_ms || job->phase != RUNNING)) {
            kill(-it->pid, SIGCONT);
            it->wake_ms = 0;
        }
        if (job->phase != RUNNING || job->succeeded_ms)
            it->again.due_ms = 0;
        else if (it->again.due_ms && now >= it->again.due_ms)
            start_again(job, i);
    }
    if (job->phase == RUNNING && job->succeeded_ms && now >= job->succeeded_ms + NEWCOMERS_MS && only_newcomers(job))
        enter(job, TERMINATING);
    while (job->chaos.rate > 0 && job->phase == RUNNING && !job->succeeded_ms &&
           now >= job->began_ms + job->chaos.at_ms)
        strike(job);
}

static int64_t sooner(int64_t left, int64_t due_ms, int64_t now)
{
    return due_ms && due_ms - now < left ? due_ms - now : left;
}

/* Milliseconds until something may have to be done without an event. */
static int64_t time_left(const struct job *job)
{
    int64_t now = now_ms(), left = job->phase == RUNNING ? 1000 : job->deadline_ms - now;
    for (int i = 0; i < job->started; i++)
        left = sooner(sooner(left, job->ranks[i].again.due_ms, now), job->ranks[i].wake_ms, now);
    return job->chaos.rate > 0 && !job->succeeded_ms ? sooner(left, job->began_ms + job->chaos.at_ms, now) : left;
}

/* Somebody runs, or will. */
static bool anybody(const struct job *job)
{
    bool any = job->alive > 0;
    for (int i = 0; i < job->started && !any; i++)
        any = job->ranks[i].again.due_ms != 0;
    return any;
}

static void on_signal(struct job *job)
{
    struct signalfd_siginfo info;
    while (read(job->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        int number = (int)info.ssi_signo;
        if (number == SIGCHLD)
            continue;
        if (job->phase >= TERMINATING) {
            enter(job, KILLING);
            continue;
        }
        if (!job->verdict[0]) {
            job->status = 128 + number;
            snprintf(job->verdict, sizeof job->verdict, "ended by signal %d (%s), and all ranks with it", number,
                     strsignal(number));
        }
        enter(job, TERMINATING);
        if (number != SIGTERM)
            signal_all(job, number);
    }
}

/* Reads the terminal for rank 0, but only while we are in its foreground: else the kernel would stop us. */
static void pass_keyboard(struct job *job)
{
    char bytes[4096];
    ssize_t got = read(0, bytes, sizeof bytes);
    if (got <= 0 || write(job->keyboard, bytes, (size_t)got) < 0) {
        close(job->keyboard);
        job->keyboard = -1;
    }
}

static void wait_for_event(struct job *job, struct pollfd *fds)
{
    nfds_t count = 0;
    int64_t left = time_left(job);
    fds[count++] = (struct pollfd){.fd = job->signals, .events = POLLIN};
    bool keyboard = job->keyboard >= 0 && tcgetpgrp(0) == getpgrp();
    fds[count++] = (struct pollfd){.fd = keyboard ? 0 : -1, .events = POLLIN};
    for (int i = 0; i < job->started; i++) {
        fds[count++] = (struct pollfd){.fd = job->ranks[i].out.in, .events = POLLIN};
        fds[count++] = (struct pollfd){.fd = job->ranks[i].err.in, .events = POLLIN};
    }
    if (poll(fds, count, left > 0 ? (int)left : 0) <= 0)
        return;
    if (fds[1].revents)
        pass_keyboard(job);
    for (int i = 0; i < job->started; i++) {
        if (fds[2 + 2 * i].revents)
            gy_label_pass(&job->ranks[i].out);
        if (fds[3 + 2 * i].revents)
            gy_label_pass(&job->ranks[i].err);
    }
}

static void run_until_ended(struct job *job, struct pollfd *fds)
{
    look_for_ends(job);
    while (anybody(job)) {
        wait_for_event(job, fds);
        look_for_ends(job); /* before the signals: what failed before a Ctrl-C is the cause */
        on_signal(job);
        look_at_clock(job);
        if (job->phase == RUNNING || job->phase == KILLING || now_ms() < job->deadline_ms)
            continue;
        enter(job, job->phase == GRACE ? TERMINATING : KILLING);
    }
}

/* What ranks forked and left behind ends here; then the zombies go. */
static void clean_up(struct job *job)
{
    signal_all(job, SIGKILL);
    for (int i = 0; i < job->started; i++) {
        gy_label_close(&job->ranks[i].out);
        gy_label_close(&job->ranks[i].err);
        if (job->ranks[i].pid > 0)
            waitpid(job->ranks[i].pid, NULL, 0);
    }
    if (job->keyboard >= 0)
        close(job->keyboard);
}

static void catch_signals(struct job *job)
{
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    sigaddset(&mask, SIGINT);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGHUP);
    sigprocmask(SIG_BLOCK, &mask, &job->old_mask);
    job->signals = signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC);
    signal(SIGPIPE, SIG_IGN);
}

static void start_all(struct job *job)
{
    const struct gy_launch *launch = job->launch;
    for (int i = 0; i < launch->ranks; i++) {
        int problem = start_rank(job, i, false);
        if (!problem)
            continue;
        job->status = problem == ENOENT ? 127 : 126;
        snprintf(job->verdict, sizeof job->verdict, "cannot start '%.150s': %s", launch->path, strerror(problem));
        enter(job, KILLING);
        return;
    }
}

int gy_launch_run(const struct gy_launch *launch)
{
    struct job job = {.launch = launch, .keyboard = -1};
    job.ranks = calloc((size_t)launch->ranks, sizeof *job.ranks);
    struct pollfd *fds = calloc(2 + 2 * (size_t)launch->ranks, sizeof *fds);
    for (int i = 0; job.ranks && i < launch->ranks; i++)
        job.ranks[i].out.in = job.ranks[i].err.in = -1;
    catch_signals(&job);
    if (!job.ranks || !fds || job.signals < 0 || gy_meeting_choose(&job.meeting)) {
        job.status = 1;
        snprintf(job.verdict, sizeof job.verdict, "cannot prepare %d ranks: %s", launch->ranks, strerror(errno));
    } else {
        job.began_ms = now_ms();
        job.chaos = launch->chaos;
        if (job.chaos.rate > 0)
            gy_chaos_next(&job.chaos, launch->ranks);
        start_all(&job);
        run_until_ended(&job, fds);
        clean_up(&job);
    }
    if (job.verdict[0])
        fprintf(stderr, "%s: %s\n", launch->tool, job.verdict);
    if (job.signals >= 0)
        close(job.signals);
    sigprocmask(SIG_SETMASK, &job.old_mask, NULL);
    free(fds);
    free(job.ranks);
    return job.status;
}
