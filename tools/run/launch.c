/* A job of local ranks, from start to end: one loop over one signalfd and the ranks' output pipes. Restarts and faults
 * add their timers.
 *
 *   running --a rank fails--> grace (2 s: the others report) --> SIGTERM (2 s) --> SIGKILL
 *   elastic: running --a rank fails, --min are left--> running, and the rank starts again; fewer: as above
 *   running --SIGINT, SIGTERM, SIGHUP--> forwarded at once, then as after SIGTERM; a second one: SIGKILL
 *
 * Invariants. Each rank leads a process group of its own, so its children end with it. A rank that ended stays a
 * zombie (WNOWAIT) until the very end. So its process id, and that of its group, cannot be reused by an unrelated
 * process, which the launcher would then kill. Before a rank is started again, the rest of its group is killed. If
 * the launcher itself is killed, PR_SET_PDEATHSIG ends the ranks. Only rank 0 has stdin. */
#include "run/launch_job.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "run/agent_report.h"
#include "run/gpu_list.h"

#define GRACE_MS 2000
#define SETTLED_MS 3000 /* a rank that has run so long has probably met the others */
#define ENDS_AT_ONCE 64
#define JOINERS_MS 10000 /* time that a joined rank has after the first rank that ended in order */

int64_t gy_launch_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void signal_all(struct gy_launch_job *job, int number)
{
    for (int i = 0; i < job->started; i++)
        if (job->ranks[i].pid > 0)
            kill(-job->ranks[i].pid, number);
}

void gy_launch_enter(struct gy_launch_job *job, enum gy_launch_phase phase)
{
    job->phase = phase;
    job->deadline_ms = gy_launch_now_ms() + (job->launch->link ? job->launch->link->grace_ms : GRACE_MS);
    if (phase == TERMINATING)
        signal_all(job, SIGTERM);
    else if (phase == KILLING)
        signal_all(job, SIGKILL);
}

void gy_launch_tell(const struct gy_launch_job *job, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s: %s\n", job->launch->tool, text);
}

static void look_for_end(struct gy_launch_job *job, int rank)
{
    siginfo_t info = {0};
    struct gy_launch_rank *it = &job->ranks[rank];
    if (it->ended || waitid(P_PID, (id_t)it->pid, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid == 0)
        return;
    it->ended = true;
    job->alive--;
    it->wake_ms = 0;
    it->struck = false;
    gy_launch_judge(job, rank, &info);
}

/* Ranks in the order in which they ended; then the ranks whose order is not known. */
static void look_for_ends(struct gy_launch_job *job)
{
    int ranks[ENDS_AT_ONCE], found;
    do {
        found = gy_launch_order_next(job, ranks, ENDS_AT_ONCE);
        for (int i = 0; i < found; i++)
            look_for_end(job, ranks[i]);
    } while (found > 0);
    for (int i = 0; i < job->started; i++)
        look_for_end(job, i);
    if (job->phase == RUNNING && job->outcome[0])
        gy_launch_enter(job, GRACE);
}

/* Returns the number of ranks, without the one to be struck, that probably have the state of the job. */
static int count_settled(const struct gy_launch_job *job)
{
    int settled = 0;
    int64_t now = gy_launch_now_ms();
    for (int i = 0; i < job->started; i++) {
        const struct gy_launch_rank *it = &job->ranks[i];
        bool there = i != job->chaos.rank && !it->ended && !it->struck;
        settled += there && now - it->again.began_ms >= SETTLED_MS;
    }
    return settled;
}

static void strike(struct gy_launch_job *job)
{
    static const char *const names[] = {"kill", "stop", "cut"};
    struct gy_chaos *chaos = &job->chaos;
    struct gy_launch_rank *it = &job->ranks[chaos->rank];
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
        it->wake_ms = gy_launch_now_ms() + chaos->stop_ms;
    }
    gy_launch_tell(job, "chaos %" PRIu64 " at %.3f s: %s rank %d%s%s", chaos->number, (double)chaos->at_ms / 1000,
                   names[chaos->kind], chaos->rank, *what ? ": " : "", what);
    gy_chaos_next(chaos, job->launch->ranks);
}

/* Joiners may be waiting for a world that has ended. */
static bool only_joiners(const struct gy_launch_job *job)
{
    bool any = false;
    for (int i = 0; i < job->started; i++) {
        const struct gy_launch_rank *it = &job->ranks[i];
        if (!it->ended && !it->joiner)
            return false;
        any = any || !it->ended;
    }
    return any;
}

