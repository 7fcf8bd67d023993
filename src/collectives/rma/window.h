/* One-sided access: a rank exposes a piece of its memory to the others of a communicator, which put, get and
 * accumulate there without a call of its own.
 *
 *                   memory of gyre_mem_alloc, same host    any other memory, or another host        by RDMA
 *   put             store into the target's mapping        PUT frames straight to their place       write
 *   get             load                                   GET ──▶, DATA ◀──                        read
 *   accumulate      under the target's lock                ACCUMULATE frames, reduced as they come, same lock
 *   signal          add to the target's counter            SIGNAL frame
 *   flush           a fence                                FLUSH ──▶, FLUSHED ◀──                   a read behind
 *
 * Links are FIFO, so a signal arrives after the puts before it on the same target; puts by a device have been
 * acknowledged before. For frames the target must be inside gyre, or have a progress thread. No frame needs credit:
 * every one has a place at once. */
#ifndef GY_COLLECTIVES_RMA_WINDOW_H
#define GY_COLLECTIVES_RMA_WINDOW_H

#include <stdatomic.h>

#include "collectives/comm/communicator.h"

#define GY_SIGNALS GYRE_WINDOW_SIGNALS
#define GY_ONE_SIDED_FLIGHT 4             /* frames of one call in flight */
#define GY_ACCUMULATE_BYTES (64u * 1024u) /* of one frame, and of the target's landing buffer for it */

/* What local ranks see of a window besides its memory; on the owner's shared heap if there is one. */
struct gy_exposed_control {
    _Alignas(GY_CACHE_LINE) _Atomic uint32_t lock; /* of accumulations; the holder's rank in the world + 1 */
    _Atomic uint32_t releases;                     /* number of releases; written by the holder */
    _Atomic uint32_t left; /* ranks that reached it and do not any more; counted if not all destroy the window */
    struct {
        _Alignas(GY_CACHE_LINE) _Atomic uint64_t count;
    } signal[GY_SIGNALS];
};

/* The reply to a GET. The link may still hold its frame when the peer, which has it, sends the next GET under the
 * same number. */
struct gy_reply {
    struct gy_frame_out out;
    struct gy_frame asked;
    bool due;             /* `asked` is to be answered when the link has released the frame */
    unsigned char *aside; /* a copy of the payload, after the window is freed; NULL: the payload lies in the window's
                           * memory */
};

struct gy_target {
    size_t bytes;
    unsigned char *memory;              /* mapped here; NULL: by links */
    struct gy_exposed_control *control; /* mapped here; NULL: by links */
    struct gy_rma_key rma_key;          /* rails 0: no device reaches it */
    bool asked;                         /* some access by frames since the last flush */
    bool reduced;                       /* one of them is an accumulation */
    bool gone;                          /* its part was destroyed before mine: it does not answer any more */
    uint64_t flushes, flushed;          /* sent, answered */
    struct gy_frame_out ask, answer;    /* FLUSH and FLUSHED */
    uint8_t unmade;                     /* the first operation of its accumulations that is unknown here; 0: none */
    uint8_t refused;                    /* the same of mine there, from its answer; 0: none */
    uint64_t due;                       /* the FLUSH to be answered when the link has released `answer`; 0: none */
    struct gy_reply *replies;           /* [GY_ONE_SIDED_FLIGHT] to its GETs, NULL until the first */
    unsigned char *landing;             /* for its accumulations, NULL until the first */
};

struct gyre_window {
    struct gyre_comm *comm;
    struct gyre_window *next; /* of the communicator, or waiting to be freed */
    uint32_t id;              /* number in the communicator, the same on every rank */
    unsigned char *memory;
    size_t bytes;
    struct gy_exposed_control *control; /* mine; NULL: freed, with no peer using it any more */
    unsigned watchers;                  /* ranks that reach mine by memory */
    bool quiet;                         /* all have destroyed it: no peer accesses it any more */
    int carrier;                        /* transport whose devices reach memory, */
    void *exposed;                      /* to which mine is exposed; NULL: to none */
    struct gy_target *targets;          /* [size] */
    int size;                           /* of the communicator, which may be freed first */
    struct gy_frame_out out[GY_ONE_SIDED_FLIGHT];
    struct {
        unsigned char *place;
        size_t bytes;
        int from;
        bool waiting;
    } get[GY_ONE_SIDED_FLIGHT];
};

