/* See memfd.h. A kernel before Linux 6.9 gives back every page of a reservation that a signal interrupts; under a
 * profiler's timer a large one would restart for ever. So an interrupted reservation is repeated with all signals
 * blocked. */
#include "memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* True if this process may have a file of so many bytes. */
static bool is_allowed(uint64_t bytes)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur;
}

int gy_memfd_make(const char *name, uint64_t bytes)
{
    int fd;

    if (!is_allowed(bytes)) {
        errno = EFBIG;
        return -1;
    }
    fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && ftruncate(fd, (off_t)bytes) != 0) {
        int errnum = errno;

        close(fd);
        errno = errnum;
        return -1;
    }
    return fd;
}

static int reserve(int fd, uint64_t offset, uint64_t bytes)
{
    return fallocate(fd, 0, (off_t)offset, (off_t)bytes) == 0 ? 0 : errno;
}

int gy_memfd_reserve(int fd, uint64_t offset, uint64_t bytes)
{
    struct stat about;
    sigset_t all, old;
    int errnum;

    if (!is_allowed(offset + bytes) && fstat(fd, &about) == 0 && (uint64_t)about.st_size < offset + bytes)
        return EFBIG; /* it would grow */
    errnum = reserve(fd, offset, bytes);
    if (errnum != EINTR)
        return errnum;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    do
        errnum = reserve(fd, offset, bytes);
    while (errnum == EINTR); /* a debugger's stop, say */
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return errnum;
}
