/* Processes that are mortal: mortals.h says what for. A child draws other numbers than its parent and its siblings. */
#include "system/mortals.h"

#include <dirent.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>

struct mortals mortals;

#define STOPS (-1)
#define EMPTY_MESSAGE 8 /* bytes of a stream's message without a body: its header */
#define LONG_MESSAGE 64 /* longer than all that a member says to joiners, but for WELCOME */
#define FDS 1024

static uint64_t chance;
static _Atomic int *calls_left;    /* of each process, until it stops; 0: it does not; STOPS: it is about to. Shared */
static _Atomic int *welcomes_left; /* likewise */
static int this_process = -1;      /* −1: the launcher */
static bool called[FDS];           /* in this process: an empty message has gone there, CALL */

/* ---- where it stops ---- */

#define SEEN __attribute__((visibility("default"))) /* by the library, too */

static void count_down(_Atomic int *counts)
{
    int left = atomic_load(&counts[this_process]);
    while (left > 0 && !atomic_compare_exchange_weak(&counts[this_process], &left, left > 1 ? left - 1 : STOPS))
        continue;
    if (left == 1)
        raise(SIGSTOP);
}

static void count_call(void)
{
    if (this_process >= 0)
        count_down(calls_left);
}

static void count_welcome(int fd, size_t bytes)
{
    if (this_process < 0 || fd < 0 || fd >= FDS || atomic_load(&welcomes_left[this_process]) <= 0)
        return;
    called[fd] |= bytes == EMPTY_MESSAGE;
    if (called[fd] && bytes > LONG_MESSAGE)
        count_down(welcomes_left);
}

SEEN ssize_t send(int fd, const void *bytes, size_t count, int flags)
{
    count_call();
    count_welcome(fd, count);
    return syscall(SYS_sendto, fd, bytes, count, flags, NULL, 0);
}

SEEN ssize_t recv(int fd, void *bytes, size_t count, int flags)
{
    count_call();
    return syscall(SYS_recvfrom, fd, bytes, count, flags, NULL, NULL);
}

SEEN int connect(int fd, const struct sockaddr *address, socklen_t bytes)
{
    count_call();
    return (int)syscall(SYS_connect, fd, address, bytes);
}

void mortals_stop_at(int own, int calls)
{
    atomic_store(&calls_left[own], calls);
}

void mortals_stop_at_welcome(int own, int welcomes)
{
    atomic_store(&welcomes_left[own], welcomes);
}

