/* PATH.new is locked for one writer at a time. One that a killed writer left is written over, so nothing piles up. */
#include "base/aside.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRIES 100

bool gy_aside_replaceable(const char *path)
{
    struct stat there;
    return stat(path, &there) != 0 || S_ISREG(there.st_mode) || S_ISDIR(there.st_mode);
}

/* A regular file behind /dev/stdout is not replaced: a new file would not be the one that the shell has opened.
 * /dev/shm holds ordinary files. */
static bool is_special(const char *path)
{
    return (strncmp(path, "/dev/", 5) == 0 && strncmp(path, "/dev/shm/", 9) != 0) || strncmp(path, "/proc/", 6) == 0 ||
           !gy_aside_replaceable(path);
}

/* Opens `fresh`, locked. One that another writer has renamed meanwhile is opened anew. */
static int open_locked(const char *fresh)
{
    for (int tries = 0; tries < TRIES; tries++) {
        struct stat mine, there;
        errno = 0;
        int fd = open(fresh, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
        if (fd < 0)
            return -1;
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &mine) == 0 && stat(fresh, &there) == 0 &&
            mine.st_ino == there.st_ino && mine.st_dev == there.st_dev && ftruncate(fd, 0) == 0)
            return fd;
        int problem = errno;
        close(fd);
        errno = problem;
        if (problem == EWOULDBLOCK)
            return -1;
    }
    errno = EBUSY;
    return -1;
}

/* The new file has the mode of the one whose place it takes. */
static void keep_mode(const char *path, int fd)
{
    struct stat there;
    if (stat(path, &there) == 0 && S_ISREG(there.st_mode))
        (void)!fchmod(fd, there.st_mode & 0777);
}

static bool release(struct gy_aside *aside, int problem)
{
    free(aside->path);
    free(aside->fresh);
    *aside = (struct gy_aside){0};
    errno = problem;
    return problem == 0;
}

/* The stream's write: keeps the reason of a failure, which later calls of the caller would hide. */
static ssize_t write_all(void *cookie, const char *bytes, size_t size)
{
    struct gy_aside *aside = cookie;
    size_t at = 0;
    while (at < size && aside->problem == 0) {
        ssize_t done = write(aside->fd, bytes + at, size - at);
        if (done > 0)
            at += (size_t)done;
        else if (done == 0 || errno != EINTR)
            aside->problem = done < 0 ? errno : EIO;
    }
    return aside->problem ? 0 : (ssize_t)size;
}

bool gy_aside_open(struct gy_aside *aside, const char *path)
{
    bool special = is_special(path);
    char *real = special ? NULL : realpath(path, NULL);
    *aside = (struct gy_aside){.path = real ? real : strdup(path)};
    if (!aside->path || (!special && asprintf(&aside->fresh, "%s.new", aside->path) < 0)) {
        aside->fresh = NULL;
        return release(aside, ENOMEM);
    }
    aside->fd = special ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : open_locked(aside->fresh);
    if (aside->fd < 0)
        return release(aside, errno ? errno : EIO);
    if (!special)
        keep_mode(aside->path, aside->fd);
    aside->stream = fopencookie(aside, "w", (cookie_io_functions_t){.write = write_all});
    if (aside->stream)
        return true;
    close(aside->fd);
    return release(aside, ENOMEM);
}

static bool flush_folder(const char *path)
{
    char *copy = strdup(path);
    int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    bool ok = fd >= 0 && fsync(fd) == 0;
    int problem = errno;
    if (fd >= 0)
        close(fd);
    free(copy);
    errno = problem;
    return ok;
}

/* Flushed before it is renamed, and renamed before close gives up the lock. */
static bool take_place(const struct gy_aside *aside)
{
    return fsync(aside->fd) == 0 && rename(aside->fresh, aside->path) == 0;
}

bool gy_aside_close(struct gy_aside *aside, bool good)
{
    bool printed = fflush(aside->stream) == 0 && !ferror(aside->stream);
    fclose(aside->stream);
    if (!printed && aside->problem == 0)
        aside->problem = ENOMEM; /* of the stream itself */
    good = good && aside->problem == 0;
    if (good && aside->fresh && !take_place(aside)) {
        aside->problem = errno;
        good = false;
    }
    if (!good && aside->fresh)
        unlink(aside->fresh);
    if (close(aside->fd) != 0 && good)
        aside->problem = errno;
    if (good && aside->fresh && !flush_folder(aside->path))
        aside->problem = errno;
    return release(aside, aside->problem);
}
