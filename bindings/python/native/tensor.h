/* A tensor that another library exports by DLPack, held until it is released. */
#ifndef GYRE_PYTHON_TENSOR_H
#define GYRE_PYTHON_TENSOR_H

#include "dlpack.h"
#include "python.h"

struct gypy_tensor {
    struct dlpack_managed *managed; /* one of the two, or neither */
    struct dlpack_versioned *versioned;
    const struct dlpack_tensor *tensor; /* that of the one that is there */
    bool readonly;
};

/* Borrows `source` by __dlpack__. stream: of CUDA, behind which the exporter puts its own work; NULL: none is named.
 * False with an exception where it has none, or refuses. */
bool gypy_tensor_take(struct gypy_tensor *tensor, PyObject *source, PyObject *stream);

/* Gives it back. May be called again. */
void gypy_tensor_release(struct gypy_tensor *tensor);

/* Elements in C order without gaps? */
bool gypy_tensor_is_contiguous(const struct gypy_tensor *tensor);
size_t gypy_tensor_elements(const struct gypy_tensor *tensor);

/* The number of gyre's element type, or −1; *parts_p is 2 for a complex number, which is two elements, and else 1. */
int gypy_tensor_dtype(const struct gypy_tensor *tensor, size_t *parts_p);

/* True if the processor can access it. */
bool gypy_tensor_is_on_host(const struct gypy_tensor *tensor);

/* Of Python: tensor(source, stream=None) gives (capsule, address, elements, dtype, parts, bits, code, readonly,
 * contiguous, kind of the device, number of the device), as the package's own path wants it. The tensor is held as long
 * as the capsule. */
PyObject *gypy_tensor_describe(PyObject *module, PyObject *arguments);

#endif
