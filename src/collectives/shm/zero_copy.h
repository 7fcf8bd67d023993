/* Operands that peers use in place. Memory of gyre_mem_alloc needs no copy. Private memory that is long and only
 * moved needs one, by the kernel.
 *
 *   a rank exposes             instead of                          peers
 *   its input                  copying it into its slots           read its input
 *   its private input          copying it into its slots           have the kernel copy it from there
 *   its output (all_reduce)    collecting their result slots,      write their slices into its output,
 *                              copying into its own                and read its slice there
 *
 * In an all_reduce of two ranks that both expose private inputs, each rank reduces all of the vector, as one shot
 * does, and no result is transferred. What a rank has reduced is in its caches, and the other rank would get it no
 * sooner than it gets the operand. The operands of an element and their order are those of two shots, and so are the
 * bits.
 *
 * What a rank exposes is part of its entry, and each peer evaluates it alone, so one call may mix all kinds of
 * memory. Counters and tiles are the same as without. A rank that uses no slot does not wait for readers: if all
 * ranks expose everything, they synchronise at the beginning and at the end. A rank that exposes anything completes
 * only when all ranks do, since the memory belongs to its caller again when the call returns.
 *
 * A slice of an output is written by its owner alone, tile by tile after it has read that tile of all inputs, so
 * outputs may be inputs. After a failure a peer that has not heard of it may still read and write, and succeed: the
 * memory is withdrawn before its caller gets it back. Private memory cannot be withdrawn from a reader: instead its
 * entry is. A reader checks the entry again after its read. If it is gone, the bytes may be the caller's next ones,
 * and do not count. Ranks that share a process, whose memory cannot be separated, expose nothing. */
#ifndef GY_COLLECTIVES_SHM_ZERO_COPY_H
#define GY_COLLECTIVES_SHM_ZERO_COPY_H

#include "collectives/engine/request.h"
#include "collectives/shm/autotune.h"

/* Bytes of a vector from or to a root from which on exposing pays between ranks with cores of their own. */
#define GY_ROOTED_LEAST 8193u

/* At launch, before the entry is published: decides what this rank exposes. */
void gy_mapped_offer(struct gyre_request *request);
/* Returns the variant for a blocking call from or to a root, with private memory, or any memory if this rank only
 * receives. GY_SHM_MAP: by exposed buffers, as gy_mapped_offer decides. */
enum gy_shm_variant gy_mapped_giving(struct gyre_comm *comm, const struct gy_call *call);
/* True if this rank exposes both operands, of `bytes` bytes, of a two-shot all_reduce, from memory of
 * gyre_mem_alloc. */
bool gy_mapped_offers_both(const struct gyre_comm *comm, const struct gy_call *call, size_t bytes,
                           struct gy_offer *offer_p);
/* Returns what a rank exposes in this operation, once its progress there has been seen. */
struct gy_offer gy_mapped_offer_of(const struct gyre_comm *comm, uint64_t sequence, int rank);
/* Returns the start of the input that `rank` exposes in the request's operation, at this process's address. NULL: it
 * has published in slots, or has not arrived; to tell these apart, call once the rank's progress in the operation
 * has been seen. */
const unsigned char *gy_mapped_input(const struct gyre_request *request, int rank);
unsigned char *gy_mapped_output(const struct gyre_request *request, int rank);
#define GY_PEER_MEMORY_RANKS \
    4 /* the largest communicator whose operands of a reduction are read through the kernel (process_vm) */
/* The same, as an address in that rank's process; 0: none; GY_PEER_MEMORY_GONE: withdrawn, and its slots are empty,
 * too. */
#define GY_PEER_MEMORY_GONE UINT64_MAX
uint64_t gy_mapped_peer_input(const struct gyre_request *request, int rank);
/* Reads `bytes` bytes from `place` bytes behind the address. Returns false, from then on, if they have been
 * withdrawn, or cannot be read, which has been reported, or if the rank is gone. */
bool gy_mapped_fetch(struct gyre_request *request, int rank, uint64_t address, size_t place, size_t bytes, void *to);
/* True if this rank writes its result slots. Call once the entries of all ranks have been seen. */
bool gy_mapped_keeps(const struct gyre_request *request, const struct gy_step *reduce);
/* True if every rank of an all_reduce reads all of all inputs through the kernel and needs no peer's result. Call
 * once the entries of all ranks have been seen; the same on every rank. */
bool gy_mapped_takes_all(const struct gyre_request *request);
/* The request fails: what was exposed belongs to this process alone again. */
void gy_mapped_withdraw(struct gyre_request *request);
/* True if the member has done its last iteration. */
bool gy_mapped_has_done(const struct gyre_request *request, int rank, uint64_t after);
/* True if all ranks have done their last iteration. Notes the rank for which it waits. */
bool gy_mapped_quiet(struct gyre_request *request, uint64_t after);

#endif
