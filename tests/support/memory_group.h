/* A memory cgroup of the test's own, below that of this process, so that shared memory can really run out.
 *
 * Version 1 can refuse instead of killing (memory.oom_control): a system call that finds no memory fails. Version 2
 * can only kill, which tests nothing here, so it counts as no group: exhaustion_space.c has another way then.
 *
 * A process that runs out of memory in a page fault sleeps until there is more. Private memory is touched before a
 * process joins the group, and shared memory is what is tested; what remains is the kernel's page tables. A watcher
 * gives a sleeper a few pages for them: never enough for shared pages that were not reserved. */
#ifndef GYRE_TESTS_SUPPORT_MEMORY_GROUP_H
#define GYRE_TESTS_SUPPORT_MEMORY_GROUP_H

#include <limits.h>
#include <malloc.h>
#include <sys/stat.h>

#include "support/launcher.h"

#define FILLER 220 /* out of the way of what counts descriptors */

#define MEMORY_GROUP_BYTES (64 << 20)
#define MEMORY_GROUP_SPARE 6 /* times 16 KiB */

static char memory_group[PATH_MAX - 64];

static inline bool memory_group_write(const char *file, const char *text)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", memory_group, file);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return written;
}

static inline void memory_group_remove(void)
{
    for (int i = 0; i < 200 && rmdir(memory_group) && errno == EBUSY; i++) /* the last member may still be ending */
        usleep(10000);
}

/* false: this machine gives none, and `errno` says why. */
static inline bool memory_group_make(void)
{
    char line[PATH_MAX], *own = NULL;
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file && !own && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        own = strstr(line, ":memory:");
    }
    if (file)
        fclose(file);
    errno = ENOENT;
    if (!own || snprintf(memory_group, sizeof memory_group, "/sys/fs/cgroup/memory%s/gyre-test-%d", own + 8,
                         (int)getpid()) >= (int)sizeof memory_group)
        return false;
    if (mkdir(memory_group, 0755))
        return false;
    if (memory_group_write("memory.oom_control", "1"))
        return true;
    memory_group_remove();
    return false;
}

/* Joins, and leaves room for `bytes` more. The filler lives as long as the process. */
static inline void memory_group_join(size_t bytes)
{
    char number[24];
    off_t filled = 0;
    /* What the program will touch is there before: the heap, the stack, and pages shared with the launcher. */
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    char *heap = malloc(8 << 20), stack[256 << 10];
    CHECK(heap != NULL);
    memset(heap, 1, 8 << 20);
    memset(stack, 1, sizeof stack);
    __asm__ volatile("" : : "r"(heap), "r"(stack) : "memory");
    free(heap);
    CHECK(mlockall(MCL_CURRENT) == 0); /* faults everything in, copies what is still shared */
    snprintf(number, sizeof number, "%d", (int)getpid());
    CHECK(memory_group_write("cgroup.procs", number));
    int filler = memfd_create("filler", MFD_CLOEXEC);
    CHECK(filler >= 0 && fcntl(filler, F_DUPFD_CLOEXEC, FILLER) == FILLER);
    close(filler);
    for (off_t piece = 1 << 20; piece >= 4096; piece /= 2)
        while (fallocate(FILLER, 0, filled, piece) == 0)
            filled += piece;
    CHECK(errno == ENOMEM && filled > (off_t)bytes);
    CHECK(fallocate(FILLER, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, filled - (off_t)bytes, (off_t)bytes) == 0);
}

/* Every round begins with the whole limit; `round` is shared. The watcher ends with its parent. */
static inline void memory_group_watch(const volatile int *round)
{
    pid_t parent = getpid(), child = fork();
    int known = -1, given = 0;
    CHECK(child >= 0);
    if (child > 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (getppid() == parent) {
        char path[PATH_MAX], text[128] = "", limit[24];
        snprintf(path, sizeof path, "%s/memory.oom_control", memory_group);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0 && read(fd, text, sizeof text - 1) < 0)
            text[0] = 0;
        if (fd >= 0)
            close(fd);
        if (*round != known)
            given = 0;
        known = *round;
        if (strstr(text, "under_oom 1") && given < MEMORY_GROUP_SPARE) {
            snprintf(limit, sizeof limit, "%d", MEMORY_GROUP_BYTES + ++given * 16384);
            memory_group_write("memory.limit_in_bytes", limit);
        }
        usleep(20000);
    }
    _exit(0);
}

static inline void memory_group_reset(void)
{
    char limit[24];
    snprintf(limit, sizeof limit, "%d", MEMORY_GROUP_BYTES);
    CHECK(memory_group_write("memory.limit_in_bytes", limit));
}

static inline void memory_group_drain(void)
{
    close(FILLER);
}

#endif
