/* The overlay: about 2·log2 N authenticated connections per rank (to rank ± 2^k), made right after the meeting, over
 * which deaths, aborts and leave messages flood; and pidfds for neighbours on this host. The first culprit's name arrives
 * everywhere before anything is closed, so that survivors never look guilty. Inside a host the same verdict is a
 * notice in shared memory. */
#ifndef GY_MEMBERSHIP_OVERLAY_H
#define GY_MEMBERSHIP_OVERLAY_H

#include <stdatomic.h>

#include "bootstrap/world.h"

#define GY_OVERLAY_TEXT 512 /* bytes of a sentence that travels, without its end */

struct gy_overlay;

/* What is known of a rank that takes no part any more. The first word about a rank counts; a proof may follow it. */
struct gy_failed_rank {
    gyre_status status; /* GYRE_SUCCESS: nothing, it is a member */
    bool proved;        /* its process has ended or has destroyed the world: it goes on nowhere else */
    int64_t when;       /* this process learnt it */
    char *why;          /* a sentence, or NULL */
};

/* Has the memory for it, as world->spare, which gy_overlay_create takes; gy_overlay_free takes it otherwise. */
gyre_status gy_overlay_prepare(struct gy_world *world, struct gy_error *error);
/* How long a rank may keep the others waiting while they make their world: overlay_connect.c says why. */
int64_t gy_overlay_timeout(const struct gy_world *world);
/* Blocks until all neighbours are connected, or one has kept the others waiting for too long. A later epoch in which another
 * rank has failed is a world, too; EXCLUDED where the others go on without this one. */
gyre_status gy_overlay_create(struct gy_world *world, struct gy_overlay **overlay_p, struct gy_error *error);
/* Tells the others why this rank ends before it has a communicator, in its own words, which are logged; the leave message
 * follows. */
void gy_overlay_give_up(struct gy_overlay *overlay, const struct gy_error *error);
/* Sends the leave message (so that our exit is no death), flushes for at most 200 ms, closes. */
void gy_overlay_free(struct gy_overlay *overlay);

/* The verdict as the ranks of one host tell it one another, in shared memory, zero at first. Who moves `word` from zero
 * writes it, and nobody else ever does: the sentence first, so that whoever sees the status has the sentence, too. */
struct gy_notice {
    _Atomic uint64_t word; /* (rank + 1) << 8 | status, release; status 0: the sentence is being written */
    char text[GY_OVERLAY_TEXT];
};

/* The overlay publishes there what it learns, and gy_overlay_check reads it. */
void gy_overlay_attach_notice(struct gy_overlay *overlay, struct gy_notice *notice);

/* Called inside waits about every millisecond and at every slow-path call: runs no poller itself (callbacks of the
 * poller do the reading), checks the host's notice, and returns the verdict: GYRE_SUCCESS or the status of the first
 * failure with `error` filled. */
gyre_status gy_overlay_check(struct gy_overlay *overlay, struct gy_error *error);
/* Would that find nothing, and do nothing? */
bool gy_overlay_is_quiet(const struct gy_overlay *overlay);
/* For who has waited for `rank` for a while. Once ranks have left in order, those who would notice its death and pass it
 * on may be gone: then a connection of our own to it is begun. Costs nothing while nobody has left. */
void gy_overlay_acquaint(struct gy_overlay *overlay, int rank);
/* false: a suspicion is about to be judged, so that who sleeps should check again after a millisecond. */
bool gy_overlay_calm(const struct gy_overlay *overlay);
/* Floods our own verdict (a death seen on a data link, a mismatch, a stall, an abort), which the caller has logged. `text`
 * travels, at most 512 bytes. Does not block. Async with respect to other threads: only the notice is written; the driving
 * thread floods at its next check. First verdict wins. */
void gy_overlay_report(struct gy_overlay *overlay, gyre_status status, int rank, const char *text);
/* The same of a rank out of reach, which may live and think it of us: the lower one of the two speaks first. By the driving
 * thread. */
void gy_overlay_report_silence(struct gy_overlay *overlay, int rank, const char *text);
/* The same where this rank's program ends the world: nobody has logged it yet. */
void gy_overlay_call_off(struct gy_overlay *overlay, gyre_status status, const char *text);
/* The same for an abort that everybody wants to know of whatever has happened before: it ends agreements, too. */
void gy_overlay_abort(struct gy_overlay *overlay, const char *text);
/* Has somebody aborted? NULL: no. */
const struct gy_error *gy_overlay_aborted(const struct gy_overlay *overlay);
/* Has this rank said that it goes on nowhere, since it cannot hear the others? NULL: no. */
const struct gy_error *gy_overlay_deaf(const struct gy_overlay *overlay);
/* Has `rank` said that it leaves? Then it is not dead, but a collective that needs it ends with GYRE_PEER_LEFT. */
bool gy_overlay_has_left(const struct gy_overlay *overlay, int rank);
/* Why did it leave? The rank because of whose leaving it could not go on, or itself. */
int gy_overlay_left_because(const struct gy_overlay *overlay, int rank);
/* Our leave message before its time: nothing more will come from us, because `cause` has left. Whoever waits for us is told of
 * `cause`, and so is everybody if we now abort. */
void gy_overlay_leave(struct gy_overlay *overlay, int cause);
/* overlay_broadcast.c. Says a word of the layer above, and because of whom, to those of whom a bit is set in `whom`
 * (gy_overlay_marks bytes, rank r's is bit r % 8 of byte r / 8): over the overlay, so that it is not in order with what a data link
 * carries. Does not block; false: no memory. */
size_t gy_overlay_marks(const struct gy_overlay *overlay);
bool gy_overlay_announce(struct gy_overlay *overlay, uint32_t word, int cause, const uint8_t *whom);
/* Called by the driving thread, in the poller's callbacks, for what others have announced to this rank. */
typedef void gy_announced_func(void *user, int rank, uint32_t word, int cause);
void gy_overlay_on_announced(struct gy_overlay *overlay, gy_announced_func *func, void *user);
/* failed_ranks.c. What is known of `rank`; valid as long as the overlay. */
const struct gy_failed_rank *gy_overlay_failure(const struct gy_overlay *overlay, int rank);
/* `rank` takes no part any more, because we say so: everybody is told, itself too. */
void gy_overlay_declare_failed(struct gy_overlay *overlay, int rank, gyre_status status, const char *why);
/* When the last failure was learnt; now, while one is being found out. 0: there is none. */
int64_t gy_overlay_failures_changed(const struct gy_overlay *overlay);
/* Is there a connection to `rank`? Otherwise one is begun, whatever has happened. */
bool gy_overlay_reach(struct gy_overlay *overlay, int rank);
/* Messages of one part of the layer above, of `most` bytes at most. `func` is called in the poller's callbacks for those that come. */
typedef void gy_overlay_message_func(void *user, int from, uint8_t *body, size_t bytes);
void gy_overlay_on_message(struct gy_overlay *overlay, gy_overlay_message_func *func, void *user, size_t most);
/* false: not connected, or no memory. */
bool gy_overlay_send(struct gy_overlay *overlay, int rank, const void *body, size_t bytes);
/* What gy_overlay_check does after the verdict no longer: judges those under suspicion. */
void gy_overlay_attend(struct gy_overlay *overlay);

/* Closes every descriptor, says nothing: for a forked child. */
void gy_overlay_abandon(struct gy_overlay *overlay);

#endif
