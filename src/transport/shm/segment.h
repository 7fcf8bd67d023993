/* The shared memory of one host: one memfd, made by the host's first rank and handed down a binomial tree of Unix
 * sockets, mapped whole by every local rank. It is sparse: pages exist when they are touched or reserved with
 * fallocate, so that "no space" is an error at the time of reservation and never a SIGBUS. Nothing has a name in any
 * file system; a crash leaves nothing.
 *
 *   | host page: the notice   | control page of each rank | link rings of each ordered pair | regions of each rank |
 *   | heap of each rank |
 *
 * Areas are found by arithmetic from (local index, kind), so all ranks know the whole layout. */
#ifndef GY_TRANSPORT_SHM_SEGMENT_H
#define GY_TRANSPORT_SHM_SEGMENT_H

#include <stdatomic.h>

#include "bootstrap/world.h"

struct gy_notice;
struct gy_segment;

#define GY_REGION_COMMS 64    /* communicators that can have a region; further ones use links */
#define GY_REGION_LANES 4     /* progress counters per region */
#define GY_TUNER_KINDS 16     /* collectives, with room for more */
#define GY_TUNER_OCTAVES 16   /* of sizes, the last one has all that is longer */
#define GY_TUNER_DECISIONS 4  /* collectives/shm/autotune.h has them */
#define GY_REGION_SLOTS 4     /* slots in the ring of each region half */
#define GY_CALL_SIGNATURES 16 /* signatures beyond the oldest one with a reader: see GY_REGION_SHOWN */
#define GY_REGION_SHOWN 4     /* operations that a rank publishes at once; others are at most SLOTS + AHEAD behind it */
#define GY_REGION_INLINE 112  /* bytes of a vector stored in the flag's pair of cache lines, 48 of them in its own */
#define GY_REGION_VECTOR 16384 /* bytes of a longer vector, on whole lines of its own */
#define GY_REGION_AHEAD 4      /* eager exchanges that a rank publishes at once: see collectives/shm/eager.h */
#define GY_REGION_LINES (2 * GY_REGION_AHEAD)
#define GY_REGION_SHORT 8192 /* bytes of a vector with a place for every line; longer ones have two for all */
#define GY_REGION_GAP 4096   /* between two places: see gy_region */
#define GY_REGION_PAIR 128   /* bytes of the flag's pair of cache lines */
#define GY_REGION_PAGE 4096  /* bytes of the smallest page */
#define GY_REGION_APART 1152 /* from one line to the next */

/* Written by one rank: flag, shape and payload together. Unused lines lie between two of these. A processor that has
 * read some at equal distances prefetches the next, and so takes it away from its writer. They lie a power of two
 * and a pair of lines apart: a plain power of two would map all of them to few sets of the first-level cache. */
struct gy_region_line {
    _Alignas(GY_REGION_PAIR) _Atomic uint64_t sequence; /* written last, release */
    uint64_t shape;                                     /* the shape as one word */
    unsigned char payload[GY_REGION_INLINE];
    unsigned char apart[GY_REGION_APART - GY_REGION_PAIR];
};

_Static_assert(sizeof(struct gy_region_line) == GY_REGION_APART, "pairs of lines, and nothing between their parts");

/* The full shape, for the error that prints both. */
struct gy_call_signature {
    uint64_t sequence, count;
    uint32_t root;
    uint8_t collective, dtype, op, algorithm;
};

/* Copies a signature whose number has just been written. A wide load of the number and its neighbours, as a compiler
 * would emit, cannot be store-forwarded; it stalls until the store retires, behind lines that peers hold. */
static inline void gy_signature_copy(struct gy_call_signature *to, const struct gy_call_signature *from)
{
    uint64_t sequence = from->sequence;
    __asm__("" : "+r"(sequence));
    to->sequence = sequence;
    memcpy(&to->count, &from->count, sizeof(*to) - offsetof(struct gy_call_signature, count));
}

/* Memory that peers may use for one operation. On the rank's shared heap: its offset there + 1. Private memory that
 * they read through the kernel: its address. 0: none. */
struct gy_offer {
    uint64_t input, output, peer_input;
    bool nontemporal; /* data not offered there is written to slots with non-temporal stores */
    bool claimed;     /* or for readers that prefetch the lines for writing (autotune.h) */
};

