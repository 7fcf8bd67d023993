/* Private memory that the ranks of a host read from one another through the kernel (collectives/mapped.h), when that goes wrong:
 *
 *   withdrawn   a rank aborts, gets its buffer back and writes other bytes to it, while another is about to read it: what that
 *               one reads is not taken for the input, its call fails too
 *   unreadable  the kernel does not read it, as it would not a device's: the call fails everywhere, and the sentence says whose
 *   unproved    the same of 64 KiB, of which the giver itself finds it out: they go through slots
 *               memory it is, and what to set
 *   crowded     ranks that share cores do not read so: copying through slots takes less of them; bound each to a core, too
 *   slow        each read takes half a second by the clock that the library reads: ranks with cores of their own leave it and take
 *               their slots (collectives/ways.h), however long the machine keeps them from a core meanwhile
 *   preferred   by that clock each call takes half a second that reads nothing: an all_reduce, which begins with slots, leaves them,
 *               and then each rank reads all of the other's input, unless a rank's own is also its output
 *
 * An all_gather in place: nobody but the other rank looks at a rank's block. The reader's calls of process_vm_readv and of
 * clock_gettime come here, as this program's symbols go before those of libraries. */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "support/launcher.h"

#define BLOCK ((size_t)64 << 10)
#define ROUNDS 8 /* worlds: what goes wrong may do so in one of them only */
#define LIMIT_NS INT64_C(35000000000)
#define SLOW_NS 500000000
#define SEEN __attribute__((visibility("default"))) /* by libraries */

static struct page {
    _Atomic int reading, overwritten, judged, allowed;
} * page;
static unsigned char *blocks;
static unsigned reads;
static bool waits;    /* the next read, until the bytes are others */
static bool slow;     /* all of them */
static bool unproved; /* none is allowed any more, nor of what is this process's own */
static size_t gathered = BLOCK;
static int64_t ahead_ns; /* this process's clock, by what its slow reads would have taken */
static const char *scenario;

static void await(_Atomic int *flag)
{
    for (int64_t limit = rank_now_ns() + LIMIT_NS; !atomic_load(flag); usleep(200))
        CHECK(rank_now_ns() < limit);
}

SEEN int clock_gettime(clockid_t clock, struct timespec *now_p)
{
    long status = syscall(SYS_clock_gettime, clock, now_p);
    int64_t ns = now_p->tv_nsec + ahead_ns;
    now_p->tv_sec += ns / 1000000000;
    now_p->tv_nsec = ns % 1000000000;
    return (int)status;
}

SEEN ssize_t process_vm_readv(pid_t process, const struct iovec *here, unsigned long heres, const struct iovec *there,
                              unsigned long theres, unsigned long flags)
{
    if (unproved) {
        errno = EFAULT;
        return -1;
    }
    if (process == getpid()) /* may it be offered? */
        return syscall(SYS_process_vm_readv, process, here, heres, there, theres, flags);
    reads++;
    if (slow)
        ahead_ns += SLOW_NS;
    if (waits) {
        waits = false;
        atomic_store(&page->reading, 1);
        await(&page->overwritten);
    }
    return syscall(SYS_process_vm_readv, process, here, heres, there, theres, flags);
}

static gyre_status gather(gyre_comm *comm)
{
    return gyre_all_gather(comm, blocks + (size_t)gyre_comm_rank(comm) * gathered, blocks, gathered, GYRE_UINT8);
}

/* It has all that it needs, and is through as soon as the other one is. */
static void abort_and_overwrite(gyre_comm *comm)
{
    int64_t limit = rank_now_ns() + LIMIT_NS;
    unsigned before = reads;
    gyre_request *request;
    OK(comm, gyre_all_gather_start(comm, blocks, blocks, BLOCK, GYRE_UINT8, &request));
    while (reads == before || !atomic_load(&page->reading)) {
        GIVES(GYRE_IN_PROGRESS, comm, gyre_test(&request));
        CHECK(rank_now_ns() < limit);
    }
    for (int i = 0; i < 100; i++)
        GIVES(GYRE_IN_PROGRESS, comm, gyre_test(&request));
    OK(comm, gyre_comm_abort(comm));
    GIVES(GYRE_ABORTED, comm, gyre_wait(&request));
    memset(blocks, 0xee, BLOCK);
    atomic_store(&page->overwritten, 1);
    await(&page->judged); /* its end would be the end of its memory, too */
}

