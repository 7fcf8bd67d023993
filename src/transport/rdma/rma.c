/* One-sided access by devices: a rank exposes memory; the others write and read it without its processor.
 *
 *   expose:  registration ──▶ key (address, one number per rail) ──▶ told to the others by the layer above
 *   put:     pieces in turn over the queue pairs, RDMA WRITE; from announced memory where it lies, other memory by way
 *            of the pool, and what fits into a request goes with it
 *   get:     the same with RDMA READ, into announced memory or by way of the pool
 *   flush:   a read of one byte behind the writes of each queue pair
 *
 * An access is done when the device has completed all its pieces: a written piece has been acknowledged by the
 * peer's device, and a read one is here. An acknowledged write may still be on its way to memory. Only a read behind
 * it, which may not pass it on the peer's bus, proves its arrival; hence flush. The pool is registered once, when
 * memory is first exposed. So an access allocates nothing, and registers only announced memory at its first use. */
#include <string.h>

#include "core/log.h"
#include "core/mem.h"
#include "transport/rdma/internal.h"

#define PAGE 4096
#define PIECE (256u << 10)
#define POOL_BYTES ((size_t)GY_RDMA_SLOTS * GY_RDMA_SLOT)

/* ---- what other ranks may access ---- */

struct gy_rdma_exposed {
    struct gy_rdma_exposed *next;
    size_t bytes; /* 0: nothing is registered */
    struct ibv_mr *mr[GY_RDMA_RAILS];
};

static gyre_status make_pool(struct gy_rdma *rdma, struct gy_error *error)
{
    if (rdma->pool)
        return GYRE_SUCCESS;
    unsigned char *pool = gy_alloc_aligned(PAGE, POOL_BYTES);
    if (!pool)
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "no memory for one-sided access by RDMA");
    memset(pool, 0, POOL_BYTES);
    gyre_status status = gy_rdma_register(&rdma->memory, pool, POOL_BYTES, IBV_ACCESS_LOCAL_WRITE, rdma->pool_mr,
                                          error);
    if (status != GYRE_SUCCESS)
        gy_free(pool);
    else
        rdma->pool = pool;
    return status;
}

static gyre_status expose(struct gy_rdma *rdma, struct gy_rdma_exposed *exposed, void *memory, size_t bytes,
                          struct gy_error *error)
{
    gyre_status status = make_pool(rdma, error);

    if (status != GYRE_SUCCESS || bytes == 0)
        return status;
    status = gy_rdma_register(&rdma->memory, memory, bytes,
                              IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ, exposed->mr,
                              error);
    exposed->bytes = status == GYRE_SUCCESS ? bytes : 0;
    return status;
}

void *gy_rdma_expose(void *instance, void *memory, size_t bytes, struct gy_rma_key *key_p)
{
    struct gy_rdma *rdma = instance;
    struct gy_error error = {.quiet = true};
    struct gy_rdma_exposed *exposed = rdma->rails > 0 ? gy_alloc_zero(1, sizeof(*exposed)) : NULL;

    if (!exposed)
        return NULL;
    if (expose(rdma, exposed, memory, bytes, &error) != GYRE_SUCCESS) {
        gy_log(GY_LOG_WARN, "one-sided access to %zu bytes goes by messages: %s", bytes, error.text);
        gy_free(exposed);
        return NULL;
    }
    exposed->next = rdma->exposed;
    rdma->exposed = exposed;
    *key_p = (struct gy_rma_key){.address = (uintptr_t)memory, .rails = bytes ? (uint32_t)rdma->rails : 0};
    for (int r = 0; r < rdma->rails && bytes > 0; r++)
        key_p->key[r] = exposed->mr[r]->rkey;
    return exposed;
}

void gy_rdma_conceal(void *instance, void *handle)
{
    struct gy_rdma *rdma = instance;
    struct gy_rdma_exposed *exposed = handle, **at = &rdma->exposed;

    while (*at != exposed)
        at = &(*at)->next;
    *at = exposed->next;
    if (exposed->bytes > 0)
        gy_rdma_deregister(&rdma->memory, exposed->mr, exposed->bytes);
    gy_free(exposed);
}