/* An operation that a rank has entered, in one cache line, so that a waiting peer gets all of it at once. */
struct gy_entry {
    _Alignas(64) struct gy_call_signature signature;
    struct gy_offer offer;
    _Atomic uint64_t offered; /* the operation of the offer, release; 0: being replaced, or none; GY_WITHDRAWN */
};

_Static_assert(sizeof(struct gy_entry) == 64, "one line of a cache");

#define GY_WITHDRAWN(sequence) (~(uint64_t)(sequence)) /* instead of the operation's number: its offer is withdrawn */

/* State that a rank publishes for one communicator; single writer: that rank. */
struct gy_region_control {
    struct gy_region_line line[GY_REGION_LINES]; /* of eager exchanges, by number */
    struct {
        _Alignas(GY_CACHE_LINE) _Atomic uint64_t progress;
    } lane[GY_REGION_LANES]; /* iterations completed since
                                                                     * the communicator was made */
    _Alignas(
        GY_CACHE_LINE) struct gy_entry entry[GY_CALL_SIGNATURES]; /* by sequence number mod GY_CALL_SIGNATURES, written
                                                                     * before the first signal */
    _Alignas(GY_CACHE_LINE) _Atomic uint64_t entered; /* sequence of the current operation, release after its entry */
    _Alignas(GY_CACHE_LINE) _Atomic uint64_t completion; /* operations with uniform completion that are complete here */
    _Atomic uint32_t
        choice[GY_TUNER_DECISIONS][GY_TUNER_KINDS]; /* by collective, two bits per octave: the fastest variant */
    _Atomic uint32_t core; /* 1 + the core of this rank's last call, if ranks share cores; 0: not published */
};

/* The control block, followed by the vectors too long for a line, by number like the lines. An unused page lies
 * between two of them. Processors prefetch up to the end of a page, so a reader of one vector would take lines of
 * the next from its writer. Each begins a page, so that short ones lie in one. */
struct gy_region {
    struct gy_region_control control;
    _Alignas(GY_REGION_PAGE) unsigned char shorter[GY_REGION_LINES][GY_REGION_SHORT + GY_REGION_GAP];
    _Alignas(GY_REGION_PAGE) unsigned char vector[2][GY_REGION_VECTOR + GY_REGION_GAP];
};

static inline unsigned char *gy_region_vector(struct gy_region_control *control, uint64_t number, size_t bytes)
{
    struct gy_region *region = (struct gy_region *)(void *)control;
    return bytes <= GY_REGION_SHORT ? region->shorter[number % GY_REGION_LINES] : region->vector[number & 1];
}

/* State that a rank publishes once per world; single writer: that rank, except `check_ends`, which a peer sets. */
struct gy_rank_control {
    _Alignas(GY_CACHE_LINE) _Atomic uint32_t sleeping;  /* the rank sleeps or is about to: ring its doorbell */
    _Atomic uint32_t fences_for_all;                    /* it fences for its wakers when it goes to sleep */
    _Alignas(GY_CACHE_LINE) _Atomic uint64_t heartbeat; /* slow iterations: grows inside gyre */
    _Atomic int32_t waiting_for;                        /* the rank it waits for, −1 none */
    _Atomic uint32_t core;                          /* 1 + the core of its last long wait or long call; 0: none yet */
    _Atomic uint32_t region_user[GY_REGION_COMMS];  /* 1 + its communicator in a slot; bit 31: no more */
    _Atomic uint32_t region_ended[GY_REGION_COMMS]; /* 1 + the rank that ended it by leaving, 0: none */
    _Atomic uint64_t proof;    /* address of its private proof word, 0: not published: process_vm.c */
    _Atomic uint32_t reading;  /* enum gy_reading: the private memory that it can read */
    _Atomic uint64_t doorbell; /* the name of its doorbell: wakeup.c */
    _Alignas(GY_CACHE_LINE) _Atomic uint32_t check_ends; /* set by a peer: a communicator has ended there */
};

/* Makes or receives the segment; blocks until `deadline` (gy_now). NULL in *segment_p if there is only one local
 * rank (then heap memory is plain memory and no region exists). */
gyre_status gy_segment_create(struct gy_world *world, int64_t deadline, struct gy_segment **segment_p,
                              struct gy_error *error);
