/* The arguments of a call, by the names of its parameters. */
#ifndef GYRE_PYTHON_ARGUMENTS_H
#define GYRE_PYTHON_ARGUMENTS_H

#include "call.h"

struct gypy_arguments {
    PyObject *input, *output; /* NULL: None, or not given */
    int op, rank, dtype;      /* dtype −1: not given */
};

/* False, without an exception, where they are not those of a common call. */
bool gypy_arguments_read(struct gypy_arguments *arguments, enum gypy_kind kind, PyObject *const *given,
                         Py_ssize_t count, PyObject *names);

#endif
