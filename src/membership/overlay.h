/* The overlay: about 2·log2 N authenticated connections per rank (to rank ± 2^k), made right after bootstrap. Deaths,
 * aborts and leave messages are flooded over it, and pidfds watch neighbours on this host. The name of the first failed
 * rank arrives everywhere before any socket is closed, so that survivors are never taken for the cause. Inside a host
 * the same first failure is a notice in shared memory. */
#ifndef GY_MEMBERSHIP_OVERLAY_H
#define GY_MEMBERSHIP_OVERLAY_H

#include <stdatomic.h>

#include "bootstrap/world.h"

#define GY_OVERLAY_TEXT 512 /* bytes of an error message on the wire, without a terminator */

struct gy_overlay;

/* A failed rank. The first report of a rank stays; a confirmation may follow it. */
struct gy_failed_rank {
    gyre_status status; /* GYRE_SUCCESS: nothing, it is a member */
    bool proved;        /* its process has ended or has destroyed the world: it goes on nowhere else */
    int64_t when;       /* this process learnt it */
    char *why;          /* an error message, or NULL */
};

/* Has the memory for it, as world->spare, which gy_overlay_create takes; gy_overlay_free takes it otherwise. */
gyre_status gy_overlay_prepare(struct gy_world *world, struct gy_error *error);
/* Time within which a rank must connect while a world is made: overlay_connect.c says why. */
int64_t gy_overlay_timeout(const struct gy_world *world);
/* Blocks until all neighbours are connected, or one has exceeded the timeout. A later epoch in which another rank has
 * failed is also a success. Returns EXCLUDED if the others go on without this rank. */
gyre_status gy_overlay_create(struct gy_world *world, struct gy_overlay **overlay_p, struct gy_error *error);
/* Tells the others why this rank ends before it has a communicator, with its own error message, which they log. The
 * leave message follows. */
void gy_overlay_give_up(struct gy_overlay *overlay, const struct gy_error *error);
/* Sends the leave message (so that our exit is no death), flushes for at most 200 ms, closes. */
void gy_overlay_free(struct gy_overlay *overlay);

/* The first failure as shared among the ranks of one host, in shared memory, zero at first. The rank that moves `word`
 * from zero writes it, and no other rank ever does. The message is written first, so a reader of the status has the
 * message too. */
struct gy_notice {
    _Atomic uint64_t word; /* (rank + 1) << 8 | status, release; status 0: the message is being written */
    char text[GY_OVERLAY_TEXT];
};

/* The overlay publishes there what it learns, and gy_overlay_check reads it. */
void gy_overlay_attach_notice(struct gy_overlay *overlay, struct gy_notice *notice);

/* Called inside waits about every millisecond and at every slow-path call. It runs no poller itself (callbacks of the
 * poller do the reading) and checks the host's notice. Returns GYRE_SUCCESS, or the status of the first failure with
 * `error` filled. */
gyre_status gy_overlay_check(struct gy_overlay *overlay, struct gy_error *error);
/* True if gy_overlay_check would find nothing and do nothing. */
bool gy_overlay_is_quiet(const struct gy_overlay *overlay);
/* For a rank that has waited for `rank` for a while. Once ranks have left in order, the ranks that would detect its
 * death and flood it may be gone: then a connection to it is begun. Costs nothing while no rank has left. */
void gy_overlay_connect_on_demand(struct gy_overlay *overlay, int rank);
/* Returns false if a suspicion is about to be decided: a sleeping caller should check again after a millisecond. */
bool gy_overlay_calm(const struct gy_overlay *overlay);
/* Floods a failure found by this rank (a death seen on a data link, a mismatch, a stall, an abort), which the caller
 * has logged. `text` travels, at most 512 bytes. Does not block. Async with respect to other threads: only the notice
 * is written; the driving thread floods at its next check. The first failure wins. */
void gy_overlay_report(struct gy_overlay *overlay, gyre_status status, int rank, const char *text);
/* The same for an unreachable rank, which may be alive and report this one: the lower one of the two reports first.
 * Called by the driving thread. */
