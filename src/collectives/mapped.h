/* Zero copy: operands that lie in memory of gyre_mem_alloc are read by the others where they are.
 *
 *   a rank offers      instead of publishing         others read
 *   its input          copies in its slots           its input
 *   its output         copies in its result slots    its output (all_reduce)
 *
 * What a rank offers is a fact of its own, told with its arrival and resolved by every reader for itself, so that one call
 * may mix all kinds of memory; counters, needs and tiles are the same as without. The one thing more: a rank that offers
 * anything is not through before everyone is, since the memory is its caller's again when the call returns. */
#ifndef GY_COLLECTIVES_MAPPED_H
#define GY_COLLECTIVES_MAPPED_H

#include "collectives/request.h"

/* At launch, before the arrival: what this rank offers. */
void gy_mapped_offer(struct gyre_request *request);
/* The beginning of what `rank` offers in the request's operation, as this process sees it; NULL: it has published. To be
 * asked when the rank's progress in the operation has been seen. */
const unsigned char *gy_mapped_input(const struct gyre_request *request, int rank);
const unsigned char *gy_mapped_output(const struct gyre_request *request, int rank);
/* Has everyone done its last iteration? Notes whom it waits for. */
bool gy_mapped_quiet(struct gyre_request *request, uint64_t after);

#endif
