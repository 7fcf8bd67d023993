/* From an authenticated socket to connected queue pairs of two ranks. The higher rank has connected.
 *
 *   both:   memory, completion queues, queue pairs; INIT, receive requests ──▶ hello ──▶
 *           ◀── hello: ready to receive, ready to send ──▶ one byte "ready"
 *           ◀── "ready": the peer can receive, and frames posted meanwhile leave
 *
 * The socket stays open and silent for the life of the link. The kernel closes it when the peer's process ends in
 * any way, and its keep-alive detects a lost host. A queue pair reports neither to a rank that only receives.
 * Nothing here blocks: each half runs in a callback of the poller. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <sodium.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "transport/rdma/internal.h"

#define PAGE 4096
#define READY 'R'
#define RETRIES 7

/* ---- memory and queues ---- */

static void lost(struct gy_rdma_link *link, int reason)
{
    gy_link_fail(&link->base, GYRE_PEER_UNREACHABLE, "the rdma connection to rank %d broke: %s", link->base.peer,
                 reason ? strerror(reason) : "closed by the peer");
}

static gyre_status out_of_memory(const struct gy_rdma_link *link, size_t bytes, struct gy_error *error)
{
    return gy_error_set(error, GYRE_NO_MEMORY, -1, "rank %d has no memory (%zu bytes) for the rdma link to rank %d",
                        link->rdma->env.world->rank, bytes, link->base.peer);
}

static gyre_status refused(const struct gy_rdma_link *link, const struct gy_rdma_rail *rail, const char *what,
                           struct gy_error *error)
{
    int errnum = errno;

    return gy_error_system(error, errnum, "RDMA device %s gives no %s for the link to rank %d", rail->name, what,
                           link->base.peer);
}

/* Allocates the ring that the peer writes into. */
static gyre_status make_ring(struct gy_rdma_link *link, struct gy_error *error)
{
    size_t bytes = link->rdma->env.config->rdma_ring;
    unsigned char *ring = gy_alloc_aligned(PAGE, bytes);

    if (!ring)
        return out_of_memory(link, bytes, error);
    memset(ring, 0, bytes);
    gyre_status status = gy_rdma_register(&link->rdma->memory, ring, bytes,
                                          IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, link->ring_mr, error);
    if (status != GYRE_SUCCESS) {
        gy_free(ring);
        return status;
    }
    link->ring = ring;
    link->in_mask = bytes - 1;
    return GYRE_SUCCESS;
}

/* Allocates the words of the silent-frame protocol: either may be used before the peer's hello arrives. */
static gyre_status make_words(struct gy_rdma_link *link, struct gy_error *error)
{
    struct gy_rdma_words *words = gy_alloc_aligned(PAGE, GY_RDMA_WORDS);

    if (!words)
        return out_of_memory(link, GY_RDMA_WORDS, error);
    memset(words, 0, GY_RDMA_WORDS);
    gyre_status status = gy_rdma_register(&link->rdma->memory, words, GY_RDMA_WORDS,
                                          IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
                                          link->words_mr, error);
    if (status != GYRE_SUCCESS) {
        gy_free(words);
        return status;
    }
    randombytes_buf(&link->secret, sizeof(link->secret));
    link->words = words;
    return GYRE_SUCCESS;
}

/* Allocates the send staging buffer, as long as the peer's ring. */
static gyre_status make_staging(struct gy_rdma_link *link, struct gy_error *error)
{
    size_t bytes = link->theirs.ring_bytes;
    unsigned char *staging = gy_alloc_aligned(PAGE, bytes);

    if (!staging)
        return out_of_memory(link, bytes, error);
    memset(staging, 0, bytes);
    gyre_status status = gy_rdma_register(&link->rdma->memory, staging, bytes,
                                          link->may_pull ? IBV_ACCESS_REMOTE_READ : 0, link->staging_mr, error);
    if (status != GYRE_SUCCESS) {
        gy_free(staging);
        return status;
    }
    link->staging = staging;
    link->out_mask = bytes - 1;
    return GYRE_SUCCESS;
}

