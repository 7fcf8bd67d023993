/* One loop over a signalfd, the pipes of the hosts' processes, and the own standard output and error.
 *
 *   connecting --every agent is ready--> running --all ranks ended--> end
 *   connecting --a host fails, or a signal--> ending: the pipes of orders are closed, so the agents end
 *   running --a rank or a host fails--> grace: the other agents are told, and end their ranks in two steps of STEP_MS
 *   running, grace --SIGINT, SIGTERM, SIGHUP--> ending: the agents pass it on, kill after STEP_MS; a second: at once
 *
 * A process that is there after its time is killed. Its agent then finds its standard input at the end, and kills its
 * ranks. So nothing that happens on a host or on the way to it holds up the end.
 *
 * The order of two failures on different hosts is that of their arrival, but for a death by signal that its agent saw
 * before it knew of another failure: that one is the cause. */
#include "run/hosts_job.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/host_part.h"
#include "run/job_environment.h"
#include "run/launch_job.h"
#include "run/meeting_address.h"

#define STEP_MS 700           /* of an agent, between a failure and SIGTERM, and between SIGTERM and SIGKILL */
#define SLACK_MS 400          /* for its last reports */
#define ANSWER_MS 60000       /* from the start to the last agent that is ready */
#define OUTPUT_MOST (1 << 16) /* with more output waiting, none is read */

enum phase { CONNECTING, STARTED, FAILED, ENDING };

struct job {
    const struct gy_launch *launch;
    struct gy_remote_host *hosts;
    int count;
    enum phase phase;
    int64_t deadline_ms; /* CONNECTING: for the agents' answers; FAILED, ENDING: the processes are killed then */
    int status;
    char outcome[1024];
    bool killed; /* the outcome is a death by signal */
    struct gy_remote_shell shell;
    struct gy_byte_queue out, err;
    int signals; /* signalfd */
    struct pollfd *fds;
};

static void order_others(struct job *job, const struct gy_remote_host *but, enum gy_frame_kind kind,
                         const void *payload, size_t length)
{
    for (int i = 0; i < job->count; i++)
        if (&job->hosts[i] != but)
            (void)gy_remote_host_order(&job->hosts[i], kind, payload, length);
}

/* Begins the end of the job after a failure. `host`: where it is known already. */
static void begin_end(struct job *job, const struct gy_remote_host *host)
{
    if (job->phase == CONNECTING) {
        for (int i = 0; i < job->count; i++)
            gy_remote_host_release(&job->hosts[i]);
        job->phase = ENDING;
        job->deadline_ms = gy_launch_now_ms() + SLACK_MS;
    } else if (job->phase == STARTED) {
        order_others(job, host, GY_FRAME_FAILURE, NULL, 0);
        job->phase = FAILED;
        job->deadline_ms = gy_launch_now_ms() + 2 * STEP_MS + SLACK_MS;
    }
}

/* The job fails because of a host, not of a rank. The first such failure counts, and counts before the exit status of
 * a rank: the ranks of the others end so because of it. */
__attribute__((format(printf, 4, 5))) static void fail(struct job *job, const struct gy_remote_host *host, int status,
                                                       const char *format, ...)
{
    va_list arguments;
    if (job->phase != ENDING && !job->killed) {
        va_start(arguments, format);
        vsnprintf(job->outcome, sizeof job->outcome, format, arguments);
        va_end(arguments);
        job->status = status;
        job->killed = true;
    }
    begin_end(job, host);
}

static void judge(struct job *job, const struct gy_remote_host *host, const struct gy_rank_end *end)
{
    char how[96];
    if ((!end->by_signal && end->status == 0) || !end->early || job->phase == ENDING ||
        (job->outcome[0] && (job->killed || !end->by_signal)))
        return;
    job->killed = end->by_signal;
    job->status = gy_rank_end_status(end);
    snprintf(job->outcome, sizeof job->outcome, "rank %d on %s (pid %d) %s", end->rank, host->name, end->pid,
             gy_rank_end_describe(end, how, sizeof how));
    begin_end(job, host);
}

