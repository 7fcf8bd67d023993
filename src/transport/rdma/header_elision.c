/* Short frames over rdma: sent at once, in one chunk, and from the second of a kind on without their header.
 *
 *   sender                                             receiver
 *   first     [header][payload]   REMEMBER ──────────▶ keeps a copy of the header
 *   then              [payload]   REPEAT   ──────────▶ uses the copy, with the next sequence number: directly, or, if
 *                                                      other frames wait, by way of the gap before the payload
 *
 * Consecutive messages and small collectives often differ in the sequence number only. So 8 bytes are sent as 8 and
 * not as 72, and 4 KiB fill four packets of a kilobyte and no fifth. Chunks are processed in stream order, for any
 * order of delivery by the queue pairs, so both ends always store the same header.
 *
 * The gap is memory that the sender was granted for this chunk and does not write, except for a tag at its end if
 * the frame is silent (polled_write.c). No other rank writes there. The arrival of the payload is known from the
 * completion of its immediate; that of a silent frame from its sum. */
#include <endian.h>
#include <string.h>

#include "transport/rdma/internal.h"

/* True if a frame of `length` bytes in the stream can leave now, with nothing queued before it. */
static bool is_free(struct gy_rdma_link *link, uint64_t length)
{
    uint64_t size = link->out_mask + 1;

    return !link->unsent && link->ready && !link->ended && link->base.state == GY_LINK_OPEN &&
           size - (link->out_head & link->out_mask) >= length && size - (link->out_head - link->out_tail) >= length &&
           gy_rdma_has_room(link) && link->rdma->memory.device_ranges == 0;
}

/* True if the header equals the peer's stored one with the next sequence number. Updates the stored one. */
static bool follows(struct gy_frame *model, const struct gy_frame *header)
{
    model->sequence++;
    bool same = header->epoch != 0 && gy_frame_equal(model, header, sizeof(*model));
    if (!same)
        *model = *header;
    return same;
}

static void send_loudly(struct gy_rdma_link *link, const struct gy_frame *header, const void *payload, bool bare)
{
    const struct gy_rdma_path *path = gy_rdma_next_path(link);
    uint64_t offset = link->out_head & link->out_mask, length = gy_rdma_padded(header->bytes);
    unsigned char *place = link->staging + offset;
    size_t skip = bare ? GY_FRAME_BYTES : 0, bytes = GY_FRAME_BYTES + header->bytes - skip;
    bool in_itself = bytes <= link->rdma->rail[path->rail].most_inline;
    struct ibv_sge piece = {
        .addr = (uintptr_t)(place + skip), .length = (uint32_t)bytes, .lkey = link->staging_mr[path->rail]->lkey};
    struct ibv_send_wr wr = {
        .sg_list = &piece,
        .num_sge = 1,
        .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
        .send_flags = in_itself ? IBV_SEND_INLINE : 0,
        .imm_data = htobe32(gy_rdma_immediate(link, length, bare ? GY_RDMA_REPEAT : GY_RDMA_REMEMBER)),
        .wr.rdma = {.remote_addr = path->remote_ring + offset + skip, .rkey = path->remote_key},
    };

    if (!bare)
        gy_frame_encode(header, place);
    if (bare && in_itself) /* inline data: copied by the post itself */
        piece.addr = (uintptr_t)payload;
    else if (header->bytes > 0)
        memcpy(place + GY_FRAME_BYTES, payload, header->bytes);
    gy_rdma_post_chunk(link, &wr, length, false);
}

bool gy_rdma_send_short(struct gy_link *base, const struct gy_frame *header, const void *payload)
{
    struct gy_rdma_link *link = (struct gy_rdma_link *)base;
    uint64_t length = gy_rdma_padded(header->bytes);

    if (!is_free(link, length))
        return false;
    bool bare = follows(&link->model, header) && header->bytes > 0;
    if (bare && header->bytes <= GY_RDMA_SILENT && gy_rdma_is_polled(link))
        gy_rdma_send_silent(link, payload, header->bytes);
    else
        send_loudly(link, header, payload, bare);
    /* A failure is reported by the next progress, as for any other frame. */
    return true;
}