/* Collective, blocking. */
gyre_status gy_window_expose(struct gyre_comm *comm, void *memory, size_t bytes, struct gyre_window **window_p);
gyre_status gy_window_conceal(struct gyre_window *window);
/* Frees the window locally, with its communicator. Frames that a link still holds stay where they are until the
 * links are freed, and so does memory that peers may still store to. */
void gy_window_free(struct gyre_window *window);
void gy_windows_free_left(struct gy_context *ctx); /* those that links have released and all others have left by now */
void gy_windows_free_deferred(struct gy_context *ctx);
static inline struct gyre_window *gy_window_find(struct gyre_comm *comm, uint64_t id)
{
    struct gyre_window *window = comm->windows;
    while (window && window->id != id)
        window = window->next;
    return window;
}

/* The arguments have been checked against the target's bytes. Returns at local completion: the source is free, the
 * data is there. */
gyre_status gy_window_put(struct gyre_window *window, const void *source, size_t bytes, int target, size_t offset);
gyre_status gy_window_get(struct gyre_window *window, void *destination, size_t bytes, int target, size_t offset);
gyre_status gy_window_accumulate(struct gyre_window *window, const void *source, size_t count,
                                 const struct gy_operation *operation, int target, size_t offset);
gyre_status gy_window_signal(struct gyre_window *window, int target, unsigned index);
/* Returns when all accesses of this rank to the target (-1: to all) have completed there. INVALID_ARGUMENT: all but
 * accumulations by an operation of the program's own that a target has not made; the world continues. */
gyre_status gy_window_flush(struct gyre_window *window, int target);
gyre_status gy_window_await(struct gyre_window *window, unsigned index, uint64_t value);

/* Waits until `done`, or until the world has failed. After GYRE_TIMEOUT, or when `target` has left, the world ends
 * here: its links still point into the caller's memory. */
gyre_status gy_window_until(struct gyre_window *window, bool (*done)(const void *), const void *what, int target,
                            const char *call);

/* In rma/wait.c. Makes a wait visible from `begin` to `end`; `tell` logs a line a minute. */
void gy_one_sided_wait_begin(struct gy_one_sided_wait *wait, struct gyre_window *window, int world, const char *call);
void gy_one_sided_wait_tell(struct gy_one_sided_wait *wait, int64_t now);
void gy_one_sided_wait_end(struct gy_one_sided_wait *wait);
/* Returns the wait of a call on the communicator; NULL: no call waits. */
const struct gy_one_sided_wait *gy_one_sided_wait_of(const struct gyre_comm *comm);

/* Ends the world on this rank with PEER_LEFT, because a rank of the world had not `what` of the window. Local: a
 * rank that does not need that one continues. */
void gy_window_end_alone(struct gy_context *ctx, int world, const char *what, const struct gyre_window *window);
/* Fails the world; all ranks are told. */
void gy_window_end_world(struct gy_context *ctx, gyre_status status, int world, const char *text);

/* In rma/lock.c. Accumulations exclude each other. SUCCESS: this rank has the lock. A status of ctx->error: the
 * world has failed meanwhile, or the holder has made no progress for GYRE_STALL_TIMEOUT, which ends it. PEER_LATE of
 * comm->error alone: others held the lock in turn for as long as the communicator's timeout, and the world
 * continues. sinking: the caller applies another rank's frame inside of a link's delivery; else everything else
 * progresses while it waits. */
gyre_status gy_window_lock(struct gyre_window *window, struct gy_exposed_control *control, bool sinking);
void gy_window_unlock(struct gy_exposed_control *control);

