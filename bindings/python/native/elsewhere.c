#include "elsewhere.h"

static PyObject *positional(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    PyObject *tuple = PyTuple_New(count + 1);
    for (Py_ssize_t i = 0; tuple && i <= count; i++) {
        PyObject *argument = i == 0 ? self : arguments[i - 1];
        Py_INCREF(argument);
        PyTuple_SetItem(tuple, i, argument);
    }
    return tuple;
}

static PyObject *by_name(PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    PyObject *options = PyDict_New();
    for (Py_ssize_t i = 0; options && names && i < PyTuple_Size(names); i++) {
        if (PyDict_SetItem(options, PyTuple_GetItem(names, i), arguments[count + i]) != 0)
            Py_CLEAR(options);
    }
    return options;
}

PyObject *gypy_elsewhere(PyObject *owner, const char *name, PyObject *self, PyObject *const *arguments,
                         Py_ssize_t count, PyObject *names)
{
    PyObject *method = owner ? PyObject_GetAttrString(owner, name) : NULL;
    PyObject *given = positional(self, arguments, count), *options = by_name(arguments, count, names);
    PyObject *result = method && given && options ? PyObject_Call(method, given, options) : NULL;
    if (!owner)
        PyErr_SetString(PyExc_RuntimeError, "gyre._native is used without its package");
    Py_XDECREF(method);
    Py_XDECREF(given);
    Py_XDECREF(options);
    return result;
}
