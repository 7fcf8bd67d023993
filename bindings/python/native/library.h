/* The functions of libgyre that the module calls. The package finds libgyre.so, and hands their addresses over. */
#ifndef GYRE_PYTHON_LIBRARY_H
#define GYRE_PYTHON_LIBRARY_H

#include "python.h"

#include <gyre/gyre.h>

#define GYPY_LIBRARY_MAP(X) \
    X(all_reduce_start)     \
    X(reduce_start)         \
    X(reduce_scatter_start) \
    X(broadcast_start)      \
    X(all_gather_start)     \
    X(gather_start)         \
    X(scatter_start)        \
    X(all_to_all_start)     \
    X(barrier_start)        \
    X(send_start)           \
    X(recv_start)           \
    X(test)                 \
    X(wait)                 \
    X(wait_any)             \
    X(start)                \
    X(comm_abort)

struct gypy_library {
#define GYPY_LIBRARY_FIELD(name) __typeof__(&gyre_##name) name;
    GYPY_LIBRARY_MAP(GYPY_LIBRARY_FIELD)
#undef GYPY_LIBRARY_FIELD
};

extern struct gypy_library gypy_library;

/* Takes the functions from a dict of addresses by name. Returns false with an exception where one is missing. */
bool gypy_library_bind(PyObject *addresses);

#endif
