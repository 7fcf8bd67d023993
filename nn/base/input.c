/* open() of a FIFO blocks until another process opens its other end, perhaps for ever. poll() can be bounded. */
#include "base/input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

static int wait_for_bytes(int fd, int seconds)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};
    int ready;
    do
        ready = poll(&one, 1, seconds * 1000);
    while (ready < 0 && errno == EINTR);
    return ready > 0 ? 0 : ready < 0 ? errno : ETIMEDOUT;
}

int gy_input_open(const char *path, int seconds)
{
    struct stat about;
    int problem = 0, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -1;
    if (fstat(fd, &about) != 0)
        problem = errno;
    else if (S_ISCHR(about.st_mode) || S_ISBLK(about.st_mode))
        problem = ENODEV;
    else if (S_ISDIR(about.st_mode))
        problem = EISDIR;
    else if (S_ISFIFO(about.st_mode))
        problem = wait_for_bytes(fd, seconds > 0 ? seconds : GY_INPUT_SECONDS);
    if (problem == 0 && fcntl(fd, F_SETFL, 0) != 0) /* reads wait from now on */
        problem = errno;
    if (problem == 0)
        return fd;
    close(fd);
    errno = problem;
    return -1;
}
