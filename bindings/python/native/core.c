#include "core.h"

#include "interrupt.h"
#include "library.h"
#include "package.h"

#include <time.h>

/* A request of so few bytes is over within microseconds where its peers are there, and is looked at for so long before
 * the wait for it is guarded. Longer ones are moved by gyre_wait alone, which takes turns with the other ranks. */
enum { SHORT_BYTES = 64 << 10, MOMENT_NS = 20000, LOOKS = 32 };

static bool is_empty(PyObject *container)
{
    return container && PyObject_Size(container) == 0;
}

bool gypy_core_enter(struct gypy_core *core)
{
    if (!core->handle || core->inside || gypy_calling || !is_empty(core->orphans) || !is_empty(core->unused))
        return false;
    core->inside = true;
    return true;
}

PyObject *gypy_core_fail(struct gypy_core *core, gyre_status status)
{
    PyObject *nothing = PyObject_CallMethod((PyObject *)core, "_check", "i", (int)status);
    if (nothing)
        PyErr_Format(PyExc_SystemError, "gyre: status %d without an error", (int)status);
    Py_XDECREF(nothing);
    return NULL;
}

static int64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static gyre_status look(gyre_request **request)
{
    gyre_status status = gypy_library.test(request);
    for (int64_t end = 0; status == GYRE_IN_PROGRESS;) {
        for (int i = 0; i < LOOKS && status == GYRE_IN_PROGRESS; i++)
            status = gypy_library.test(request);
        int64_t now = nanoseconds();
        if (end && now >= end)
            break;
        end = end ? end : now + MOMENT_NS;
    }
    return status;
}

gyre_status gypy_core_wait(struct gypy_core *core, gyre_request **request, size_t bytes, bool *interrupted_p)
{
    gyre_status status = GYRE_IN_PROGRESS;
    *interrupted_p = false;
    if (bytes <= SHORT_BYTES) {
        Py_BEGIN_ALLOW_THREADS status = look(request);
        Py_END_ALLOW_THREADS
    }
    if (status != GYRE_IN_PROGRESS)
        return status;
    int guarded = gypy_guard_enter(&core->handle, 1);
    if (guarded < 0) { /* the signal came before: the wait ends all the same */
        gypy_library.comm_abort(core->handle);
        *interrupted_p = true;
    }
    Py_BEGIN_ALLOW_THREADS status = gypy_library.wait(request);
    Py_END_ALLOW_THREADS if (guarded > 0)
    {
        gypy_guard_leave();
        *interrupted_p = PyErr_CheckSignals() != 0;
    }
    return status;
}
