/* How long the tiles of a plan over links are: a pure function of what all ranks share.
 *
 * A tile is as long as a frame may be, where nothing else counts: fewer calls. What comes from a root or goes to it passes
 * through other ranks, each of which has to have a tile before it can hand it on, so that a way of N − 1 hops takes the
 * vector's time and that of N − 2 tiles. These are cut so that this is a sixteenth of it at most; and not shorter than what
 * a frame's own cost is little beside. Where the ranks of a host have a slice of the vector each, their tiles go at once, and
 * are on the link as long as one that is as many times as long.
 *
 * Inside a host that has rings of shared memory tiles are short, for the rings are. Where sockets are all that there is, each call
 * of the kernel pushes what it was given and wakes the other end, and long tiles take down to 0.6 of the time of short ones. */
#ifndef GY_COLLECTIVES_SCHEDULE_TILE_H
#define GY_COLLECTIVES_SCHEDULE_TILE_H

#include "collectives/schedule/limits.h"
#include "collectives/schedule/schedule.h"
#include "transport/transport.h"

#define GY_HOST_TILE (128u << 10) /* bytes of a frame between ranks of one host, or less */
#define GY_TILE_LEAST (32u << 10)
#define GY_TILE_SHARE 16u
#define GY_TILE_HALF (512u << 10) /* worth more than one */

/* Bytes of a tile, of a vector of `bytes` between `ranks`, of which `members` share a host and its slices; `most`: what a frame
 * may have. */
static inline size_t gy_tile_bytes(enum gy_collective collective, int ranks, int members, size_t bytes, size_t most)
{
    bool rooted = collective == GY_BROADCAST || collective == GY_REDUCE_TO;
    if (!rooted || ranks <= 2)
        return most;
    size_t share = bytes / (GY_TILE_SHARE * (size_t)ranks), least = GY_TILE_LEAST / (size_t)members;
    least = gy_max_size(least, GY_EAGER_BYTES);
    return gy_min_size(gy_max_size(share, least) / 64 * 64, most);
}

/* The same where all ranks share a host; `rings`: what is a tile of shared memory. A pair that reduces to one of both
 * does so with one half while the other comes. Slots that were asked to be shorter make tiles shorter, whatever carries them. */
static inline size_t gy_tile_in_host(enum gy_collective collective, int ranks, size_t bytes, size_t rings, bool sockets)
{
    size_t most = GY_FRAME_MAX;
    if (!sockets || rings < GY_HOST_TILE)
        return rings;
    if (collective == GY_REDUCE_TO)
        most = gy_min_size(gy_max_size(bytes / 2 / 64 * 64, GY_TILE_HALF), most);
    return gy_max_size(gy_tile_bytes(collective, ranks, 1, bytes, most), rings);
}

#endif
