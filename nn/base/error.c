/* One buffer per thread: a call that fails writes its message there; a call that succeeds does not change it. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char sentence[1024];

const char *gyre_nn_last_error(void)
{
    return sentence;
}

gyre_status gy_nn_fail(gyre_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    return status;
}

gyre_status gy_nn_fail_system(int errnum, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int used = vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    if (used >= 0 && (size_t)used < sizeof(sentence))
        snprintf(sentence + used, sizeof(sentence) - (size_t)used, ": %s", strerror(errnum));
    if (errnum == EMFILE || errnum == ENFILE)
        return GYRE_NO_DESCRIPTORS;
    return errnum == ENOMEM ? GYRE_NO_MEMORY : GYRE_SYSTEM;
}

gyre_status gy_nn_fail_comm(gyre_status status, const gyre_comm *comm, const char *what)
{
    const char *text = comm ? gyre_last_error(comm) : "";
    return gy_nn_fail(status, "%s failed with %s: %s", what, gyre_status_name(status),
                      *text ? text : gyre_status_text(status));
}

gyre_status gyre_nn_fail(gyre_status status, const gyre_comm *comm, const char *what)
{
    const char *text = comm ? gyre_last_error(comm) : "";
    return *text ? gy_nn_fail_comm(status, comm, what)
                 : gy_nn_fail(status, "%s", what ? what : gyre_status_text(status));
}
