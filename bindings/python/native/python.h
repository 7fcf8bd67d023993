/* Python's limited interface, for one build that every CPython from 3.10 on loads. */
#ifndef GYRE_PYTHON_PYTHON_H
#define GYRE_PYTHON_PYTHON_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030A0000
#include <Python.h>

#include <stdbool.h>
#include <structmember.h>

/* The buffer protocol joined the limited interface with Python 3.11. Python 3.10 has the same struct and functions, and
 * exports them; its headers hide them from this build. */
typedef struct {
    void *buf;
    PyObject *obj;
    Py_ssize_t len;
    Py_ssize_t itemsize;
    int readonly;
    int ndim;
    char *format;
    Py_ssize_t *shape;
    Py_ssize_t *strides;
    Py_ssize_t *suboffsets;
    void *internal;
} gypy_view;

#define GYPY_VIEW_ND 0x0008
#define GYPY_VIEW_FORMAT 0x0004

#endif
