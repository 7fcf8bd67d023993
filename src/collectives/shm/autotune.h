/* Four questions whose answer is the machine's affair, and how the clock answers them.
 *
 *   question                           first way                    second way                    third way, and fourth
 *   how operands go to other ranks     once, by the kernel, or      through slots, copied twice   likewise, but into the slots
 *   of the host                        mapped (zero_copy.h)            by the processors             past the caches; or claimed
 *   the same where the first way is    through slots                past the caches               claimed
 *   not open, and what is exchanged
 *   how a long result of a reduction   past the caches              into them
 *   is written
 *   the same where the first question  into the caches              past them
 *   has been answered by "slots"
 *
 * A slot is claimed when who alone reads it writes a byte of each line as it was (gy_line_claim): on AMD's processors a line that
 * one core writes and another one only reads takes five times as long to be written again, once there are more than about a
 * hundred such lines.
 *
 * The last two are one question but for where they begin: slots and results that both stay in the caches may be the quickest way
 * where slots beside results past them are the slowest, and the first question compares what the last ones have found.
 *
 * An all_reduce in which the kernel's way reads all operands twice begins with slots: there the first two change places.
 *
 * Entering the kernel and finding pages takes three times as long on one machine as on another, and lines that another core has
 * just written come from a cache that both share, or from afar, as the hypervisor has placed the two: then they come sooner from
 * memory. Whether a cache keeps the output of one call until the next, so that nothing is read in order to be overwritten, hangs
 * on how much of it is this program's. So all ways are tried on the program's own calls, and again from time to time.
 *
 *   judge     a rank that takes: the root it goes to, the rank after the root it comes from, rank 0 where everyone takes
 *   a trial   some blocking calls of one size by the way in use, then some by each other one; each way counts by its quickest. Of
 *             long calls a program makes few, each of which is worth more: fewer make a trial, and fewer lie between two. The
 *             more a trial has cost, the more calls lie between it and the next
 *   verdict   the number of a way in the judge's region, for a collective and an octave of sizes, which everyone looks at
 *
 * A program that makes ten calls of 64 MiB would make nearly all of them in a trial. Three things spare it that:
 *
 *   an octave that has not been judged goes by the verdict of the nearest one that has, from its first call on;
 *   its first trial, where calls are long, leaves out the ways that were far behind there, if that is no more than two octaves away;
 *   a long call that takes twice as long as the quickest is its way's last in that trial.
 *
 * The next trial comes soon and leaves nothing out, so that it finds a way that is quicker here than next door.
 *
 * A verdict may be wrong: the trial was disturbed, the machine has changed, or calls of the octave's other end go better otherwise. So
 * the way in use is watched between trials. Once eight watched calls in a row take half as long again as the trial had it, the next
 * trial begins at once. A way that takes twice as long as the quickest leaves the trial after its first call by warm caches.
 *
 * The verdict is a hint: every rank decides alone how it gives and how it writes, no bit of a result depends on it, and who reads
 * a slot need not know how it was written. Where ranks share cores the kernel's way is not open (zero_copy.h), nothing is claimed, and
 * what a call of the judge takes has other ranks' turns on its core in it: the quickest calls by a way have the fewest, and only a way
 * that is clearly quicker takes the place of the one in use. The very quickest is not asked: whoever comes last finds everything shown,
 * and its call is short by any way. What only a rank of the same core will read stays in the caches that both
 * have, whatever the verdict: each shows which core it is on. */
#ifndef GY_COLLECTIVES_SHM_AUTOTUNE_H
#define GY_COLLECTIVES_SHM_AUTOTUNE_H

#include "collectives/comm/tuner_state.h"
#include "transport/shm/segment.h"

struct gyre_comm;
struct gy_call;
struct gyre_request;

/* How what a rank gives comes to the others. */
enum gy_shm_variant { GY_SHM_MAP, GY_SHM_SLOT, GY_SHM_SLOT_NT, GY_SHM_SLOT_PREFETCHW };

/* At the launch of an operation for which all ways are open: how had this rank better give? That is a question of private memory,
 * and of memory of gyre if `mapped`. */
enum gy_shm_variant gy_tuner_input(struct gyre_request *request, bool mapped);
/* Of a blocking call from or to a root, a vector of so many bytes, for which all ways are open, or not; it is not counted
 * where it had better be offered, as who offers it asks again. */
enum gy_shm_variant gy_tuner_rooted(struct gyre_comm *comm, const struct gy_call *call, size_t bytes, bool open);
/* Likewise of one that goes through slots; and of an exchange of so many bytes (eager.h). */
enum gy_shm_variant gy_tuner_publish(struct gyre_request *request);
enum gy_shm_variant gy_tuner_exchange(struct gyre_comm *comm, const struct gy_call_signature *shape, size_t bytes);
/* When an operation begins whose output, so many bytes on this rank, had better be written past the caches if they do not keep it:
 * had it? */
bool gy_tuner_streams(struct gyre_request *request, size_t bytes);
/* Around a blocking call, which counts if it has the context to itself when it begins. */
void gy_tuner_begin(struct gyre_comm *comm);
void gy_tuner_end(struct gyre_comm *comm, bool succeeded);
void gy_tuner_free(struct gyre_comm *comm); /* what the communicator has allocated for them */

/* The rest is for the test. */

/* Counts a call of so many bytes; true: a trial is under way, or the call is watched: how long does it take? */
bool gy_tuner_should_measure(struct gy_tuner_entry *choice, size_t bytes);
/* It has gone by no way of which the trial is, as the other rank cannot go that way or has reasons not to. Returns the way from
 * now on. */
int gy_tuner_discard(struct gy_tuner_entry *choice);
/* It has taken so long, by the way `went` of `ways`. Returns the way from now on. */
int gy_tuner_record(struct gy_tuner_entry *choice, int tuner, size_t bytes, int went, int64_t ns);
/* Octaves of one collective that have not been judged take over what the nearest one that has been knows. */
void gy_tuner_spread(struct gy_tuner_entry *octaves);

#endif
