/* Algorithm selection: a pure function of data that all ranks share. */
#ifndef GY_COLLECTIVES_SELECT_SELECTOR_H
#define GY_COLLECTIVES_SELECT_SELECTOR_H

#include "collectives/comm/communicator.h"
#include "collectives/schedule/reduction_order.h"

/* True if the user forces the algorithm of this collective. */
bool gy_select_forces(const struct gyre_comm *comm, enum gy_collective collective);
/* Returns success if `setting` is a valid value of GYRE_ALGORITHM. */
gyre_status gy_select_check(const char *setting, struct gy_error *error);
gyre_status gy_select(const struct gyre_comm *comm, enum gy_collective collective, bool varying, size_t bytes,
                      enum gy_algorithm *algorithm_p, struct gy_error *error);
/* Selects as if nothing were forced; an algorithm always exists. For a collective without a reduction. */
gyre_status gy_select_unforced(const struct gyre_comm *comm, enum gy_collective collective, size_t bytes,
                               enum gy_algorithm *algorithm_p, struct gy_error *error);
/* True if the algorithm combines in that order; always true without a reduction. Over shared memory it combines in
 * either, as the call asks. */
bool gy_algorithm_keeps(enum gy_collective collective, enum gy_algorithm algorithm, enum gy_operand_order order);
/* gy_select for a call whose operation asks for at least `order`. */
gyre_status gy_select_ordered(const struct gyre_comm *comm, enum gy_collective collective, bool varying, size_t bytes,
                              enum gy_operand_order order, enum gy_algorithm *algorithm_p, struct gy_error *error);

#endif