/* Does what is due: starts, faults, ends of stops. */
static void look_at_clock(struct gy_launch_job *job)
{
    int64_t now = gy_launch_now_ms();
    for (int i = 0; i < job->started; i++) {
        struct gy_launch_rank *it = &job->ranks[i];
        if (it->wake_ms && (now >= it->wake_ms || job->phase != RUNNING)) {
            kill(-it->pid, SIGCONT);
            it->wake_ms = 0;
        }
        if (job->phase != RUNNING || job->succeeded_ms)
            it->again.due_ms = 0;
        else if (it->again.due_ms && now >= it->again.due_ms)
            gy_launch_start_again(job, i);
    }
    if (job->phase == RUNNING && job->succeeded_ms && now >= job->succeeded_ms + JOINERS_MS && only_joiners(job))
        gy_launch_enter(job, TERMINATING);
    while (job->chaos.rate > 0 && job->phase == RUNNING && !job->succeeded_ms &&
           now >= job->began_ms + job->chaos.at_ms)
        strike(job);
}

static int64_t sooner(int64_t left, int64_t due_ms, int64_t now)
{
    return due_ms && due_ms - now < left ? due_ms - now : left;
}

/* Returns the milliseconds until the next timer. */
static int64_t time_left(const struct gy_launch_job *job)
{
    int64_t now = gy_launch_now_ms(), left = job->phase == RUNNING ? 1000 : job->deadline_ms - now;
    for (int i = 0; i < job->started; i++)
        left = sooner(sooner(left, job->ranks[i].again.due_ms, now), job->ranks[i].wake_ms, now);
    return job->chaos.rate > 0 && !job->succeeded_ms ? sooner(left, job->began_ms + job->chaos.at_ms, now) : left;
}

/* True if a rank runs, or will be started. */
static bool anybody(const struct gy_launch_job *job)
{
    bool any = job->alive > 0;
    for (int i = 0; i < job->started && !any; i++)
        any = job->ranks[i].again.due_ms != 0;
    return any;
}

void gy_launch_interrupt(struct gy_launch_job *job, int number)
{
    if (job->phase >= TERMINATING) {
        gy_launch_enter(job, KILLING);
        return;
    }
    if (!job->outcome[0]) {
        job->status = 128 + number;
        snprintf(job->outcome, sizeof job->outcome, "ended by signal %d (%s), and all ranks with it", number,
                 strsignal(number));
    }
    gy_launch_enter(job, TERMINATING);
    if (number != SIGTERM)
        signal_all(job, number);
}

static void on_signal(struct gy_launch_job *job)
{
    struct signalfd_siginfo info;
    while (read(job->signals, &info, sizeof info) == (ssize_t)sizeof info)
        if (info.ssi_signo != SIGCHLD)
            gy_launch_interrupt(job, (int)info.ssi_signo);
}

/* Reads the terminal for rank 0, only while the launcher is in its foreground: else the kernel would stop the
 * launcher. */
static void pass_keyboard(struct gy_launch_job *job)
{
    char bytes[4096];
    ssize_t got = read(0, bytes, sizeof bytes);
    if (got <= 0 || write(job->keyboard, bytes, (size_t)got) < 0) {
        close(job->keyboard);
        job->keyboard = -1;
    }
}

static void wait_for_event(struct gy_launch_job *job, struct pollfd *fds)
{
    nfds_t count = 0;
    int64_t left = time_left(job);
    fds[count++] = (struct pollfd){.fd = job->signals, .events = POLLIN};
    bool keyboard = job->keyboard >= 0 && tcgetpgrp(0) == getpgrp();
    fds[count++] = (struct pollfd){.fd = keyboard ? 0 : -1, .events = POLLIN};
    fds[count++] = (struct pollfd){.fd = job->control, .events = POLLIN};
    for (int i = 0; i < job->started; i++) {
        fds[count++] = (struct pollfd){.fd = job->ranks[i].out.in, .events = POLLIN};
        fds[count++] = (struct pollfd){.fd = job->ranks[i].err.in, .events = POLLIN};
    }
    if (poll(fds, count, left > 0 ? (int)left : 0) <= 0)
        return;
    if (fds[1].revents)
        pass_keyboard(job);
    if (fds[2].revents)
        gy_launch_obey(job);
    for (int i = 0; i < job->started; i++) {
        if (fds[3 + 2 * i].revents)
            gy_label_pass(&job->ranks[i].out);
        if (fds[4 + 2 * i].revents)
            gy_label_pass(&job->ranks[i].err);
    }
}

