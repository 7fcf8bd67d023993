/* gyre._native: the calls of the package gyre that are to be quick. _native.pyi says what is in it. */
#include "core.h"
#include "interrupt.h"
#include "library.h"
#include "package.h"
#include "request.h"
#include "several.h"

#define TEXT_OF(number) #number
#define DOTTED(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)
#define VERSION DOTTED(GYRE_VERSION_MAJOR, GYRE_VERSION_MINOR, GYRE_VERSION_PATCH)

static PyObject *bind(PyObject *module, PyObject *arguments)
{
    (void)module;
    PyObject *addresses, *objects;
    if (!PyArg_ParseTuple(arguments, "O!O!", &PyDict_Type, &addresses, &PyDict_Type, &objects) ||
        !gypy_library_bind(addresses) || !gypy_package_bind(objects))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *calling(PyObject *module, PyObject *nothing)
{
    (void)module, (void)nothing;
    return PyBool_FromLong(gypy_calling);
}

static PyObject *set_calling(PyObject *module, PyObject *value)
{
    (void)module;
    gypy_calling = PyObject_IsTrue(value);
    Py_RETURN_NONE;
}

static PyObject *grouped(PyObject *module, PyObject *nothing)
{
    (void)module, (void)nothing;
    return PyLong_FromLong(gypy_grouped);
}

static PyObject *set_grouped(PyObject *module, PyObject *value)
{
    (void)module;
    long depth = PyLong_AsLong(value);
    if (PyErr_Occurred())
        return NULL;
    gypy_grouped = (int)depth;
    Py_RETURN_NONE;
}

static PyObject *note_failure(PyObject *module, PyObject *nothing)
{
    (void)module, (void)nothing;
    gypy_package.failures++;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"bind", bind, METH_VARARGS, "bind(addresses, objects): libgyre's functions, and the package's objects."},
    {"calling", calling, METH_NOARGS, "Is an operation of the program's own running in this thread?"},
    {"set_calling", set_calling, METH_O, "Says so."},
    {"grouped", grouped, METH_NOARGS, "The groups that are open in this thread."},
    {"set_grouped", set_grouped, METH_O, "Says so."},
    {"note_failure", note_failure, METH_NOARGS, "An operation of the program's own has raised."},
    {"tensor", gypy_tensor_describe, METH_VARARGS, "What __dlpack__ of an object exports."},
    {"guard_enter", gypy_several_guard_enter, METH_O, "A wait on these communicators begins; see interrupt.h."},
    {"guard_leave", gypy_several_guard_leave, METH_NOARGS, "It is over."},
    {"wait_any", gypy_several_wait_any, METH_O, "Waits for one of several flights: (index, status)."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "gyre._native",
    .m_doc = "The calls of the package gyre that are to be quick.",
    .m_size = -1,
    .m_methods = functions,
};

static bool add_type(PyObject *module, const char *name, PyType_Spec *spec)
{
    PyObject *type = PyType_FromSpec(spec);
    if (type && PyModule_AddObject(module, name, type) == 0)
        return true;
    Py_XDECREF(type);
    return false;
}

PyMODINIT_FUNC PyInit__native(void);
PyMODINIT_FUNC PyInit__native(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module && add_type(module, "Core", &gypy_core_spec) && add_type(module, "Flight", &gypy_flight_spec) &&
        add_type(module, "Request", &gypy_request_spec) &&
        PyModule_AddStringConstant(module, "__version__", VERSION) == 0)
        return module;
    Py_XDECREF(module);
    return NULL;
}