bool mortals_has_stopped(int own)
{
    siginfo_t about = {0};
    return waitid(P_PID, (id_t)mortals.pids[own], &about, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
           about.si_pid == mortals.pids[own];
}

void mortals_wake(int own)
{
    siginfo_t about;
    waitid(P_PID, (id_t)mortals.pids[own], &about, WSTOPPED | WNOHANG);
    kill(mortals.pids[own], SIGCONT);
}

/* ---- the launcher ---- */

void mortals_seed(void)
{
    const char *seed = getenv("GYRE_TEST_SEED");
    chance = seed ? strtoull(seed, NULL, 0) : (uint64_t)rank_now_ns();
    printf("seed %llu\n", (unsigned long long)chance);
    fflush(stdout);
}

uint64_t mortals_draw(uint64_t below)
{
    chance = chance * 6364136223846793005u + 1442695040888963407u;
    return below ? (chance >> 33) % below : 0;
}

void mortals_shuffle(int *order, int ranks, int job)
{
    for (int i = 0; i < ranks; i++)
        order[i] = i;
    order[job % ranks] = ranks - 1;
    order[ranks - 1] = job % ranks;
    for (int i = ranks - 2; i > 0; i--) {
        int j = (int)mortals_draw((uint64_t)i + 1), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

void mortals_begin(void)
{
    snprintf(mortals.folder, sizeof mortals.folder, "/tmp/gyre-test-XXXXXX");
    CHECK(mkdtemp(mortals.folder));
    if (!calls_left)
        calls_left = launch_share(MORTALS_MOST * sizeof *calls_left);
    if (!welcomes_left)
        welcomes_left = launch_share(MORTALS_MOST * sizeof *welcomes_left);
    for (int own = 0; own < MORTALS_MOST; own++) {
        mortals_stop_at(own, 0);
        mortals_stop_at_welcome(own, 0);
    }
    mortals.started = 0;
    mortals.alive = 0;
}

void mortals_end(void)
{
    char file[512];
    DIR *all = opendir(mortals.folder);
    CHECK(all);
    for (struct dirent *entry; (entry = readdir(all));) {
        snprintf(file, sizeof file, "%s/%.255s", mortals.folder, entry->d_name);
        if (entry->d_name[0] != '.')
            unlink(file);
    }
    closedir(all);
    rmdir(mortals.folder);
}

/* The ranks of a world lie side by side on their hosts, joiners come to one host after the other. */
static void choose_host(int own, int ranks)
{
    char text[32];
    if (mortals.hosts == 0)
        return;
    snprintf(text, sizeof text, "host-%d", ranks > 0 ? own * mortals.hosts / ranks : own % mortals.hosts);
    setenv("GYRE_HOST_ID", text, 1);
}

int mortals_start(int ranks, void (*prepare)(int own), void (*body)(int own))
{
    int own = mortals.started++;
    CHECK(own < MORTALS_MOST);
    mortals.pids[own] = fork();
    CHECK(mortals.pids[own] >= 0);
    if (mortals.pids[own] == 0) {
        chance += (uint64_t)own << 40;
        this_process = own;
        launch_prepare(own, ranks, mortals.folder);
        if (ranks == 0) {
            setenv("GYRE_JOIN", "1", 1);
            unsetenv("RANK");
            unsetenv("WORLD_SIZE");
        }
        choose_host(own, ranks);
        if (prepare)
            prepare(own);
        body(own);
        _exit(0);
    }
    setpgid(mortals.pids[own], mortals.pids[own]);
    mortals.alive |= UINT64_C(1) << own;
    return own;
}

void mortals_forget(int own)
{
    mortals.alive &= ~(UINT64_C(1) << own);
}

void mortals_kill(int own)
{
    kill(mortals.pids[own], SIGKILL);
    mortals_forget(own);
    mortals.deaths[own]++;
}

bool mortals_has_ended(int own)
{
    siginfo_t about = {0};
    return waitid(P_PID, (id_t)mortals.pids[own], &about, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           about.si_pid == mortals.pids[own];
}

static bool has_ended(int own, int *status_p)
{
    if (waitpid(mortals.pids[own], status_p, WNOHANG) != mortals.pids[own])
        return false;
    mortals.pids[own] = 0;
    return true;
}

int mortals_wait(int own)
{
    int status = 0;
    int64_t limit = rank_now_ns() + MORTALS_HANG_NS;
    while (!has_ended(own, &status)) {
        if (rank_now_ns() > limit)
            mortals_give_up("a process does not end");
        usleep(200);
    }
    return status;
}

void mortals_reap(int own, bool killed)
{
    int status = mortals_wait(own);
    if (killed ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL : WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return;
    fprintf(stderr, "process %d ended with %#x\n", own, (unsigned)status);
    mortals_give_up("a process ended wrongly");
}

void mortals_await(uint64_t who, bool (*ready)(int own))
{
    int64_t limit = rank_now_ns() + MORTALS_HANG_NS;
    for (int own = 0; own < mortals.started; own++) {
        int status;
        while (who >> own & 1 && !ready(own)) {
            if (has_ended(own, &status))
                mortals_give_up("one that lives has ended");
            if (rank_now_ns() > limit)
                mortals_give_up("one that lives hangs");
            usleep(200);
        }
    }
}

bool mortals_await_stop(int own, bool (*ready)(int own))
{
    int64_t limit = rank_now_ns() + MORTALS_HANG_NS;
    for (; !mortals_has_stopped(own); usleep(500)) {
        bool all = true;
        for (int i = 0; i < mortals.started; i++)
            all &= !mortals_lives(i) || ready(i);
        if (all && atomic_exchange(&calls_left[own], 0) != STOPS)
            return false;
        if (all) /* its signal is still to come */
            atomic_store(&calls_left[own], STOPS);
        if (rank_now_ns() > limit)
            mortals_give_up("one neither stops nor goes on");
    }
    return true;
}

_Noreturn void mortals_give_up(const char *what)
{
    fprintf(stderr, "%s; alive are %#llx\n", what, (unsigned long long)mortals.alive);
    for (int own = 0; own < mortals.started; own++) {
        fprintf(stderr, "  process %d (%d): ", own, mortals.pids[own]);
        mortals.tell(own);
    }
    if (getenv("GYRE_TEST_HOLD"))
        sleep(1000);
    for (int own = 0; own < mortals.started; own++)
        if (mortals.pids[own] > 0)
            kill(-mortals.pids[own], SIGKILL);
    exit(1);
}

void mortals_run_jobs(const char *scenario, int ranks, int most, int (*run)(int ranks, const int *order, int job))
{
    int deaths = 0;
    mortals_seed();
    for (int job = 0; deaths < most; job++) {
        int order[MORTALS_MOST];
        mortals_begin();
        mortals_shuffle(order, ranks, job);
        deaths += run(ranks, order, job);
        mortals_end();
    }
    printf("%s: %d deaths of %d ranks%s, by rank:", scenario, deaths, ranks, mortals.hosts ? " on several hosts" : "");
    for (int own = 0; own < ranks; own++)
        printf(" %d", mortals.deaths[own]);
    puts("");
}
