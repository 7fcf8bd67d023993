#include "request.h"

#include "elsewhere.h"
#include "library.h"
#include "package.h"

PyObject *gypy_request_new(struct gypy_flight *flight)
{
    PyTypeObject *type = (PyTypeObject *)gypy_package.request;
    struct gypy_request *request = (struct gypy_request *)PyType_GenericAlloc(type, 0);
    if (!request) {
        Py_DECREF(flight);
        return NULL;
    }
    request->flight = (PyObject *)flight;
    return (PyObject *)request;
}

static bool common(struct gypy_request *request, Py_ssize_t count, PyObject *names)
{
    struct gypy_flight *flight = (struct gypy_flight *)request->flight;
    return !count && !names && flight && flight->busy && !flight->persistent && !flight->buffers &&
           gypy_core_enter((struct gypy_core *)flight->comm);
}

static PyObject *complete(struct gypy_request *request, gyre_status status, bool interrupted)
{
    struct gypy_flight *flight = (struct gypy_flight *)request->flight;
    struct gypy_core *core = (struct gypy_core *)flight->comm;
    bool told = gypy_flight_end(flight, status);
    core->inside = false;
    if (interrupted || !told)
        return NULL;
    if (!flight->error || flight->error == Py_None)
        Py_RETURN_TRUE;
    return gypy_elsewhere(gypy_package.requests, "_raise", (PyObject *)request, NULL, 0, NULL);
}

static PyObject *wait_method(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    struct gypy_request *request = (struct gypy_request *)self;
    if (!common(request, count, names))
        return gypy_elsewhere(gypy_package.requests, "wait", self, arguments, count, names);
    struct gypy_flight *flight = (struct gypy_flight *)request->flight;
    bool interrupted;
    Py_INCREF(self); /* another thread may drop it meanwhile */
    gyre_status status = gypy_core_wait((struct gypy_core *)flight->comm, &flight->request, flight->bytes,
                                        &interrupted);
    PyObject *result = complete(request, status, interrupted);
    Py_DECREF(self);
    return result;
}

static PyObject *test_method(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    struct gypy_request *request = (struct gypy_request *)self;
    if (!common(request, count, names))
        return gypy_elsewhere(gypy_package.requests, "test", self, arguments, count, names);
    struct gypy_flight *flight = (struct gypy_flight *)request->flight;
    gyre_status status;
    Py_INCREF(self);
    Py_BEGIN_ALLOW_THREADS status = gypy_library.test(&flight->request);
    Py_END_ALLOW_THREADS if (status == GYRE_IN_PROGRESS)((struct gypy_core *)flight->comm)->inside = false;
    PyObject *result = status == GYRE_IN_PROGRESS ? PyBool_FromLong(0) : complete(request, status, false);
    Py_DECREF(self);
    return result;
}

/* ---- the type ---- */

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((struct gypy_request *)self)->flight);
    Py_VISIT(Py_TYPE(self));
    return 0;
}

/* A request that is dropped goes on, and is collected by a later call. */
static void finalize(PyObject *self)
{
    struct gypy_flight *flight = (struct gypy_flight *)((struct gypy_request *)self)->flight;
    struct gypy_core *core = flight ? (struct gypy_core *)flight->comm : NULL;
    if (!core || !core->orphans || !(flight->busy || flight->persistent))
        return;
    PyObject *kind, *reason, *trace;
    PyErr_Fetch(&kind, &reason, &trace);
    PyObject *done = PyObject_CallMethod(core->orphans, "append", "O", flight);
    Py_XDECREF(done);
    PyErr_Restore(kind, reason, trace);
}

static int clear(PyObject *self)
{
    Py_CLEAR(((struct gypy_request *)self)->flight);
    return 0;
}

static void dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    clear(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyMemberDef members[] = {
    {"_flight", T_OBJECT, offsetof(struct gypy_request, flight), 0, "what libgyre holds of it"},
    {NULL, 0, 0, 0, NULL},
};

#define METHOD(function) (PyCFunction)(void (*)(void)) function, METH_FASTCALL | METH_KEYWORDS

static PyMethodDef methods[] = {
    {"wait", METHOD(wait_method),
     "wait($self, timeout=None)\n--\n\n"
     "Blocks until it is complete. With a timeout in seconds, False if it is not complete by then."},
    {"test", METHOD(test_method),
     "test($self)\n--\n\n"
     "Moves all requests of the world a little, without blocking; True once this one is complete."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A call under way."}, {Py_tp_traverse, traverse}, {Py_tp_clear, clear},     {Py_tp_finalize, finalize},
    {Py_tp_dealloc, dealloc},         {Py_tp_members, members},   {Py_tp_methods, methods}, {0, NULL},
};

PyType_Spec gypy_request_spec = {
    .name = "gyre._native.Request",
    .basicsize = sizeof(struct gypy_request),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