static bool take_ready(struct gy_remote_host *host, const struct gy_frame *frame)
{
    const char *texts[2];
    if (host->ready || !gy_frame_texts(frame, texts, 2) || strlen(texts[0]) >= sizeof host->address ||
        strlen(texts[1]) >= sizeof host->port)
        return false;
    memcpy(host->address, texts[0], strlen(texts[0]) + 1);
    memcpy(host->port, texts[1], strlen(texts[1]) + 1);
    host->ready = true;
    return true;
}

static bool on_frame(void *user, struct gy_remote_host *host, const struct gy_frame *frame)
{
    struct job *job = user;
    struct gy_rank_end end;
    char text[GY_HOST_PROBLEM_BYTES];
    int status;
    switch (frame->kind) {
    case GY_FRAME_READY: return take_ready(host, frame);
    case GY_FRAME_OUTPUT: return gy_byte_queue_put(&job->out, frame->payload, frame->length);
    case GY_FRAME_ERROR: return gy_byte_queue_put(&job->err, frame->payload, frame->length);
    case GY_FRAME_END:
        if (!gy_agent_report_read_end(frame, &end) || end.rank < host->first || end.rank >= host->first + host->ranks)
            return false;
        host->ended++;
        judge(job, host, &end);
        return true;
    case GY_FRAME_PROBLEM:
        if (!gy_agent_report_read_problem(frame, &status, text, sizeof text))
            return false;
        if (!job->outcome[0])
            fail(job, host, status, "%s: %s", host->name, text);
        return true;
    default: return false;
    }
}

/* The address of rank 0 is known once all agents are ready. */
static void start_if_ready(struct job *job)
{
    char address[256] = "", payload[sizeof address + sizeof job->hosts->port];
    for (int i = 0; i < job->count; i++)
        if (!job->hosts[i].ready)
            return;
    gy_meeting_address(job->hosts, job->count, address, sizeof address);
    int length = snprintf(payload, sizeof payload, "%s%c%s", address, 0, job->hosts[0].port);
    order_others(job, NULL, GY_FRAME_MEET, payload, (size_t)length + 1);
    job->phase = STARTED;
}

/* The process of a host has ended. */
static void look_at_end(struct job *job, struct gy_remote_host *host)
{
    const char *colon = host->said_length > 0 ? ": " : "";
    int status = WIFEXITED(host->status) ? WEXITSTATUS(host->status) : 128 + WTERMSIG(host->status);
    bool missing = status == 126 || status == 127;
    if (!host->answered && missing)
        fail(job, host, status, "%s: gyre-run cannot be started there%s%s", host->name, colon, host->said);
    else if (!host->answered)
        fail(job, host, 1, "%s cannot be reached (exit status %d of '%.100s')%s%s", host->name, status,
             job->shell.command, colon, host->said);
    else if (job->phase == CONNECTING || host->ended < host->ranks)
        fail(job, host, 1, "%s: the connection to it or its gyre-run was lost (exit status %d)%s%s", host->name, status,
             colon, host->said);
}

static void read_host(struct job *job, struct gy_remote_host *host)
{
    const char *wrong = gy_remote_host_read(host, on_frame, job);
    if (!wrong)
        return;
    fail(job, host, 1, "%s %s", host->name, wrong);
    gy_remote_host_release(host);
}

/* Takes what a process has left in its pipes. Another process may still hold their other ends. */
static void drain(struct job *job, struct gy_remote_host *host)
{
    struct pollfd out = {.fd = host->process.out, .events = POLLIN}, err = {.fd = host->process.err, .events = POLLIN};
    while (host->process.out >= 0 && poll(&out, 1, 0) > 0)
        read_host(job, host);
    while (host->process.err >= 0 && poll(&err, 1, 0) > 0)
        gy_remote_host_listen(host);
}

static void reap(struct job *job)
{
    for (int i = 0; i < job->count; i++) {
        struct gy_remote_host *host = &job->hosts[i];
        if (host->reaped || waitpid(host->process.pid, &host->status, WNOHANG) == 0)
            continue;
        host->reaped = true;
        drain(job, host);
        look_at_end(job, host);
        gy_remote_host_close(host);
    }
}

