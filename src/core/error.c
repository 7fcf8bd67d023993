/* Errors are decided once. The first error message stays; later errors are consequences, logged at DEBUG only. A NULL
 * error is allowed if the caller keeps none: the message is then only logged. */
#include "error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "log.h"

bool gy_status_is_failure(uint32_t status)
{
    switch (status) {
#define STATUS_CASE(code, name, text) case code:
        GYRE_STATUS_MAP(STATUS_CASE)
#undef STATUS_CASE
        return status != GYRE_SUCCESS;
    default: return false;
    }
}

void gy_error_clear(struct gy_error *error)
{
    error->status = GYRE_SUCCESS;
    error->rank = -1;
    error->text[0] = '\0';
}

static gyre_status decide(struct gy_error *error, gyre_status status, int rank, const char *text)
{
    if (error && error->status != GYRE_SUCCESS) {
        gy_log(GY_LOG_DEBUG, "after the first error: %s", text);
        return status;
    }
    if (error) {
        error->status = status;
        error->rank = rank;
        snprintf(error->text, sizeof(error->text), "%s", text);
    }
    if (!error || !error->quiet)
        gy_log(GY_LOG_ERROR, "%s", text);
    return status;
}

gyre_status gy_error_set(struct gy_error *error, gyre_status status, int rank, const char *format, ...)
{
    char text[GY_ERROR_TEXT];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return decide(error, status, rank, text);
}

bool gy_error_is_shortage(int errnum)
{
    return errnum == EMFILE || errnum == ENFILE || errnum == ENOMEM || errnum == ENOBUFS;
}

bool gy_error_files_are_out(const char *file_nr)
{
    unsigned long long used, spare, most;
    return sscanf(file_nr, "%llu %llu %llu", &used, &spare, &most) != 3 || used >= most - most / 16;
}

/* The kernel returns ENFILE also when it has no memory for a socket, that of a full control group for instance. */
static bool lacks_memory(int errnum)
{
    char text[80] = "";
    if (errnum != ENFILE)
        return errnum == ENOMEM;
    int fd = open("/proc/sys/fs/file-nr", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOMEM;
    ssize_t length = read(fd, text, sizeof(text) - 1);
    close(fd);
    return length > 0 && !gy_error_files_are_out(text);
}

static gyre_status status_of_errno(int errnum)
{
    if (lacks_memory(errnum))
        return GYRE_NO_MEMORY;
    return errnum == EMFILE || errnum == ENFILE ? GYRE_NO_DESCRIPTORS : GYRE_SYSTEM;
}

/* What to raise. */
static const char *advice(int errnum, gyre_status status, char *text, size_t bytes)
{
    struct rlimit limit = {0};

    text[0] = '\0';
    if (errnum == EMFILE && getrlimit(RLIMIT_NOFILE, &limit) == 0)
        snprintf(text, bytes, "; this process may have %llu descriptors: raise ulimit -n (RLIMIT_NOFILE)",
                 (unsigned long long)limit.rlim_cur);
    else if (errnum == ENFILE && status == GYRE_NO_MEMORY)
        snprintf(text, bytes, "; the host has descriptors left, so the kernel had no memory for a socket");
    else if (errnum == ENFILE)
        snprintf(text, bytes, "; the host is out of descriptors: raise sysctl fs.file-max");
    return text;
}

gyre_status gy_error_system(struct gy_error *error, int errnum, const char *format, ...)
{
    char text[GY_ERROR_TEXT], reason[128], hint[128];
    size_t used;
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    used = strlen(text);
    gyre_status status = status_of_errno(errnum);
    snprintf(text + used, sizeof(text) - used, ": %s%s", strerror_r(errnum, reason, sizeof(reason)),
             advice(errnum, status, hint, sizeof(hint)));
    return decide(error, status, -1, text);
}
