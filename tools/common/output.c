#include "common/output.h"

#include <errno.h>
#include <string.h>

/* The reason of the first failed flush of a stream. Two entries suffice: standard output and one file. */
static struct failure {
    FILE *stream;
    int errnum;
} failures[2];

static int reason_of(const FILE *stream)
{
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        if (failures[i].stream == stream)
            return failures[i].errnum;
    }
    return 0;
}

void gy_output_flush(FILE *stream)
{
    if (fflush(stream) == 0 || reason_of(stream))
        return;
    int errnum = errno;
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        if (!failures[i].stream) {
            failures[i] = (struct failure){stream, errnum};
            return;
        }
    }
}

static bool complain(const char *tool, const char *name, int errnum)
{
    if (errnum)
        fprintf(stderr, "%s: cannot write %s: %s\n", tool, name, strerror(errnum));
    else /* an earlier line is lost, and with it the reason */
        fprintf(stderr, "%s: cannot write %s\n", tool, name);
    return false;
}

bool gy_output_arrived(const char *tool, FILE *stream, const char *name)
{
    errno = 0;
    bool flushed = fflush(stream) == 0;
    int errnum = errno;
    return (flushed && !ferror(stream)) || complain(tool, name, reason_of(stream) ? reason_of(stream) : errnum);
}

bool gy_output_close(const char *tool, FILE *stream, const char *name)
{
    if (!stream)
        return true;
    bool arrived = gy_output_arrived(tool, stream, name);
    if (stream == stdout)
        return arrived;
    errno = 0;
    bool closed = fclose(stream) == 0;
    return arrived && (closed || complain(tool, name, errno));
}