static void on_signals(struct job *job)
{
    struct signalfd_siginfo info;
    while (read(job->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        const unsigned char number = (unsigned char)info.ssi_signo;
        if (number == SIGCHLD)
            continue;
        if (!job->outcome[0]) {
            job->status = 128 + number;
            snprintf(job->outcome, sizeof job->outcome, "ended by signal %d (%s), and all ranks with it", number,
                     strsignal(number));
        }
        if (job->phase == CONNECTING)
            begin_end(job, NULL);
        order_others(job, NULL, GY_FRAME_SIGNAL, &number, 1);
        if (job->phase != ENDING)
            job->deadline_ms = gy_launch_now_ms() + STEP_MS + SLACK_MS;
        job->phase = ENDING;
    }
}

static void on_deadline(struct job *job)
{
    if (job->phase == STARTED || gy_launch_now_ms() < job->deadline_ms)
        return;
    for (int i = 0; i < job->count && job->phase == CONNECTING; i++)
        if (!job->hosts[i].ready)
            fail(job, &job->hosts[i], 1, "%s has not answered within %d s%s%s", job->hosts[i].name, ANSWER_MS / 1000,
                 job->hosts[i].said_length > 0 ? ": " : "", job->hosts[i].said);
    if (gy_launch_now_ms() < job->deadline_ms)
        return;
    job->phase = ENDING; /* the ends of these processes are no failures of their own */
    for (int i = 0; i < job->count; i++) {
        struct gy_remote_host *host = &job->hosts[i];
        if (!host->reaped)
            kill(host->process.pid, SIGKILL);
        gy_remote_host_close(host);
    }
}

/* Three descriptors for each host behind the signals and the two outputs. */
static void wait_for_event(struct job *job)
{
    bool full = job->out.held > OUTPUT_MOST || job->err.held > OUTPUT_MOST;
    int64_t left = job->phase == STARTED ? 1000 : job->deadline_ms - gy_launch_now_ms();
    struct pollfd *fds = job->fds;
    *fds++ = (struct pollfd){.fd = job->signals, .events = POLLIN};
    *fds++ = (struct pollfd){.fd = job->out.held > 0 ? STDOUT_FILENO : -1, .events = POLLOUT};
    *fds++ = (struct pollfd){.fd = job->err.held > 0 ? STDERR_FILENO : -1, .events = POLLOUT};
    for (int i = 0; i < job->count; i++) {
        const struct gy_remote_host *host = &job->hosts[i];
        *fds++ = (struct pollfd){.fd = full ? -1 : host->process.out, .events = POLLIN};
        *fds++ = (struct pollfd){.fd = host->process.err, .events = POLLIN};
        *fds++ = (struct pollfd){.fd = host->orders.held > 0 ? host->process.in : -1, .events = POLLOUT};
    }
    if (poll(job->fds, (nfds_t)(fds - job->fds), left > 0 ? (int)(left < 1000 ? left : 1000) : 0) < 0)
        for (fds = job->fds; fds < job->fds + 3 + 3 * (ptrdiff_t)job->count; fds++)
            fds->revents = 0;
}

static void handle_events(struct job *job)
{
    const struct pollfd *fds = job->fds + 3;
    for (int i = 0; i < job->count; i++, fds += 3) {
        struct gy_remote_host *host = &job->hosts[i];
        if (fds[0].revents)
            read_host(job, host);
        if (fds[1].revents && host->process.err >= 0)
            gy_remote_host_listen(host);
        if (fds[2].revents && host->process.in >= 0)
            gy_remote_host_write(host);
    }
    if (job->fds[1].revents)
        (void)gy_byte_queue_write(&job->out, STDOUT_FILENO);
    if (job->fds[2].revents)
        (void)gy_byte_queue_write(&job->err, STDERR_FILENO);
}

static bool anything_left(const struct job *job)
{
    bool timely = job->phase == STARTED || gy_launch_now_ms() < job->deadline_ms;
    for (int i = 0; i < job->count; i++)
        if (!job->hosts[i].reaped)
            return true;
    return timely && (job->out.held > 0 || job->err.held > 0);
}

static void run_until_ended(struct job *job)
{
    while (anything_left(job)) {
        wait_for_event(job);
        handle_events(job);
        reap(job);
        on_signals(job); /* after the hosts: what failed before a Ctrl-C is the cause */
        if (job->phase == CONNECTING)
            start_if_ready(job);
        on_deadline(job);
    }
}

/* Gives a host its part of the job. False: errno. */
static bool order_part(struct gy_remote_host *host, struct gy_host_part *part)
{
    size_t length = 0;
    part->first = host->first;
    part->ranks = host->ranks;
    unsigned char *payload = gy_host_part_encode(part, &length);
    bool ordered = payload && gy_remote_host_order(host, GY_FRAME_JOB, payload, length);
    int problem = errno;
    if (payload)
        explicit_bzero(payload, length);
    free(payload);
    errno = problem;
    return ordered;
}

static void start_hosts(struct job *job, struct gy_host_part *part)
{
    for (int i = 0; i < job->count; i++) {
        struct gy_remote_host *host = &job->hosts[i];
        int problem = gy_remote_shell_start(&job->shell, host->name, &host->process);
        host->reaped = host->process.pid <= 0;
        if (problem) {
            fail(job, host, 1, "%s: '%.100s' cannot be started here: %s", host->name, job->shell.command,
                 strerror(problem));
        } else if (!order_part(host, part)) {
            fail(job, host, 1, "cannot describe the job to %s: %s", host->name,
                 errno == EMSGSIZE ? "its arguments and variables have more than 1 MiB" : strerror(errno));
        }
        if (job->phase != CONNECTING) { /* the others are not started */
            job->count = i + 1;
            gy_remote_host_release(host);
        }
    }
}

static void catch_signals(struct job *job)
{
    static const int numbers[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP};
    sigset_t mask;
    sigemptyset(&mask);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaddset(&mask, numbers[i]);
    sigprocmask(SIG_BLOCK, &mask, &job->shell.mask);
    job->signals = signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC);
    signal(SIGPIPE, SIG_IGN);
}

