#include "package.h"

struct gypy_package gypy_package;
_Thread_local int gypy_calling;
_Thread_local int gypy_grouped;

static bool bind_one(PyObject *objects, const char *name, PyObject **object_p)
{
    PyObject *object = PyMapping_GetItemString(objects, name);
    if (!object)
        return false;
    PyObject *before = *object_p;
    *object_p = object; /* for the life of the process */
    Py_XDECREF(before);
    return true;
}

bool gypy_package_bind(PyObject *objects)
{
    PyObject *main_thread = PyMapping_GetItemString(objects, "main");
    if (!main_thread)
        return false;
    gypy_package.main = PyLong_AsUnsignedLong(main_thread);
    Py_DECREF(main_thread);
    if (PyErr_Occurred())
        return false;
    return bind_one(objects, "flight", &gypy_package.flight) && bind_one(objects, "request", &gypy_package.request) &&
           bind_one(objects, "calls", &gypy_package.calls) && bind_one(objects, "requests", &gypy_package.requests) &&
           bind_one(objects, "op_names", &gypy_package.op_names) &&
           bind_one(objects, "dtype_names", &gypy_package.dtype_names) &&
           bind_one(objects, "get_handler", &gypy_package.get_handler) &&
           bind_one(objects, "interrupt", &gypy_package.interrupt);
}
