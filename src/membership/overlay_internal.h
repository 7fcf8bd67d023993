/* Shared by the parts of the overlay only: overlay.c (the interface to the layers above), overlay_flood.c (failures and
 * leave messages), overlay_connect.c (making connections), failure_detector.c (what is detected through them). One
 * thread at a time, except for the fields that say so. */
#ifndef GY_MEMBERSHIP_OVERLAY_INTERNAL_H
#define GY_MEMBERSHIP_OVERLAY_INTERNAL_H

#include "membership/overlay.h"
#include "net/message_stream.h"

#define GY_OVERLAY_BODY (8 + GY_OVERLAY_TEXT)
#define GY_OVERLAY_LEAVE_BODY 8

enum gy_overlay_kind {
    GY_OVERLAY_IDENTITY = 1,
    GY_OVERLAY_FAILURE,
    GY_OVERLAY_LEAVE,
    GY_OVERLAY_RECORD,
    GY_OVERLAY_AGREEMENT,
    GY_OVERLAY_ABORT,
    GY_OVERLAY_BROADCAST
};
enum gy_overlay_pending { GY_PENDING_NONE, GY_PENDING_WRITING, GY_PENDING_READY, GY_PENDING_DONE };

/* By any thread: the thread that moves `state` from NONE to WRITING fills the fields; the driving thread reads them at
 * READY. */
struct gy_report {
    _Atomic int state;
    gyre_status status;
    int rank;
    bool logged;
    char text[GY_OVERLAY_TEXT + 1];
};

/* A lower rank that is unreachable: reported when it has had the time to report this one. */
#define GY_DOUBTS 8
struct gy_doubt {
    int64_t since; /* 0: there is none */
    int rank;
    char text[GY_OVERLAY_TEXT + 1];
};

struct gy_neighbour {
    struct gy_overlay *overlay;
    int rank;
    bool connects;  /* this rank connects to it */
    bool on_demand; /* of ours: no neighbour by its number, see overlay_connect.c */
    bool witness;   /* an on-demand peer that only may know something: not waited for, and its end is not reported */
    bool inbound;   /* it connected by itself: this rank is its on-demand peer */
    bool connect_begun; /* we have begun to; or it failed for want of something, and is tried again */
    bool connected, ended;
    bool introduced; /* it has sent IDENTITY: it takes part, so the end of its connection is significant */
    struct gy_stream stream;
    struct gy_watch pidfd; /* fd −1: none */
    struct gy_watch probe; /* fd −1: none; a bare connection to its listener, while its own connection is awaited */
    int64_t suspect_since; /* 0: not */
    int suspect_errnum;    /* of the failed connect, a witness's, too; 0: its process has ended */
};

struct gy_overlay {
    struct gy_world *world;
    struct gy_neighbour **neighbours;
    int count, room;
    uint64_t namespace_id;           /* of our pids */
    int *left;                       /* [size] 0, or the rank has sent a leave message: 1 + the rank that caused it */
    bool thinned;                    /* another rank did */
    struct gy_failed_rank *failures; /* [size] */
    int64_t failures_changed;
    gy_overlay_message_func *on_message; /* NULL: such messages are dropped */
    void *message_user;
    size_t message_most;
    struct gy_notice *notice; /* NULL: this host has one rank, or no shared memory yet */
    int suspects;
    struct gy_error first_failure; /* driving thread only, like the next ones */
    struct gy_doubt doubts[GY_DOUBTS];
    int doubted;             /* how many of them there are */
    struct gy_error aborted; /* a rank aborts the world, whatever the first failure was */
    struct gy_error deaf;    /* this rank cannot receive from the others any more, and does not go on */
    _Atomic int orphaned_by; /* 1 + the rank that caused this rank to leave; written by the driving thread, once */
    uint32_t *announced;     /* [size] how many each rank has announced, as far as is known */
    gy_announced_func *on_announced;
    void *announced_user;
    struct gy_report first, abort; /* an abort that comes after something else is news all the same */
};

/* overlay_flood.c */
void gy_flood_publish(struct gy_overlay *overlay, gyre_status status, int rank, const char *text);
/* The first failure: stored, published, queued to every neighbour but the one that told us (`from`, or NULL). */
void gy_flood_failure(struct gy_overlay *overlay, gyre_status status, int rank, const char *text,
                      const struct gy_neighbour *from);
/* The same of what this rank has decided on; `logged` already. */
void gy_flood_own(struct gy_overlay *overlay, gyre_status status, int rank, const char *text, bool logged);
/* An unreachable rank. Where two live ranks lose each other both see it, and dropping one of them would be enough. The
 * higher one waits for the report of the lower one; a rank that has been told that it is out reports no more
 * (failed_ranks.c). */