/* In exposure.c: what others of the host reach by memory, and for how long. */
bool gy_exposed_to(const struct gyre_comm *comm, int rank); /* true if both reach each other's memory */
/* The offset on my heap + 1; 0: not there. */
uint64_t gy_exposed_place(const struct gyre_comm *comm, const void *memory, size_t bytes);
/* Makes the control. Memory and control are exposed from here on, since peers may complete the exchange before this
 * rank. */
gyre_status gy_exposed_make(struct gyre_window *window);
void gy_exposed_leave(const struct gyre_window *window); /* this rank accesses the others' no more */
bool gy_exposed_in_use(const struct gyre_window *window);
/* Frees the control, and the memory unless it is in use: then its place is not reused. */
void gy_exposed_free(struct gy_context *ctx, struct gyre_window *window);
/* The world has failed: exposed memory becomes this process's alone. */
void gy_windows_withdraw(struct gy_context *ctx);

/* In rma/device.c: the same by a transport's device, if it reaches the target. */
void gy_window_expose_to_devices(struct gyre_window *window, struct gy_rma_key *key_p);
void gy_window_take_key(struct gyre_window *window, int target, const struct gy_rma_key *key);
void gy_window_conceal_from_devices(struct gyre_window *window); /* no peer uses it any more */
bool gy_window_by_device(const struct gyre_window *window, int target);
gyre_status gy_device_put(struct gyre_window *window, const unsigned char *source, size_t bytes, int target,
                          size_t offset);
gyre_status gy_device_get(struct gyre_window *window, unsigned char *destination, size_t bytes, int target,
                          size_t offset);
/* Returns when puts by devices are in the target's memory. between: does so only if several devices leave that in
 * doubt. */
gyre_status gy_window_settle(struct gyre_window *window, int target);
gyre_status gy_window_settle_between(struct gyre_window *window, int target);

/* In rma/frames.c: the same over links, and incoming frames. */
gyre_status gy_rma_put(struct gyre_window *window, const unsigned char *source, size_t bytes, int target,
                       size_t offset);
gyre_status gy_rma_get(struct gyre_window *window, unsigned char *destination, size_t bytes, int target, size_t offset);
gyre_status gy_rma_accumulate(struct gyre_window *window, const unsigned char *source, size_t count,
                              const struct gy_operation *operation, int target, size_t offset);
gyre_status gy_rma_signal(struct gyre_window *window, int target, unsigned index);
gyre_status gy_rma_flush(struct gyre_window *window, int target);
/* The place of a one-sided frame's payload. PROTOCOL: the frame is wrong. */
gyre_status gy_rma_place(struct gyre_comm *comm, int peer, const struct gy_frame *frame, void **place_p);
/* Sends the answers that were delayed, as far as links have released the frames for them. */
void gy_rma_answer(struct gy_context *ctx);
/* True if a link holds a frame of the window. */
bool gy_rma_holds(const struct gyre_window *window);
/* Returns false if the frame is wrong. */
bool gy_rma_arrived(struct gyre_comm *comm, int peer, const struct gy_frame *frame, const void *payload);

/* In rma/teardown.c: the end of a window that not all ranks have destroyed. */
/* Returns when no link reads this rank's memory any more; frames in flight are sent all the same. */
void gy_rma_set_aside(struct gyre_window *window);
/* The member has destroyed the communicator, or its part of that window (0: all): stops waiting for it. */
void gy_windows_give_up(struct gyre_comm *comm, int rank, uint64_t id);
/* True if there has been such a window here. Numbers are not reused. */
bool gy_window_is_destroyed(struct gyre_comm *comm, uint64_t id);
/* True if the member would not answer any more, and this rank needs an answer. */
bool gy_window_has_lost(const struct gyre_window *window, int rank);
/* Returns PEER_LEFT, of this communicator alone. */
gyre_status gy_window_tell_lost(const struct gyre_window *window, int rank);
/* Returns a member that may yet signal; -1: none. Then *lost_p is one that lives and has destroyed the communicator;
 * -1: none, all have left the world. since: when the wait began. */
int gy_window_signaller(const struct gyre_window *window, int64_t since, int *lost_p);

#endif
