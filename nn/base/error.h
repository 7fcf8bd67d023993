/* The error message of a failed call of gyre-nn; per thread. */
#ifndef GY_NN_ERROR_H
#define GY_NN_ERROR_H

#include <gyre/nn.h>

/* Writes the message and returns `status`. */
gyre_status gy_nn_fail(gyre_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same for a failed system call: appends its error text; returns NO_MEMORY, NO_DESCRIPTORS or SYSTEM. */
gyre_status gy_nn_fail_system(int errnum, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same for a failed call of gyre: appends the communicator's message. */
gyre_status gy_nn_fail_comm(gyre_status status, const gyre_comm *comm, const char *what);

#endif
