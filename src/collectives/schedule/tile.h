/* The tile length of a schedule over links: a pure function of values that all ranks share.
 *
 * By default a tile is as long as a frame may be, for fewest calls. In rooted collectives each rank on the path must
 * receive a tile before it forwards it. A path of N − 1 hops takes the time of the vector plus N − 2 tiles. Tiles
 * are cut so that the latter is at most a sixteenth of the total, but not so short that a frame's own cost matters.
 * If the ranks of a host have a slice each, their tiles share the link, and so count as one tile that is as many
 * times as long.
 *
 * Inside a host with shared-memory rings tiles are short, as the rings are. If only sockets are available, each
 * system call pushes its data and wakes the receiver; long tiles then take down to 0.6 of the time of short ones. */
#ifndef GY_COLLECTIVES_SCHEDULE_TILE_H
#define GY_COLLECTIVES_SCHEDULE_TILE_H

#include "collectives/schedule/limits.h"
#include "collectives/schedule/schedule.h"
#include "transport/transport.h"

#define GY_HOST_TILE (128u << 10) /* bytes of a frame between ranks of one host, or less */
#define GY_TILE_LEAST (32u << 10)
#define GY_TILE_SHARE 16u
#define GY_TILE_HALF (512u << 10) /* bytes above which two tiles beat one */

/* Returns the bytes of a tile for a vector of `bytes` between `ranks`, of which `members` share a host and its
 * slices. `most` is the limit of a frame. */
static inline size_t gy_tile_bytes(enum gy_collective collective, int ranks, int members, size_t bytes, size_t most)
{
    bool rooted = collective == GY_BROADCAST || collective == GY_REDUCE_TO;
    if (!rooted || ranks <= 2)
        return most;
    size_t share = bytes / (GY_TILE_SHARE * (size_t)ranks), least = GY_TILE_LEAST / (size_t)members;
    least = gy_max_size(least, GY_EAGER_BYTES);
    return gy_min_size(gy_max_size(share, least) / 64 * 64, most);
}

/* The same if all ranks share a host; `rings`: tile bytes of shared memory. A two-rank reduction to one of them
 * reduces one half while the other arrives. A shorter configured slot shortens the tiles of every transport. */
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
