/* The receiving half of an rdma link: completions to arrivals, arrivals to frames. See rdma/internal.h.
 *
 *   collect: completion queues ──▶ counters; no receive handler is called, so that it may run at any time, before
 *   sleeping too
 *   digest:  [in_tail, in_head) of the ring ──▶ the receive handler: a complete frame in place, another is
 *            copied to the receive handler's memory, piece by piece
 *
 * Receive requests are reposted in batches, before the chunks that used them are credited, so that the peer's next
 * messages find one. A request used by a credit message is reposted at once, as credits have only the reserve. */
#include <endian.h>
#include <string.h>

#include "transport/rdma/internal.h"

#define COMPLETIONS 16            /* per poll */
#define COLLECTED 64              /* per collect and rail */
#define FRAMES 16                 /* per digest */
#define BYTES (UINT64_C(1) << 18) /* per digest */

/* ---- completions ---- */

static struct gy_rdma_path *path_of(struct gy_rdma_link *link, uint32_t number, int rail)
{
    for (int q = 0; q < link->paths; q++)
        if (link->path[q].rail == rail && link->path[q].qp->qp_num == number)
            return &link->path[q];
    return NULL;
}

/* A loud chunk: silent writes before it are in memory, too. */
static void loud_chunk_arrived(struct gy_rdma_link *link, struct gy_rdma_path *path, uint32_t immediate)
{
    if (link->paths == 1)
        gy_rdma_poll(link);
    if (link->base.state != GY_LINK_OPEN)
        return;
    link->loud = GY_RDMA_LOUD;
    link->repeats += (immediate & GY_RDMA_REPEAT) && (immediate & GY_RDMA_UNITS) <= GY_RDMA_SILENT / 64 + 1;
    gy_rdma_chunk_arrived(link, path, immediate);
}

static void chunks_read(struct gy_rdma_link *link)
{
    uint32_t place, units;

    while (gy_rdma_pull_end(link, &place, &units)) {
        link->arrived[place] = units;
        gy_rdma_stream_on(link, &link->path[0]);
    }
}

static void credit_arrived(struct gy_rdma_link *link, const struct gy_rdma_path *path, uint32_t credit)
{
    if (gy_rdma_take_credit(link, path, credit >> 25, (uint64_t)(credit & ((1u << 25) - 1)) * 64))
        gy_rdma_replenish(link); /* the reserve is complete again */
}

static void failed(struct gy_rdma_link *link, const struct gy_rdma_path *path, const struct ibv_wc *wc)
{
    /* Errors of this end's own use of the device are not the peer's fault. */
    static const unsigned own = 1u << IBV_WC_LOC_LEN_ERR | 1u << IBV_WC_LOC_QP_OP_ERR | 1u << IBV_WC_LOC_EEC_OP_ERR |
                                1u << IBV_WC_LOC_PROT_ERR | 1u << IBV_WC_LOC_ACCESS_ERR | 1u << IBV_WC_FATAL_ERR;
    const struct gy_verbs *verbs = link->rdma->rail[path->rail].verbs;

    gy_rdma_fail(link, path, own >> wc->status & 1 ? GYRE_SYSTEM : GYRE_PEER_UNREACHABLE,
                 wc->status == IBV_WC_WR_FLUSH_ERR ? "the queue pair is in error" : "a request failed",
                 verbs->wc_status_str(wc->status));
}

static void completed(struct gy_rdma_link *link, struct gy_rdma_path *path, const struct ibv_wc *wc)
{
    if (wc->status != IBV_WC_SUCCESS) {
        failed(link, path, wc);
    } else if (!(wc->opcode & IBV_WC_RECV)) {
        path->finished = (uint32_t)(wc->wr_id >> 32);
        path->sent_done += (uint32_t)wc->wr_id - (uint32_t)path->sent_done;
        if (link->pulls_posted > 0)
            chunks_read(link);
    } else {
        path->empty++;
        if (!(wc->wc_flags & IBV_WC_WITH_IMM))
            gy_rdma_violated(link, path, "a message without immediate");
        else if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
            loud_chunk_arrived(link, path, be32toh(wc->imm_data));
        else
            credit_arrived(link, path, be32toh(wc->imm_data));
    }
}

/* True for errors after the peer has gone: credit for its last data has no destination, and that data is here. They
 * may be seen before the socket's end, which happened first. */
static bool says_the_end(struct gy_rdma_link *link, const struct ibv_wc *wc)
{
    if (wc->status != IBV_WC_SUCCESS && link->ready && !link->ended)
        gy_rdma_hear(link);
    return wc->status != IBV_WC_SUCCESS && link->ended;
}