static void bind_to_core(int rank)
{
    cpu_set_t usable, mine;
    CHECK(sched_getaffinity(0, sizeof usable, &usable) == 0);
    int wanted = rank % CPU_COUNT(&usable);
    size_t cpu = 0;
    for (; !CPU_ISSET(cpu, &usable) || wanted-- > 0; cpu++)
        continue;
    CPU_ZERO(&mine);
    CPU_SET(cpu, &mine);
    CHECK(sched_setaffinity(0, sizeof mine, &mine) == 0);
}

static void run_crowded_rank(int rank)
{
    if (strcmp(scenario, "bound") == 0)
        bind_to_core(rank);
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    gyre_comm *comm = rank_begin(40);
    size_t ranks = (size_t)gyre_comm_size(comm);
    unsigned char *input = malloc(ranks * BLOCK), *output = malloc(ranks * BLOCK);
    CHECK(input && output);
    memset(input, 1 + rank, ranks * BLOCK);
    for (int i = 0; i < 3; i++) {
        OK(comm, gyre_all_to_all(comm, input, output, BLOCK, GYRE_UINT8));
        OK(comm, gyre_broadcast(comm, input, output, BLOCK, GYRE_UINT8, 0));
        CHECK(output[0] == 1 && output[ranks * BLOCK - 1] == ranks);
    }
    CHECK(reads == 0);
    free(input);
    free(output);
    OK(comm, gyre_comm_destroy(comm));
}

/* One more than there are cores. */
static int run_crowded(void)
{
    long ranks = sysconf(_SC_NPROCESSORS_ONLN) + 1;
    if (ranks > RANKS_MOST) {
        printf("skipped: too many cores\n");
        return SKIPPED;
    }
    bool free_to_move = launch((int)ranks, run_crowded_rank, 50, scenario);
    scenario = "bound";
    return !(launch((int)ranks, run_crowded_rank, 50, scenario) && free_to_move);
}

/* In a few calls both ways have been tried. */
static void leave_the_slow_way(gyre_comm *comm)
{
    slow = true;
    for (int i = 0; i < 40; i++)
        OK(comm, gather(comm));
    unsigned before = reads;
    for (int i = 0; i < 100; i++) {
        memset(blocks + (size_t)gyre_comm_rank(comm) * BLOCK, i + gyre_comm_rank(comm), BLOCK);
        OK(comm, gather(comm));
        CHECK(blocks[0] == i && blocks[BLOCK - 1] == i && blocks[BLOCK] == i + 1 && blocks[2 * BLOCK - 1] == i + 1);
    }
    CHECK(reads == before);
}

/* When a call is over, but for the clock that tells the library how long it has taken. */
static void end_of_call(void *user, const gyre_trace_event *event)
{
    static unsigned reads_before;
    (void)user;
    if (event->status == GYRE_SUCCESS && reads == reads_before)
        ahead_ns += SLOW_NS;
    reads_before = reads;
}

/* Are the sums of round `i` right? They, and what the other rank may have read, are its caller's to write over at once. */
static void reduce_all(gyre_comm *comm, int32_t *input, int32_t *output, size_t count, int i)
{
    int rank = gyre_comm_rank(comm);
    for (size_t k = 0; k < count; k++)
        input[k] = (int32_t)k * (rank + 1) + i;
    OK(comm, gyre_all_reduce(comm, input, output, count, GYRE_INT32, GYRE_SUM));
    for (size_t k = 0; k < count; k++)
        CHECK(output[k] == 3 * (int32_t)k + 2 * i);
    memset(input, 0x33, count * sizeof *input);
    memset(output, 0x44, count * sizeof *output);
}

