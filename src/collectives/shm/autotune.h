/* Four decisions that depend on the machine, and how the clock makes them.
 *
 *   decision                           variant 1                  variant 2                  variants 3 and 4
 *   how operands go to other ranks     once, by the kernel, or    through slots, copied      the same, non-temporal;
 *   of the host                        mapped (zero_copy.h)       twice by the processors    or write-prefetched
 *   the same if variant 1 is not       through slots              non-temporal               write-prefetched
 *   open, and for eager exchanges
 *   how a long result of a reduction   non-temporal               cached
 *   is written
 *   the same if the first decision     cached                     non-temporal
 *   was "slots"
 *
 * A slot is write-prefetched if its only reader writes a byte of each line unchanged (gy_line_claim). On AMD
 * processors, once there are more than about a hundred lines that one core writes and another core only reads,
 * writing such a line again takes five times as long.
 *
 * The last two are one decision with different starting points. Cached slots with cached results may be the fastest
 * combination where cached slots with non-temporal results are the slowest. The first decision compares what the
 * last ones have found.
 *
 * An all_reduce in which the kernel variant reads all operands twice begins with slots: there the first two variants
 * change places.
 *
 * Entering the kernel and finding pages takes three times as long on one machine as on another. Lines that another
 * core has just written come from a shared cache or from a distant one, depending on the hypervisor's placement;
 * from a distant cache they come later than from memory. Whether a cache keeps the output of one call until the
 * next, so that nothing is read in order to be overwritten, depends on this program's share of it. So all variants
 * are tried on the program's own calls, and again from time to time.
 *
 *   arbiter   a receiving rank: the root of a reduction or gather, the rank after the root of a broadcast or scatter,
 *             rank 0 if all ranks receive
 *   phase     some blocking calls of one size by the variant in use, then some by each other one; each variant
 *             counts by its fastest. A program makes few long calls, each of which costs more: fewer make a
 *             phase, and fewer lie between two. The more a phase has cost, the more calls lie between it and the next
 *   outcome   the number of a variant in the arbiter's region, for a collective and an octave of sizes, which all ranks
 *             read
 *
 * A program that makes ten calls of 64 MiB would make nearly all of them in a phase. Three rules prevent that:
 *
 *   - an octave without an outcome uses the outcome of the nearest octave that has one, from its first call on;
 *   - its first phase, if calls are long, skips the variants that were far behind there, if that octave is at most two
 *     octaves away;
 *   - a long call that takes twice as long as the fastest is its variant's last in that phase.
 *
 * The next phase comes soon and skips nothing, so that it finds a variant that is faster here than in the
 * neighbouring octave.
 *
 * An outcome may be wrong: the phase was disturbed, the machine has changed, or calls at the octave's other end
 * behave differently. So the variant in use is watched between phases. Once eight watched calls in a row take half
 * as long again as in the phase, the next phase begins at once. A variant that takes twice as long as the fastest
 * leaves the phase after its first call with warm caches.
 *
 * The outcome is a hint. Every rank decides alone how it publishes and how it writes; no bit of a result depends on
 * it, and a reader of a slot need not know how it was written.
 *
 * If ranks share cores, the kernel variant is not open (zero_copy.h) and no line is write-prefetched. The time of
 * the arbiter's call then includes time slices of other ranks on its core. A variant's fastest calls include the
 * fewest, and only a clearly faster variant replaces the one in use. The very fastest call is ignored: the last rank
 * to arrive finds everything published, and its call is short by any variant. Data that only a rank of the same core
 * will read stays in the caches that both share, whatever the outcome: each rank publishes its core. */
#ifndef GY_COLLECTIVES_SHM_AUTOTUNE_H
#define GY_COLLECTIVES_SHM_AUTOTUNE_H

#include "collectives/comm/tuner_state.h"
#include "transport/shm/segment.h"

struct gyre_comm;
struct gy_call;
struct gyre_request;

/* How a rank's contribution reaches the others. */
enum gy_shm_variant { GY_SHM_MAP, GY_SHM_SLOT, GY_SHM_SLOT_NT, GY_SHM_SLOT_PREFETCHW };

/* At the launch of an operation for which all variants are open: returns how this rank should publish. The decision
 * is about private memory, and about memory of gyre if `mapped`. */
enum gy_shm_variant gy_tuner_input(struct gyre_request *request, bool mapped);
/* The same for a blocking call from or to a root, of a vector of `bytes` bytes. `open` says if all variants are
 * open. The call is not counted if the input should be exposed: the exposing rank asks again. */
enum gy_shm_variant gy_tuner_rooted(struct gyre_comm *comm, const struct gy_call *call, size_t bytes, bool open);
/* The same for a call that goes through slots, and for an eager exchange of `bytes` bytes (eager.h). */
enum gy_shm_variant gy_tuner_publish(struct gyre_request *request);
enum gy_shm_variant gy_tuner_exchange(struct gyre_comm *comm, const struct gy_call_signature *shape, size_t bytes);
/* At the start of an operation whose output has `bytes` bytes on this rank: true if non-temporal stores should write
 * it. They pay if the caches do not keep the output. */
bool gy_tuner_streams(struct gyre_request *request, size_t bytes);
/* Called around a blocking call, which counts if nothing else is in flight when it begins. */
void gy_tuner_begin(struct gyre_comm *comm);
void gy_tuner_end(struct gyre_comm *comm, bool succeeded);
void gy_tuner_free(struct gyre_comm *comm); /* frees the communicator's entries */

/* The rest is public for the test. */

/* Counts a call of `bytes` bytes. True if its time is to be measured: a phase runs, or the call is watched. */
bool gy_tuner_should_measure(struct gy_tuner_entry *choice, size_t bytes);
/* The call used no variant of the phase, because the other rank cannot use it or has reasons not to. Returns the
 * variant from now on. */
int gy_tuner_discard(struct gy_tuner_entry *choice);
/* Records the time of a call by the variant `went`. Returns the variant from now on. */
int gy_tuner_record(struct gy_tuner_entry *choice, int tuner, size_t bytes, int went, int64_t ns);
/* Octaves of one collective without an outcome take over the knowledge of the nearest one that has one. */
void gy_tuner_spread(struct gy_tuner_entry *octaves);

#endif