static void take(struct gy_rdma_link *link, int rail, const struct ibv_wc *wcs, int count)
{
    link->quiet = false; /* also after a poll without waiting, before the thread sleeps */
    for (int i = 0; i < count && link->base.state == GY_LINK_OPEN; i++) {
        struct gy_rdma_path *path = path_of(link, wcs[i].qp_num, rail);
        if (path && !says_the_end(link, &wcs[i]))
            completed(link, path, &wcs[i]);
    }
}

/* Most polls of a waiting thread find nothing and must be short. */
bool gy_rdma_collect(struct gy_rdma_link *link)
{
    struct ibv_wc wcs[COMPLETIONS];
    bool moved = false;

    for (int rail = 0; rail < link->rdma->rails && link->queue[rail].cq; rail++) {
        int count, total = 0;
        do {
            count = link->rdma->rail[rail].verbs->poll_cq(link->queue[rail].cq, COMPLETIONS, wcs);
            if (count == 0)
                break;
            if (count < 0)
                gy_rdma_fail(link, &link->path[rail], GYRE_SYSTEM, "the completion queue cannot be read",
                             "is the device gone?");
            take(link, rail, wcs, count);
            moved = true;
            total += count;
        } while (count == COMPLETIONS && total < COLLECTED && link->base.state == GY_LINK_OPEN);
    }
    return moved;
}

/* ---- frames ---- */

static void consumed(struct gy_rdma_link *link, uint64_t bytes)
{
    link->in_tail += bytes;
    link->owed_bytes += bytes;
}

/* Copies available bytes of the current payload, padding included. */
static bool digest_piece(struct gy_rdma_link *link, uint64_t available)
{
    const struct gy_frame *frame = &link->base.inbound.frame;
    size_t got = link->base.inbound.got;
    uint64_t offset = link->in_tail & link->in_mask;
    uint64_t piece = gy_min_size(gy_rdma_padded(frame->bytes) - GY_FRAME_BYTES - got, available);

    piece = gy_min_size(piece, link->in_mask + 1 - offset);
    if (got < frame->bytes)
        memcpy(link->base.inbound.place + got, link->ring + offset, gy_min_size(piece, frame->bytes - got));
    link->base.inbound.got = got + piece;
    consumed(link, piece);
    if (link->base.inbound.got < gy_rdma_padded(frame->bytes) - GY_FRAME_BYTES)
        return true;
    return gy_link_inbound_end(&link->base, &link->rdma->env.handler);
}

/* A frame is complete and its header stored. Returns false if the link is closed. */
static bool digest_recalled(struct gy_rdma_link *link)
{
    const unsigned char *payload = link->ring + ((link->in_tail + GY_FRAME_BYTES) & link->in_mask);
    uint64_t whole = gy_rdma_padded(link->remembered.bytes);

    link->recalled = false;
    if (!gy_link_arrived(&link->base, &link->rdma->env.handler, &link->remembered, payload))
        return false;
    consumed(link, whole);
    return true;
}

/* A header is available. Returns false if the link is closed. */
static bool digest_header(struct gy_rdma_link *link, uint64_t available)
{
    const struct gy_receive_handler *handler = &link->rdma->env.handler;
    struct gy_frame frame;

    if (!gy_frame_decode(link->ring + (link->in_tail & link->in_mask), &frame)) {
        gy_link_fail(&link->base, GYRE_PROTOCOL, "rank %d wrote something over rdma that is no frame of gyre",
                     link->base.peer);
        return false;
    }
    uint64_t whole = gy_rdma_padded(frame.bytes), offset = (link->in_tail + GY_FRAME_BYTES) & link->in_mask;
    if (available < whole || offset + frame.bytes > link->in_mask + 1) {
        if (!gy_link_inbound_begin(&link->base, handler, &frame))
            return false;
        consumed(link, GY_FRAME_BYTES);
        return true;
    }
    link->base.more = available > whole;
    bool taken = gy_link_arrived(&link->base, handler, &frame, frame.bytes ? link->ring + offset : NULL);
    link->base.more = false;
    if (!taken)
        return false;
    consumed(link, whole);
    return true;
}

bool gy_rdma_digestible(const struct gy_rdma_link *link)
{
    return link->in_head != link->in_tail;
}

bool gy_rdma_digest(struct gy_rdma_link *link)
{
    uint64_t before = link->in_tail;

    link->digesting = true;
    for (int frames = 0; frames < FRAMES && link->in_tail - before < BYTES && link->base.state == GY_LINK_OPEN;) {
        uint64_t available = link->in_head - link->in_tail;
        bool inbound = link->base.inbound.active;
        if (available == 0 || !(link->recalled ? digest_recalled(link)
                                : inbound      ? digest_piece(link, available)
                                               : digest_header(link, available)))
            break;
        frames += !link->base.inbound.active;
        gy_rdma_return_credit(link);
    }
    link->digesting = false;
    return link->in_tail != before;
}
