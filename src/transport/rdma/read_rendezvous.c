/* Chunks that the receiver reads instead of the sender writing them. Used if the device is software on this host's
 * processors, and both ends share it (soft-RoCE between ranks of one host).
 *
 *   sender    copies the chunk to staging, writes [address u64 | key u32] to its place in the ring, immediate: PULL
 *   receiver  reads the chunk from there to its place in its own ring ──▶ it has arrived
 *
 * With soft-RoCE the rank that posts a request copies its bytes: the sender of a write, the receiver of a read. If
 * every other chunk is read, both processors share the copy of a message, in half the time. If both ranks send, both
 * are busy already, and nothing is gained.
 *
 * The peer reads only staging, which holds data sent to this very rank and nothing else of the program's. Data read
 * is stored in the reader's own ring, at a position that the reader computes. So a peer that lies about the address
 * has its own memory read, or a request refused, which ends the link. The bytes in staging stay unchanged until
 * their credit returns, and the frame is completed only then. A sender that was told of completion may therefore
 * exit: the peer has the data. Only links of one queue pair do this: there all chunks' positions are known in the
 * order of announcement. No frame is silent while the peer reads: an announced chunk is numbered on announcement,
 * and a silent frame is found only in its turn. */
#include <endian.h>
#include <string.h>

#include "transport/rdma/internal.h"

#define SOFT_ROCE 0xffffffu
#define AHEAD (32u << 10)  /* bytes written before any are read, once the peer has sent */
#define BESIDE (16u << 20) /* bytes during which nothing is read after the peer was seen sending concurrently */

struct note { /* stored at the chunk's place until the chunk arrives; little-endian */
    uint64_t address;
    uint32_t key, zero;
};

bool gy_rdma_can_pull(const struct gy_rdma_link *link)
{
    const struct gy_rdma_rail *rail = &link->rdma->rail[link->path[0].rail];

    return link->paths == 1 && rail->vendor == SOFT_ROCE && rail->most_inline >= sizeof(struct note) &&
           memcmp(link->theirs.end[0].gid, rail->gid.raw, sizeof(rail->gid.raw)) == 0;
}

/* ---- the sender ---- */

/* A peer that replies starts after it has received everything. So half a chunk is written first, during which a peer
 * that sends concurrently is noticed. A peer whose data arrives while it should be reading sends concurrently. */
void gy_rdma_pull_hear(struct gy_rdma_link *link)
{
    bool beside = link->pulled[1].end > link->chunks_back;
    uint64_t until = link->out_head + (beside ? BESIDE : AHEAD);

    if (link->not_before < until)
        link->not_before = until;
}

uint64_t gy_rdma_pull_ahead(const struct gy_rdma_link *link)
{
    const struct gy_frame_out *frame = link->unsent;
    bool goes_ahead = link->may_pull && link->out_head < link->not_before &&
                      link->not_before - link->out_head <= AHEAD &&
                      gy_rdma_padded(frame->header.bytes) - frame->sent > 2 * GY_RDMA_CHUNK;

    return goes_ahead ? AHEAD : GY_RDMA_CHUNK;
}

bool gy_rdma_may_be_pulled(const struct gy_rdma_link *link)
{
    const struct gy_frame_out *frame = link->unsent;

    if (!link->may_pull || link->pulled[1].end == link->chunks || link->out_head < link->not_before)
        return false;
    uint64_t left = gy_rdma_padded(frame->header.bytes) - frame->sent;
    return left >= GY_RDMA_PULL_LEAST && (left > GY_RDMA_CHUNK || frame->next) && link->rdma->memory.device_ranges == 0;
}

bool gy_rdma_is_to_be_pulled(const struct gy_rdma_link *link)
{
    return link->base.state == GY_LINK_OPEN && link->out_head >= link->not_before &&
           link->pulled[0].end <= link->chunks_back;
}

bool gy_rdma_offer_chunk(struct gy_rdma_link *link, const struct gy_frame_out *frame, uint64_t length, bool signal)
{
    const struct gy_rdma_path *path = &link->path[0];
    uint64_t offset = link->out_head & link->out_mask;
    struct note note = {.address = htole64((uintptr_t)link->staging + offset),
                        .key = htole32(link->staging_mr[path->rail]->rkey)};
    struct ibv_sge piece = {.addr = (uintptr_t)&note, .length = sizeof(note)};
    struct ibv_send_wr wr = {
        .sg_list = &piece,
        .num_sge = 1,
        .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
        .send_flags = IBV_SEND_INLINE,
        .imm_data = htobe32(gy_rdma_immediate(link, length, GY_RDMA_PULL)),
        .wr.rdma = {.remote_addr = path->remote_ring + offset, .rkey = path->remote_key},
    };

    link->pulled[0] = link->pulled[1];
    link->pulled[1] = (struct gy_rdma_pulled){.frame = frame, .end = link->chunks + 1};
    return gy_rdma_post_chunk(link, &wr, length, signal);
}

bool gy_rdma_is_being_pulled(const struct gy_rdma_link *link, const struct gy_frame_out *frame)
{
    for (int i = 0; i < 2; i++)
        if (link->pulled[i].frame == frame && link->pulled[i].end > link->chunks_back)
            return true;
    return false;
}

/* ---- the receiver ---- */

bool gy_rdma_pull_begin(struct gy_rdma_link *link, uint32_t place, uint64_t start, uint32_t units)
{
    uint64_t offset = start & link->in_mask, length = (uint64_t)units * 64;
    struct note note;

    if (!link->may_pull || link->pulls == GY_RDMA_PULLS || offset + length > link->in_mask + 1 ||
        start + length - link->in_tail > link->in_mask + 1)
        return false;
    memcpy(&note, link->ring + offset, sizeof(note));
    link->pull[(link->pull_first + link->pulls++) % GY_RDMA_PULLS] = (struct gy_rdma_pull){
        .place = place, .units = units, .offset = offset, .address = le64toh(note.address), .key = le32toh(note.key)};
    return true;
}

void gy_rdma_pull_post(struct gy_rdma_link *link)
{
    struct gy_rdma_path *path = &link->path[0];

    if (link->pulls_posted < link->pulls && link->base.state == GY_LINK_OPEN &&
        path->posted - path->finished < GY_RDMA_SENDS) {
        struct gy_rdma_pull *pull = &link->pull[(link->pull_first + link->pulls_posted) % GY_RDMA_PULLS];
        struct ibv_sge piece = {.addr = (uintptr_t)(link->ring + pull->offset),
                                .length = pull->units * 64,
                                .lkey = link->ring_mr[path->rail]->lkey};
        struct ibv_send_wr wr = {.sg_list = &piece,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_RDMA_READ,
                                 .wr.rdma = {.remote_addr = pull->address, .rkey = pull->key}};

        link->pulls_posted++;
        pull->number = path->posted + 1;
        gy_rdma_post(link, path, &wr, true);
    }
}

bool gy_rdma_pull_end(struct gy_rdma_link *link, uint32_t *place_p, uint32_t *units_p)
{
    const struct gy_rdma_pull *pull = &link->pull[link->pull_first];

    if (link->pulls_posted == 0 || (int32_t)(link->path[0].finished - pull->number) < 0)
        return false;
    *place_p = pull->place;
    *units_p = pull->units;
    link->pull_first = (link->pull_first + 1) % GY_RDMA_PULLS;
    link->pulls--;
    link->pulls_posted--;
    link->awaited = true;
    return true;
}
