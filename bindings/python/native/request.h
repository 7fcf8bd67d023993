/* A request as the caller has it: one reference to a flight, which goes on without it. */
#ifndef GYRE_PYTHON_REQUEST_H
#define GYRE_PYTHON_REQUEST_H

#include "flight.h"

struct gypy_request {
    PyObject_HEAD PyObject *flight; /* struct gypy_flight */
};

extern PyType_Spec gypy_request_spec;

/* Steals the flight. NULL with an exception. */
PyObject *gypy_request_new(struct gypy_flight *flight);

#endif