static gyre_status make_path(struct gy_rdma_link *link, struct gy_rdma_path *path, int rail_index,
                             struct gy_error *error)
{
    struct gy_rdma_rail *rail = &link->rdma->rail[rail_index];
    struct ibv_qp_init_attr attr = {
        .send_cq = link->queue[rail_index].cq,
        .recv_cq = link->queue[rail_index].cq,
        .cap = {.max_send_wr = GY_RDMA_SENDS,
                .max_recv_wr = GY_RDMA_RECEIVES,
                .max_send_sge = 2,
                .max_recv_sge = 1,
                .max_inline_data = 220},
        .qp_type = IBV_QPT_RC,
    };

    path->rail = rail_index;
    path->psn = randombytes_random() & 0xffffff;
    path->qp = rail->verbs->create_qp(rail->pd, &attr);
    if (!path->qp && errno == EINVAL) { /* the device supports less inline data */
        attr.cap.max_inline_data = 0;
        path->qp = rail->verbs->create_qp(rail->pd, &attr);
    }
    if (!path->qp)
        return refused(link, rail, "queue pair", error);
    rail->most_inline = attr.cap.max_inline_data;
    link->paths++;
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT,
                               .port_num = rail->port,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
    int errnum = rail->verbs->modify_qp(path->qp, &init,
                                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (errnum)
        return gy_error_system(error, errnum, "RDMA device %s does not initialise a queue pair", rail->name);
    path->empty = GY_RDMA_RECEIVES;
    return GYRE_SUCCESS;
}

/* On failure disconnect releases what was made. */
static gyre_status make(struct gy_rdma_link *link, struct gy_error *error)
{
    struct gy_rdma *rdma = link->rdma;
    int per_rail = rdma->env.config->rdma_queue_pairs;

    if (per_rail * rdma->rails > GY_RDMA_PATHS)
        per_rail = GY_RDMA_PATHS / rdma->rails;
    link->made = true;
    gyre_status status = make_ring(link, error);
    if (status == GYRE_SUCCESS)
        status = make_words(link, error);
    for (int r = 0; r < rdma->rails && status == GYRE_SUCCESS; r++) {
        struct gy_rdma_queue *queue = &link->queue[r];
        queue->link = link;
        queue->cq = rdma->rail[r].verbs->create_cq(
            rdma->rail[r].context, per_rail * (int)(GY_RDMA_SENDS + GY_RDMA_RECEIVES), queue, rdma->rail[r].channel, 0);
        if (!queue->cq)
            status = refused(link, &rdma->rail[r], "completion queue", error);
    }
    for (int q = 0; q < per_rail * rdma->rails && status == GYRE_SUCCESS; q++)
        status = make_path(link, &link->path[q], q % rdma->rails, error);
    if (status == GYRE_SUCCESS)
        gy_rdma_replenish(link);
    return status;
}

/* ---- the two hellos ---- */

static struct gy_rdma_hello own_hello(const struct gy_rdma_link *link)
{
    struct gy_rdma_hello hello = {.ring_bytes = link->in_mask + 1,
                                  .paths = link->paths,
                                  .words = (uintptr_t)link->words,
                                  .words_key = link->words_mr[link->path[0].rail]->rkey,
                                  .secret = link->secret};

