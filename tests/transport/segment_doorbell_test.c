/* Hard cases of the doorbell: more sleepers than a socket has room for rings, no further socket, unrelated senders,
 * a kernel that refuses membarrier later on. One rank rings; of the others there are only their sockets and flags. */
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/membarrier.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/poller.h"
#include "transport/shm/internal.h"

#define RANKS 900 /* more than three times what fills a socket with Linux's defaults */
#define PAGE 4096

static struct gy_config config;
static struct gy_member members[RANKS];
static int locals[RANKS], doorbells[RANKS];
static struct gy_world world = {
    .members = members, .locals = locals, .hosts = 1, .nlocals = RANKS, .size = RANKS, .config = &config};
static struct gy_segment segment = {.world = &world};
static _Atomic bool refused; /* membarrier, from now on */

long __wrap_syscall(long number, ...);
long __real_syscall(long number, ...);

long __wrap_syscall(long number, ...)
{
    va_list list;
    va_start(list, number);
    long a = va_arg(list, long), b = va_arg(list, long), c = va_arg(list, long);
    va_end(list);
    if (number == SYS_membarrier && atomic_load(&refused)) {
        errno = EPERM; /* as a filter of seccomp would have it */
        return -1;
    }
    return __real_syscall(number, a, b, c);
}

/* Every rank's doorbell, in one process. */
static void open_bells(void)
{
    struct gy_error error = {.rank = -1};
    world.job = (uint64_t)getpid() << 20 | 1;
    segment.layout.page = PAGE;
    segment.nsenders = gy_segment_senders(RANKS);
    gy_segment_fds_none(&segment.fds);
    segment.base = mmap(NULL, PAGE * (RANKS + 1), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert(segment.base != MAP_FAILED);
    cr_assert_eq(gy_poller_create(&world.poller, &error), GYRE_SUCCESS);
    cr_assert_eq(gy_segment_senders_make(&segment, &error), GYRE_SUCCESS, "%s", error.text);
    for (int i = RANKS - 1; i >= 0; i--) {
        locals[i] = i;
        members[i] = (struct gy_member){.nonce = 1000 + (uint64_t)i, .local = i};
        world.local = i;
        cr_assert_eq(gy_segment_doorbell_open(&segment, &error), GYRE_SUCCESS, "%s", error.text);
        doorbells[i] = segment.doorbell.fd;
    }
}

static void wake_all(void)
{
    for (int i = 1; i < RANKS; i++)
        atomic_store(&gy_segment_rank(&segment, i)->sleeping, 1);
    for (int i = 1; i < RANKS; i++)
        gy_segment_wake(&segment, i);
}

static int rings(int local)
{
    char byte;
    int count = 0;
    while (recv(doorbells[local], &byte, 1, MSG_DONTWAIT) >= 0)
        count++;
    return count;
}

static int descriptors(void)
{
    int fd = dup(0);
    close(fd);
    return fd;
}

Test(segment_doorbell, wakes_however_many_sleep, .timeout = 120)
{
    open_bells();
    int before = descriptors();
    wake_all();
    cr_expect_eq(descriptors(), before, "a socket was left open");
    for (int i = 1; i < RANKS; i++)
        cr_expect_eq(rings(i), 1, "rank %d sleeps on", i);
}

/* A stopped rank reads nothing: that of its last sleep and one that came late wait for it. */
Test(segment_doorbell, wakes_those_that_have_not_read_yet, .timeout = 120)
{
    open_bells();
    struct rlimit none = {(rlim_t)descriptors(), (rlim_t)descriptors()};
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0, "no further socket");
    wake_all();
    wake_all();
    for (int i = 1; i < RANKS; i++)
        cr_expect_eq(rings(i), 2, "rank %d sleeps on", i);
}

/* Any process of the host sees the names and may try. */
Test(segment_doorbell, hears_no_stranger, .timeout = 120)
{
    struct sockaddr_un name;
    socklen_t bytes = sizeof(name);
    open_bells();
    int stranger = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(getsockname(doorbells[1], (struct sockaddr *)&name, &bytes), 0);
    cr_expect_eq(sendto(stranger, "!", 1, MSG_DONTWAIT, (struct sockaddr *)&name, bytes), -1);
    cr_expect_eq(errno, EPERM);
    cr_expect_eq(connect(stranger, (struct sockaddr *)&name, bytes), -1);
    cr_expect_eq(errno, EPERM);
    cr_expect_eq(rings(1), 0, "a stranger was heard");
    close(stranger);
}

static int64_t sleep_time(void)
{
    int64_t began = gy_now();
    gy_segment_sleep(&segment);
    int64_t took = gy_now() - began;
    gy_segment_awake(&segment);
    return took;
}

/* Time stands in for the fence, until a rank rings. */
Test(segment_doorbell, outwaits_stores_where_membarrier_is_refused, .timeout = 120)
{
    int64_t least = GY_SECOND;
    open_bells();
    gy_segment_doorbell_register(&segment);
    if (!segment.fences_for_all)
        cr_skip_test("this kernel has no membarrier");
    for (int i = 0; i < 100; i++) {
        int64_t took = sleep_time();
        least = took < least ? took : least;
    }
    cr_expect_lt(least, GY_MILLISECOND, "membarrier serves, and sleeping took %ld ns", (long)least);
    atomic_store(&refused, true);
    for (int i = 0; i < 20; i++)
        cr_expect_geq(sleep_time(), GY_MILLISECOND, "a store may be under way still");
    atomic_store(&gy_segment_rank(&segment, 0)->sleeping, 1);
    gy_segment_wake(&segment, 0);
    for (int i = 0; i < 100; i++) {
        int64_t began = gy_now();
        gy_segment_sleep(&segment);
        int64_t took = gy_now() - began;
        least = took < least ? took : least;
    }
    cr_expect_lt(least, GY_MILLISECOND, "rung for, and sleeping took %ld ns", (long)least);
}
