/* Links between ranks of one host: two byte rings in shared memory, one per direction, each with one writer and one
 * reader.
 *
 *   ring:  | head (writer's line) | tail (reader's line) | full (writer's line) | .. page | data, 2^n bytes |
 *   data:  ... [header 64][payload, padded to 64] [header 64][payload ...        head − tail bytes are readable
 *
 * Invariants: every frame starts at a multiple of 64, so a header never wraps. head and tail only grow. Bytes in
 * [tail, head) belong to the reader, the rest to the writer. A frame larger than the ring streams through it in
 * pieces. A contiguous payload is delivered to the receive handler in place.
 *
 * Sleeping: the writer publishes head, then wakes the reader's rank; the reader publishes tail, then wakes the writer's
 * rank if `full` says that frames wait for room. arm() re-reads head and tail after the fence of gy_segment_sleep:
 * see wakeup.c. */
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "core/fence.h"
#include "core/mem.h"
#include "transport/link.h"
#include "transport/shm/segment.h"

#define RING_CONTROL 4096
#define RING_PIECE \
    (UINT64_C(16) << 10)  /* published at least this often, so that the reader copies while the writer does */
#define RECEIVE_FRAMES 16 /* per progress */
#define RECEIVE_BYTES (UINT64_C(256) << 10) /* per progress */
#define STOP_NS (200 * GY_MILLISECOND)

struct ring {
    _Alignas(GY_CACHE_LINE) _Atomic uint64_t head; /* written by the sender */
    _Alignas(GY_CACHE_LINE) _Atomic uint64_t tail; /* written by the receiver */
    _Alignas(GY_CACHE_LINE) _Atomic uint32_t full; /* written by the sender: frames wait for room */
    _Alignas(RING_CONTROL) unsigned char data[];
};

struct shm_link {
    struct gy_link base;
    struct shm *shm;
    int local; /* of the peer */
    struct ring *out, *in;
    uint64_t head, tail, mask;
    struct shm_link *next;
};

struct shm {
    struct gy_transport_env env;
    struct shm_link *links; /* made so far, for arm and stop */
};

static uint64_t padded(uint32_t bytes)
{
    return GY_FRAME_BYTES + (((uint64_t)bytes + 63) & ~UINT64_C(63));
}

/* ---- sending ---- */

/* Copies as much of `frame` as fits in `room`, at most up to the end of the data or one piece; returns the bytes. */
static uint64_t copy_piece(struct shm_link *link, struct gy_frame_out *frame, uint64_t room)
{
    unsigned char *to = link->out->data + (link->head & link->mask);
    if (frame->sent == 0) {
        if (room < GY_FRAME_BYTES)
            return 0;
        gy_frame_encode(&frame->header, to);
        return GY_FRAME_BYTES;
    }
    uint64_t piece = padded(frame->header.bytes) - frame->sent;
    piece = gy_min_size(gy_min_size(piece, room), link->mask + 1 - (link->head & link->mask));
    piece = gy_min_size(piece, RING_PIECE);
    size_t from = frame->sent - GY_FRAME_BYTES;
    if (from < frame->header.bytes) /* the rest may be padding only */
        memcpy(to, (const unsigned char *)frame->payload + from, gy_min_size(piece, frame->header.bytes - from));
    return piece;
}

static void publish_head(struct shm_link *link)
{
    /* A reader that sees this head sees the bytes before it. */
    atomic_store_explicit(&link->out->head, link->head, memory_order_release);
}

static bool flush(struct shm_link *link)
{
    /* Acquire: the reader has finished with the bytes before its tail. */
    uint64_t tail = atomic_load_explicit(&link->out->tail, memory_order_acquire);
    uint64_t room = link->mask + 1 - (link->head - tail), published = link->head, before = link->head;
    while (link->base.first) {
        struct gy_frame_out *frame = link->base.first;
        uint64_t total = padded(frame->header.bytes), piece = 1;
        while (frame->sent < total && piece > 0) {
            piece = room ? copy_piece(link, frame, room) : 0;
            frame->sent += piece;
            link->head += piece;
            room -= piece;
            if (link->head - published >= RING_PIECE) {
                publish_head(link);
                published = link->head;
            }
        }
        if (frame->sent < total)
            break;
        gy_link_complete_first(&link->base);
    }
    if (link->head != published)
        publish_head(link);
    uint32_t full = link->base.first != NULL;
    if (atomic_load_explicit(&link->out->full, memory_order_relaxed) != full)
        atomic_store_explicit(&link->out->full, full, memory_order_relaxed); /* ordered by the fence before sleep */
    if (link->head == before)
        return false;
    gy_segment_wake(link->shm->env.segment, link->local);
    return true;
}

/* ---- receiving ---- */

