/* The doorbell where it is hard: more sleepers than a socket has room for rings, no further socket, a kernel that fences for
 * nobody any more. One rank rings; the others' sockets and flags are all there is of them. */
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/poller.h"
#include "transport/segment_private.h"

#define RANKS 900 /* more than three times what fills a socket with Linux's defaults */
#define PAGE 4096

static struct gy_config config;
static struct gy_member members[RANKS];
static int locals[RANKS], bells[RANKS];
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

static void open_bells(void)
{
    struct gy_error error;
    world.job = (uint64_t)getpid() << 20 | 1;
    segment.layout.page = PAGE;
    segment.base = mmap(NULL, PAGE * (RANKS + 1), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert(segment.base != MAP_FAILED);
    for (int i = 0; i < RANKS; i++) {
        locals[i] = i;
        members[i] = (struct gy_member){.nonce = 1000 + (uint64_t)i, .local = i};
    }
    cr_assert_eq(gy_poller_create(&world.poller, &error), GYRE_SUCCESS);
    cr_assert_eq(gy_segment_bell_open(&segment, &error), GYRE_SUCCESS, "%s", error.text);
    for (int i = 1; i < RANKS; i++) {
        bells[i] = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        cr_assert_eq(bind(bells[i], (struct sockaddr *)&segment.doors[i], segment.door_bytes[i]), 0);
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
    while (recv(bells[local], &byte, 1, MSG_DONTWAIT) >= 0)
        count++;
    return count;
}

static int descriptors(void)
{
    int fd = dup(0);
    close(fd);
    return fd;
}

Test(segment_bell, wakes_however_many_sleep, .timeout = 120)
{
    open_bells();
    int before = descriptors();
    wake_all();
    cr_expect_eq(descriptors(), before, "a socket was left open");
    for (int i = 1; i < RANKS; i++)
        cr_expect_eq(rings(i), 1, "rank %d sleeps on", i);
}

/* Those who were woken read a little later. */
static void *read_late(void *heard_p)
{
    int *heard = heard_p;
    int64_t end = gy_now() + 30 * GY_SECOND;
    for (int total = 0; total < RANKS - 1 && gy_now() < end; usleep(2000))
        for (int i = 1; i < RANKS; i++) {
            int more = rings(i);
            heard[i] += more;
            total += more;
        }
    return NULL;
}

Test(segment_bell, wakes_without_a_further_socket, .timeout = 120)
{
    static int heard[RANKS];
    pthread_t reader;
    open_bells();
    struct rlimit none = {(rlim_t)descriptors(), (rlim_t)descriptors()};
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    cr_assert_eq(pthread_create(&reader, NULL, read_late, heard), 0);
    wake_all();
    pthread_join(reader, NULL);
    for (int i = 1; i < RANKS; i++)
        cr_expect_eq(heard[i], 1, "rank %d sleeps on", i);
}

static int64_t sleep_time(void)
{
    int64_t began = gy_now();
    gy_segment_sleep(&segment);
    int64_t took = gy_now() - began;
    gy_segment_awake(&segment);
    return took;
}

/* Time stands in for the fence, until somebody rings. */
Test(segment_bell, outwaits_stores_where_membarrier_is_refused, .timeout = 120)
{
    int64_t least = GY_SECOND;
    open_bells();
    gy_segment_bell_register(&segment);
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
    cr_assert_eq(sendto(bells[1], "!", 1, 0, (struct sockaddr *)&segment.doors[0], segment.door_bytes[0]), 1);
    for (int i = 0; i < 100; i++) {
        int64_t began = gy_now();
        gy_segment_sleep(&segment);
        int64_t took = gy_now() - began;
        least = took < least ? took : least;
    }
    cr_expect_lt(least, GY_MILLISECOND, "rung for, and sleeping took %ld ns", (long)least);
}