    for (int q = 0; q < link->paths; q++) {
        const struct gy_rdma_path *path = &link->path[q];
        const struct gy_rdma_rail *rail = &link->rdma->rail[path->rail];
        hello.end[q] = (struct gy_rdma_end){
            .qp = path->qp->qp_num,
            .psn = path->psn,
            .ring = (uintptr_t)link->ring,
            .key = link->ring_mr[path->rail]->rkey,
            .lid = rail->lid,
            .mtu = (uint8_t)rail->mtu,
            .ethernet = rail->ethernet,
            .reads = rail->most_reads,
        };
        memcpy(hello.end[q].gid, rail->gid.raw, sizeof(hello.end[q].gid));
    }
    return hello;
}

/* A new socket has room for all bytes ever sent on it. */
static bool say(struct gy_rdma_link *link, const void *bytes, size_t count)
{
    ssize_t sent = send(link->watch.fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (sent != (ssize_t)count)
        lost(link, sent < 0 ? errno : EAGAIN);
    return sent == (ssize_t)count;
}

/* The device gives up after RETRIES waits of 4.096 µs · 2^n, each of which it may stretch fourfold. The total is
 * less than the timeout for a silent host. Short waits also recover a lost packet sooner. */
static uint8_t ack_timeout(const struct gy_config *config)
{
    uint8_t n = 8;

    if (config->rdma_ack_timeout > 0) /* 0 means for ever to a device: not allowed */
        return (uint8_t)config->rdma_ack_timeout;
    while (n < 16 && (INT64_C(4096) << (n + 1)) * (RETRIES + 1) * 4 <= config->peer_timeout_ns)
        n++;
    return n;
}

static int to_receive(const struct gy_rdma_link *link, const struct gy_rdma_path *path, const struct gy_rdma_end *end)
{
    const struct gy_rdma_rail *rail = &link->rdma->rail[path->rail];
    const struct gy_config *config = link->rdma->env.config;
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = rail->mtu < (enum ibv_mtu)end->mtu ? rail->mtu : (enum ibv_mtu)end->mtu,
        .dest_qp_num = end->qp,
        .rq_psn = end->psn,
        .max_dest_rd_atomic = rail->most_reads,
        .min_rnr_timer = 12,
        .ah_attr = {.dlid = end->lid,
                    .sl = (uint8_t)config->rdma_service_level,
                    .port_num = rail->port,
                    .is_global = rail->ethernet || end->lid == 0,
                    .grh = {.sgid_index = (uint8_t)rail->gid_index,
                            .hop_limit = 64,
                            .traffic_class = (uint8_t)config->rdma_traffic_class}},
    };

    memcpy(attr.ah_attr.grh.dgid.raw, end->gid, sizeof(end->gid));
    return rail->verbs->modify_qp(path->qp, &attr,
                                  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

/* No receiver-not-ready retry: a receiver is always ready, and a violation should be reported. */
static int to_send(const struct gy_rdma_link *link, const struct gy_rdma_path *path, const struct gy_rdma_end *end)
{
    uint8_t own = link->rdma->rail[path->rail].most_reads;
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS,
        .timeout = ack_timeout(link->rdma->env.config),
        .retry_cnt = RETRIES,
        .rnr_retry = 0,
        .sq_psn = path->psn,
        .max_rd_atomic = own < end->reads ? own : end->reads, /* the number that the peer can answer */
    };

    return link->rdma->rail[path->rail].verbs->modify_qp(
        path->qp, &attr,
        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static void drop_path(struct gy_rdma_link *link)
{
    struct gy_rdma_path *path = &link->path[--link->paths];

    link->rdma->rail[path->rail].verbs->destroy_qp(path->qp);
    path->qp = NULL;
}

/* The peer's hello is here: both ends use the queue pairs that both have. */
static void join(struct gy_rdma_link *link)
{
    struct gy_error error = {.quiet = true};
    const struct gy_rdma_hello *theirs = &link->theirs;

    if (!gy_rdma_hello_decode(link->hello, &link->theirs)) {
        gy_link_fail(&link->base, GYRE_PROTOCOL,
                     "rank %d sent something over an rdma connection that is no hello of gyre", link->base.peer);
        return;
    }
    while (link->paths > theirs->paths)
        drop_path(link);
    link->may_pull = gy_rdma_can_pull(link);
    if (make_staging(link, &error) != GYRE_SUCCESS) {
        gy_link_fail(&link->base, error.status, "%s", error.text);
        return;
    }
    for (int q = 0; q < link->paths; q++) {
        struct gy_rdma_path *path = &link->path[q];
        path->remote_ring = theirs->end[q].ring;
        path->remote_key = theirs->end[q].key;
        int errnum = to_receive(link, path, &theirs->end[q]);
        if (!errnum)
            errnum = to_send(link, path, &theirs->end[q]);
        if (errnum) {
            gy_rdma_fail(link, path, GYRE_PEER_UNREACHABLE, "the queue pairs cannot be joined", strerror(errnum));
            return;
        }
    }
    gy_rdma_silent_prepare(link);
    gy_log(GY_LOG_DEBUG, "rdma link to rank %d: %d queue pairs on %d devices, ring of %llu bytes", link->base.peer,
           link->paths, link->rdma->rails, (unsigned long long)theirs->ring_bytes);
    say(link, &(char){READY}, 1);
}

/* The socket's end is handled after all data that arrived before it. */
void gy_rdma_hear(struct gy_rdma_link *link)
{
    link->quiet = false; /* the rest follows in progress */
    while (link->base.state == GY_LINK_OPEN && !link->ended) {
        uint8_t surplus;
        size_t room = sizeof(link->hello) - link->hello_bytes;
        size_t want = link->hello_bytes < GY_RDMA_HELLO_BYTES ? GY_RDMA_HELLO_BYTES - link->hello_bytes : room;
        ssize_t got = recv(link->watch.fd, room ? link->hello + link->hello_bytes : &surplus, room ? want : 1,
                           MSG_DONTWAIT);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            return;
        if (link->ready && (got == 0 || errno == ECONNRESET)) {
            link->ended = gy_now();
            gy_poller_change(link->rdma->env.poller, &link->watch, 0); /* else it would be reported repeatedly */
            return;
        }
        if (got <= 0) {
            lost(link, got == 0 ? 0 : errno);
            return;
        }
        link->hello_bytes += (size_t)got;
        if (room == 0 || (link->hello_bytes == sizeof(link->hello) && link->hello[GY_RDMA_HELLO_BYTES] != READY))
            gy_link_fail(&link->base, GYRE_PROTOCOL, "rank %d said more on an rdma connection than gyre says",
                         link->base.peer);
        else if (link->hello_bytes == GY_RDMA_HELLO_BYTES)
            join(link);
        else if (link->hello_bytes == sizeof(link->hello))
            link->ready = true;
    }
}

static void readable(void *owner, uint32_t events)
{
    struct gy_rdma_link *link = owner;
    (void)events;

    gy_rdma_hear(link);
    link->rdma->progress(&link->base);
}

void gy_rdma_connect(struct gy_rdma_link *link, int fd)
{
    struct gy_error error = {.quiet = true};
    uint8_t wire[GY_RDMA_HELLO_BYTES];

    link->watch = (struct gy_watch){.fd = fd, .events = EPOLLIN, .callback = readable, .owner = link};
    gyre_status status = make(link, &error);
    if (status == GYRE_SUCCESS)
        status = gy_poller_add(link->rdma->env.poller, &link->watch, &error);
    if (status != GYRE_SUCCESS) {
        gy_link_fail(&link->base, status, "%s", error.text);
        return;
    }
    struct gy_rdma_hello hello = own_hello(link);
    gy_rdma_hello_encode(&hello, wire);
    say(link, wire, sizeof(wire));
}

/* ---- the end ---- */

void gy_rdma_disconnect(struct gy_rdma_link *link)
{
    struct gy_rdma *rdma = link->rdma;

    if (link->watch.fd >= 0) {
        gy_poller_remove(rdma->env.poller, &link->watch);
        close(link->watch.fd);
        link->watch.fd = -1;
    }
    link->ready = false;
    while (link->made && link->paths > 0)
        drop_path(link);
    gy_rdma_access_drop(link);
    if (!link->made)
        return;
    link->made = false;
    for (int r = 0; r < rdma->rails && link->queue[r].cq; r++) {
        rdma->rail[r].verbs->destroy_cq(link->queue[r].cq);
        link->queue[r].cq = NULL;
    }
    for (; link->direct_count > 0; link->direct_count--) {
        gy_rdma_range_drop(&rdma->memory, link->direct[link->direct_first].range);
        link->direct_first = (link->direct_first + 1) % GY_RDMA_DIRECT_FRAMES;
    }
    if (link->staging)
        gy_rdma_deregister(&rdma->memory, link->staging_mr, link->out_mask + 1);
    if (link->ring)
        gy_rdma_deregister(&rdma->memory, link->ring_mr, link->in_mask + 1);
    if (link->words)
        gy_rdma_deregister(&rdma->memory, link->words_mr, GY_RDMA_WORDS);
    gy_free(link->words);
    link->words = NULL;
    gy_free(link->staging);
    link->staging = NULL;
    /* The receive handler may be reading the ring: it is freed with the link. */
}
