/* Orders arrived chunks in the stream, and restores the headers that short frames omit (header_elision.c). See
 * rdma/internal.h. Calls no receive handler. */
#include "transport/rdma/internal.h"

void gy_rdma_violated(struct gy_rdma_link *link, const struct gy_rdma_path *path, const char *what)
{
    gy_rdma_fail(link, path, GYRE_PROTOCOL, "the peer broke the rules of gyre's links", what);
}

bool gy_rdma_take_credit(struct gy_rdma_link *link, const struct gy_rdma_path *path, uint64_t chunks, uint64_t bytes)
{
    if (chunks > link->chunks - link->chunks_back || bytes > link->out_head - link->out_tail) {
        gy_rdma_violated(link, path, "it gave back more than it had");
        return false;
    }
    link->chunks_back += chunks;
    link->out_tail += bytes;
    return true;
}

/* The frame at in_tail is no longer the only one: its header is written to its place in the ring. */
static void write_down(struct gy_rdma_link *link)
{
    if (link->recalled)
        gy_frame_encode(&link->remembered, link->ring + (link->in_tail & link->in_mask));
    link->recalled = false;
}

/* The chunk at `start` of the stream, the last one, has arrived: uses or stores the header at its beginning. False:
 * there is none. */
static bool recall(struct gy_rdma_link *link, uint64_t start, uint32_t immediate)
{
    unsigned char *place = link->ring + (start & link->in_mask);
    struct gy_frame *kept = &link->remembered;

    write_down(link);
    if (immediate & GY_RDMA_REMEMBER)
        return gy_frame_decode(place, kept);
    /* Its payload has the chunk's length and is contiguous. */
    if (kept->epoch == 0 || gy_rdma_padded(kept->bytes) != (uint64_t)(immediate & GY_RDMA_UNITS) * 64 ||
        (start & link->in_mask) + gy_rdma_padded(kept->bytes) > link->in_mask + 1)
        return false;
    kept->sequence++;
    link->recalled = start == link->in_tail && !link->base.inbound.active;
    if (!link->recalled)
        gy_frame_encode(kept, place);
    return true;
}

/* Advances the stream up to the first gap. */
void gy_rdma_stream_on(struct gy_rdma_link *link, const struct gy_rdma_path *path)
{
    uint32_t *place, immediate;

    while ((immediate = *(place = &link->arrived[link->next_place])) != 0) {
        uint64_t start = link->in_head;
        *place = 0;
        link->in_head += (uint64_t)(immediate & GY_RDMA_UNITS) * 64;
        link->next_chunk++;
        link->next_place = link->next_place + 1 == (uint32_t)link->paths * GY_RDMA_CHUNKS ? 0 : link->next_place + 1;
        link->owed_chunks++;
        if (link->in_head - link->in_tail > link->in_mask + 1) {
            gy_rdma_violated(link, path, "it overran its ring");
            return;
        }
        if ((immediate & (GY_RDMA_REMEMBER | GY_RDMA_REPEAT)) && !recall(link, start, immediate)) {
            gy_rdma_violated(link, path, "it asked to remember what it has not said");
            return;
        }
    }
}

/* Chunk number `arrived` of its path is here: number arrived · n + q of the stream. */
void gy_rdma_chunk_arrived(struct gy_rdma_link *link, struct gy_rdma_path *path, uint32_t immediate)
{
    uint64_t paths = (uint64_t)link->paths, q = (uint64_t)(path - link->path);
    uint32_t units = immediate & GY_RDMA_UNITS, credit = immediate >> GY_RDMA_CREDIT_CHUNKS;

    uint64_t start = link->pulls > 0 ? link->told : link->in_head;
    uint32_t place = (uint32_t)(path->arrived % GY_RDMA_CHUNKS * paths + q);

    if (path->arrived * paths + q - link->next_chunk >= paths * GY_RDMA_CHUNKS || units == 0 ||
        units > GY_RDMA_CHUNK / 64) {
        gy_rdma_violated(link, path, "more chunks than it had credit for, or too large");
        return;
    }
    if (credit && !gy_rdma_take_credit(link, path, credit & 63, (uint64_t)(immediate >> GY_RDMA_CREDIT_UNITS) * 64))
        return;
    path->arrived++;
    if (units >= GY_RDMA_PULL_LEAST / 64)
        gy_rdma_pull_hear(link);
    link->told = start + (uint64_t)units * 64;
    if ((immediate & GY_RDMA_PULL) == GY_RDMA_PULL) {
        if (!gy_rdma_pull_begin(link, place, start, units))
            gy_rdma_violated(link, path, "it told of something to be read where that may not be");
        return;
    }
    link->arrived[place] = immediate & (GY_RDMA_UNITS | GY_RDMA_REMEMBER | GY_RDMA_REPEAT);
    gy_rdma_stream_on(link, path);
}

/* Usually it is the only frame: then nothing is reordered, written down or pulled back. */
void gy_rdma_silent_arrived(struct gy_rdma_link *link, uint32_t immediate)
{
    struct gy_rdma_path *path = &link->path[0];
    uint64_t length = gy_rdma_padded(link->remembered.bytes);

    if (immediate != (length / 64 | GY_RDMA_REPEAT) || link->in_head != link->in_tail || link->base.inbound.active) {
        gy_rdma_chunk_arrived(link, path, immediate);
        return;
    }
    link->remembered.sequence++;
    link->recalled = true;
    link->in_head += length;
    link->owed_chunks++;
    link->next_chunk++;
    link->next_place = link->next_place + 1 == GY_RDMA_CHUNKS ? 0 : link->next_place + 1;
    path->arrived++;
}