void gy_rdma_conceal_all(struct gy_rdma *rdma, bool forked, bool lost)
{
    while (rdma->exposed) {
        if (forked) /* the registration is the parent's */
            rdma->exposed->bytes = 0;
        gy_rdma_conceal(rdma, rdma->exposed);
    }
    if (rdma->pool && !forked)
        gy_rdma_deregister(&rdma->memory, rdma->pool_mr, POOL_BYTES);
    if (!lost)
        gy_free(rdma->pool);
}

/* ---- pieces ---- */

static int take_slot(struct gy_rdma *rdma)
{
    for (int slot = 0; slot < GY_RDMA_SLOTS; slot++)
        if (!(rdma->pool_taken >> slot & 1)) {
            rdma->pool_taken |= 1u << slot;
            return slot;
        }
    return -1;
}

static struct gy_rdma_piece *free_piece(struct gy_rdma_link *link)
{
    for (int i = 0; i < GY_RDMA_PIECES; i++)
        if (!link->piece[i].access)
            return &link->piece[i];
    return NULL;
}

static bool has_room(const struct gy_rdma_path *path)
{
    return path->posted - path->finished < GY_RDMA_SENDS - GY_RDMA_RESERVE;
}

static bool post_piece(struct gy_rdma_link *link, struct gy_rdma_piece *piece, int number, enum ibv_wr_opcode opcode,
                       uint64_t offset, struct ibv_sge *sge, unsigned flags)
{
    struct gy_rdma_path *path = &link->path[number];
    const struct gy_rma_key *key = piece->access->key;
    struct ibv_send_wr wr = {
        .sg_list = sge,
        .num_sge = 1,
        .opcode = opcode,
        .send_flags = flags,
        .wr.rdma = {.remote_addr = key->address + offset, .rkey = key->key[(uint32_t)number % key->rails]},
    };

    piece->path = number;
    piece->access->flying++;
    bool posted = gy_rdma_post(link, path, &wr, true);
    piece->number = path->posted;
    path->dirty |= opcode == IBV_WR_RDMA_WRITE;
    return posted;
}

/* Chooses the next piece's local memory. Returns false if the pool is empty. */
static bool place_piece(struct gy_rdma_link *link, struct gy_rdma_piece *piece, int number, struct ibv_sge *sge_p,
                        unsigned *flags_p)
{
    struct gy_rdma *rdma = link->rdma;
    struct gy_access *access = piece->access;
    const struct gy_rdma_path *path = &link->path[number];
    bool get = access->kind == GY_ACCESS_GET;
    unsigned char *memory = access->memory + access->posted;
    size_t left = access->bytes - access->posted;

    *sge_p = (struct ibv_sge){.addr = (uintptr_t)memory, .length = (uint32_t)gy_min_size(left, PIECE)};
    piece->slot = -1;
    piece->range = NULL;
    bool small = !get && left <= rdma->rail[path->rail].most_inline;
    *flags_p = small && !gy_rdma_memory_is_device(&rdma->memory, memory) ? IBV_SEND_INLINE : 0;
    if (*flags_p)
        return true;
    piece->range = gy_rdma_memory_find(&rdma->memory, access->memory, access->bytes);
    if (piece->range && (!get || piece->range->writable)) {
        gy_rdma_range_hold(piece->range);
        sge_p->lkey = piece->range->mr[path->rail]->lkey;
        return true;
    }
    piece->range = NULL;
    piece->slot = take_slot(rdma);
    if (piece->slot < 0)
        return false;
    unsigned char *slot = rdma->pool + (size_t)piece->slot * GY_RDMA_SLOT;
    *sge_p = (struct ibv_sge){.addr = (uintptr_t)slot,
                              .length = (uint32_t)gy_min_size(left, GY_RDMA_SLOT),
                              .lkey = rdma->pool_mr[path->rail]->lkey};
    if (!get)
        memcpy(slot, memory, sge_p->length);
    return true;
}

static bool advance_data(struct gy_rdma_link *link, struct gy_access *access, struct gy_rdma_piece *piece)
{
    int number = (int)(link->pieces % (uint64_t)link->paths);
    struct ibv_sge sge;
    unsigned flags;

    if (!has_room(&link->path[number]))
        return false;
    piece->access = access;
    if (!place_piece(link, piece, number, &sge, &flags)) {
        piece->access = NULL;
        return false;
    }
    piece->place = access->memory + access->posted;
    piece->bytes = sge.length;
    uint64_t offset = access->offset + access->posted;
    access->posted += sge.length;
    link->pieces++;
    return post_piece(link, piece, number, access->kind == GY_ACCESS_GET ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, offset,
                      &sge, flags);
}

