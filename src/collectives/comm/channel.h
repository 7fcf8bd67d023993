/* A channel: what one communicator and one peer owe each other.
 *
 *   eager    short frames leave at once, against credit, a unit for each GY_EAGER_BYTES begun; the receiver stashes what
 *            comes before it has entered, and gives the credit back in batches when it has consumed it. Collectives and
 *            messages have credits of their own: nothing says which of both the peer enters first. The oldest
 *            collective may spend every credit, younger ones leave it GY_OLDEST_CREDITS, so that operations that a
 *            peer has not entered cannot starve the one it waits in. Messages spend theirs in the order of their sends,
 *            which is the order in which they are received.
 *   granted  larger frames wait for a grant: the receiver allows the iterations whose place is ready, so that data
 *            never waits in between. A grant for an operation that the sender has not entered is kept here; when there
 *            is no room it is dropped, and the sender asks again (WANT), from then on at once.
 *
 * How long an eager frame, or a step whose tiles are eager frames, may be is the transport's to say, within gy_eager_most, and GY_EAGER_BYTES where another lane sends
 * to the same peer: what comes by one lane is consumed in the order in which it was sent, but one that is not ready yet could
 * hold all the credit that the other needs. Invariant: once all that was sent before is consumed, what is left is enough for
 * the longest frame, for the receiver keeps less than gy_credit_batch back.
 *
 * Memory is bounded: 224 KiB of stash, pages that no early frame touches are never backed. A frame lies in it in one piece;
 * where what is free does not lie together, the others move up. */
#ifndef GY_COLLECTIVES_COMM_CHANNEL_H
#define GY_COLLECTIVES_COMM_CHANNEL_H

#include "collectives/schedule/limits.h"
#include "collectives/schedule/schedule.h"
#include "transport/transport.h"

#define GY_EAGER_CREDITS 24u  /* of collectives */
#define GY_EAGER_UNITS 8u     /* of the longest of their frames */
#define GY_OLDEST_CREDITS 16u /* that younger ones leave */
#define GY_MESSAGE_CREDITS 4u /* of messages from point to point */
#define GY_STASHED_MOST (GY_EAGER_CREDITS + GY_MESSAGE_CREDITS)
#define GY_GRANTS_KEPT 16
#define GY_EAGER_INTER_HOST (32u << 10) /* bytes of the longest eager frame between hosts */

_Static_assert(GY_OLDEST_CREDITS >= GY_EAGER_UNITS + GY_EAGER_UNITS, "for the longest frame, beside what is kept back");
_Static_assert(GY_EAGER_CREDITS >= GY_OLDEST_CREDITS + GY_EAGER_UNITS, "a younger one has some, too");

struct gy_stashed {
    bool used, whole; /* whole: the payload has arrived to its end */
    uint8_t unit;     /* of the stash, where it begins */
    struct gy_frame frame;
};

struct gy_kept_grant {
    uint64_t sequence, value; /* sequence 0: unused */
    uint16_t lane;
};

enum gy_credit_use { GY_FOR_COLLECTIVES, GY_FOR_MESSAGES, GY_CREDIT_USES };

struct gy_credit {
    unsigned left;           /* units that I may send */
    unsigned owed;           /* units consumed and not given back yet */
    struct gy_frame_out out; /* gives back */
};

struct gy_channel {
    struct gy_channel *next;          /* waiting to be freed */
    bool destroyed;                   /* the peer has destroyed the communicator, */
    int cause;                        /* itself, or because this rank of the world had */
    struct gy_frame_out announce_end; /* tells the peer that this rank takes no more part */
    struct gy_credit credit[GY_CREDIT_USES];
    uint64_t sent, received; /* point-to-point messages that have been started */
    uint64_t tickets, left;  /* eager ones among those sent: started, and gone */
    uint64_t entered;        /* the peer is known to have entered this operation */
    struct {
        uint64_t told,
            heard; /* see uniform_completion.h: the highest number that went there, and that came from there */
        struct gy_frame_out out;
    } completion;
    struct gy_stashed stashed[GY_STASHED_MOST];
    unsigned early;       /* of them used */
    unsigned char *stash; /* GY_STASHED_MOST units */
    struct gy_kept_grant grants[GY_GRANTS_KEPT];
    bool grants_lost; /* there was no room for one */
};

struct gy_channel *gy_channel_create(void);
void gy_channel_free(struct gy_channel *channel);
/* How many credits of this kind there are. */
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
/* Do steps of so many bytes leave at once on this lane of the plan, where the transport lets up to `most` do so? */
bool gy_eager_leaves(const struct gy_plan *plan, int lane, int peer, size_t bytes, size_t most);
/* So many are given back by a frame of their own; fewer, such as those of one long frame, wait for data that takes them along. */
static inline unsigned gy_credit_batch(enum gy_credit_use use)
{
    return use == GY_FOR_MESSAGES ? GY_MESSAGE_CREDITS / 2 : GY_EAGER_UNITS + 1;
}
/* Does a link still hold a frame of it? */
bool gy_channel_queued(const struct gy_channel *channel);

/* A free place for an early frame, its memory in *memory_p; NULL when the peer overdrew its credit. Frames that are whole may
 * move. */
struct gy_stashed *gy_channel_stash(struct gy_channel *channel, const struct gy_frame *frame, unsigned char **memory_p);
/* It has been used, or lies elsewhere. */
void gy_channel_unstash(struct gy_channel *channel, struct gy_stashed *stashed);
unsigned char *gy_channel_stash_memory(const struct gy_channel *channel, const struct gy_stashed *stashed);
/* Is it memory of the stash? */
static inline bool gy_channel_holds(const struct gy_channel *channel, const void *memory)
{
    return (uintptr_t)memory - (uintptr_t)channel->stash < (size_t)GY_STASHED_MOST * GY_EAGER_BYTES;
}
struct gy_stashed *gy_channel_find(struct gy_channel *channel, uint64_t sequence, uint16_t lane, uint64_t value);
/* Any stashed frame of an operation: its shape tells what the peer called. */
struct gy_stashed *gy_channel_any(struct gy_channel *channel, uint64_t sequence);

void gy_channel_keep_grant(struct gy_channel *channel, uint64_t sequence, uint16_t lane, uint64_t value);
/* Takes the kept grant out; 0: none. */
uint64_t gy_channel_take_grant(struct gy_channel *channel, uint64_t sequence, uint16_t lane);

#endif
