/* The calls as methods of a communicator, blocking and as requests. */
#include "call.h"
#include "elsewhere.h"
#include "library.h"
#include "package.h"
#include "request.h"

static gyre_status start(struct gypy_call *call, struct gypy_core *core, gyre_request **request_p)
{
    gyre_status status;
    Py_BEGIN_ALLOW_THREADS status = gypy_call_start(call, core->handle, request_p);
    Py_END_ALLOW_THREADS return status;
}

/* The call is over. An operation of the program's own may have raised, perhaps for another call. */
static PyObject *outcome(struct gypy_call *call, struct gypy_core *core, gyre_status status)
{
    if (status != GYRE_SUCCESS)
        return gypy_core_fail(core, status);
    if (gypy_package.failures) {
        PyObject *nothing = PyObject_CallMethod((PyObject *)core, "_check", "i", (int)status);
        if (!nothing)
            return NULL;
        Py_DECREF(nothing);
    }
    PyObject *result = call->result ? call->result : Py_None;
    Py_INCREF(result);
    return result;
}

static PyObject *run(struct gypy_call *call, struct gypy_core *core)
{
    gyre_request *request = NULL;
    bool interrupted = false;
    gyre_status status = start(call, core, &request);
    if (status == GYRE_SUCCESS)
        status = gypy_core_wait(core, &request, call->bytes, &interrupted);
    PyObject *result = interrupted ? NULL : outcome(call, core, status);
    core->inside = false;
    gypy_call_release(call);
    return result;
}

static PyObject *begin(struct gypy_call *call, struct gypy_core *core)
{
    struct gypy_flight *flight = gypy_flight_new(core, call);
    if (!flight) {
        core->inside = false;
        gypy_call_release(call);
        return NULL;
    }
    gyre_status status = start(call, core, &flight->request);
    if (status != GYRE_SUCCESS) {
        gypy_core_fail(core, status);
        gypy_flight_let_go(flight);
    }
    core->inside = false;
    if (status == GYRE_SUCCESS)
        return gypy_request_new(flight);
    Py_DECREF(flight);
    return NULL;
}

/* Enters and prepares: false where the package has to. */
static bool is_common(struct gypy_call *call, enum gypy_kind kind, PyObject *self, PyObject *const *arguments,
                      Py_ssize_t count, PyObject *names)
{
    struct gypy_core *core = (struct gypy_core *)self;
    if (!gypy_core_enter(core))
        return false;
    if (gypy_call_prepare(call, kind, core, arguments, count, names))
        return true;
    core->inside = false;
    return false;
}

#define METHODS(kind, name, signature, text)                                                                     \
    PyObject *gypy_##name(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names)         \
    {                                                                                                            \
        struct gypy_call call;                                                                                   \
        if (!gypy_grouped && is_common(&call, GYPY_##kind, self, arguments, count, names))                       \
            return run(&call, (struct gypy_core *)self);                                                         \
        return gypy_elsewhere(gypy_package.calls, #name, self, arguments, count, names);                         \
    }                                                                                                            \
    PyObject *gypy_##name##_start(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names) \
    {                                                                                                            \
        struct gypy_call call;                                                                                   \
        if (is_common(&call, GYPY_##kind, self, arguments, count, names))                                        \
            return begin(&call, (struct gypy_core *)self);                                                       \
        return gypy_elsewhere(gypy_package.calls, #name "_start", self, arguments, count, names);                \
    }
GYPY_CALL_MAP(METHODS)
