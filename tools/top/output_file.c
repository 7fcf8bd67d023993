#include "top/output_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/output.h"

static bool write_file(const char *path, const char *text, size_t length)
{
    FILE *file = fopen(path, "we");
    if (!file) {
        fprintf(stderr, "gyre-top: cannot write %s: %s\n", path, strerror(errno));
        return false;
    }
    fwrite(text, 1, length, file);
    return gy_output_close("gyre-top", file, path);
}

bool top_output_file(const char *path, const char *text, size_t length)
{
    char temporary[4096];
    struct stat about;
    if (stat(path, &about) == 0 && !S_ISREG(about.st_mode))
        return write_file(path, text, length);
    if ((size_t)snprintf(temporary, sizeof temporary, "%s.%d.tmp", path, (int)getpid()) >= sizeof temporary) {
        fprintf(stderr, "gyre-top: the name of the file is too long\n");
        return false;
    }
    bool written = write_file(temporary, text, length);
    if (written && rename(temporary, path)) {
        fprintf(stderr, "gyre-top: cannot rename %s to %s: %s\n", temporary, path, strerror(errno));
        written = false;
    }
    if (!written)
        unlink(temporary);
    return written;
}
