#include "output.h"

#include <errno.h>
#include <string.h>

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
    return (flushed && !ferror(stream)) || complain(tool, name, errno);
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
