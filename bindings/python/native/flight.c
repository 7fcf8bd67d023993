#include "flight.h"

#include "package.h"

#include <string.h>

struct gypy_flight *gypy_flight_new(struct gypy_core *core, struct gypy_call *call)
{
    PyTypeObject *type = (PyTypeObject *)gypy_package.flight;
    struct gypy_flight *flight = (struct gypy_flight *)PyType_GenericAlloc(type, 0);
    if (!flight)
        return NULL;
    Py_INCREF(core);
    flight->comm = (PyObject *)core;
    flight->busy = 1;
    flight->bytes = call->bytes;
    if (PySet_Add(core->flights, (PyObject *)flight) != 0) {
        Py_DECREF(flight);
        return NULL;
    }
    flight->in = call->in;
    flight->out = call->out;
    memset(&call->in, 0, sizeof(call->in));
    memset(&call->out, 0, sizeof(call->out));
    return flight;
}

void gypy_flight_let_go(struct gypy_flight *flight)
{
    PyObject *kind, *reason, *trace;
    flight->busy = 0;
    PyErr_Fetch(&kind, &reason, &trace);
    gypy_buffer_release(&flight->in);
    gypy_buffer_release(&flight->out);
    struct gypy_core *core = (struct gypy_core *)flight->comm;
    if (core && core->flights)
        PySet_Discard(core->flights, (PyObject *)flight);
    PyErr_Restore(kind, reason, trace);
}

bool gypy_flight_end(struct gypy_flight *flight, gyre_status status)
{
    if (status == GYRE_SUCCESS && !flight->buffers && gypy_package.failures == 0) {
        flight->busy = 0;
        gypy_flight_let_go(flight);
        return true;
    }
    PyObject *kind, *reason, *trace;
    PyErr_Fetch(&kind, &reason, &trace);
    PyObject *done = PyObject_CallMethod((PyObject *)flight, "_ended", "i", (int)status);
    bool told = done != NULL;
    Py_XDECREF(done);
    if (kind)
        PyErr_Restore(kind, reason, trace); /* what had been raised before is what the caller sees */
    return told;
}

/* ---- the type ---- */

static PyObject *get_address(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromVoidPtr(&((struct gypy_flight *)self)->request);
}

static PyObject *release(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    gypy_flight_let_go((struct gypy_flight *)self);
    Py_RETURN_NONE;
}

/* Waits, and gives the status; the package ends it. */
static PyObject *wait_method(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    struct gypy_flight *flight = (struct gypy_flight *)self;
    bool interrupted;
    gyre_status status = gypy_core_wait((struct gypy_core *)flight->comm, &flight->request, flight->bytes,
                                        &interrupted);
    if (!interrupted)
        return PyLong_FromLong((long)status);
    gypy_flight_end(flight, status);
    return NULL;
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    struct gypy_flight *flight = (struct gypy_flight *)self;
    Py_VISIT(flight->comm);
    Py_VISIT(flight->buffers);
    Py_VISIT(flight->error);
    Py_VISIT(Py_TYPE(self));
    return 0;
}

static int clear(PyObject *self)
{
    struct gypy_flight *flight = (struct gypy_flight *)self;
    Py_CLEAR(flight->comm);
    Py_CLEAR(flight->buffers);
    Py_CLEAR(flight->error);
    return 0;
}

static void dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    struct gypy_flight *flight = (struct gypy_flight *)self;
    PyObject_GC_UnTrack(self);
    gypy_buffer_release(&flight->in);
    gypy_buffer_release(&flight->out);
    clear(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

#define FIELD(field) offsetof(struct gypy_flight, field)

static PyMemberDef members[] = {
    {"comm", T_OBJECT, FIELD(comm), 0, "the communicator"},
    {"buffers", T_OBJECT, FIELD(buffers), 0, "buffers of the package; None: the module holds them"},
    {"error", T_OBJECT, FIELD(error), 0, "the error it ended with, or None"},
    {"busy", T_BOOL, FIELD(busy), 0, "is it under way?"},
    {"persistent", T_BOOL, FIELD(persistent), 0, "can it be started again?"},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef properties[] = {
    {"address", get_address, NULL, "where libgyre keeps its handle", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"_release", release, METH_NOARGS, "Gives back what the module holds; the communicator forgets it."},
    {"_wait", wait_method, METH_NOARGS, "Waits, and gives the status. The caller is inside a call."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "What libgyre holds of a request."},
    {Py_tp_traverse, traverse},
    {Py_tp_clear, clear},
    {Py_tp_dealloc, dealloc},
    {Py_tp_members, members},
    {Py_tp_getset, properties},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec gypy_flight_spec = {
    .name = "gyre._native.Flight",
    .basicsize = sizeof(struct gypy_flight),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
