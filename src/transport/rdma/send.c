/* The sending half of an rdma link: frames to chunks, chunks to queue pairs, credits back. See rdma/internal.h.
 *
 * Staging mirrors the peer's ring: bytes at an offset go to the same offset there. So a place in staging is free
 * when the peer has consumed what was written there, which its credits report; no completion is needed. (A repeated
 * packet reads staging after that; the peer's device already has it and drops it.) Completions are requested for
 * payloads in announced memory, which are awaited, and once per GY_RDMA_SIGNAL requests, so that the queue drains. */
#include <endian.h>
#include <string.h>

#include "transport/rdma/internal.h"

/* ---- chunks ---- */

/* A chunk being built: bytes from staging, then at most one piece of a payload sent in place. */
struct chunk {
    uint64_t start;              /* in the stream */
    uint64_t length;             /* padding included */
    uint64_t staged, borrowed;   /* bytes on the wire from either */
    const void *payload;         /* of the borrowed piece */
    struct gy_rdma_range *range; /* its registered range */
    bool ends;                   /* a frame sent in place ends here */
    bool pulled;                 /* the receiver reads it: all of it is staged, and of one frame */
};

static struct gy_rdma_direct *newest_direct(struct gy_rdma_link *link)
{
    return &link->direct[(link->direct_first + link->direct_count - 1) % GY_RDMA_DIRECT_FRAMES];
}

/* Returns the range of a payload to be sent in place; decided at its first byte. NULL also if too many are in
 * flight. */
static struct gy_rdma_range *direct_range(struct gy_rdma_link *link, struct gy_frame_out *frame)
{
    if (frame->sent > 0)
        return link->direct_count > 0 && newest_direct(link)->frame == frame ? newest_direct(link)->range : NULL;
    bool small = frame->header.bytes < GY_RDMA_DIRECT && !gy_rdma_memory_is_device(&link->rdma->memory, frame->payload);
    if (small || frame->header.bytes == 0 || link->direct_count == GY_RDMA_DIRECT_FRAMES)
        return NULL;
    struct gy_rdma_range *range = gy_rdma_memory_find(&link->rdma->memory, frame->payload, frame->header.bytes);
    if (range) {
        gy_rdma_range_hold(range);
        link->direct_count++;
        *newest_direct(link) = (struct gy_rdma_direct){.frame = frame, .range = range};
    }
    return range;
}

/* True if the frame must wait: GPU memory cannot be copied, and too many frames are being sent in place. */
static bool must_wait(const struct gy_rdma_link *link, const struct gy_frame_out *frame)
{
    return frame->sent == 0 && link->direct_count == GY_RDMA_DIRECT_FRAMES && frame->header.bytes > 0 &&
           gy_rdma_memory_is_device(&link->rdma->memory, frame->payload);
}

/* Adds one more piece of `frame`, at most `room` bytes of the stream. Returns false if the chunk is full. */
static bool lay_out(struct gy_rdma_link *link, struct chunk *chunk, struct gy_frame_out *frame, uint64_t room)
{
    if (must_wait(link, frame))
        return false;
    unsigned char *to = link->staging + ((chunk->start + chunk->length) & link->out_mask);
    struct gy_rdma_range *range = direct_range(link, frame);

    if (frame->sent == 0) { /* all lengths are multiples of 64 */
        gy_frame_encode(&frame->header, to);
        frame->sent = GY_FRAME_BYTES;
        chunk->length += GY_FRAME_BYTES;
        chunk->staged = chunk->length;
        return true;
    }
    size_t from = frame->sent - GY_FRAME_BYTES;
    uint64_t piece = gy_min_size(gy_rdma_padded(frame->header.bytes) - frame->sent, room);
    uint64_t bytes = gy_min_size(piece, frame->header.bytes - from); /* without padding */
    const unsigned char *source = (const unsigned char *)frame->payload + from;
    if (range && !chunk->pulled) {
        if (!newest_direct(link)->begun)
            newest_direct(link)->first = link->chunks;
        newest_direct(link)->begun = true;
        chunk->payload = source;
        chunk->borrowed = bytes;
        chunk->range = range;
    } else {
        memcpy(to, source, bytes);
        chunk->staged = chunk->length + bytes;
    }
    frame->sent += piece;
    chunk->length += piece;
    return !range && !chunk->pulled;
}

/* The frame is added up to its end, in the next chunk. */
static void all_posted(struct gy_rdma_link *link, struct chunk *chunk, struct gy_frame_out *frame)
{
    if (link->direct_count > 0 && newest_direct(link)->frame == frame) {
        newest_direct(link)->last = link->chunks;
        newest_direct(link)->whole = true;
        chunk->ends = true;
    }
    link->unsent = frame->next;
}

static struct chunk gather(struct gy_rdma_link *link, uint64_t room, bool pulled)
{
    struct chunk chunk = {.start = link->out_head, .pulled = pulled};
    uint64_t most = link->out_mask + 1 - (link->out_head & link->out_mask);
    bool more = true;

    most = gy_min_size(gy_min_size(most, room), gy_rdma_pull_ahead(link));
    while (more && link->unsent && chunk.length < most) {
        struct gy_frame_out *frame = link->unsent;
        more = lay_out(link, &chunk, frame, most - chunk.length);
        if (frame->sent == gy_rdma_padded(frame->header.bytes))
            all_posted(link, &chunk, frame);
    }
    chunk.pulled = pulled && chunk.length >= GY_RDMA_PULL_LEAST;
    return chunk;
}