void gy_overlay_report_silence(struct gy_overlay *overlay, int rank, const char *text);
/* The same where this rank's program ends the world; the failure has not been logged yet. */
void gy_overlay_call_off(struct gy_overlay *overlay, gyre_status status, const char *text);
/* The same for an abort that must reach every rank whatever has happened before: it ends agreements, too. */
void gy_overlay_abort(struct gy_overlay *overlay, const char *text);
/* Returns the abort of any rank, or NULL. */
const struct gy_error *gy_overlay_aborted(const struct gy_overlay *overlay);
/* Returns the error if this rank has declared that it cannot go on, as it cannot receive from the others; else NULL. */
const struct gy_error *gy_overlay_deaf(const struct gy_overlay *overlay);
/* True if `rank` has sent a leave message. It is not dead, but a collective that needs it ends with GYRE_PEER_LEFT. */
bool gy_overlay_has_left(const struct gy_overlay *overlay, int rank);
/* Returns the rank whose leaving made `rank` leave, or `rank` itself. */
int gy_overlay_left_because(const struct gy_overlay *overlay, int rank);
/* Sends our leave message early: nothing more will come from this rank, because `cause` has left. Ranks that wait for
 * this rank are told of `cause`, and so are all ranks if this rank now aborts. */
void gy_overlay_leave(struct gy_overlay *overlay, int cause);
/* overlay_broadcast.c. Broadcasts a value of the layer above, and the rank that caused it, to the ranks whose bit is
 * set in `whom` (gy_overlay_marks bytes, rank r's is bit r % 8 of byte r / 8). It travels over the overlay, so it is
 * not ordered with the traffic of a data link. Does not block; returns false if there is no memory. */
size_t gy_overlay_marks(const struct gy_overlay *overlay);
bool gy_overlay_announce(struct gy_overlay *overlay, uint32_t word, int cause, const uint8_t *whom);
/* Called by the driving thread, in the poller's callbacks, for what others have announced to this rank. */
typedef void gy_announced_func(void *user, int rank, uint32_t word, int cause);
void gy_overlay_on_announced(struct gy_overlay *overlay, gy_announced_func *func, void *user);
/* failed_ranks.c. What is known of `rank`; valid as long as the overlay. */
const struct gy_failed_rank *gy_overlay_failure(const struct gy_overlay *overlay, int rank);
/* Declares `rank` failed: all ranks are told, `rank` too. */
void gy_overlay_declare_failed(struct gy_overlay *overlay, int rank, gyre_status status, const char *why);
/* When the last failure was learnt; now, while one is being found out. 0: there is none. */
int64_t gy_overlay_failures_changed(const struct gy_overlay *overlay);
/* Returns true if there is a connection to `rank`. Otherwise one is begun, in any state of the world. */
bool gy_overlay_ensure_connected(struct gy_overlay *overlay, int rank);
/* Messages of one part of the layer above, of `most` bytes at most. The poller's callbacks call `func` for each message
 * received. */
typedef void gy_overlay_message_func(void *user, int from, uint8_t *body, size_t bytes);
void gy_overlay_on_message(struct gy_overlay *overlay, gy_overlay_message_func *func, void *user, size_t most);
/* false: not connected, or no memory. */
bool gy_overlay_send(struct gy_overlay *overlay, int rank, const void *body, size_t bytes);
/* What gy_overlay_check no longer does after the first failure: decides suspicions. */
void gy_overlay_attend(struct gy_overlay *overlay);
/* Reads what the neighbours have sent. To be called before many messages are sent, or the last one: a message to a rank
 * that has left resets the connection, and with it goes what that rank has sent and its kernel still holds, the leave
 * message included. Not within a callback of the overlay. */
void gy_overlay_read(struct gy_overlay *overlay);

/* Closes every descriptor, sends nothing: for a forked child. */
void gy_overlay_abandon(struct gy_overlay *overlay);

#endif
