/* Inside the segment: shared by segment.c (creation, mapping), areas.c (layout), fd_passing.c, heap.c, process_vm.c
 * and wakeup.c. No other file includes this. */
#ifndef GY_TRANSPORT_SHM_INTERNAL_H
#define GY_TRANSPORT_SHM_INTERNAL_H

#include "core/poller.h"
#include "transport/shm/segment.h"

/* All ranks compute the same layout from these; a rank with another one is rejected in the bootstrap. */
struct gy_segment_layout {
    uint64_t page, locals, slot, heap_bytes;                        /* inputs */
    uint64_t ring_bytes, region_control, region_data, region_bytes; /* sizes of one */
    uint64_t heap_stride;                                           /* from one heap to the next */
    uint64_t rings, regions, heaps, total;                          /* offsets */
    uint64_t inside;                                                /* a hash of the layout of the structs in these */
};

struct gy_heap_block {
    uint64_t offset, bytes;
    unsigned exposed; /* to peers, counted: it may be freed, but is kept */
    bool withdrawn;   /* no longer shared, and so never reused */
    bool freed;
};

/* Bookkeeping of this rank's heap, in private memory: a peer cannot corrupt it. Blocks are sorted by offset. */
struct gy_segment_heap {
    struct gy_heap_block *blocks;
    size_t count, room;
};

#define GY_SENDERS 32              /* at most; see wakeup.c */
#define GY_DOORBELLS_PER_SENDER 64 /* unless there are more ranks than GY_SENDERS times so many */

/* Passed between local ranks: the memory, and the sockets by which they wake each other. −1: none. */
struct gy_segment_fds {
    int memory;
    int sender[GY_SENDERS];
};

struct gy_segment {
    struct gy_world *world;
    struct gy_segment_fds fds;
    int nsenders;
    int owner_pid; /* a forked child must not change its parent's epoll set */
    unsigned char *base;
    struct gy_segment_layout layout;
    struct gy_segment_heap heap;
    bool region_reserved[GY_REGION_COMMS];
    struct gy_watch doorbell; /* this rank's datagram socket */
    uint64_t proof;           /* a word known only to this world's ranks, checked in process_vm reads */
    enum gy_reading {
        GY_READING_UNKNOWN,
        GY_READING_ALL,
        GY_READING_SOME
    } own_reading,
        reading;         /* of this rank; of all */
    bool asleep;         /* from gy_segment_sleep to gy_segment_awake: a thread may sleep while others make progress */
    bool rung;           /* a doorbell datagram waits in the socket */
    bool fences_for_all; /* membarrier works in this process */
    bool asymmetric;     /* and in every other local rank's */
    unsigned fences;
};

/* Backs [offset, offset+bytes) with pages; new ones are zero. `what` ends the message "no room for ...". */
gyre_status gy_segment_reserve(struct gy_segment *segment, uint64_t offset, uint64_t bytes, const char *what,
                               struct gy_error *error);

#define GY_OFFER_MAGIC UINT64_C(0x3247455359475947) /* "GYGYSEG2" */

/* Sent with the descriptor. */
struct gy_segment_offer {
    uint64_t magic, job;
    int32_t status;  /* not 0: there is no segment, and this is why */
    int32_t local;   /* of the sender */
    int32_t culprit; /* the failed rank: the sender, or the rank it waited for */
    int32_t zero;
    struct gy_segment_layout layout;
};
/* The child's half: asks its parent in the tree; *fds_p are valid on success. */
gyre_status gy_segment_ask(struct gy_world *world, int64_t deadline, struct gy_segment_offer *offer_p,
                           struct gy_segment_fds *fds_p, struct gy_error *error);
/* The parent's half: listens first (before anything that may fail, so that children learn of the failure), then
 * serves all children. `fds` NULL with a status in the offer: sends the reason. *listener_p −1: this rank has no
 * children. */
gyre_status gy_segment_listen(struct gy_world *world, int *listener_p, struct gy_error *error);
gyre_status gy_segment_serve(struct gy_world *world, int listener, const struct gy_segment_fds *fds,
                             const struct gy_segment_offer *offer, int64_t deadline, struct gy_error *error);

/* Returns the number of sender sockets for `locals` ranks. */
int gy_segment_senders(int locals);
void gy_segment_fds_none(struct gy_segment_fds *fds_p);
void gy_segment_fds_close(struct gy_segment_fds *fds);
/* On the first local rank: makes the sender sockets, before any doorbell is opened. */
gyre_status gy_segment_senders_make(struct gy_segment *segment, struct gy_error *error);
/* Needs the sender sockets and the mapping. Peers wake this rank only after it: a rank sleeps only afterwards. */

/* After mapping: publishes the address of this rank's proof. */
void gy_segment_proof_register(struct gy_segment *segment);

gyre_status gy_segment_doorbell_open(struct gy_segment *segment, struct gy_error *error);
/* After mapping: publishes whether this rank fences for its wakers. */
void gy_segment_doorbell_register(struct gy_segment *segment);
void gy_segment_doorbell_close(struct gy_segment *segment, bool forked);

#endif
