/* Each sleeper records when it went to sleep and when it was back. The reader waits until all have been back after
 * the end of the time in question, so it also sees that a machine stood still if it stood still itself. */
#include "fault_noise.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "support/rank.h"

#define SLEEPERS_MOST 8
#define SLEEPS 32768 /* kept: half a minute */

struct sleeper {
    uint64_t count; /* written by the sleeper with release */
    struct {
        int64_t began, ended;
    } sleep[SLEEPS];
};

static struct sleeper *sleepers;
static pid_t pids[SLEEPERS_MOST];
static int sleeping;

static _Noreturn void sleep_on(size_t core, struct sleeper *sleeper)
{
    cpu_set_t only;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    CPU_ZERO(&only);
    CPU_SET(core, &only);
    sched_setaffinity(0, sizeof only, &only);
    for (uint64_t i = 0;; i++) {
        sleeper->sleep[i % SLEEPS].began = rank_now_ns();
        usleep(1000);
        sleeper->sleep[i % SLEEPS].ended = rank_now_ns();
        __atomic_store_n(&sleeper->count, i + 1, __ATOMIC_RELEASE);
    }
}

void fault_noise_begin(void)
{
    cpu_set_t usable;
    if (!sleepers)
        sleepers = mmap(NULL, SLEEPERS_MOST * sizeof *sleepers, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                        0);
    CHECK(sleepers != MAP_FAILED && sched_getaffinity(0, sizeof usable, &usable) == 0);
    sleeping = 0;
    for (size_t core = 0; core < CPU_SETSIZE && sleeping < SLEEPERS_MOST; core++) {
        if (!CPU_ISSET(core, &usable))
            continue;
        sleepers[sleeping].count = 0;
        pids[sleeping] = fork();
        CHECK(pids[sleeping] >= 0);
        if (pids[sleeping] == 0)
            sleep_on(core, &sleepers[sleeping]);
        sleeping++;
    }
}

void fault_noise_end(void)
{
    for (; sleeping > 0; sleeping--) {
        kill(pids[sleeping - 1], SIGKILL);
        waitpid(pids[sleeping - 1], NULL, 0);
    }
}

static int64_t noise_of(const struct sleeper *sleeper, int64_t from, int64_t to)
{
    uint64_t count;
    int64_t noise = 0, limit = rank_now_ns() + 5000000000;
    do {
        count = __atomic_load_n(&sleeper->count, __ATOMIC_ACQUIRE);
        usleep(100);
    } while ((count == 0 || sleeper->sleep[(count - 1) % SLEEPS].ended < to) && rank_now_ns() < limit);
    for (uint64_t i = count; i > 0 && count - i < SLEEPS - 1 && sleeper->sleep[(i - 1) % SLEEPS].ended > from; i--) {
        int64_t late = sleeper->sleep[(i - 1) % SLEEPS].ended - sleeper->sleep[(i - 1) % SLEEPS].began - 1000000;
        if (sleeper->sleep[(i - 1) % SLEEPS].began < to && late > noise)
            noise = late;
    }
    return noise;
}

struct fault_turns fault_turns_of(pid_t pid)
{
    struct fault_turns turns = {0};
    struct timespec used;
    clockid_t clock;
    char path[64];
    long long waited;
    snprintf(path, sizeof path, "/proc/%d/schedstat", (int)pid);
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%*d %lld", &waited) == 1)
        turns.waited_ns = waited;
    if (file)
        fclose(file);
    if (clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &used) == 0)
        turns.used_ns = (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
    return turns;
}

int64_t fault_noise(int64_t from, int64_t to)
{
    int64_t noise = 0;
    for (int i = 0; i < sleeping; i++) {
        int64_t one = noise_of(&sleepers[i], from, to);
        noise = one > noise ? one : noise;
    }
    return noise;
}
