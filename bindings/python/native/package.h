/* What the module knows of the Python package around it: its classes, its tables, and what the calling thread does. */
#ifndef GYRE_PYTHON_PACKAGE_H
#define GYRE_PYTHON_PACKAGE_H

#include "python.h"

struct gypy_package {
    PyObject *flight; /* the package's classes, made of this module's */
    PyObject *request;
    PyObject *calls;        /* the class whose methods take every call that is not common */
    PyObject *requests;     /* likewise, of requests */
    PyObject *op_names;     /* dict: number of an operation by its name */
    PyObject *dtype_names;  /* dict: number of an element type by its name */
    PyObject *get_handler;  /* signal.getsignal */
    PyObject *interrupt;    /* signal.default_int_handler */
    unsigned long main;     /* the thread in which Python runs handlers of signals */
    unsigned long failures; /* operations of a program's own that have raised */
};

extern struct gypy_package gypy_package;

/* Of the calling thread: an operation of a program's own is running; groups that are open. */
extern _Thread_local int gypy_calling;
extern _Thread_local int gypy_grouped;

/* Takes the objects from a dict by the names of the fields. Returns false with an exception where one is missing. */
bool gypy_package_bind(PyObject *objects);

#endif