static bool post_chunk(struct gy_rdma_link *link, const struct chunk *chunk)
{
    const struct gy_rdma_path *path = gy_rdma_next_path(link);
    struct ibv_sge pieces[2];
    int count = 0;

    if (chunk->staged)
        pieces[count++] = (struct ibv_sge){.addr = (uintptr_t)(link->staging + (chunk->start & link->out_mask)),
                                           .length = (uint32_t)chunk->staged,
                                           .lkey = link->staging_mr[path->rail]->lkey};
    if (chunk->borrowed)
        pieces[count++] = (struct ibv_sge){.addr = (uintptr_t)chunk->payload,
                                           .length = (uint32_t)chunk->borrowed,
                                           .lkey = chunk->range->mr[path->rail]->lkey};
    bool in_itself = !chunk->borrowed && chunk->staged <= link->rdma->rail[path->rail].most_inline;
    struct ibv_send_wr wr = {
        .sg_list = pieces,
        .num_sge = count,
        .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
        .send_flags = in_itself ? IBV_SEND_INLINE : 0,
        .imm_data = htobe32(gy_rdma_immediate(link, chunk->length, 0)),
        .wr.rdma = {.remote_addr = path->remote_ring + (chunk->start & link->out_mask), .rkey = path->remote_key},
    };
    /* The end of the payload is awaited; its chunks use every path. */
    return gy_rdma_post_chunk(link, &wr, chunk->length, chunk->ends || (chunk->borrowed && link->paths > 1));
}

/* Returns the least room for a chunk: less is left until more credit returns. A chunk of any length costs a write,
 * an acknowledgement and a receive request. The peer withholds less than a quarter of the ring, so more does return. */
static uint64_t worth_waiting(const struct gy_rdma_link *link)
{
    const struct gy_frame_out *frame = link->unsent;
    uint64_t left = gy_rdma_padded(frame->header.bytes) - frame->sent;

    return gy_min_size(gy_min_size(left, GY_RDMA_CHUNK), (link->out_mask + 1) / 4);
}

/* Sends a frame that waited for others, of which none arrived, as a short one. */
static void send_alone(struct gy_rdma_link *link)
{
    struct gy_frame_out *frame = link->unsent;

    if (!frame || !frame->coalesce || frame->next || frame->sent > 0 || frame->header.bytes > GY_FRAME_SHORT)
        return;
    link->unsent = NULL;
    if (gy_rdma_send_short(&link->base, &frame->header, frame->payload))
        frame->sent = gy_rdma_padded(frame->header.bytes);
    else
        link->unsent = frame;
}

/* True if the peer should read the next chunk. Data that arrived while the last one left may change that. */
static bool is_pulled(struct gy_rdma_link *link)
{
    if (!gy_rdma_may_be_pulled(link))
        return false;
    gy_rdma_collect(link);
    return gy_rdma_is_to_be_pulled(link);
}

bool gy_rdma_flush(struct gy_rdma_link *link)
{
    uint64_t before = link->chunks;

    link->deferred = false;
    send_alone(link);
    while (link->unsent && link->ready && !link->ended && link->base.state == GY_LINK_OPEN) {
        uint64_t room = link->out_mask + 1 - (link->out_head - link->out_tail);

        if (room == 0 || !gy_rdma_has_room(link) || room < worth_waiting(link))
            break;
        const struct gy_frame_out *frame = link->unsent;
        struct chunk chunk = gather(link, room, is_pulled(link));
        if (chunk.length == 0 ||
            !(chunk.pulled ? gy_rdma_offer_chunk(link, frame, chunk.length, chunk.ends) : post_chunk(link, &chunk)))
            break;
    }
    return link->chunks != before;
}

/* True if the chunks that read the payload have been acknowledged. Path q carries chunks q, q + n, q + 2n …, in
 * order; each of these has asked for a completion, or, on a single path, the last of them. */
static bool is_done(const struct gy_rdma_link *link, const struct gy_rdma_direct *direct)
{
    uint64_t paths = (uint64_t)link->paths;

    for (uint64_t i = 0; i < paths && direct->last - i >= direct->first; i++) {
        uint64_t number = direct->last - i;
        if (link->path[number % paths].sent_done <= number / paths)
            return false;
        if (number == 0)
            break;
    }
    return true;
}

bool gy_rdma_reads_in_place(const struct gy_link *base, const struct gy_frame_out *frame)
{
    const struct gy_rdma_link *link = (const struct gy_rdma_link *)base;

    for (uint32_t i = 0; i < link->direct_count; i++)
        if (link->direct[(link->direct_first + i) % GY_RDMA_DIRECT_FRAMES].frame == frame)
            return true;
    return false;
}

bool gy_rdma_reap(struct gy_rdma_link *link)
{
    bool moved = false;

    while (link->base.first && link->base.first != link->unsent) {
        struct gy_rdma_direct *oldest = &link->direct[link->direct_first];
        if (gy_rdma_is_being_pulled(link, link->base.first))
            break;
        if (link->direct_count > 0 && oldest->frame == link->base.first) {
            if (!oldest->whole || !is_done(link, oldest))
                break;
            gy_rdma_range_drop(&link->rdma->memory, oldest->range);
            link->direct_first = (link->direct_first + 1) % GY_RDMA_DIRECT_FRAMES;
            link->direct_count--;
        }
        gy_link_complete_first(&link->base);
        moved = true;
    }
    return moved;
}
