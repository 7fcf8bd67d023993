/* Barrier k is over for a rank when every rank's counter has reached k. Each counter has one writer and a line pair
 * of its own, and only grows, so that nothing is reset and nothing can be missed. */
#include "arena.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "driver.h"

#define PATIENCE_NS (90 * INT64_C(1000000000))
#define WATCH_NS (10 * INT64_C(1000000)) /* a wait that lasts looks at the other processes so often */
#define SPINS_PER_LOOK 4096
#define YIELDS_PER_LOOK 4 /* each may take another process's time slice */
#define ROUNDS 40         /* of a round trip, */
#define EXCHANGES 25      /* each of so many: microseconds, in which no other process runs most of the time */

struct gy_arena_line {
    _Alignas(128) _Atomic(uint64_t) reached;
    _Atomic(int64_t) process; /* the rank's process id, 0 before it has opened the arena */
};

struct head {
    struct gy_arena_line lines[GY_RANKS_MOST], exchange[2];
    _Alignas(128) _Atomic(int64_t) shared;
    _Alignas(4096) struct gy_stamps stamps[GY_RANKS_MOST];
};

int64_t gy_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void pause_core(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

void gy_arena_open(struct gy_arena *arena, const char *path, int rank, int ranks, bool oversubscribed)
{
    struct stat about;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &about) < 0)
        gy_die("cannot open the arena %s: %s", path, strerror(errno));
    if (ranks > GY_RANKS_MOST || (size_t)about.st_size < sizeof(struct head))
        gy_die("the arena is too small for %d ranks", ranks);
    struct head *head = mmap(NULL, (size_t)about.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (head == MAP_FAILED)
        gy_die("cannot map the arena: %s", strerror(errno));
    close(fd);
    memset(&head->stamps[rank], 0, sizeof head->stamps[rank]); /* no page fault between two time stamps */
    atomic_store_explicit(&head->lines[rank].process, getpid(), memory_order_release);
    *arena = (struct gy_arena){
        .rank = rank,
        .ranks = ranks,
        .oversubscribed = oversubscribed,
        .lines = head->lines,
        .exchange = head->exchange,
        .stamps = head->stamps,
        .shared = &head->shared,
        .extra = (unsigned char *)(head + 1),
        .extra_bytes = (size_t)about.st_size - sizeof(struct head),
    };
}

/* True if the process has ended; a zombie has. */
static bool has_ended(pid_t process)
{
    int fd = (int)syscall(SYS_pidfd_open, process, 0);
    if (fd < 0)
        return errno == ESRCH;
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    bool ended = poll(&polled, 1, 0) > 0;
    close(fd);
    return ended;
}

/* Writes the other ranks whose processes have ended, as "rank 1 (process 4711), rank 2 (process 4712)". Returns
 * their number. Ranks that ended because another died are among them. */
static int find_ended(const struct gy_arena *arena, char *text_p, size_t bytes)
{
    int found = 0;
    size_t used = 0;
    for (int rank = 0; rank < arena->ranks; rank++) {
        int64_t process = atomic_load_explicit(&arena->lines[rank].process, memory_order_acquire);
        if (rank == arena->rank || !process || !has_ended((pid_t)process))
            continue;
        if (used < bytes)
            used += (size_t)snprintf(text_p + used, bytes - used, "%srank %d (process %d)", found ? ", " : "", rank,
                                     (int)process);
        found++;
    }
    return found;
}

/* Ends the process where another rank has ended, or none came for PATIENCE_NS. A rank that ends after its last wait has
 * written its words before: the word is read again behind the look at the processes. */
static void watch(const struct gy_arena *arena, const _Atomic(uint64_t) *word, uint64_t value, int64_t waited_ns)
{
    char ended[512];
    int found = find_ended(arena, ended, sizeof ended);
    if (atomic_load_explicit(word, memory_order_acquire) >= value)
        return;
    if (found)
        gy_die("ended while this rank waited in a barrier of the harness: %s", ended);
    if (waited_ns > PATIENCE_NS)
        gy_die("another rank did not come in time");
}

void gy_arena_wait(const struct gy_arena *arena, const _Atomic(uint64_t) *word, uint64_t value)
{
    int64_t begun = 0, watched = 0;
    for (unsigned spins = 0; atomic_load_explicit(word, memory_order_acquire) < value;) {
        if (arena->oversubscribed)
            sched_yield();
        else
            pause_core();
        if (++spins % (arena->oversubscribed ? YIELDS_PER_LOOK : SPINS_PER_LOOK))
            continue;
        int64_t now = gy_now();
        if (begun == 0)
            begun = watched = now;
        if (now - watched < WATCH_NS)
            continue;
        watched = now;
        watch(arena, word, value, now - begun);
    }
}

void gy_arena_barrier(struct gy_arena *arena)
{
    uint64_t now = ++arena->barriers;
    atomic_store_explicit(&arena->lines[arena->rank].reached, now, memory_order_release);
    for (int rank = 0; rank < arena->ranks; rank++)
        gy_arena_wait(arena, &arena->lines[rank].reached, now);
}

static void exchange(struct gy_arena *arena)
{
    uint64_t now = ++arena->exchanges;
    if (arena->rank == 1)
        gy_arena_wait(arena, &arena->exchange[0].reached, now);
    atomic_store_explicit(&arena->exchange[arena->rank].reached, now, memory_order_release);
    if (arena->rank == 0)
        gy_arena_wait(arena, &arena->exchange[1].reached, now);
}

double gy_arena_round_trip(struct gy_arena *arena)
{
    bool oversubscribed = arena->oversubscribed;
    int64_t least = INT64_MAX;
    arena->oversubscribed = false; /* neither gives its core away */
    for (int i = 0; i < ROUNDS; i++) {
        int64_t begin = gy_now();
        for (int k = 0; k < EXCHANGES; k++)
            exchange(arena);
        int64_t took = gy_now() - begin;
        least = took < least ? took : least;
    }
    arena->oversubscribed = oversubscribed;
    return (double)least / EXCHANGES / 1e3;
}

int gy_arena_pin(int rank)
{
    cpu_set_t usable, mine;
    size_t seen = 0;
    if (sched_getaffinity(0, sizeof usable, &usable) < 0)
        gy_die("sched_getaffinity: %s", strerror(errno));
    int cores = CPU_COUNT(&usable);
    size_t wanted = (size_t)(rank % cores);
    CPU_ZERO(&mine);
    for (size_t core = 0; core < CPU_SETSIZE; core++) {
        if (CPU_ISSET(core, &usable) && seen++ == wanted)
            CPU_SET(core, &mine);
    }
    if (sched_setaffinity(0, sizeof mine, &mine) < 0)
        gy_die("sched_setaffinity: %s", strerror(errno));
    return cores;
}
