/* What libgyre holds of a request: its handle, and the buffers, which are exported until it is complete. The package's
 * class Flight, which is made of this one, has the rest. */
#ifndef GYRE_PYTHON_FLIGHT_H
#define GYRE_PYTHON_FLIGHT_H

#include "call.h"

struct gypy_flight {
    PyObject_HEAD PyObject *comm; /* struct gypy_core */
    PyObject *buffers;            /* tuple of the package's buffers; of a call that is common NULL */
    PyObject *error;              /* how it ended; NULL: in success, or not yet */
    struct gypy_buffer in, out;
    gyre_request *request;
    size_t bytes;
    char busy, persistent;
};

extern PyType_Spec gypy_flight_spec;

/* A flight of this call, whose buffers are moved into it, noted by the communicator. NULL with an exception. */
struct gypy_flight *gypy_flight_new(struct gypy_core *core, struct gypy_call *call);

/* libgyre does not know it any more: gives the buffers back. Keeps an exception that is there. */
void gypy_flight_let_go(struct gypy_flight *flight);

/* It is complete, with this status, which need not be success. False with an exception where the package could not be
 * told. */
bool gypy_flight_end(struct gypy_flight *flight, gyre_status status);

#endif
