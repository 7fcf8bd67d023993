/* Private memory that the ranks of a host read from one another through the kernel (collectives/shm/zero_copy.h),
 * when that goes wrong:
 *
 *   withdrawn        a rank aborts, gets its buffer back and writes other bytes to it, while another is about to read
 *                    it: what that one reads is not taken for the input, its call fails too
 *   unreadable       the kernel does not read it, as it would not a device's: the call fails on all ranks, and the
 *                    error message names the memory's rank, and the setting
 *   unproved         the same of 64 KiB, of which the sender itself finds it out: they go through slots
 *   oversubscribed   ranks that share cores do not read so: copying through slots takes less of them; bound each to a
 *                    core, too
 *   slow             each read takes half a second by the clock that the library reads: ranks with cores of their own
 *                    leave it and use their slots (collectives/shm/autotune.h), however long the machine keeps them
 *                    from a core meanwhile
 *   preferred        by that clock each call takes half a second that reads nothing: an all_reduce, which begins with
 *                    slots, leaves them, and then each rank reads all of the other's input, to the same bits. If a
 *                    rank's own is also its output, the other one reads none of it, and that rank its slice
 *   all              withdrawn, of an all_reduce in which each rank reads all: before the first byte, or when a part
 *                    has come
 *
 * An all_gather in place: only the other rank reads a rank's block. The reader's calls of process_vm_readv and of
 * clock_gettime come here, as this program's symbols go before those of libraries. */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "order_data.h"
#include "support/launcher.h"

#define BLOCK ((size_t)64 << 10)
#define ROUNDS 8 /* worlds: what goes wrong may do so in one of them only */
#define LIMIT_NS INT64_C(35000000000)
#define SLOW_NS 500000000
#define USUAL_NS 100000000
#define TRIED 8                                     /* reads of a further trial: calls may take longer now */
#define FEW 64                                      /* calls, in which all ways have been tried */
#define SEEN __attribute__((visibility("default"))) /* by libraries */

static struct page {
    _Atomic int reading, overwritten, checked, allowed;
    int round;
} * page;
static unsigned char *blocks;
static unsigned reads;
static size_t read_bytes;
static unsigned waits; /* until the bytes are others: the read of this number from now on; 0: none does */
static bool slow;      /* all of them */
static bool unproved;  /* none is allowed any more, nor of what is this process's own */
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
    if (waits > 0 && --waits == 0) {
        atomic_store(&page->reading, 1);
        await(&page->overwritten);
    }
    ssize_t got = syscall(SYS_process_vm_readv, process, here, heres, there, theres, flags);
    size_t wanted = here[0].iov_len; /* what follows proves whose memory it is */
    read_bytes += got < 0 ? 0 : (size_t)got < wanted ? (size_t)got : wanted;
    return got;
}

static gyre_status gather(gyre_comm *comm)
{
    return gyre_all_gather(comm, blocks + (size_t)gyre_comm_rank(comm) * gathered, blocks, gathered, GYRE_UINT8);
}

/* It has all that it needs of what has been started, and is through as soon as the other one is. */
static void abort_and_overwrite(gyre_comm *comm, gyre_request *request, void *given, size_t bytes)
{
    int64_t limit = rank_now_ns() + LIMIT_NS;
    while (!atomic_load(&page->reading)) {
        GIVES(GYRE_IN_PROGRESS, comm, gyre_test(&request));
        CHECK(rank_now_ns() < limit);
    }
    for (int i = 0; i < 100; i++)
        GIVES(GYRE_IN_PROGRESS, comm, gyre_test(&request));
    OK(comm, gyre_comm_abort(comm));
    GIVES(GYRE_ABORTED, comm, gyre_wait(&request));
    memset(given, 0xee, bytes);
    atomic_store(&page->overwritten, 1);
    await(&page->checked); /* its end would be the end of its memory, too */
}

static void abort_gathering(gyre_comm *comm)
{
    gyre_request *request;
    OK(comm, gyre_all_gather_start(comm, blocks, blocks, BLOCK, GYRE_UINT8, &request));
    abort_and_overwrite(comm, request, blocks, BLOCK);
}

