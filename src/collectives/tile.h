/* How long the tiles of a plan between hosts are: a pure function of what all ranks share.
 *
 * A tile is as long as a frame may be, where nothing else counts: fewer calls. What comes from a root or goes to it passes
 * through other ranks, each of which has to have a tile before it can hand it on, so that a way of N − 1 hops takes the
 * vector's time and that of N − 2 tiles. These are cut so that this is a sixteenth of it at most; and not shorter than what
 * a frame's own cost is little beside. Where the ranks of a host have a slice of the vector each, their tiles go at once, and
 * are on the link as long as one that is as many times as long. */
#ifndef GY_COLLECTIVES_TILE_H
#define GY_COLLECTIVES_TILE_H

#include "collectives/channel.h"
#include "collectives/plan.h"

#define GY_TILE_LEAST (32u << 10) /* bytes */
#define GY_TILE_SHARE 16u

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

#endif