/* access->posted counts queue pairs; one without writes since the last flush is skipped. */
static bool advance_flush(struct gy_rdma_link *link, struct gy_access *access, struct gy_rdma_piece *piece)
{
    struct gy_rdma_path *path = &link->path[access->posted];

    if (path->dirty) {
        int slot = has_room(path) ? take_slot(link->rdma) : -1;
        if (slot < 0)
            return false;
        struct ibv_sge sge = {.addr = (uintptr_t)(link->rdma->pool + (size_t)slot * GY_RDMA_SLOT),
                              .length = 1,
                              .lkey = link->rdma->pool_mr[path->rail]->lkey};
        *piece = (struct gy_rdma_piece){.access = access, .slot = slot};
        path->dirty = false;
        access->posted++;
        return post_piece(link, piece, (int)(access->posted - 1), IBV_WR_RDMA_READ, 0, &sge, 0);
    }
    access->posted++;
    return true;
}

static bool is_posted(const struct gy_rdma_link *link, const struct gy_access *access)
{
    return access->posted == (access->kind == GY_ACCESS_FLUSH ? (size_t)link->paths : access->bytes);
}

static void finish_if_done(const struct gy_rdma_link *link, struct gy_access *access)
{
    if (is_posted(link, access) && access->flying == 0) {
        access->queued = false;
        access->done = true;
    }
}

bool gy_rdma_access_flush(struct gy_rdma_link *link)
{
    bool moved = false;

    while (link->access_first && link->ready && !link->ended && link->base.state == GY_LINK_OPEN) {
        struct gy_access *access = link->access_first;
        if (is_posted(link, access)) {
            link->access_first = access->next;
            finish_if_done(link, access);
            moved = true;
            continue;
        }
        struct gy_rdma_piece *piece = free_piece(link);
        if (!piece ||
            !(access->kind == GY_ACCESS_FLUSH ? advance_flush(link, access, piece) : advance_data(link, access, piece)))
            break;
        moved = true;
    }
    return moved;
}

static void release(struct gy_rdma_link *link, struct gy_rdma_piece *piece)
{
    struct gy_rdma *rdma = link->rdma;

    if (piece->range)
        gy_rdma_range_drop(&rdma->memory, piece->range);
    if (piece->slot >= 0)
        rdma->pool_taken &= ~(1u << piece->slot);
    *piece = (struct gy_rdma_piece){0};
}

bool gy_rdma_access_reap(struct gy_rdma_link *link)
{
    bool moved = false;

    for (int i = 0; i < GY_RDMA_PIECES; i++) {
        struct gy_rdma_piece *piece = &link->piece[i];
        struct gy_access *access = piece->access;
        if (!access || (int32_t)(link->path[piece->path].finished - piece->number) < 0)
            continue;
        if (access->kind == GY_ACCESS_GET && piece->slot >= 0)
            memcpy(piece->place, link->rdma->pool + (size_t)piece->slot * GY_RDMA_SLOT, piece->bytes);
        release(link, piece);
        access->flying--;
        finish_if_done(link, access);
        moved = true;
    }
    return moved;
}

void gy_rdma_access_drop(struct gy_rdma_link *link)
{
    for (int i = 0; i < GY_RDMA_PIECES; i++)
        if (link->piece[i].access) {
            link->piece[i].access->queued = false;
            release(link, &link->piece[i]);
        }
    for (; link->access_first; link->access_first = link->access_first->next)
        link->access_first->queued = false;
}

void gy_rdma_access(struct gy_link *base, struct gy_access *access)
{
    struct gy_rdma_link *link = (struct gy_rdma_link *)base;

    link->quiet = false;
    access->done = false;
    access->queued = true;
    access->posted = 0;
    access->flying = 0;
    access->next = NULL;
    if (link->access_first)
        link->access_last->next = access;
    else
        link->access_first = access;
    link->access_last = access;
    gy_rdma_access_flush(link);
}
