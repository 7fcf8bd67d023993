/* Each rank is a process group of its own, ends with its launcher and has an alarm. They meet in a file of the folder
 * of fault_traces.c, so no two tests can want one port. The launcher is the reaper of whatever a rank starts. */
#include "fault_ranks.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "fault_calls.h"
#include "fault_noise.h"
#include "fault_traces.h"
#include "support/rank.h"

#define END_NS INT64_C(60000000000)
#define OTHER_CLOCKS "600" /* s: of gyre, where a scenario does not set them; so that a rank that waits for one hangs */

static struct fault_report *reports;
static struct fault_round current;
static pid_t pids[FAULT_RANKS_MOST];
static bool gone[FAULT_RANKS_MOST];
static int64_t victim_ended;
static struct fault_turns before_hit[FAULT_RANKS_MOST];
static _Atomic int64_t *ahead_ns; /* of the true time are the clocks of the ranks; shared */

/* The library asks the program for the time. */
__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *now_p)
{
    static int (*true_time)(clockid_t clock, struct timespec * now_p);
    if (!true_time)
        *(void **)&true_time = dlsym(RTLD_NEXT, "clock_gettime");
    int status = true_time(clock, now_p);
    if (ahead_ns && (clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE))
        now_p->tv_sec += (time_t)(*ahead_ns / 1000000000);
    return status;
}

void fault_ranks_pass_time(int64_t ns)
{
    *ahead_ns += ns;
}

static void set_number(const char *name, int value)
{
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

static void prepare_rank(int rank)
{
    char text[128];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);
    alarm(150);
    set_number("RANK", rank);
    set_number("WORLD_SIZE", current.ranks);
    snprintf(text, sizeof text, "file://%s/meet", fault_traces_folder());
    setenv("GYRE_ADDRESS", text, 1);
    setenv("GYRE_INTERFACE", "lo", 1);
    setenv("GYRE_SECRET", "fault-test-secret-0123456789", 1);
    if (current.hosts > 0) {
        snprintf(text, sizeof text, "host-%d", rank * current.hosts / current.ranks);
        setenv("GYRE_HOST_ID", text, 1);
    }
    setenv("GYRE_LOG", "error", 0);
    setenv("GYRE_STALL_TIMEOUT", OTHER_CLOCKS, 0);
    setenv("GYRE_PEER_TIMEOUT", OTHER_CLOCKS, 0);
    setenv("GYRE_TIMEOUT", OTHER_CLOCKS, 0);
    int null = open("/dev/null",
                    O_WRONLY | O_CLOEXEC); /* gyre logs each error where it is decided: hundreds of lines */
    if (!getenv("GYRE_TEST_VERBOSE") && null >= 0)
        dup2(null, 2);
}

static gyre_status make_calls(struct fault_report *report, gyre_comm *comm, int rank)
{
    gyre_status status = GYRE_SUCCESS;
    for (uint64_t number = 1; status == GYRE_SUCCESS && (current.calls == 0 || number <= current.calls); number++) {
        if (current.before)
            current.before(&current, rank, number);
        report->entered_ns = rank_now_ns();
        status = fault_call(comm, current.seed, number);
        report->when_ns = rank_now_ns();
        if (status == GYRE_SUCCESS)
            __atomic_store_n(&report->calls, number, __ATOMIC_RELEASE);
    }
    return status;
}

static _Noreturn void run_rank(int rank)
{
    struct fault_report *report = &reports[rank];
    gyre_comm *comm = NULL;
    prepare_rank(rank);
    report->status = gyre_comm_create(NULL, &comm);
    report->when_ns = rank_now_ns();
    if (report->status == GYRE_SUCCESS) {
        report->met = true;
        report->status = make_calls(report, comm, rank);
    }
    report->turns = fault_turns_of(getpid());
    snprintf(report->text, sizeof report->text, "%s", gyre_last_error(comm));
    __atomic_store_n(&report->done, 1, __ATOMIC_RELEASE);
    gyre_comm_destroy(comm);
    exit(0); /* not _exit: LeakSanitizer looks now */
}

