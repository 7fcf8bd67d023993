/* Short frames over rdma: at once, in one chunk, and from the second of a kind on without their header.
 *
 *   sender                                             receiver
 *   first     [header][payload]   REMEMBER ──────────▶ keeps a copy of the header
 *   then              [payload]   REPEAT   ──────────▶ takes it, one sequence number on: at once, or, where other frames wait to
 *                                                      be taken, by way of the gap before the payload
 *
 * Messages and small collectives that follow each other differ in nothing else: so 8 bytes travel as 8 and not as 72, and 4 KiB
 * fill four packets of a kilobyte and no fifth. Chunks are seen in the order of the stream, whatever the order in which queue
 * pairs deliver them, so both ends always have the same header in mind.
 *
 * The gap is memory that the sender was granted for this chunk and leaves alone, but for a tag at its end where the frame is
 * silent (polled_write.c); nobody else writes there. That the payload is there is known from the completion that the immediate
 * makes, and of a silent one from its sum. */
#include <endian.h>
#include <string.h>

#include "transport/rdma/internal.h"

/* May a frame of `length` bytes in the stream leave now, before which nothing waits? */
static bool is_free(struct gy_rdma_link *link, uint64_t length)
{
    uint64_t size = link->out_mask + 1;

    return !link->unsent && link->ready && !link->ended && link->base.state == GY_LINK_OPEN &&
           size - (link->out_head & link->out_mask) >= length && size - (link->out_head - link->out_tail) >= length &&
           gy_rdma_has_room(link) && link->rdma->memory.device_ranges == 0;
}

/* Is the header the one that the peer has in mind, but for the next number? From now on it is. */
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
    if (bare && in_itself) /* taken by the post itself: from where it lies */
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
    if (bare && header->bytes <= GY_RDMA_SILENT && gy_rdma_is_looked_for(link))
        gy_rdma_send_silent(link, payload, header->bytes);
    else
        send_loudly(link, header, payload, bare);
    /* A failure is told by the next progress, as of any other frame. */
    return true;
}
