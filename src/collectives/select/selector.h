/* Which algorithm a collective uses: a pure function of what all ranks share. */
#ifndef GY_COLLECTIVES_SELECT_SELECTOR_H
#define GY_COLLECTIVES_SELECT_SELECTOR_H

#include "collectives/comm/communicator.h"
#include "collectives/schedule/reduction_order.h"

/* Does the algorithm serve the form of the collective that has a count for every rank? */
bool gy_algorithm_takes_counts(enum gy_collective collective, enum gy_algorithm algorithm);
/* Is the algorithm of this collective the user's, not gyre's choice? */
bool gy_select_forces(const struct gyre_comm *comm, enum gy_collective collective);
/* Is it a list as GYRE_ALGORITHM has? */
gyre_status gy_select_check(const char *setting, struct gy_error *error);
gyre_status gy_select(const struct gyre_comm *comm, enum gy_collective collective, bool varying, size_t bytes,
                      enum gy_algorithm *algorithm_p, struct gy_error *error);
/* As if nothing were forced: there is always one. Of a collective that reduces nothing. */
gyre_status gy_select_unforced(const struct gyre_comm *comm, enum gy_collective collective, size_t bytes,
                               enum gy_algorithm *algorithm_p, struct gy_error *error);
/* Does the algorithm combine in that order? What reduces nothing does. Regions combine in either, as the call wants. */
bool gy_algorithm_keeps(enum gy_collective collective, enum gy_algorithm algorithm, enum gy_operand_order order);
/* gy_select for a call whose operation asks for at least `order`. */
gyre_status gy_select_ordered(const struct gyre_comm *comm, enum gy_collective collective, bool varying, size_t bytes,
                              enum gy_operand_order order, enum gy_algorithm *algorithm_p, struct gy_error *error);

#endif