static void publish_tail(struct shm_link *link)
{
    /* Release: our reads of the freed bytes come before it. */
    atomic_store_explicit(&link->in->tail, link->tail, memory_order_release);
}

/* Copies available bytes of the current payload. */
static bool receive_piece(struct shm_link *link, uint64_t available)
{
    struct gy_frame *frame = &link->base.inbound.frame;
    size_t got = link->base.inbound.got; /* counts padding too */
    uint64_t piece = padded(frame->bytes) - GY_FRAME_BYTES - got;
    piece = gy_min_size(gy_min_size(piece, available), link->mask + 1 - (link->tail & link->mask));
    if (got < frame->bytes)
        memcpy(link->base.inbound.place + got, link->in->data + (link->tail & link->mask),
               gy_min_size(piece, frame->bytes - got));
    link->base.inbound.got = got + piece;
    link->tail += piece;
    publish_tail(link);
    if (link->base.inbound.got < padded(frame->bytes) - GY_FRAME_BYTES)
        return true;
    return gy_link_inbound_end(&link->base, &link->shm->env.handler);
}

/* A header is available: delivers a complete frame in place, or begins to copy it. Returns false if the link is
 * closed. */
static bool receive_header(struct shm_link *link, uint64_t available)
{
    const struct gy_receive_handler *handler = &link->shm->env.handler;
    struct gy_frame frame;
    if (!gy_frame_decode(link->in->data + (link->tail & link->mask), &frame)) {
        gy_link_fail(&link->base, GYRE_PROTOCOL, "rank %d wrote something into shared memory that is no frame of gyre",
                     link->base.peer);
        return false;
    }
    uint64_t whole = padded(frame.bytes), offset = (link->tail + GY_FRAME_BYTES) & link->mask;
    if (available < whole || offset + frame.bytes > link->mask + 1) {
        if (!gy_link_inbound_begin(&link->base, handler, &frame))
            return false;
        link->tail += GY_FRAME_BYTES;
        publish_tail(link);
        return true;
    }
    if (!gy_link_arrived(&link->base, handler, &frame, frame.bytes ? link->in->data + offset : NULL))
        return false;
    link->tail += whole;
    publish_tail(link);
    return true;
}

static bool receive(struct shm_link *link)
{
    uint64_t before = link->tail;
    for (int frames = 0; frames < RECEIVE_FRAMES && link->tail - before < RECEIVE_BYTES;) {
        if (link->base.state != GY_LINK_OPEN) /* the receive handler may close this link */
            break;
        uint64_t available = atomic_load_explicit(&link->in->head, memory_order_acquire) - link->tail;
        if (available > link->mask + 1) {
            gy_link_fail(&link->base, GYRE_PROTOCOL, "rank %d overran its ring in shared memory", link->base.peer);
            break;
        }
        if (link->base.inbound.active ? available == 0 : available < GY_FRAME_BYTES)
            break;
        bool was_inbound = link->base.inbound.active;
        if (!(was_inbound ? receive_piece(link, available) : receive_header(link, available)))
            break;
        frames += !link->base.inbound.active;
    }
    if (link->tail == before)
        return false;
    gy_store_load_fence(); /* our tail is stored before `full` is read; the sender's sleep stores `full`, then reads
                            * our tail */
    if (atomic_load_explicit(&link->in->full, memory_order_relaxed))
        gy_segment_wake(link->shm->env.segment, link->local);
    return true;
}

/* ---- the table ---- */

static gyre_status shm_open_(const struct gy_transport_env *env, void **instance_p, struct gy_error *error)
{
    struct shm *shm = gy_alloc_zero(1, sizeof(*shm));
    if (!shm)
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "no memory for the shared-memory transport");
    shm->env = *env;
    *instance_p = shm;
    return GYRE_SUCCESS;
}

static bool shm_reaches(void *instance, int peer)
{
    const struct gy_transport_env *env = &((struct shm *)instance)->env;
    const struct gy_world *world = env->world;
    return env->segment && peer != world->rank && world->members[peer].host == world->members[world->rank].host;
}

