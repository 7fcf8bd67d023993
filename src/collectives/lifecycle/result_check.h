/* GYRE_VERIFY=K: do all ranks have the same result? Of all_reduce, all_gather and broadcast, whose results are equal
 * everywhere, every rank keeps a hash; after every K of them the ranks show each other the K hashes, on a hidden
 * communicator of the same ranks, so that the program's operations keep their numbers.
 *
 *   launch ─► its place in a batch      finish ─► its hash      batch full ─► all_gather of the hashes ─► compared
 *
 * A rank that differs from the majority is named, with the operation, and the world fails with GYRE_WRONG_RESULT on all
 * ranks. What it finds: a rank that holds other bytes than the others, be it that it computed them wrongly, or that its
 * memory changed them. What it cannot find: a wrong partial result that every rank was given alike, as in a ring. */
#ifndef GY_COLLECTIVES_LIFECYCLE_RESULT_CHECK_H
#define GY_COLLECTIVES_LIFECYCLE_RESULT_CHECK_H

#include "collectives/engine/request.h"

struct gy_verify;

/* With a communicator of several ranks, where the setting asks for it; NULL in *verify_p otherwise. Local: no message. */
gyre_status gy_verify_make(struct gyre_comm *comm, struct gy_verify **verify_p, struct gy_error *error);
void gy_verify_free(struct gy_verify *verify);
/* An operation is launched: in the same order on every rank. */
void gy_verify_launch(struct gyre_request *request);
/* It has ended well, and its output is what the user will see. */
void gy_verify_finish(struct gyre_request *request);
/* Begins and ends comparisons, where there is something to do; true if there was. Outside of all callbacks. */
bool gy_verify_progress(struct gy_context *ctx);
/* Waits until nothing of `comm` is being compared. The status of the world. */
gyre_status gy_verify_settle(struct gyre_comm *comm);

#endif