/* 64 KiB, and more than are read at once; the sizes in turn would be no trial. */
static void come_to_prefer_reading(gyre_comm *comm)
{
    static const size_t counts[] = {16384, 16387, (3 << 18) + 5, 1 << 20};
    int rank = gyre_comm_rank(comm);
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        int32_t *input = malloc(counts[c] * sizeof *input), *output = malloc(counts[c] * sizeof *output);
        CHECK(input && output);
        OK(comm, gyre_comm_trace(comm, end_of_call, NULL));
        for (int i = 0; i < 40; i++)
            reduce_all(comm, input, output, counts[c], i);
        OK(comm, gyre_comm_trace(comm, NULL, NULL));
        unsigned before = reads;
        for (int i = 0; i < 6; i++)
            reduce_all(comm, input, output, counts[c], i);
        CHECK(reads >= before + 6);
        for (int i = 0; i < 6; i++) /* one of the two cannot be read */
            reduce_all(comm, input, rank == 0 ? input : output, counts[c], i);
        free(input);
        free(output);
    }
}

static void run_rank(int rank)
{
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); /* where only a parent may read its children otherwise */
    blocks = mmap(NULL, 2 * BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(blocks != MAP_FAILED);
    memset(blocks, 1 + rank, 2 * BLOCK);
    gyre_comm *comm = rank_begin(40);
    for (int i = 0; i < 2; i++) /* both find out whether they can */
        OK(comm, gather(comm));
    unsigned before = reads;
    OK(comm, gather(comm));
    CHECK(blocks[0] == 1 && blocks[BLOCK] == 2);
    if (reads == before) { /* so it is on both */
        atomic_store(&page->allowed, -1);
    } else if (strcmp(scenario, "slow") == 0) {
        leave_the_slow_way(comm);
    } else if (strcmp(scenario, "preferred") == 0) {
        come_to_prefer_reading(comm);
    } else if (strcmp(scenario, "unreadable") == 0) {
        gathered = BLOCK / 2;
        CHECK(rank != 0 || mprotect(blocks, gathered, PROT_NONE) == 0);
        rank_gather(comm, GYRE_SYSTEM);
        GIVES(GYRE_SYSTEM, comm, gather(comm));
        CHECK(rank == 0 || (strstr(gyre_last_error(comm), "cannot read the input of rank 0 through the kernel") &&
                            strstr(gyre_last_error(comm), "GYRE_SHM_READ=0")));
    } else if (strcmp(scenario, "unproved") == 0) {
        unproved = true;
        memset(blocks + (size_t)rank * BLOCK, 7 + rank, BLOCK);
        OK(comm, gather(comm));
        CHECK(blocks[0] == 7 && blocks[BLOCK - 1] == 7 && blocks[BLOCK] == 8 && blocks[2 * BLOCK - 1] == 8);
    } else if (rank == 0) {
        abort_and_overwrite(comm);
    } else {
        waits = true;
        GIVES(GYRE_ABORTED, comm, gather(comm));
        CHECK(atomic_load(&page->overwritten)); /* before it read */
        atomic_store(&page->judged, 1);
    }
    OK(comm, gyre_comm_destroy(comm));
}

int main(int argc, char **argv)
{
    scenario = argc > 1 ? argv[1] : "withdrawn";
    if ((strcmp(scenario, "slow") == 0 || strcmp(scenario, "preferred") == 0) && sysconf(_SC_NPROCESSORS_ONLN) < 2) {
        printf("skipped: ranks that share a core try nothing\n");
        return SKIPPED;
    }
    page = launch_share(sizeof *page);
    if (strcmp(scenario, "crowded") == 0)
        return run_crowded();
    for (int i = 0; i < ROUNDS && atomic_load(&page->allowed) >= 0; i++) {
        memset(page, 0, sizeof *page);
        if (!launch(2, run_rank, 50, scenario))
            return 1;
    }
    if (atomic_load(&page->allowed) >= 0)
        return 0;
    printf("skipped: ranks may not read each other's memory here\n");
    return SKIPPED;
}
