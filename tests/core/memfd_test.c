/* Memory that processes share, where the kernel interrupts or limits. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memfd.h"

static bool old_kernel; /* before Linux 6.9, under a timer that is quicker than it */

int __real_fallocate(int fd, int mode, off_t offset, off_t bytes);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t bytes);

int __wrap_fallocate(int fd, int mode, off_t offset, off_t bytes)
{
    sigset_t held;

    sigprocmask(SIG_SETMASK, NULL, &held);
    if (!old_kernel || sigismember(&held, SIGPROF))
        return __real_fallocate(fd, mode, offset, bytes);
    errno = EINTR;
    return -1;
}

Test(memfd, has_its_size_and_its_pages, .timeout = 10)
{
    struct stat about;
    int fd = gy_memfd_make("gyre-test", 1 << 20);

    cr_assert_geq(fd, 0);
    cr_assert_eq(gy_memfd_reserve(fd, 4096, 8192), 0);
    cr_assert_eq(fstat(fd, &about), 0);
    cr_assert_eq(about.st_size, 1 << 20);
    cr_assert_eq(about.st_blocks, 16);
    cr_assert_eq(gy_memfd_reserve(-1, 0, 4096), EBADF);
    close(fd);
}

/* Such a kernel gives back all that it had reserved when a signal comes: asking again and again would never end. */
Test(memfd, a_timer_does_not_keep_it_from_its_pages, .timeout = 10)
{
    struct stat about;
    sigset_t after;
    int fd = gy_memfd_make("gyre-test", 1 << 20);

    cr_assert_geq(fd, 0);
    old_kernel = true;
    cr_assert_eq(gy_memfd_reserve(fd, 0, 1 << 20), 0);
    cr_assert_eq(fstat(fd, &about), 0);
    cr_assert_eq(about.st_blocks, 2048);
    sigprocmask(SIG_SETMASK, NULL, &after);
    cr_assert_not(sigismember(&after, SIGPROF), "signals come again");
    close(fd);
}

/* The limit on the size of files holds for memory, too, and a process that exceeds it is killed (SIGXFSZ). */
Test(memfd, a_limit_on_files_is_an_error, .timeout = 10)
{
    struct rlimit limit;

    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = 1 << 20;
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    cr_assert_eq(gy_memfd_make("gyre-test", (1 << 20) + 1), -1);
    cr_assert_eq(errno, EFBIG);
    int fd = gy_memfd_make("gyre-test", 1 << 20);
    cr_assert_geq(fd, 0);
    close(fd);
}

/* Reserving whole pages may go beyond it where making the descriptor did not. */
Test(memfd, a_limit_inside_the_last_page_is_an_error, .timeout = 10)
{
    struct rlimit limit;
    int fd = gy_memfd_make("gyre-test", 3 << 12), small;

    cr_assert_geq(fd, 0);
    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = (1 << 12) + 100;
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    small = gy_memfd_make("gyre-test", (1 << 12) + 1);
    cr_assert_geq(small, 0);
    cr_assert_eq(gy_memfd_reserve(small, 0, 1 << 12), 0);
    cr_assert_eq(gy_memfd_reserve(small, 0, 2 << 12), EFBIG);
    cr_assert_eq(gy_memfd_reserve(fd, 0, 3 << 12), 0, "what somebody else has made so large does not grow");
    close(small);
    close(fd);
}
