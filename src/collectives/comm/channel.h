/* A channel: credits, grants and stashed frames between one communicator and one peer.
 *
 *   eager    short frames leave at once, against credit, one unit per GY_EAGER_BYTES begun; the receiver stashes
 *            frames that arrive before it has entered, and returns credit in batches after consuming them.
 *            Collectives and messages have separate credits, as the peer may enter either first. The oldest
 *            collective may spend every credit, younger ones leave it GY_OLDEST_CREDITS, so that operations that a
 *            peer has not entered cannot starve the one it waits in. Messages spend theirs in the order of their sends,
 *            which is the order in which they are received.
 *   granted  larger frames wait for a grant: the receiver allows the iterations whose place is ready, so that data
 *            never waits in between. A grant for an operation that the sender has not entered is kept here; when there
 *            is no room it is dropped, and the sender asks again (WANT), from then on at once.
 *
 * The transport limits the length of an eager frame, and of a step whose tiles are eager frames, within
 * gy_eager_most. The limit is GY_EAGER_BYTES if another lane sends to the same peer. Frames of one lane are consumed
 * in the order of sending, but a frame that is not ready yet could hold all the credit that the other lane needs.
 * Invariant: once all earlier frames are consumed, the remaining credit suffices for the longest frame, as the
 * receiver withholds less than gy_credit_batch.
 *
 * Memory is bounded: 224 KiB of stash; pages that no early frame touches are never backed. A frame is stored
 * contiguously; if free space is fragmented, other frames move up. */
#ifndef GY_COLLECTIVES_COMM_CHANNEL_H
#define GY_COLLECTIVES_COMM_CHANNEL_H

#include "collectives/schedule/limits.h"
#include "collectives/schedule/schedule.h"
#include "transport/transport.h"

#define GY_EAGER_CREDITS 24u  /* of collectives */
#define GY_EAGER_UNITS 8u     /* of the longest of their frames */
#define GY_OLDEST_CREDITS 16u /* left by younger operations */
#define GY_MESSAGE_CREDITS 4u /* of messages from point to point */
#define GY_STASHED_MOST (GY_EAGER_CREDITS + GY_MESSAGE_CREDITS)
#define GY_GRANTS_KEPT 16
#define GY_EAGER_INTER_HOST (32u << 10) /* bytes of the longest eager frame between hosts */

_Static_assert(GY_OLDEST_CREDITS >= GY_EAGER_UNITS + GY_EAGER_UNITS, "for the longest frame, beside what is kept back");
_Static_assert(GY_EAGER_CREDITS >= GY_OLDEST_CREDITS + GY_EAGER_UNITS, "a younger one has some, too");

struct gy_stashed {
    bool used, whole; /* whole: the payload has arrived to its end */
    uint8_t unit;     /* index of its first unit in the stash */
    struct gy_frame frame;
};

struct gy_kept_grant {
    uint64_t sequence, value; /* sequence 0: unused */
    uint16_t lane;
};

enum gy_credit_use { GY_FOR_COLLECTIVES, GY_FOR_MESSAGES, GY_CREDIT_USES };

struct gy_credit {
    unsigned left;           /* units this rank may send */
    unsigned owed;           /* units consumed and not returned yet */
    struct gy_frame_out out; /* returns credit */
};

struct gy_channel {
    struct gy_channel *next;          /* waiting to be freed */
    bool destroyed;                   /* the peer has destroyed the communicator, */
    int cause;                        /* itself, or because this rank of the world had */
    struct gy_frame_out announce_end; /* tells the peer that this rank has left the communicator */
    struct gy_credit credit[GY_CREDIT_USES];
    uint64_t sent, received; /* point-to-point messages that have been started */
    uint64_t tickets, left;  /* eager messages sent: started, and left */
    uint64_t entered;        /* the peer is known to have entered this operation */
    struct {
        uint64_t told, heard; /* see uniform_completion.h: the highest number sent there, and received from there */
        struct gy_frame_out out;
    } completion;
    struct gy_stashed stashed[GY_STASHED_MOST];
    unsigned early;       /* number in use */
    unsigned char *stash; /* GY_STASHED_MOST units */
    struct gy_kept_grant grants[GY_GRANTS_KEPT];
    bool grants_lost; /* a grant was dropped for want of room */
};

struct gy_channel *gy_channel_create(void);
void gy_channel_free(struct gy_channel *channel);
/* Returns the number of credits of this kind. */
static inline unsigned gy_credit_most(enum gy_credit_use use)
{
    return use == GY_FOR_MESSAGES ? GY_MESSAGE_CREDITS : GY_EAGER_CREDITS;
}
/* Units that an eager frame takes. */
static inline unsigned gy_eager_units(uint32_t bytes)
{
    return bytes <= GY_EAGER_BYTES ? 1 : (bytes - 1) / GY_EAGER_BYTES + 1;
}
/* The longest eager frame of a kind, in units. */
static inline unsigned gy_eager_most(enum gy_credit_use use)
{
    return use == GY_FOR_MESSAGES ? 1 : GY_EAGER_UNITS;
}
/* True if steps of `bytes` bytes on this lane of the schedule leave as eager frames; `most` is the transport's
 * limit. */
bool gy_eager_leaves(const struct gy_schedule *schedule, int lane, int peer, size_t bytes, size_t most);
/* Returns the number of units that trigger a CREDIT frame. Fewer, such as those of one long frame, are piggybacked
 * on data. */
static inline unsigned gy_credit_batch(enum gy_credit_use use)
{
    return use == GY_FOR_MESSAGES ? GY_MESSAGE_CREDITS / 2 : GY_EAGER_UNITS + 1;
}
/* True if a link still holds a frame of the channel. */
bool gy_channel_queued(const struct gy_channel *channel);

/* Returns a free place for an early frame, its memory in *memory_p; NULL if the peer overdrew its credit. Complete
 * frames may move. */
struct gy_stashed *gy_channel_stash(struct gy_channel *channel, const struct gy_frame *frame, unsigned char **memory_p);
/* Frees the place of a frame that was consumed or moved elsewhere. */
void gy_channel_unstash(struct gy_channel *channel, struct gy_stashed *stashed);
unsigned char *gy_channel_stash_memory(const struct gy_channel *channel, const struct gy_stashed *stashed);
/* True if `memory` lies in the stash. */
static inline bool gy_channel_holds(const struct gy_channel *channel, const void *memory)
{
    return (uintptr_t)memory - (uintptr_t)channel->stash < (size_t)GY_STASHED_MOST * GY_EAGER_BYTES;
}
struct gy_stashed *gy_channel_find(struct gy_channel *channel, uint64_t sequence, uint16_t lane, uint64_t value);
/* Returns any stashed frame of an operation: its shape shows what the peer called. */
struct gy_stashed *gy_channel_any(struct gy_channel *channel, uint64_t sequence);

void gy_channel_keep_grant(struct gy_channel *channel, uint64_t sequence, uint16_t lane, uint64_t value);
/* Removes and returns the stored grant; 0: none. */
uint64_t gy_channel_take_grant(struct gy_channel *channel, uint64_t sequence, uint16_t lane);

#endif
