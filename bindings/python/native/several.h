/* Waits that concern several communicators or several requests. */
#ifndef GYRE_PYTHON_SEVERAL_H
#define GYRE_PYTHON_SEVERAL_H

#include "python.h"

/* guard_enter(list of communicators) begins a wait that Ctrl-C ends, guard_leave() ends it; see interrupt.h. */
PyObject *gypy_several_guard_enter(PyObject *module, PyObject *comms);
PyObject *gypy_several_guard_leave(PyObject *module, PyObject *nothing);

/* wait_any(list of flights) waits for one of them: (index, status). The caller is inside calls of their
 * communicators. */
PyObject *gypy_several_wait_any(PyObject *module, PyObject *flights);

#endif
