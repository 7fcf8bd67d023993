/* What is not common is done by the package, by the method of the same name of another class. */
#ifndef GYRE_PYTHON_ELSEWHERE_H
#define GYRE_PYTHON_ELSEWHERE_H

#include "python.h"

/* owner.name(self, *arguments, **names), as the interpreter has given them. */
PyObject *gypy_elsewhere(PyObject *owner, const char *name, PyObject *self, PyObject *const *arguments,
                         Py_ssize_t count, PyObject *names);

#endif
