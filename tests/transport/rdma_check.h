/* CHECK for tests of ranks that are threads of this process, by the public interface: the first that fails ends them
 * all. */
#ifndef GYRE_TESTS_RDMA_CHECK_H
#define GYRE_TESTS_RDMA_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include <gyre/gyre.h>

#define CHECK(condition)                                                                                        \
    do {                                                                                                        \
        if (!(condition)) {                                                                                     \
            fprintf(stderr, "%s:%d: %s is false: %s\n", __FILE__, __LINE__, #condition, gyre_last_error(NULL)); \
            _Exit(1);                                                                                           \
        }                                                                                                       \
    } while (0)

#endif
