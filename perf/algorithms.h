/* The names of the algorithms that GYRE_ALGORITHM and an attribute can force, from the library's table. */
#ifndef GYRE_PERF_ALGORITHMS_H
#define GYRE_PERF_ALGORITHMS_H

#include "collectives/schedule/algorithms.h"

/* The elements of a list of names, and one text of all names, each followed by ", ". */
#define GY_PERF_ALGORITHM(constant, name, ...) name,
#define GY_PERF_ALGORITHM_TEXT(constant, name, ...) name ", "
#define GY_PERF_ALGORITHMS GY_ALGORITHM_ROWS(GY_PERF_ALGORITHM)
#define GY_PERF_ALGORITHMS_TEXT GY_ALGORITHM_ROWS(GY_PERF_ALGORITHM_TEXT)

#endif