static void run_until_ended(struct gy_launch_job *job, struct pollfd *fds)
{
    look_for_ends(job);
    while (anybody(job)) {
        wait_for_event(job, fds);
        look_for_ends(job); /* before the signals: what failed before a Ctrl-C is the cause */
        on_signal(job);
        look_at_clock(job);
        if (job->phase == RUNNING || job->phase == KILLING || gy_launch_now_ms() < job->deadline_ms)
            continue;
        gy_launch_enter(job, job->phase == GRACE ? TERMINATING : KILLING);
    }
}

/* Kills the processes that ranks forked and left behind; then reaps the zombies. */
static void clean_up(struct gy_launch_job *job)
{
    signal_all(job, SIGKILL);
    for (int i = 0; i < job->started; i++) {
        gy_label_close(&job->ranks[i].out);
        gy_label_close(&job->ranks[i].err);
        if (job->ranks[i].pid > 0)
            waitpid(job->ranks[i].pid, NULL, 0);
    }
    gy_launch_order_close(job);
    if (job->keyboard >= 0)
        close(job->keyboard);
}

static void catch_signals(struct gy_launch_job *job)
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

static void start_all(struct gy_launch_job *job)
{
    const struct gy_launch *launch = job->launch;
    for (int i = 0; i < launch->ranks; i++) {
        int problem = gy_launch_start_rank(job, i, false);
        if (!problem)
            continue;
        job->status = problem == ENOENT ? 127 : 126;
        snprintf(job->outcome, sizeof job->outcome, "cannot start '%.150s': %s", launch->path, strerror(problem));
        gy_launch_enter(job, KILLING);
        return;
    }
}

/* False: errno. */
static bool choose_rendezvous(struct gy_launch_job *job)
{
    const struct gy_launch *launch = job->launch;
    if (!launch->link)
        return gy_rendezvous_choose(&job->rendezvous, launch->ranks) == 0;
    job->rendezvous = *launch->link->rendezvous;
    return true;
}

/* Writes the last line. An agent reports it after the ends of its ranks, for a outcome that they do not explain. */
static void tell_outcome(const struct gy_launch_job *job)
{
    if (job->outcome[0] && !job->launch->link)
        fprintf(stderr, "%s: %s\n", job->launch->tool, job->outcome);
    else if (job->outcome[0])
        gy_agent_report_problem(job->launch->link->reports, job->status, job->outcome);
}

static void choose_gpus(struct gy_launch_job *job)
{
    char why[256];
    job->gpus = gy_gpu_list_make(job->launch->gpus, why, sizeof why);
    if (*why)
        gy_launch_tell(job, "--gpus %s: no GPU: %s", job->launch->gpus, why);
}

int gy_launch_run(const struct gy_launch *launch)
{
    struct gy_launch_job job = {.launch = launch,
                                .keyboard = -1,
                                .order = -1,
                                .control = launch->link ? launch->link->control : -1,
                                .rendezvous = {.reserved = -1, .secret = -1}};
    job.ranks = calloc((size_t)launch->ranks, sizeof *job.ranks);
    struct pollfd *fds = calloc(3 + 2 * (size_t)launch->ranks, sizeof *fds);
    for (int i = 0; job.ranks && i < launch->ranks; i++)
        job.ranks[i].out.in = job.ranks[i].err.in = job.ranks[i].end = -1;
    choose_gpus(&job);
    catch_signals(&job);
    if (!job.ranks || !fds || job.signals < 0 || !choose_rendezvous(&job)) {
        job.status = 1;
        snprintf(job.outcome, sizeof job.outcome, "cannot prepare %d ranks: %s", launch->ranks, strerror(errno));
    } else {
        job.began_ms = gy_launch_now_ms();
        job.chaos = launch->chaos;
        if (job.chaos.rate > 0)
            gy_chaos_next(&job.chaos, launch->ranks);
        start_all(&job);
        run_until_ended(&job, fds);
        clean_up(&job);
    }
    gy_rendezvous_end(&job.rendezvous);
    tell_outcome(&job);
    if (job.signals >= 0)
        close(job.signals);
    sigprocmask(SIG_SETMASK, &job.old_mask, NULL);
    free(fds);
    free(job.gpus);
    free(job.ranks);
    return job.status;
}
