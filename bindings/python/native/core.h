/* What a communicator of the package is made of: its handle, the mark of the thread that is inside, and what has to be
 * looked at before a call. The package's class adds everything else. */
#ifndef GYRE_PYTHON_CORE_H
#define GYRE_PYTHON_CORE_H

#include "python.h"

#include <gyre/gyre.h>

struct gypy_core {
    PyObject_HEAD gyre_comm *handle; /* NULL: closed */
    bool inside;                     /* a thread is inside; changed with Python's lock held */
    int rank, size;
    PyObject *flights; /* set of the requests that libgyre knows */
    PyObject *orphans; /* deque of those that the program has dropped */
    PyObject *unused;  /* deque of memory that is to be freed */
};

extern PyType_Spec gypy_core_spec;

/* Enters the communicator for a call that is common. False, without an exception, where anything has to be said or done
 * first: that is for the package's own path. */
bool gypy_core_enter(struct gypy_core *core);

/* Raises the error of a status by the package's _check. Always NULL. */
PyObject *gypy_core_fail(struct gypy_core *core, gyre_status status);

/* Waits for a request: looks at it for a moment where it is short, then sleeps as libgyre does. Ctrl-C ends it:
 * *interrupted_p is true then, with an exception. Called with Python's lock held, which it releases. */
gyre_status gypy_core_wait(struct gypy_core *core, gyre_request **request, size_t bytes, bool *interrupted_p);

#endif
