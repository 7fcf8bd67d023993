/* GYRE_VERIFY=K: checks that all ranks have the same result. The results of all_reduce, all_gather and broadcast are
 * equal everywhere: every rank keeps a hash of each. After every K of them the ranks exchange the K hashes, on a
 * hidden communicator of the same ranks, so that the program's operations keep their numbers.
 *
 *   launch ─► its place in a batch      finish ─► its hash      batch full ─► all_gather of the hashes ─► compared
 *
 * A rank that differs from the majority is named, with the operation, and the world fails with GYRE_WRONG_RESULT on
 * all ranks. The check finds a rank that holds other bytes than the others, whether it computed them wrongly or its
 * memory changed them. It cannot find a wrong partial result that every rank received alike, as in a ring. */
#ifndef GY_COLLECTIVES_LIFECYCLE_RESULT_CHECK_H
#define GY_COLLECTIVES_LIFECYCLE_RESULT_CHECK_H

#include "collectives/engine/request.h"

struct gy_verify;

/* Makes the check of a communicator of several ranks, if the setting asks for it; NULL in *verify_p otherwise.
 * Local: no message. */
gyre_status gy_verify_make(struct gyre_comm *comm, struct gy_verify **verify_p, struct gy_error *error);
void gy_verify_free(struct gy_verify *verify);
/* Call when an operation is launched: in the same order on every rank. */
void gy_verify_launch(struct gyre_request *request);
/* Call when it has succeeded, and its output is what the user will see. */
void gy_verify_finish(struct gyre_request *request);
/* Begins and ends comparisons. Returns true if there was something to do. Call outside of all callbacks. */
bool gy_verify_progress(struct gy_context *ctx);
/* Waits until nothing of `comm` is being compared. Returns the status of the world. */
gyre_status gy_verify_settle(struct gyre_comm *comm);

#endif