static gyre_status shm_link(void *instance, int peer, struct gy_link **link_p, struct gy_error *error)
{
    struct shm *shm = instance;
    struct gy_segment *segment = shm->env.segment;
    if (!shm_reaches(instance, peer))
        return gy_error_set(error, GYRE_INTERNAL, -1, "transport shm was asked for a link to rank %d", peer);
    for (struct shm_link *link = shm->links; link; link = link->next) {
        if (link->base.peer == peer) {
            *link_p = &link->base;
            return GYRE_SUCCESS;
        }
    }
    struct shm_link *link = gy_alloc_zero(1, sizeof(*link));
    if (!link)
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "rank %d has no memory for the link to rank %d",
                            shm->env.world->rank, peer);
    int mine = shm->env.world->local, theirs = shm->env.world->members[peer].local;
    void *out, *in;
    gyre_status status = gy_segment_ring(segment, mine, theirs, &out, error);
    if (status == GYRE_SUCCESS)
        status = gy_segment_ring(segment, theirs, mine, &in, error);
    if (status != GYRE_SUCCESS) {
        gy_free(link);
        return status;
    }
    link->base.peer = peer;
    link->shm = shm;
    link->local = theirs;
    link->out = out;
    link->in = in;
    link->head = atomic_load_explicit(&link->out->head, memory_order_relaxed);
    link->tail = atomic_load_explicit(&link->in->tail, memory_order_relaxed);
    link->mask = gy_segment_ring_bytes(segment) - RING_CONTROL;
    while (link->mask & (link->mask - 1)) /* the largest power of two that fits the area */
        link->mask &= link->mask - 1;
    link->mask--;
    link->next = shm->links;
    shm->links = link;
    *link_p = &link->base;
    return GYRE_SUCCESS;
}

static void shm_post(struct gy_link *base, struct gy_frame_out *frame)
{
    gy_link_push(base, frame);
    if (base->state == GY_LINK_OPEN)
        flush((struct shm_link *)base);
}

static bool shm_progress(struct gy_link *base)
{
    struct shm_link *link = (struct shm_link *)base;
    bool moved = false;
    if (base->state == GY_LINK_OPEN)
        moved = receive(link);
    if (base->state == GY_LINK_OPEN && base->first)
        moved |= flush(link);
    return gy_link_report(base, &link->shm->env.handler) || moved;
}

static bool shm_arm(void *instance)
{
    struct shm *shm = instance;
    if (!shm->env.segment)
        return true;
    gy_segment_sleep(shm->env.segment); /* again, if the caller did: its fence comes before the loads below */
    for (struct shm_link *link = shm->links; link; link = link->next) {
        if (link->base.state == GY_LINK_DEAD)
            continue;
        bool incoming = atomic_load_explicit(&link->in->head, memory_order_relaxed) != link->tail;
        uint64_t used = link->head - atomic_load_explicit(&link->out->tail, memory_order_relaxed);
        /* A header is written in one piece of 64; both ends move in such steps at a frame's start. */
        bool room = link->base.first && link->mask + 1 - used >= (link->base.first->sent ? 1 : GY_FRAME_BYTES);
        if (link->base.state == GY_LINK_FAILED || incoming || room)
            return false;
    }
    return true;
}

static void shm_disarm(void *instance)
{
    struct shm *shm = instance;
    if (shm->env.segment)
        gy_segment_awake(shm->env.segment);
}

static void shm_close(void *instance)
{
    struct shm *shm = instance;
    for (struct shm_link *link = shm->links; link; link = link->next) {
        link->base.first = link->base.last = NULL;
        link->base.state = GY_LINK_DEAD;
    }
}

static void shm_stop(void *instance)
{
    struct shm *shm = instance;
    int64_t deadline = gy_now() + STOP_NS;
    bool waiting = true;
    while (waiting && gy_now() < deadline) {
        waiting = false;
        for (struct shm_link *link = shm->links; link; link = link->next) {
            if (link->base.state == GY_LINK_OPEN && link->base.first)
                flush(link);
            waiting |= link->base.state == GY_LINK_OPEN && link->base.first;
        }
        if (waiting)
            nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    }
}

static void shm_fini(void *instance, bool forked)
{
    struct shm *shm = instance;
    (void)forked; /* no descriptors here: the segment owns them */
    while (shm->links) {
        struct shm_link *link = shm->links;
        shm->links = link->next;
        gy_free(link);
    }
    gy_free(shm);
}

const struct gy_transport_ops gy_transport_shm = {
    .name = "shm",
    .counter = offsetof(gyre_counters, shm_bytes),
    .eager = GY_FRAME_SHORT,
    .available = gy_transport_always_available,
    .open = shm_open_,
    .reaches = shm_reaches,
    .link = shm_link,
    .post = shm_post,
    .send_short = gy_transport_send_no_short,
    .progress = shm_progress,
    .check = gy_transport_check_nothing,
    .describe = gy_transport_describe_nothing,
    .round_trip = gy_transport_round_trip_unknown,
    .arm = shm_arm,
    .disarm = shm_disarm,
    .register_memory = gy_transport_register_nothing,
    .unregister_memory = gy_transport_unregister_nothing,
    .register_device = gy_transport_register_no_device,
    .expose = gy_transport_expose_nothing,
    .conceal = gy_transport_conceal_nothing,
    .access = gy_transport_access_nothing,
    .reads_in_place = gy_transport_reads_nothing_in_place,
    .close = shm_close,
    .stop = shm_stop,
    .fini = shm_fini,
};