static void be_told_of_the_abort(gyre_comm *comm, gyre_status status)
{
    GIVES(GYRE_ABORTED, comm, status);
    CHECK(atomic_load(&page->overwritten)); /* before it read */
    atomic_store(&page->checked, 1);
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

static void run_oversubscribed_rank(int rank)
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
static int run_oversubscribed(void)
{
    long ranks = sysconf(_SC_NPROCESSORS_ONLN) + 1;
    if (ranks > RANKS_MOST) {
        printf("skipped: too many cores\n");
        return SKIPPED;
    }
    bool free_to_move = launch((int)ranks, run_oversubscribed_rank, 50, scenario);
    scenario = "bound";
    return !(launch((int)ranks, run_oversubscribed_rank, 50, scenario) && free_to_move);
}

static void leave_the_slow_way(gyre_comm *comm)
{
    slow = true;
    for (int i = 0; i < FEW; i++)
        OK(comm, gather(comm));
    unsigned before = reads;
    for (int i = 0; i < 100; i++) {
        memset(blocks + (size_t)gyre_comm_rank(comm) * BLOCK, i + gyre_comm_rank(comm), BLOCK);
        OK(comm, gather(comm));
        CHECK(blocks[0] == i && blocks[BLOCK - 1] == i && blocks[BLOCK] == i + 1 && blocks[2 * BLOCK - 1] == i + 1);
    }
    CHECK(reads - before <= TRIED);
}

/* When a call is over, but for the clock that tells the library how long it has taken. */
static void end_of_call(void *user, const gyre_trace_event *event)
{
    static unsigned reads_before;
    (void)user;
    if (event->status == GYRE_SUCCESS)
        ahead_ns += reads == reads_before ? SLOW_NS : USUAL_NS;
    reads_before = reads;
}

/* True if the sums of round `i` are right. Their caller may write over them, and over what the other rank may have
 * read, at once. */
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

/* By the clock of the arbiter reading is faster, for calls of this size, and always takes the same time: the time
 * that types and sizes take does not count. */
static void come_to_prefer_reading(gyre_comm *comm, int32_t *input, int32_t *output, size_t count)
{
    OK(comm, gyre_comm_trace(comm, end_of_call, NULL));
    for (int i = 0; i < FEW; i++)
        reduce_all(comm, input, output, count, i);
}

/* Six calls, in each of which this rank reads so many bytes of the other one's input. */
static void expect_read(gyre_comm *comm, int32_t *input, int32_t *output, size_t count, size_t bytes)
{
    size_t before = read_bytes;
    for (int i = 0; i < 6; i++)
        reduce_all(comm, input, output, count, i);
    CHECK(read_bytes - before == 6 * bytes);
}

/* Bits on which order and rounding show, once through slots, as both are in place, and once read. */
static void expect_same_bits(gyre_comm *comm, unsigned char *input, unsigned char *output, size_t bytes)
{
    static const gyre_dtype dtypes[] = {GYRE_FLOAT32, GYRE_FLOAT64, GYRE_FLOAT16, GYRE_BFLOAT16};
    static const gyre_op ops[] = {GYRE_SUM, GYRE_MAX};
    unsigned char *through_slots = malloc(bytes);
    CHECK(through_slots);
    for (unsigned i = 0; i < 16; i++) {
        gyre_dtype dtype = dtypes[i % 4],
                   made = gyre_dtype_size(dtype) < 4 ? GYRE_INT32 : dtype; /* short ones: any bits */
        size_t count = bytes / gyre_dtype_size(dtype);
        OK(comm, gyre_comm_set(comm, "order", i < 8 ? "shape" : "canonical"));
        order_fill(input, bytes / gyre_dtype_size(made), made, gyre_comm_rank(comm), i);
        memcpy(through_slots, input, bytes);
        size_t before = read_bytes;
        OK(comm, gyre_all_reduce(comm, through_slots, through_slots, count, dtype, ops[i / 4 % 2]));
        CHECK(read_bytes == before);
        OK(comm, gyre_all_reduce(comm, input, output, count, dtype, ops[i / 4 % 2]));
        CHECK(read_bytes == before + count * gyre_dtype_size(dtype));
        CHECK(memcmp(output, through_slots, count * gyre_dtype_size(dtype)) == 0);
    }
    OK(comm, gyre_comm_set(comm, "order", "shape"));
    free(through_slots);
}

/* 64 KiB, and more than are read at once; the sizes in turn would be no trial. Of elements of all lengths there are
 * whole ones. */
static void read_all_of_it(gyre_comm *comm, int rank)
{
    static const size_t counts[] = {16384, 16386, (3 << 18) + 6, 1 << 20};
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        size_t count = counts[c], slice = rank == 0 ? count / 2 : count - count / 2;
        int32_t *input = malloc(count * sizeof *input), *output = malloc(count * sizeof *output);
        CHECK(input && output);
        come_to_prefer_reading(comm, input, output, count);
        expect_read(comm, input, output, count, count * sizeof *input);
        for (int in_place = 0; in_place < 2; in_place++) /* one of the two cannot be read */
            expect_read(comm, input, rank == in_place ? input : output, count,
                        rank == in_place ? slice * sizeof *input : 0);
        expect_same_bits(comm, (unsigned char *)input, (unsigned char *)output, count * sizeof *input);
        free(input);
        free(output);
    }
}

