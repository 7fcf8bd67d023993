#include "several.h"

#include "flight.h"
#include "interrupt.h"
#include "library.h"

#include <stdlib.h>

static void note(gyre_comm **comms, size_t *count_p, PyObject *comm)
{
    gyre_comm *handle = ((struct gypy_core *)comm)->handle;
    bool known = !handle || *count_p == GYPY_GUARD_MOST;
    for (size_t i = 0; i < *count_p && !known; i++)
        known = comms[i] == handle;
    if (!known)
        comms[(*count_p)++] = handle;
}

PyObject *gypy_several_guard_enter(PyObject *module, PyObject *list)
{
    (void)module;
    gyre_comm *comms[GYPY_GUARD_MOST];
    size_t count = 0;
    if (!PyList_Check(list))
        return PyErr_Format(PyExc_TypeError, "guard_enter: a list of communicators");
    for (Py_ssize_t i = 0; i < PyList_Size(list); i++)
        note(comms, &count, PyList_GetItem(list, i));
    int guarded = gypy_guard_enter(comms, count);
    return guarded < 0 ? NULL : PyBool_FromLong(guarded);
}

PyObject *gypy_several_guard_leave(PyObject *module, PyObject *nothing)
{
    (void)module, (void)nothing;
    gypy_guard_leave();
    if (PyErr_CheckSignals() != 0)
        return NULL;
    Py_RETURN_NONE;
}

/* Waits with Python's lock released. −1: a signal had come before, and nothing has been waited for. */
static int wait_for_one(gyre_comm **comms, size_t worlds, gyre_request **requests, size_t count, ptrdiff_t *index_p,
                        gyre_status *status_p)
{
    int guarded = gypy_guard_enter(comms, worlds);
    if (guarded < 0)
        return -1;
    Py_BEGIN_ALLOW_THREADS *status_p = gypy_library.wait_any(requests, count, index_p);
    Py_END_ALLOW_THREADS if (guarded) gypy_guard_leave();
    return 0;
}

static PyObject *wait_any(PyObject *list, gyre_request **requests, size_t count)
{
    gyre_comm *comms[GYPY_GUARD_MOST];
    size_t worlds = 0;
    for (size_t i = 0; i < count; i++) {
        struct gypy_flight *flight = (struct gypy_flight *)PyList_GetItem(list, (Py_ssize_t)i);
        requests[i] = flight->request;
        note(comms, &worlds, flight->comm);
    }
    ptrdiff_t index = -1;
    gyre_status status = GYRE_SUCCESS;
    if (wait_for_one(comms, worlds, requests, count, &index, &status) != 0)
        return NULL;
    if (index < 0)
        return PyErr_Format(PyExc_ValueError, "wait_any: no request is under way");
    struct gypy_flight *flight = (struct gypy_flight *)PyList_GetItem(list, index);
    flight->request = requests[index];
    if (PyErr_CheckSignals() == 0)
        return Py_BuildValue("(ni)", (Py_ssize_t)index, (int)status);
    gypy_flight_end(flight, status);
    return NULL;
}

PyObject *gypy_several_wait_any(PyObject *module, PyObject *list)
{
    (void)module;
    if (!PyList_Check(list) || PyList_Size(list) == 0)
        return PyErr_Format(PyExc_TypeError, "wait_any: a list of flights");
    size_t count = (size_t)PyList_Size(list);
    gyre_request **requests = calloc(count, sizeof(*requests));
    PyObject *result = requests ? wait_any(list, requests, count) : PyErr_NoMemory();
    free(requests);
    return result;
}