void gy_segment_free(struct gy_segment *segment); /* unmaps; others keep theirs */

struct gy_notice *gy_segment_notice(struct gy_segment *segment); /* overlay.h */
struct gy_rank_control *gy_segment_rank(struct gy_segment *segment, int local);

/* Region of communicator slot `index` (< GY_REGION_COMMS) of local rank `local`: control block and data area of
 * gy_segment_region_bytes bytes. `reserve` backs the own region with pages (idempotent): NO_MEMORY with a message if
 * the host has no room. */
gyre_status gy_segment_region_reserve(struct gy_segment *segment, int index, struct gy_error *error);
struct gy_region_control *gy_segment_region(struct gy_segment *segment, int local, int index);
/* Resets the own region's control block for the next communicator. */
void gy_segment_region_reset(struct gy_segment *segment, int index);
unsigned char *gy_segment_region_data(struct gy_segment *segment, int local, int index);
size_t gy_segment_region_bytes(const struct gy_segment *segment); /* 2 * GY_REGION_SLOTS * config->shm_slot */

/* Link ring area between two local ranks: written by `from`, read by `to`. Bytes: gy_segment_ring_bytes; first use
 * reserves. */
gyre_status gy_segment_ring(struct gy_segment *segment, int from, int to, void **ring_p, struct gy_error *error);
size_t gy_segment_ring_bytes(const struct gy_segment *segment);

/* Heap for gyre_mem_alloc, page granularity. */
gyre_status gy_segment_heap_alloc(struct gy_segment *segment, size_t bytes, void **memory_p, struct gy_error *error);
bool gy_segment_heap_holds(const struct gy_segment *segment, const void *memory); /* true if a buffer begins there */
bool gy_segment_heap_free(struct gy_segment *segment, void *memory);              /* false: not from here */
/* True if [memory, memory+bytes) lies in the own heap; then returns its offset, which peers can translate. */
bool gy_segment_heap_offset(const struct gy_segment *segment, const void *memory, size_t bytes, uint64_t *offset_p);
void *gy_segment_heap_at(struct gy_segment *segment, int local, uint64_t offset);
bool gy_segment_heap_spans(const struct gy_segment *segment, uint64_t offset,
                           uint64_t bytes); /* true if inside a heap */
/* Between these two calls, which come in pairs, peers may load and store there at any time. Memory freed meanwhile
 * keeps its contents, and is not reused before the end. */
void gy_segment_heap_expose(struct gy_segment *segment, const void *memory, size_t bytes);
void gy_segment_heap_conceal(struct gy_segment *segment, const void *memory, size_t bytes);
/* After the world has failed: the block becomes private to this process. Peers' later stores are invisible on pages
 * that this process has written, and peers do not see its writes. The block is not reused. Returns false if out of
 * memory. */
bool gy_segment_heap_withdraw(struct gy_segment *segment, const void *memory, size_t bytes);
bool gy_segment_heap_withdraw_exposed(struct gy_segment *segment); /* all that is exposed and not freed */

/* True if every local rank reads every other's private memory; false until all have tested it, which each does on
 * its first query. Cheap once known. */
bool gy_segment_reads_all(struct gy_segment *segment);
/* True if the kernel can read [memory, memory+bytes) of this process, by its first and last byte. False for a
 * device's mapping and secret memory. */
bool gy_segment_readable(const void *memory, size_t bytes);
/* Reads [address, address+bytes) of a local rank's private memory; returns 0 or an errno. ESRCH: that process is
 * gone, even if its id was reused. */
int gy_segment_read_private(struct gy_segment *segment, int local, uint64_t address, size_t bytes, void *to);

/* Wakes local rank `local` if it sleeps: a datagram to its doorbell. Call after the store that it waits for. The two
 * halves are for waking several: one fence, then a doorbell for each. */
void gy_segment_wake(struct gy_segment *segment, int local);
void gy_segment_fence(struct gy_segment *segment);
void gy_segment_ring_doorbell(struct gy_segment *segment, int local);
/* Announces that this rank is about to sleep (then re-check everything, then gy_poller_poll), and that it is awake
 * again. */
void gy_segment_sleep(struct gy_segment *segment);
void gy_segment_awake(struct gy_segment *segment);

#endif
