#include "library.h"

#include <string.h>

struct gypy_library gypy_library;

static bool bind_one(PyObject *addresses, const char *name, void *function_p, size_t bytes)
{
    PyObject *number = PyMapping_GetItemString(addresses, name);
    if (!number)
        return false;
    void *address = PyLong_AsVoidPtr(number);
    Py_DECREF(number);
    if (!address && !PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "%s has no address", name);
    if (!address)
        return false;
    memcpy(function_p, &address, bytes);
    return true;
}

bool gypy_library_bind(PyObject *addresses)
{
#define GYPY_LIBRARY_BIND(name)                                                             \
    if (!bind_one(addresses, "gyre_" #name, &gypy_library.name, sizeof(gypy_library.name))) \
        return false;
    GYPY_LIBRARY_MAP(GYPY_LIBRARY_BIND)
#undef GYPY_LIBRARY_BIND
    return true;
}
