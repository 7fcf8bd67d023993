/* Requests of an rdma link: sends, receives, credit. See rdma/internal.h.
 *
 * A completion is requested where it is awaited, and once per GY_RDMA_SIGNAL requests, so that the queue drains.
 * Receive requests are reposted in batches, before the chunks that used them are credited. So the peer's next
 * messages find one. */
#include <endian.h>
#include <string.h>

#include "transport/rdma/internal.h"

#define BATCH 16 /* receive requests posted at once */

void gy_rdma_fail(struct gy_rdma_link *link, const struct gy_rdma_path *path, gyre_status status, const char *what,
                  const char *cause)
{
    const struct gy_rdma_rail *rail = &link->rdma->rail[path->rail];

    gy_link_fail(&link->base, status, "rdma, device %s, to rank %d: %s: %s%s%s%s", rail->name, link->base.peer, what,
                 cause, rail->trouble[0] ? " (the device said before: " : "", rail->trouble,
                 rail->trouble[0] ? ")" : "");
}

/* ---- requests ---- */

bool gy_rdma_post(struct gy_rdma_link *link, struct gy_rdma_path *path, struct ibv_send_wr *wr, bool signal)
{
    const struct gy_rdma_rail *rail = &link->rdma->rail[path->rail];
    struct ibv_send_wr *bad;

    path->posted++;
    if (++path->unsignalled >= GY_RDMA_SIGNAL)
        signal = true;
    if (signal) {
        wr->send_flags |= IBV_SEND_SIGNALED;
        path->unsignalled = 0;
    }
    wr->wr_id = (uint64_t)path->posted << 32 | (uint32_t)path->sent;
    int errnum = rail->verbs->post_send(path->qp, wr, &bad);
    if (errnum)
        gy_rdma_fail(link, path, GYRE_PEER_UNREACHABLE, "a request was refused", strerror(errnum));
    return errnum == 0;
}

bool gy_rdma_post_chunk(struct gy_rdma_link *link, struct ibv_send_wr *wr, uint64_t length, bool signal)
{
    struct gy_rdma_path *path = gy_rdma_next_path(link);

    path->sent++;
    link->chunks++;
    link->out_head += length;
    return link->base.state == GY_LINK_OPEN && gy_rdma_post(link, path, wr, signal);
}

bool gy_rdma_has_room(struct gy_rdma_link *link)
{
    const struct gy_rdma_path *path = gy_rdma_next_path(link);

    return link->chunks - link->chunks_back < (uint64_t)GY_RDMA_CHUNKS * (uint64_t)link->paths &&
           path->posted - path->finished < GY_RDMA_SENDS - GY_RDMA_RESERVE;
}

bool gy_rdma_idle(const struct gy_rdma_link *link)
{
    for (int q = 0; q < link->paths; q++)
        if (link->path[q].posted != link->path[q].finished)
            return false;
    return true;
}

static void replenish(struct gy_rdma_link *link, struct gy_rdma_path *path)
{
    struct ibv_recv_wr requests[BATCH] = {0}, *bad;
    const struct gy_verbs *verbs = link->rdma->rail[path->rail].verbs;

    while (path->empty > 0 && link->base.state == GY_LINK_OPEN) {
        uint32_t count = (uint32_t)gy_min_size(path->empty, BATCH);
        for (uint32_t i = 0; i < count; i++)
            requests[i].next = i + 1 < count ? &requests[i + 1] : NULL;
        int errnum = verbs->post_recv(path->qp, requests, &bad);
        if (errnum)
            gy_rdma_fail(link, path, GYRE_PEER_UNREACHABLE, "a receive request was refused", strerror(errnum));
        path->empty -= count;
    }
}

void gy_rdma_replenish(struct gy_rdma_link *link)
{
    for (int q = 0; q < link->paths; q++)
        replenish(link, &link->path[q]);
}

/* ---- credit ---- */

static void credited(struct gy_rdma_link *link, uint32_t chunks, uint32_t units)
{
    link->owed_chunks -= chunks;
    link->owed_bytes -= (uint64_t)units * 64;
    link->awaited = link->awaited && link->owed_chunks > 0;
}

/* Returns the credit that this chunk piggybacks, if enough is owed to justify new receive requests, which replace
 * those it uses. */
static uint32_t credit_by_the_way(struct gy_rdma_link *link)
{
    uint32_t chunks = (uint32_t)gy_min_size(link->owed_chunks, 63);
    uint32_t units = (uint32_t)gy_min_size(link->owed_bytes / 64, (1u << 13) - 1);

    if (chunks < GY_RDMA_BY_THE_WAY && link->owed_bytes < (link->in_mask + 1) / 8)
        return 0;
    gy_rdma_replenish(link); /* the peer may use credit on arrival */
    credited(link, chunks, units);
    return chunks << GY_RDMA_CREDIT_CHUNKS | units << GY_RDMA_CREDIT_UNITS;
}

uint32_t gy_rdma_immediate(struct gy_rdma_link *link, uint64_t length, uint32_t flags)
{
    return (uint32_t)(length / 64) | flags | credit_by_the_way(link);
}

/* An empty message on the first path: 7 bits of chunks, 25 bits of 64 bytes each. */
static bool post_credit(struct gy_rdma_link *link, struct gy_rdma_path *path, uint32_t chunks, uint32_t units,
                        bool signal)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND_WITH_IMM, .imm_data = htobe32(chunks << 25 | units)};

    return gy_rdma_post(link, path, &wr, signal);
}

/* If the queue is full, every progress call retries, and the completion that makes room wakes a sleeper. It is
 * rarely full: chunks without credit, credits in flight and unfinished requests total about 100 of its 144. */
void gy_rdma_give_back(struct gy_rdma_link *link)
{
    struct gy_rdma_path *path = &link->path[0];

    if (!link->ready || link->ended || link->base.state != GY_LINK_OPEN ||
        path->posted - path->finished >= GY_RDMA_SENDS)
        return;
    uint32_t chunks = (uint32_t)gy_min_size(link->owed_chunks, 127), units = (uint32_t)(link->owed_bytes / 64);
    gy_rdma_replenish(link); /* the peer may use credit on arrival */
    if (link->base.state == GY_LINK_OPEN && post_credit(link, path, chunks, units, false))
        credited(link, chunks, units);
}

void gy_rdma_flush_marks(struct gy_rdma_link *link)
{
    for (int q = 0; q < link->paths && link->base.state == GY_LINK_OPEN; q++) {
        struct gy_rdma_path *path = &link->path[q];
        if (path->unsignalled > 0 && path->posted - path->finished < GY_RDMA_SENDS)
            post_credit(link, path, 0, 0, true);
    }
}