static void place_hosts(struct job *job, const struct gy_host_list *list)
{
    int first = 0;
    for (int i = 0; i < list->count; i++) {
        job->hosts[i] = (struct gy_remote_host){.name = list->entries[i].name,
                                                .first = first,
                                                .ranks = list->entries[i].ranks,
                                                .process = {-1, -1, -1, -1}};
        first += list->entries[i].ranks;
    }
    job->count = list->count;
}

static void run_job(struct job *job, const struct gy_hosts *hosts)
{
    char folder[4096], secret[GY_JOB_SECRET_BYTES], why[512];
    struct gy_host_part part = {.folder = getcwd(folder, sizeof folder),
                                .secret = secret,
                                .world = job->launch->ranks,
                                .grace_ms = STEP_MS,
                                .label = job->launch->label,
                                .bind = job->launch->bind,
                                .gpus = job->launch->gpus,
                                .argv = (const char **)job->launch->argv,
                                .environment = gy_job_environment(hosts->names, hosts->name_count)};
    if (!part.folder || !part.environment || !job->hosts || !job->fds || job->signals < 0)
        fail(job, NULL, 1, "cannot prepare the job: %s", strerror(errno));
    else if (gy_job_secret(secret, sizeof secret, why, sizeof why))
        fail(job, NULL, 1, "%s", why);
    else {
        place_hosts(job, &hosts->list);
        start_hosts(job, &part);
        explicit_bzero(secret, sizeof secret);
        run_until_ended(job);
    }
    free(part.environment);
}

int gy_hosts_run(const struct gy_launch *launch, const struct gy_hosts *hosts)
{
    size_t count = (size_t)hosts->list.count;
    struct job job = {.launch = launch,
                      .shell = {.command = hosts->ssh},
                      .deadline_ms = gy_launch_now_ms() + ANSWER_MS,
                      .hosts = calloc(count, sizeof *job.hosts),
                      .fds = calloc(3 + 3 * count, sizeof *job.fds)};
    catch_signals(&job);
    run_job(&job, hosts);
    if (job.outcome[0])
        fprintf(stderr, "%s: %s\n", launch->tool, job.outcome);
    if (job.signals >= 0)
        close(job.signals);
    sigprocmask(SIG_SETMASK, &job.shell.mask, NULL);
    gy_byte_queue_free(&job.out);
    gy_byte_queue_free(&job.err);
    free(job.hosts);
    free(job.fds);
    return job.status;
}