/* Rank 0 has read all, and rank 1 nothing, or its first megabyte. */
static void abort_while_all_is_read(gyre_comm *comm, int rank)
{
    size_t count = (3 << 18) + 6;
    gyre_request *request;
    int32_t *input = malloc(count * sizeof *input), *output = malloc(count * sizeof *output);
    CHECK(input && output);
    come_to_prefer_reading(comm, input, output, count);
    expect_read(comm, input, output, count, count * sizeof *input);
    size_t before = read_bytes;
    if (rank == 0) {
        OK(comm, gyre_all_reduce_start(comm, input, output, count, GYRE_INT32, GYRE_SUM, &request));
        abort_and_overwrite(comm, request, input, count * sizeof *input);
    } else {
        waits = page->round % 2 == 0 ? 1 : 2;
        be_told_of_the_abort(comm, gyre_all_reduce(comm, input, output, count, GYRE_INT32, GYRE_SUM));
        CHECK(read_bytes - before < count * sizeof *input); /* nor did it go on reading */
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
        read_all_of_it(comm, rank);
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
    } else if (strcmp(scenario, "all") == 0) {
        abort_while_all_is_read(comm, rank);
    } else if (rank == 0) {
        abort_gathering(comm);
    } else {
        waits = 1;
        be_told_of_the_abort(comm, gather(comm));
    }
    OK(comm, gyre_comm_destroy(comm));
}

int main(int argc, char **argv)
{
    scenario = argc > 1 ? argv[1] : "withdrawn";
    if ((strcmp(scenario, "slow") == 0 || strcmp(scenario, "preferred") == 0 || strcmp(scenario, "all") == 0) &&
        sysconf(_SC_NPROCESSORS_ONLN) < 2) {
        printf("skipped: ranks that share a core try nothing\n");
        return SKIPPED;
    }
    page = launch_share(sizeof *page);
    if (strcmp(scenario, "crowded") == 0)
        return run_oversubscribed();
    int rounds = strcmp(scenario, "preferred") == 0 ? 1 : ROUNDS; /* that one has rounds of its own */
    for (int i = 0; i < rounds && atomic_load(&page->allowed) >= 0; i++) {
        memset(page, 0, sizeof *page);
        page->round = i;
        if (!launch(2, run_rank, 50, scenario))
            return 1;
    }
    if (atomic_load(&page->allowed) >= 0)
        return 0;
    printf("skipped: ranks may not read each other's memory here\n");
    return SKIPPED;
}
