/* A file that appears whole or not at all: PATH.new is written beside it, flushed, and renamed to PATH. For gyre-nn
 * and the tools; uses libc only. */
#ifndef GY_NN_ASIDE_H
#define GY_NN_ASIDE_H

#include <stdbool.h>
#include <stdio.h>

struct gy_aside {
    FILE *stream; /* what the caller prints to */
    int fd;
    int problem; /* errno of the first write that failed */
    char *path;  /* the file; where PATH is a symbolic link, the file that it leads to */
    char *fresh; /* PATH.new, locked until close; NULL: `path` is a device or a pipe, and is written itself */
};

/* True if a rename may put a new file at `path`: there is none, a regular one, or a folder, which rename refuses. */
bool gy_aside_replaceable(const char *path);
/* `aside` must not move until close. False: errno says why; EWOULDBLOCK: another process is writing the same file. */
bool gy_aside_open(struct gy_aside *aside, const char *path);
/* `good`: all was printed. Otherwise, and where flushing fails, PATH stays as it was and PATH.new is removed. Frees
 * everything. False: errno says why. */
bool gy_aside_close(struct gy_aside *aside, bool good);

#endif