void fault_ranks_start(const struct fault_round *round)
{
    if (!reports) {
        size_t bytes = FAULT_RANKS_MOST * sizeof *reports;
        reports = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        CHECK(reports != MAP_FAILED && !prctl(PR_SET_CHILD_SUBREAPER, 1));
        ahead_ns = mmap(NULL, sizeof *ahead_ns, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        CHECK(ahead_ns != MAP_FAILED);
    }
    current = *round;
    memset(reports, 0, FAULT_RANKS_MOST * sizeof *reports);
    memset(gone, 0, sizeof gone);
    fflush(NULL);
    fault_noise_begin();
    for (int i = 0; i < current.ranks; i++) {
        pids[i] = fork();
        CHECK(pids[i] >= 0);
        if (pids[i] == 0)
            run_rank(i);
        setpgid(pids[i], pids[i]);
    }
}

const struct fault_report *fault_ranks_report(int rank)
{
    return &reports[rank];
}

static bool is_done(int rank)
{
    return __atomic_load_n(&reports[rank].done, __ATOMIC_ACQUIRE);
}

void fault_ranks_wait_calls(uint64_t calls)
{
    int64_t limit = rank_now_ns() + 60000000000;
    for (int i = 0; i < current.ranks; i++) {
        while (__atomic_load_n(&reports[i].calls, __ATOMIC_ACQUIRE) < calls) {
            REQUIRE(rank_now_ns() < limit && (!is_done(i) || reports[i].status == GYRE_SUCCESS),
                    "the ranks did not get to call %d", (int)calls);
            usleep(200);
        }
    }
}

void fault_ranks_wait_reports(double seconds)
{
    int64_t limit = rank_now_ns() + (int64_t)(seconds * 1e9);
    for (int i = 0; i < current.ranks; i++) {
        while (i != current.victim && !is_done(i)) {
            usleep(500);
            REQUIRE(rank_now_ns() < limit, "rank %d hangs: no report after %.0f s", i, seconds);
        }
    }
}

bool fault_ranks_wait_naps(int naps)
{
    for (int i = 0; i < current.ranks; i++) {
        while (i != current.victim && !is_done(i)) {
            if (naps-- == 0)
                return false;
            usleep(1000);
        }
    }
    return true;
}

int64_t fault_ranks_hit(int signal_number)
{
    for (int i = 0; i < current.ranks; i++)
        before_hit[i] = fault_turns_of(pids[i]);
    int64_t when = rank_now_ns();
    siginfo_t about;
    kill(pids[current.victim], signal_number);
    if (signal_number == SIGKILL)
        CHECK(waitid(P_PID, (id_t)pids[current.victim], &about, WEXITED | WNOWAIT) == 0);
    victim_ended = rank_now_ns();
    return when;
}

int64_t fault_ranks_ended(void)
{
    return victim_ended;
}

int64_t fault_ranks_waited(int rank)
{
    int64_t victim = 0, other = 0, own = 0, used = 0;
    siginfo_t about;
    waitid(P_PID, (id_t)pids[current.victim], &about, WEXITED | WNOWAIT);
    for (int i = 0; i < current.ranks; i++) {
        struct fault_turns now = i == current.victim ? fault_turns_of(pids[i]) : reports[i].turns;
        int64_t waited = now.waited_ns - before_hit[i].waited_ns;
        used += now.used_ns - before_hit[i].used_ns;
        if (i == current.victim)
            victim = waited;
        else if (i == rank)
            own = waited;
        else if (waited > other)
            other = waited;
    }
    int64_t others_turns = victim + other + own - used;
    return others_turns > 0 ? others_turns : 0;
}

static void kill_all(void)
{
    fault_noise_end();
    for (int i = 0; i < current.ranks; i++)
        kill(-pids[i], SIGKILL);
    while (wait(NULL) > 0) /* adopted grandchildren too */
        ;
}

void fault_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "; the victim is rank %d\n", current.victim);
    for (int i = 0; i < current.ranks; i++)
        fprintf(stderr, "  rank %d: %llu calls, %s, %s: %s\n", i, (unsigned long long)reports[i].calls,
                reports[i].done ? "reported" : "no report", gyre_status_name(reports[i].status), reports[i].text);
    kill_all();
    fault_traces_sweep();
    fault_traces_end();
    exit(1);
}

static void reap(int rank, bool wait_for_it)
{
    int status = 0;
    if (gone[rank] || waitpid(pids[rank], &status, wait_for_it ? 0 : WNOHANG) != pids[rank])
        return;
    gone[rank] = true;
    REQUIRE(rank == current.victim || (WIFEXITED(status) && WEXITSTATUS(status) == 0), "rank %d ended with %#x", rank,
            (unsigned)status);
}

void fault_ranks_end(void)
{
    char left[256];
    int64_t limit = rank_now_ns() + END_NS;
    if (current.victim >= 0) {
        kill(-pids[current.victim], SIGKILL); /* and what it has forked */
        reap(current.victim, true);
    }
    for (int i = 0; i < current.ranks; i++) {
        for (reap(i, false); !gone[i]; reap(i, false)) {
            REQUIRE(rank_now_ns() < limit, "rank %d does not end", i);
            usleep(200);
        }
    }
    fault_noise_end();
    while (wait(NULL) > 0)
        ;
    CHECK(errno == ECHILD);
    if (current.victim == 0)
        fault_traces_sweep(); /* the meeting's file, if rank 0 was killed while the ranks met */
    REQUIRE(fault_traces_none(left, sizeof left), "something is left behind: %s", left);
}
