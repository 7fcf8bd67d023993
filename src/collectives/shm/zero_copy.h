/* Operands that the others use where they are: no copy where they lie in memory of gyre_mem_alloc; one, through the kernel,
 * where they are private and long, and only moved.
 *
 *   a rank offers              instead of                          others
 *   its input                  copying it into its slots           read its input
 *   its far input              copying it into its slots           have the kernel copy it from there
 *   its output (all_reduce)    collecting their result slots,      write their slices into its output,
 *                              copying into its own                and read its slice there
 *
 * In an all_reduce of two ranks that both offer their far inputs everyone reduces all of the vector, as one shot does, and nobody's
 * result goes anywhere: what a rank has reduced is in its caches, and the other one would get it no sooner than it gets the
 * operand. The operands of an element and their order are those of two shots, and so are the bits.
 *
 * What a rank offers is a fact of its own, told with its arrival and resolved by everyone for itself, so that one call
 * may mix all kinds of memory; counters and tiles are the same as without. Who uses no slot does not wait for its
 * readers: where everyone offers everything, ranks meet at the beginning and at the end. A rank that offers anything is
 * not through before everyone is, since the memory is its caller's again when the call returns.
 *
 * A slice of an output is written by its owner alone, tile by tile after it has read that tile of all inputs, so outputs
 * may be inputs. After a failure a peer that has not heard of it may still read and write, and be successful: the memory
 * is withdrawn before its caller gets it back. Private memory cannot be taken from a reader: there the offer is withdrawn, and
 * who reads looks for the offer once more after that; if it is gone the bytes may be the caller's next ones, and do not count.
 * Ranks that share a process, whose memory cannot be parted, offer
 * nothing. */
#ifndef GY_COLLECTIVES_SHM_ZERO_COPY_H
#define GY_COLLECTIVES_SHM_ZERO_COPY_H

#include "collectives/engine/request.h"
#include "collectives/shm/autotune.h"

/* Bytes of a vector from or to a root, from which on it is worth it between ranks with cores of their own. */
#define GY_ROOTED_LEAST 8193u

/* At launch, before the arrival: what this rank offers. */
void gy_mapped_offer(struct gyre_request *request);
/* A blocking call of private memory, or of any if this rank only takes, from or to a root: how had it better go? THERE: by offers, as
 * gy_mapped_offer finds out. */
enum gy_shm_variant gy_mapped_giving(struct gyre_comm *comm, const struct gy_call *call);
/* Does this rank offer both operands, of so many bytes, of an all_reduce of two shots, from memory of gyre_mem_alloc? */
bool gy_mapped_offers_both(const struct gyre_comm *comm, const struct gy_call *call, size_t bytes,
                           struct gy_offer *offer_p);
/* What a rank offers in this operation, when its progress there has been seen. */
struct gy_offer gy_mapped_offer_of(const struct gyre_comm *comm, uint64_t sequence, int rank);
/* The beginning of what `rank` offers in the request's operation, as this process sees it; NULL: it has published,
 * or has not arrived: whoever has to know which asks when the rank's progress in the operation has been seen. */
const unsigned char *gy_mapped_input(const struct gyre_request *request, int rank);
unsigned char *gy_mapped_output(const struct gyre_request *request, int rank);
#define GY_PEER_MEMORY_RANKS \
    4 /* of a communicator at most, whose operands of a reduction are read through the kernel */
/* Likewise, as an address of that rank's process; 0: none; GY_PEER_MEMORY_GONE: it has been withdrawn, and its slots are as empty. */
#define GY_PEER_MEMORY_GONE UINT64_MAX
uint64_t gy_mapped_peer_input(const struct gyre_request *request, int rank);
/* Bytes from `place` bytes behind it. False, and from then on: they were not there any more, or cannot be read, and the world has
 * been told; or its rank is gone. */
bool gy_mapped_fetch(struct gyre_request *request, int rank, uint64_t far, size_t place, size_t bytes, void *to);
/* Does this rank write its result slots? To be asked when everyone's arrival has been seen. */
bool gy_mapped_keeps(const struct gyre_request *request, const struct gy_step *gather);
/* An all_reduce in which everyone's input is read through the kernel: does every rank read all of all of them, and needs nobody's
 * result? To be asked when everyone's arrival has been seen; the same on every rank. */
bool gy_mapped_takes_all(const struct gyre_request *request);
/* The request fails: what was offered is this process's alone again. */
void gy_mapped_withdraw(struct gyre_request *request);
/* Has the member done its last iteration? */
bool gy_mapped_has_done(const struct gyre_request *request, int rank, uint64_t after);
/* Has everyone done its last iteration? Notes whom it waits for. */
bool gy_mapped_quiet(struct gyre_request *request, uint64_t after);

#endif
