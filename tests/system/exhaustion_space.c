/* Two ways.
 *
 *   group    a memory cgroup of version 1 that is full and refuses: the kernel itself says no, and a page that was not
 *            reserved is a SIGBUS
 *   budget   everywhere else (version 2 can only kill, a container may have none): the victim's fallocate says ENOSPC
 *            once its bytes are spent. Then no SIGBUS would come, so it is counted instead: at the end of each rank the
 *            file has exactly those pages that were reserved with fallocate; one that was touched without is one too
 *            many
 *
 * GYRE_TEST_SPACE=group or budget decides otherwise. The linker puts our functions in front of the library's. */
#include "exhaustion_space.h"

#include <pthread.h>

#include "support/memory_group.h"

#define PAGE ((off_t)4096)
#define PAGES_MOST ((off_t)1 << 25)
#define KEPT 221 /* a descriptor out of the way of what counts them */

static struct {
    pthread_mutex_t lock; /* every reservation and its count are one */
    int64_t reserved;     /* bytes, of this round's file */
} * shared;
static bool *page_reserved; /* [PAGES_MOST], shared */
static bool by_budget, limited;
static int64_t budget;

int __real_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags);
int __real_fallocate(int fd, int mode, off_t offset, off_t bytes);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t bytes);

int __wrap_memfd_create(const char *name, unsigned flags)
{
    int fd = __real_memfd_create(name, flags);
    if (by_budget && fd >= 0 && strcmp(name, "gyre") == 0) { /* and not the page for gyre-top */
        CHECK(fcntl(fd, F_DUPFD_CLOEXEC, KEPT) == KEPT);
        CHECK(madvise(page_reserved, (size_t)PAGES_MOST, MADV_REMOVE) == 0); /* all zero again */
        shared->reserved = 0;
    }
    return fd;
}

/* How many pages of the range are not as `reserved` says; then they are. */
static int64_t count_pages(off_t offset, off_t bytes, bool reserved, bool change)
{
    int64_t count = 0;
    CHECK(offset >= 0 && bytes >= 0 && offset % PAGE == 0 && bytes % PAGE == 0 && offset + bytes <= PAGE * PAGES_MOST);
    for (off_t page = offset / PAGE; page < (offset + bytes) / PAGE; page++) {
        count += page_reserved[page] != reserved;
        if (change)
            page_reserved[page] = reserved;
    }
    return count;
}

static bool is_page(int fd)
{
    char path[64], link[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(path, link, sizeof link);
    return length > 0 && memmem(link, (size_t)length, "gyre-page", 9);
}

int __wrap_fallocate(int fd, int mode, off_t offset, off_t bytes)
{
    if (!by_budget)
        return __real_fallocate(fd, mode, offset, bytes);
    if (is_page(fd)) { /* not needed: without, the rank goes on */
        errno = ENOSPC;
        return limited ? -1 : __real_fallocate(fd, mode, offset, bytes);
    }
    pthread_mutex_lock(&shared->lock);
    int64_t change = count_pages(offset, bytes, mode == 0, false) * (mode ? -PAGE : PAGE);
    bool granted = !limited || change <= budget;
    if (granted) {
        CHECK(__real_fallocate(fd, mode, offset, bytes) == 0);
        count_pages(offset, bytes, mode == 0, true);
        shared->reserved += change;
        budget -= limited ? change : 0;
    }
    pthread_mutex_unlock(&shared->lock);
    errno = granted ? errno : ENOSPC;
    return granted ? 0 : -1;
}

void space_begin(const volatile int *round)
{
    const char *way = getenv("GYRE_TEST_SPACE");
    by_budget = way ? strcmp(way, "budget") == 0 : !memory_group_make();
    CHECK(!way || by_budget || memory_group_make());
    printf("space: %s\n", by_budget ? "the victim's reservations are refused by the test" : "a full memory cgroup");
    if (!by_budget) {
        memory_group_watch(round);
        return;
    }
    pthread_mutexattr_t attributes;
    shared = launch_share(sizeof *shared);
    page_reserved = launch_share((size_t)PAGES_MOST);
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&shared->lock, &attributes);
}

void space_reset(void)
{
    if (!by_budget)
        memory_group_reset();
}

void space_end(void)
{
    if (!by_budget)
        memory_group_remove();
}

void space_join(size_t bytes)
{
    if (!by_budget)
        memory_group_join(bytes);
    budget = (int64_t)bytes;
    limited = true;
}

void space_leave(void)
{
    if (!by_budget)
        memory_group_drain();
    limited = false;
}

void space_check(void)
{
    struct stat about;
    if (!by_budget || fcntl(KEPT, F_GETFD) < 0) /* only the rank that made the file has it */
        return;
    pthread_mutex_lock(&shared->lock);
    CHECK(fstat(KEPT, &about) == 0);
    int64_t pages = (int64_t)about.st_blocks * 512, reserved = shared->reserved;
    pthread_mutex_unlock(&shared->lock);
    off_t page = 0; /* the first that is the proof, if it can be found */
    for (off_t at = 0; pages != reserved && (at = lseek(KEPT, at, SEEK_DATA)) >= 0; at += PAGE)
        if (!page_reserved[page = at / PAGE])
            break;
    close(KEPT);
    if (pages != reserved)
        rank_fail("%lld bytes of shared memory were touched without having been reserved, perhaps in page %lld",
                  (long long)(pages - reserved), (long long)page);
}
