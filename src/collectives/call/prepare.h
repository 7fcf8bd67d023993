/* Prepares all that a request needs before it can start. */
#ifndef GY_COLLECTIVES_CALL_PREPARE_H
#define GY_COLLECTIVES_CALL_PREPARE_H

#include "collectives/engine/request.h"

/* Chooses, fills, allocates, opens links. On failure nothing is held. */
gyre_status gy_prepare(struct gyre_request *request, struct gyre_comm *comm, const struct gy_call *call);
void gy_prepare_fill(struct gyre_request *request, struct gyre_comm *comm, const struct gy_call *call,
                     const struct gy_call_signature *shape);
/* The part of gy_prepare that follows schedule, layouts and tile: allocates a place on each lane for what it reduces,
 * if that waits for grants. Returns false if out of memory. */
bool gy_prepare_landings(struct gyre_request *request);
/* stage: at every start, copies the input aside if needed, and premultiplies it where the operation begins so. end:
 * leaves the result of the operation. */
void gy_prepare_stage(struct gyre_request *request);
void gy_prepare_end(struct gyre_request *request);
/* Releases what gy_prepare took. */
void gy_prepare_undo(struct gyre_request *request);
/* Returns a request to the free list, after completion; also after the end of the communicator. */
void gy_request_recycle(struct gyre_request *request);

#endif
