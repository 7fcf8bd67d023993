/* The memory of an object that is common as an argument: by the buffer protocol or by DLPack, in C order, of an element
 * type of gyre's. Held until it is released. Anything else is left to the package, which knows more kinds of objects,
 * and has the error messages for what cannot be taken. */
#ifndef GYRE_PYTHON_BUFFER_H
#define GYRE_PYTHON_BUFFER_H

#include "tensor.h"

#include <gyre/gyre.h>

struct gypy_buffer {
    gypy_view view;            /* obj: the owner's export, or NULL */
    struct gypy_tensor tensor; /* what DLPack exports, or nothing */
    void *address;
    size_t bytes, count; /* count: elements of `dtype` */
    gyre_dtype dtype;
    bool complex; /* each two elements are a complex number */
    bool readonly;
};

/* `dtype`: the type that the caller names, or −1. False: not common; nothing is held, and there is no exception. */
bool gypy_buffer_take(struct gypy_buffer *buffer, PyObject *source, int dtype);

/* Gives the memory back to its owner. May be called again. */
void gypy_buffer_release(struct gypy_buffer *buffer);

#endif
