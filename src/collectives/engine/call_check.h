/* Call signatures: published to the peers of the host and compared. */
#ifndef GY_COLLECTIVES_ENGINE_CALL_CHECK_H
#define GY_COLLECTIVES_ENGINE_CALL_CHECK_H

#include "collectives/engine/request.h"

/* Publishes to the peers of this host what this rank has entered, and what it exposes (NULL: nothing). Every
 * collective does so, so that a mismatch is found across algorithms. */
void gy_signature_publish(struct gyre_comm *comm, const struct gy_call_signature *shape, const struct gy_offer *offer);
/* Compares what both ranks have entered as operation `sequence`. Returns false on a mismatch, which is reported. */
bool gy_signature_compare(struct gyre_comm *comm, uint64_t sequence, int peer);
/* Fails the world because ranks called different operations; the error message has both shapes. */
void gy_mismatch(struct gyre_comm *comm, int peer, const struct gy_call_signature *theirs,
                 const struct gy_call_signature *mine);
/* Returns the shape of a call, without its sequence number. */
struct gy_call_signature gy_shape_of(const struct gy_call *call, enum gy_algorithm algorithm, int size);
bool gy_shape_equal(const struct gy_call_signature *a, const struct gy_call_signature *b);

#endif
