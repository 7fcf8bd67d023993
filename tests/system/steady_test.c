/* The second call of a shape: no allocation; and a 4-byte all_reduce over shared memory, no system call. The argument
 * says which is counted.
 *
 * "allocations": support/allocations.h counts them.
 * "calls": a seccomp filter makes every system call but write and exit a SIGSYS, for 1,000 calls. Where both ranks have
 * a core of their own a wait spins; other processes on this machine may still take the core away and make a wait sleep,
 * rightly, so the driver tries a few times. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/allocations.h"
#include "support/rank.h"

#define INTERRUPTED 3 /* exit status: a system call was made */

#define FLIGHT 40

static gyre_comm *comm, *twin;
static float input[70000], output[70000], many[FLIGHT][8000];

static void call_all(void)
{
    gyre_request *requests[2];
    OK(comm, gyre_all_reduce(comm, input, output, 1, GYRE_FLOAT32, GYRE_SUM));
    OK(comm, gyre_all_reduce(comm, input, output, 70000, GYRE_FLOAT32, GYRE_SUM));
    OK(comm, gyre_all_gather(comm, input, output, 1000, GYRE_FLOAT32));
    OK(comm, gyre_reduce_scatter(comm, input, output, 1000, GYRE_FLOAT32, GYRE_MAX));
    OK(comm, gyre_broadcast(comm, input, output, 1000, GYRE_FLOAT32, 0));
    OK(comm, gyre_barrier(comm));
    OK(comm, gyre_all_reduce_start(comm, input, input, 100, GYRE_FLOAT32, GYRE_MAX, &requests[0]));
    OK(comm, gyre_barrier_start(comm, &requests[1]));
    OK(comm, gyre_wait_all(requests, 2));
}

/* Many in flight, all at the same time on one of the ranks: the other starts its own when it has passed the barrier. */
static void call_many(int round)
{
    gyre_request *requests[FLIGHT];
    if (round % 2 == gyre_comm_rank(comm))
        OK(twin, gyre_barrier(twin));
    for (int i = 0; i < FLIGHT; i++)
        OK(comm, gyre_all_reduce_start(comm, many[i], many[i], 8000, GYRE_FLOAT32, GYRE_SUM, &requests[i]));
    if (round % 2 != gyre_comm_rank(comm))
        OK(twin, gyre_barrier(twin));
    OK(comm, gyre_wait_all(requests, FLIGHT));
}

/* Of a root of its own: the receiver finds it there, or waits for longer than it polls without a request. */
static void call_late(bool late)
{
    if (gyre_comm_rank(comm) == (late ? 1 : 0))
        usleep(20000);
    OK(comm, gyre_broadcast(comm, input, output, 1000, GYRE_FLOAT32, 1));
    OK(comm, gyre_barrier(comm));
}

static void test_allocations(void)
{
    OK(comm, gyre_comm_duplicate(comm, &twin));
    for (int i = 0; i < 4; i++) {
        call_all();
        call_many(i);
        call_late(false);
    }
    OK(comm, gyre_barrier(comm));
    size_t before = allocations;
    CHECK(before > 0); /* libgyre's allocations do come by here */
    for (int i = 0; i < 50; i++) {
        call_all();
        call_many(i);
    }
    call_late(true);
    if (allocations != before)
        rank_fail("50 rounds of known shapes made %zu allocations", allocations - before);
}

static void on_call(int number, siginfo_t *info, void *context)
{
    char text[80];
    (void)number;
    (void)context;
    int length = snprintf(text, sizeof text, "system call %d was made\n", info->si_syscall);
    if (write(2, text, (size_t)length) < 0)
        _exit(INTERRUPTED);
    _exit(INTERRUPTED);
}

static bool clock_is_cheap(void)
{
    char name[32] = "";
    FILE *file = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
    if (file && !fgets(name, sizeof name, file))
        name[0] = 0;
    if (file)
        fclose(file);
    return strncmp(name, "tsc", 3) == 0 || strncmp(name, "kvm-clock", 9) == 0 || strncmp(name, "arch_sys", 8) == 0;
}

static void forbid_calls(void)
{
    /* Where the clock is no shared page, reading it is a system call of this machine's, not of gyre's. */
    unsigned clock = clock_is_cheap() ? (unsigned)SYS_write : (unsigned)SYS_clock_gettime;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, clock, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    struct sigaction action = {.sa_sigaction = on_call, .sa_flags = SA_SIGINFO};
    sigaction(SIGSYS, &action, NULL);
    alarm(0);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
        perror("seccomp cannot be used here");
        _exit(SKIPPED);
    }
}

/* Only now: before, gyre would have seen one core for two ranks, and given it up in every wait. */
static void take_core(void)
{
    cpu_set_t usable, mine;
    size_t core = 0;
    int skip = gyre_comm_rank(comm);
    CHECK(sched_getaffinity(0, sizeof usable, &usable) == 0 && CPU_COUNT(&usable) >= gyre_comm_size(comm));
    while (!CPU_ISSET(core, &usable) || skip-- > 0)
        core++;
    CPU_ZERO(&mine);
    CPU_SET(core, &mine);
    CHECK(sched_setaffinity(0, sizeof mine, &mine) == 0);
}

static void test_calls(void)
{
    take_core();
    for (int i = 0; i < 2000; i++)
        OK(comm, gyre_all_reduce(comm, input, output, 1, GYRE_FLOAT32, GYRE_SUM));
    forbid_calls();
    for (int i = 0; i < 1000; i++) {
        if (gyre_all_reduce(comm, input, output, 1, GYRE_FLOAT32, GYRE_SUM) != GYRE_SUCCESS)
            _exit(1);
    }
}

int main(int argc, char **argv)
{
    bool calls = argc > 1 && strcmp(argv[1], "calls") == 0;
#ifndef COUNTING
    fprintf(stderr, "a sanitizer's allocator cannot be counted here\n");
    return SKIPPED;
#endif
    comm = rank_begin(calls ? 60 : 200);
    calls ? test_calls() : test_allocations();
    if (calls)
        _exit(0); /* the leave message needs system calls, which are forbidden now */
    OK(comm, gyre_barrier(comm));
    OK(NULL, gyre_comm_destroy(twin));
    OK(NULL, gyre_comm_destroy(comm));
    _exit(0);
}
