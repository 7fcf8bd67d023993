/* The lowest rank of a host makes a memfd; the others open it as /proc/PID/fd/N, which they learn by an all-gather.
 * Nothing has a name in the file system, so nothing can be left behind.
 *
 * The barrier counts arrivals upwards for ever: the k-th barrier is over when k * locals have arrived. A rank's time
 * stamps are written before one barrier and read after it; the two sets alternate, so that a fast rank's next stamps
 * never meet a slow reader. */
#include "meet.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "run/affinity.h"

#define LOCALS_MOST 1024
#define TURNS 4096 /* of the barrier between two looks at the clock */
#define OVERSUBSCRIBED_TURNS 4
#define WATCH_MS 10 /* the barrier looks at the world so often once it has waited so long */
#define PATIENCE_S 60

struct stamp {
    int64_t start, end;
};

struct page {
    _Alignas(64) atomic_uint_fast64_t arrived;
    _Alignas(64) struct stamp stamps[2][LOCALS_MOST];
};

/* What a rank says about itself; equal `place` means that /proc/PID names the same process for both. */
struct card {
    uint64_t place;
    int32_t pid, fd;
};

struct gy_bootstrap {
    gyre_comm *comm;
    int local, locals;
    bool one_host, oversubscribed;
    uint64_t barriers;
    int set;
    struct page *page;
    int fd;
};

static uint64_t hash(uint64_t state, const void *bytes, size_t count)
{
    const unsigned char *byte = bytes;
    while (count--)
        state = (state ^ *byte++) * 0x100000001b3u; /* FNV-1a */
    return state;
}

static uint64_t find_place(void)
{
    char boot[64] = "", space[64] = "";
    const char *host = getenv("GYRE_HOST_ID");
    uint64_t state = hash(0xcbf29ce484222325u, host ? host : "", host ? strlen(host) : 0);
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file) {
        if (!fgets(boot, sizeof boot, file))
            boot[0] = 0;
        fclose(file);
    }
    ssize_t length = readlink("/proc/self/ns/pid", space, sizeof space - 1);
    return hash(hash(state, boot, strlen(boot)), space, length > 0 ? (size_t)length : 0);
}

static bool gather_cards(gyre_comm *comm, int fd, struct card *cards)
{
    struct card mine = {.place = find_place(), .pid = (int32_t)getpid(), .fd = fd};
    gyre_status status = gyre_all_gather(comm, &mine, cards, sizeof mine / sizeof(int32_t), GYRE_INT32);
    if (status != GYRE_SUCCESS)
        fprintf(stderr, "gyre-perf: the ranks cannot find one another: %s\n", gyre_last_error(comm));
    return status == GYRE_SUCCESS;
}

static bool map_page(struct gy_bootstrap *meet, const struct card *leader)
{
    char path[64];
    int fd = meet->fd;
    if (meet->local > 0) {
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)leader->pid, (int)leader->fd);
        fd = open(path, O_RDWR | O_CLOEXEC);
    }
    void *memory = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *meet->page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    int problem = errno;
    if (meet->local > 0 && fd >= 0)
        close(fd);
    if (memory == MAP_FAILED) {
        fprintf(stderr, "gyre-perf: cannot share memory with process %d: %s\n", (int)leader->pid, strerror(problem));
        return false;
    }
    meet->page = memory;
    return true;
}

struct gy_bootstrap *gy_bootstrap_open(gyre_comm *comm, bool pin)
{
    int rank = gyre_comm_rank(comm), size = gyre_comm_size(comm), leader = 0;
    struct gy_bootstrap *meet = calloc(1, sizeof *meet);
    struct card *cards = calloc((size_t)size, sizeof *cards);
    int fd = memfd_create("gyre-perf", MFD_CLOEXEC);
    if (!meet || !cards || fd < 0 || ftruncate(fd, sizeof(struct page)) || !gather_cards(comm, fd, cards))
        goto fail;
    meet->fd = fd;
    meet->comm = comm;
    while (cards[leader].place != cards[rank].place)
        leader++; /* the first rank on this host; this rank at the latest */
    for (int i = leader; i < size; i++) {
        if (cards[i].place != cards[rank].place)
            continue;
        meet->local += i < rank;
        meet->locals++;
    }
    if (meet->locals > LOCALS_MOST || !map_page(meet, &cards[leader]))
        goto fail;
    meet->one_host = meet->locals == size;
    meet->oversubscribed = meet->locals > gy_cores_count();
    if (pin)
        gy_cores_bind(meet->local);
    /* No rank may close the memfd before all have opened it. */
    gy_bootstrap_barrier(meet);
    close(fd);
    free(cards);
    return meet;
fail:
    if (fd >= 0)
        close(fd);
    free(cards);
    free(meet);
    return NULL;
}

void gy_bootstrap_close(struct gy_bootstrap *meet)
{
    munmap(meet->page, sizeof *meet->page);
    free(meet);
}

bool gy_bootstrap_one_host(const struct gy_bootstrap *meet)
{
    return meet->one_host;
}

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* The page cannot tell that a rank has died; the world can. Ends the program with the world's message where it has
 * failed, and after PATIENCE_S. A wait below WATCH_MS makes no call of gyre, which would disturb what is measured. */
static void watch(const struct gy_bootstrap *meet, int64_t waited_ms)
{
    gyre_status status = gyre_progress(meet->comm);
    if (status == GYRE_SUCCESS && waited_ms < PATIENCE_S * 1000)
        return;
    if (status != GYRE_SUCCESS)
        fprintf(stderr, "gyre-perf: barrier of the harness: %s\n", gyre_last_error(meet->comm));
    else
        fprintf(stderr, "gyre-perf: a rank of this host did not come to the barrier of the harness within %d s\n",
                PATIENCE_S);
    _exit(1);
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void gy_bootstrap_barrier(struct gy_bootstrap *meet)
{
    uint64_t goal = ++meet->barriers * (uint64_t)meet->locals;
    /* Release and acquire: the stamps written before the barrier are seen after it. */
    atomic_fetch_add_explicit(&meet->page->arrived, 1, memory_order_acq_rel);
    int64_t begun = 0, watched = 0;
    for (uint64_t turns = 1; atomic_load_explicit(&meet->page->arrived, memory_order_acquire) < goal; turns++) {
        if (meet->oversubscribed)
            sched_yield();
        else
            relax();
        /* Among ranks that share cores each turn may take another process's time slice. */
        if (turns % (meet->oversubscribed ? OVERSUBSCRIBED_TURNS : TURNS))
            continue;
        int64_t now = now_ms();
        if (begun == 0)
            begun = watched = now;
        if (now - watched >= WATCH_MS) {
            watched = now;
            watch(meet, now - begun);
        }
    }
}

int64_t gy_bootstrap_time(struct gy_bootstrap *meet, int64_t start, int64_t end, int64_t *whole_p)
{
    struct stamp *stamps = meet->page->stamps[meet->set];
    int64_t earliest = INT64_MAX, first = INT64_MIN, last = INT64_MIN, longest = 0;
    meet->set ^= 1;
    stamps[meet->local] = (struct stamp){start, end};
    gy_bootstrap_barrier(meet);
    for (int i = 0; i < meet->locals; i++) {
        int64_t own = stamps[i].end - stamps[i].start;
        longest = own > longest ? own : longest;
        earliest = stamps[i].start < earliest ? stamps[i].start : earliest;
        first = stamps[i].start > first ? stamps[i].start : first;
        last = stamps[i].end > last ? stamps[i].end : last;
    }
    *whole_p = last - earliest;
    if (!meet->one_host)
        return longest;
    return last > first ? last - first : 0;
}
