/* Operations of one's own for the random programs, with what each rank gives and what must come out: pre-multiplied
 * sums with a scalar for each rank of the world, a commutative operation, and one that does not commute. */
#ifndef GYRE_TESTS_SYSTEM_PROGRAMS_OPERATIONS_H
#define GYRE_TESTS_SYSTEM_PROGRAMS_OPERATIONS_H

#include "trial.h"

#define PROGRAMS_OPERATIONS 4

struct programs_operation {
    gyre_op op;
    gyre_dtype dtype;
    bool ordered; /* does not commute */
    struct trial_data data;
};

/* Once, on every rank of the world. */
gyre_status programs_operations_make(gyre_comm *world);
const struct programs_operation *programs_operation(uint64_t number);

#endif
