/* The type of struct gypy_core: what the package's class Communicator begins with. */
#include "call.h"
#include "core.h"

static PyObject *open_method(PyObject *self, PyObject *arguments)
{
    struct gypy_core *core = (struct gypy_core *)self;
    unsigned long long handle;
    PyObject *flights, *orphans, *unused;
    if (!PyArg_ParseTuple(arguments, "KiiOOO", &handle, &core->rank, &core->size, &flights, &orphans, &unused))
        return NULL;
    core->handle = (gyre_comm *)(uintptr_t)handle;
    PyObject **fields[] = {&core->flights, &core->orphans, &core->unused};
    PyObject *given[] = {flights, orphans, unused};
    for (int i = 0; i < 3; i++) {
        PyObject *before = *fields[i];
        Py_INCREF(given[i]);
        *fields[i] = given[i];
        Py_XDECREF(before);
    }
    Py_RETURN_NONE;
}

static PyObject *acquire_method(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    struct gypy_core *core = (struct gypy_core *)self;
    bool free_before = !core->inside;
    core->inside = true;
    return PyBool_FromLong(free_before);
}

static PyObject *release_method(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    ((struct gypy_core *)self)->inside = false;
    Py_RETURN_NONE;
}

static PyObject *get_handle(PyObject *self, void *unused)
{
    (void)unused;
    struct gypy_core *core = (struct gypy_core *)self;
    if (!core->handle)
        Py_RETURN_NONE;
    return PyLong_FromVoidPtr(core->handle);
}

static int set_handle(PyObject *self, PyObject *value, void *unused)
{
    (void)unused;
    void *handle = !value || value == Py_None ? NULL : PyLong_AsVoidPtr(value);
    if (PyErr_Occurred())
        return -1;
    ((struct gypy_core *)self)->handle = handle;
    return 0;
}

/* ---- the type ---- */

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    struct gypy_core *core = (struct gypy_core *)self;
    Py_VISIT(core->flights);
    Py_VISIT(core->orphans);
    Py_VISIT(core->unused);
    Py_VISIT(Py_TYPE(self));
    return 0;
}

static int clear(PyObject *self)
{
    struct gypy_core *core = (struct gypy_core *)self;
    Py_CLEAR(core->flights);
    Py_CLEAR(core->orphans);
    Py_CLEAR(core->unused);
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

#define CALL_METHOD(kind, name, signature, text)                                                          \
    {#name, (PyCFunction)(void (*)(void))gypy_##name, METH_FASTCALL | METH_KEYWORDS,                      \
     #name "($self, " signature ")\n--\n\n" text},                                                        \
        {#name "_start", (PyCFunction)(void (*)(void))gypy_##name##_start, METH_FASTCALL | METH_KEYWORDS, \
         #name "_start($self, " signature ")\n--\n\n" text                                                \
               " As a request: never blocks; the buffers are gyre's until it is complete."},

static PyMethodDef methods[] = {
    GYPY_CALL_MAP(CALL_METHOD){"_open", open_method, METH_VARARGS,
                               "Takes the handle, rank, size, and the containers that are looked at."},
    {"_acquire", acquire_method, METH_NOARGS, "Marks that a thread is inside; False if one is already."},
    {"_release", release_method, METH_NOARGS, "No thread is inside any more."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef properties[] = {
    {"_handle", get_handle, set_handle, "libgyre's handle; None: closed", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A communicator's handle, the mark of the thread inside, and the calls that are common."},
    {Py_tp_traverse, traverse},
    {Py_tp_clear, clear},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {0, NULL},
};

PyType_Spec gypy_core_spec = {
    .name = "gyre._native.Core",
    .basicsize = sizeof(struct gypy_core),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