void gy_flood_silence(struct gy_overlay *overlay, int rank, const char *text);
/* Decides the suspicions whose time is over. */
void gy_flood_doubts(struct gy_overlay *overlay);
/* Encodes a failure as the body of a message; returns its length. */
size_t gy_flood_encode(const struct gy_error *first_failure, uint8_t body_p[GY_OVERLAY_BODY]);
void gy_flood_leave(struct gy_overlay *overlay, int rank, int cause, const struct gy_neighbour *from);
void gy_flood_receive_failure(struct gy_neighbour *from, uint8_t *body, size_t bytes);
/* An abort is forwarded once, also after the first failure; without one it is the first failure. */
void gy_flood_abort(struct gy_overlay *overlay, int rank, const char *text, const struct gy_neighbour *from);
void gy_flood_receive_abort(struct gy_neighbour *from, uint8_t *body, size_t bytes);
void gy_flood_receive_leave(struct gy_neighbour *from, uint8_t *body, size_t bytes);
/* Sends a neighbour that has just connected what the others have been sent already. */
void gy_flood_catch_up(struct gy_neighbour *neighbour);
/* Adopts the failure that another rank of this host has published, if any. */
void gy_flood_read_notice(struct gy_overlay *overlay);
bool gy_flood_has_notice(const struct gy_overlay *overlay);
/* The process of the neighbour is gone (`errnum` says how that was detected; 0: its socket or its process ended). Or
 * this rank cannot receive from it for want of memory: then this rank declares itself failed. */
void gy_flood_death(struct gy_neighbour *neighbour, int errnum);

/* overlay_broadcast.c */
void gy_broadcast_receive(struct gy_neighbour *from, uint8_t *body, size_t bytes);

/* failed_ranks.c. learn: changes what this rank knows; false if nothing is new. Flooding tells the others. */
bool gy_failure_learn(struct gy_overlay *overlay, int rank, gyre_status status, bool proved, const char *why);
void gy_failure_flood(struct gy_overlay *overlay, int rank, const struct gy_neighbour *from);
void gy_failure_receive(struct gy_neighbour *from, uint8_t *body, size_t bytes);
void gy_failure_catch_up(struct gy_neighbour *neighbour);
/* A first failure caused by a rank that does not go on is also that rank's failure. */
void gy_failure_of_report(struct gy_overlay *overlay, gyre_status status, int rank, const char *why,
                          const struct gy_neighbour *from);
void gy_failures_free(struct gy_overlay *overlay);

/* failure_detector.c */
struct gy_neighbour *gy_neighbour_find(struct gy_overlay *overlay, int rank, bool connects);
/* NULL: no memory. */
struct gy_neighbour *gy_neighbour_add(struct gy_overlay *overlay, int rank, bool connects);
/* An ended neighbour is reset to its state before the first connection; so is one whose rank has reconnected. */
void gy_neighbour_renew(struct gy_neighbour *neighbour);
/* Takes over `fd`. */
void gy_neighbour_connected(struct gy_neighbour *neighbour, int fd, const struct gy_seal_keys *keys);
/* It is gone, unless it has sent a leave message; `errnum` as in gy_flood_death. */
void gy_neighbour_end(struct gy_neighbour *neighbour, int errnum);
/* There is no connection to it: it died, left or gave up. Its neighbours know which, and tell in a moment. */
void gy_neighbour_suspect(struct gy_neighbour *neighbour, int errnum);
void gy_neighbour_unwatch(struct gy_neighbour *neighbour, struct gy_watch *watch);
void gy_neighbours_check(struct gy_overlay *overlay);
/* gy_overlay_connect_on_demand; if `waits` is false, the rank is not waited for: it may know something
 * (overlay_connect.c). */
void gy_neighbour_on_demand(struct gy_overlay *overlay, int rank, bool waits);
/* Sends what is queued, for a short time, and reads what is there. */
void gy_neighbours_flush(struct gy_overlay *overlay);
void gy_neighbours_close(struct gy_overlay *overlay);
void gy_neighbours_free(struct gy_overlay *overlay);
/* In a forked child, where the poller is the parent's. */
void gy_neighbours_abandon(struct gy_overlay *overlay);

/* overlay_connect.c */
/* Fills `neighbours`: rank ± 2^k. false: no memory. */
bool gy_neighbours_list(struct gy_overlay *overlay);
/* Returns when all are connected, or with the first failure once all reachable neighbours have been told. */
gyre_status gy_neighbours_connect(struct gy_overlay *overlay, struct gy_error *error);

#endif
