/* The smallest transport that connects, for tests and as an example: one authenticated connection between two ranks,
 * made on first use, on which frames follow each other.
 *
 *   wire:  | header 64 | payload | header 64 | payload | ...      the same in both directions
 *
 * It keeps the rules of transport.h and does nothing else: no protection, no short path, one system call a piece. It
 * takes the purpose of tcp, which is not open at the same time. A transport of the library has a purpose of its own. */
#include "plain.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "net/socket.h"
#include "transport/link.h"

#define BURST 16 /* pieces in one progress call */
#define STOP_NS (200 * GY_MILLISECOND)

struct plain_link {
    struct gy_link base;
    struct plain *plain;
    struct plain_link *next;
    bool linked;                  /* by the layer above; until then nothing is read */
    int fd;                       /* −1: not connected yet, or no more */
    struct gy_watch watch;        /* active once linked and connected */
    uint8_t head[GY_FRAME_BYTES]; /* the header being received, */
    size_t head_got;              /* and how much of it is here */
};

struct plain {
    struct gy_transport_env env;
    struct plain_link *links; /* linked, or connected by the peer */
    bool closed;
};

/* ---- sending ---- */

/* Passes one frame, or the rest of it, to the kernel: bytes, or −1 and errno. */
static ssize_t send_piece(const struct plain_link *link, const struct gy_frame_out *frame)
{
    uint8_t head[GY_FRAME_BYTES];
    struct iovec pieces[2];
    size_t count = 0, from = frame->sent > GY_FRAME_BYTES ? frame->sent - GY_FRAME_BYTES : 0;
    if (frame->sent < GY_FRAME_BYTES) {
        gy_frame_encode(&frame->header, head);
        pieces[count++] = (struct iovec){head + frame->sent, GY_FRAME_BYTES - frame->sent};
    }
    if (from < frame->header.bytes)
        pieces[count++] = (struct iovec){(char *)(uintptr_t)frame->payload + from, frame->header.bytes - from};
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = count};
    return sendmsg(link->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The end of the connection is found by reading, behind the peer's last frames. */
static bool flush(struct plain_link *link)
{
    bool moved = false;
    for (int i = 0; i < BURST && link->base.first && link->watch.active; i++) {
        struct gy_frame_out *frame = link->base.first;
        ssize_t sent = send_piece(link, frame);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            break;
        moved = true;
        frame->sent += (size_t)sent;
        if (frame->sent == GY_FRAME_BYTES + frame->header.bytes)
            gy_link_complete_first(&link->base);
    }
    return moved;
}

/* While frames are stuck, room for them is an event. */
static void watch_room(struct plain_link *link)
{
    uint32_t events = (uint32_t)EPOLLIN | (link->base.first ? (uint32_t)EPOLLOUT : 0);
    if (link->watch.active && link->watch.events != events)
        gy_poller_change(link->plain->env.poller, &link->watch, events);
}

/* ---- receiving ---- */

/* Returns the bytes received; 0: none now, or the link has failed. */
static size_t take(struct plain_link *link, void *to, size_t bytes)
{
    ssize_t got = recv(link->fd, to, bytes, MSG_DONTWAIT);
    if (got > 0)
        return (size_t)got;
    if (got == 0 || (errno != EAGAIN && errno != EINTR))
        gy_link_fail(&link->base, GYRE_PEER_UNREACHABLE, "the connection to rank %d broke: %s", link->base.peer,
                     got == 0 ? "closed by the peer" : strerror(errno));
    return 0;
}

static void header_received(struct plain_link *link)
{
    const struct gy_receive_handler *handler = &link->plain->env.handler;
    struct gy_frame frame;
    link->head_got = 0;
    if (!gy_frame_decode(link->head, &frame))
        gy_link_fail(&link->base, GYRE_PROTOCOL, "rank %d sent something that is no frame of gyre", link->base.peer);
    else if (frame.bytes == 0)
        gy_link_arrived(&link->base, handler, &frame, NULL);
    else
        gy_link_inbound_begin(&link->base, handler, &frame);
}

static bool receive_piece(struct plain_link *link)
{
    struct gy_link *base = &link->base;
    bool active = base->inbound.active;
    size_t got = active ? take(link, base->inbound.place + base->inbound.got,
                               base->inbound.frame.bytes - base->inbound.got)
                        : take(link, link->head + link->head_got, GY_FRAME_BYTES - link->head_got);
    if (active) {
        base->inbound.got += got;
        if (got > 0 && base->inbound.got == base->inbound.frame.bytes)
            gy_link_inbound_end(base, &link->plain->env.handler);
    } else {
        link->head_got += got;
        if (link->head_got == GY_FRAME_BYTES)
            header_received(link);
    }
    return got > 0;
}

/* The receive handler may close the transport: the state is read again after each piece. */
static bool receive(struct plain_link *link)
{
    bool moved = false;
    for (int i = 0; i < BURST && link->base.state == GY_LINK_OPEN && link->watch.active && receive_piece(link); i++)
        moved = true;
    return moved;
}

/* ---- connections ---- */

static void disconnect(struct plain_link *link)
{
    if (link->watch.active)
        gy_poller_remove(link->plain->env.poller, &link->watch);
    if (link->fd >= 0)
        close(link->fd);
    link->fd = -1;
}

static bool plain_progress(struct gy_link *base)
{
    struct plain_link *link = (struct plain_link *)base;
    bool moved = base->state == GY_LINK_OPEN && receive(link);
    if (base->state == GY_LINK_OPEN) {
        moved |= flush(link);
        if (gy_poller_has_sleeper(link->plain->env.poller))
            watch_room(link);
    } else {
        disconnect(link);
    }
    return gy_link_report(base, &link->plain->env.handler) || moved;
}

static void on_event(void *owner, uint32_t events)
{
    (void)events;
    plain_progress(&((struct plain_link *)owner)->base);
}

/* Connected and linked: reading begins. */
static void begin(struct plain_link *link)
{
    struct gy_error error = {.rank = -1};
    link->watch = (struct gy_watch){.fd = link->fd, .events = EPOLLIN, .callback = on_event, .owner = link};
    gy_socket_await_readers(link->fd);
    if (gy_poller_add(link->plain->env.poller, &link->watch, &error) != GYRE_SUCCESS) {
        gy_link_fail(&link->base, error.status, "%s", error.text);
        return; /* the next progress reports it */
    }
    flush(link);
    watch_room(link); /* the caller may be asleep in the poller already */
}

static struct plain_link *find_or_make(struct plain *plain, int peer)
{
    struct plain_link *link = plain->links;
    while (link && link->base.peer != peer)
        link = link->next;
    if (link || !(link = gy_alloc_zero(1, sizeof(*link))))
        return link;
    link->base.peer = peer;
    link->plain = plain;
    link->fd = -1;
    link->next = plain->links;
    plain->links = link;
    return link;
}

/* The acceptor, which is the lower rank. */
static void accepted(void *user, int rank, int fd, const struct gy_seal_keys *keys)
{
    struct plain *plain = user;
    struct plain_link *link = rank > plain->env.world->rank ? find_or_make(plain, rank) : NULL;
    (void)keys; /* nothing is sealed: the table says so */
    if (!link || link->fd >= 0 || link->base.state != GY_LINK_OPEN) {
        gy_log(GY_LOG_WARN, "a connection of rank %d was refused", rank);
        close(fd);
        return;
    }
    link->fd = fd;
    if (link->linked)
        begin(link);
}

/* The initiator, which is the higher rank. */
static void on_connected(void *user, int rank, int fd, const struct gy_seal_keys *keys)
{
    struct plain_link *link = user;
    int errnum = link->plain->env.world->connect_errnum;
    (void)keys;
    link->fd = fd;
    if (fd >= 0) {
        begin(link);
        return;
    }
    gy_link_fail(&link->base, gy_error_is_shortage(errnum) ? GYRE_SYSTEM : GYRE_PEER_UNREACHABLE,
                 "no connection to rank %d could be made: %s", rank, strerror(errnum));
    plain_progress(&link->base);
}

/* ---- the table ---- */

static gyre_status plain_open(const struct gy_transport_env *env, void **instance_p, struct gy_error *error)
{
    struct plain *plain = gy_alloc_zero(1, sizeof(*plain));
    if (!plain)
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "no memory for the plain transport");
    plain->env = *env;
    gyre_status status = gy_world_on(env->world, GY_PURPOSE_TCP, accepted, plain, error);
    if (status != GYRE_SUCCESS)
        gy_free(plain);
    else
        *instance_p = plain;
    return status;
}

static bool plain_reaches(void *instance, int peer)
{
    return peer != ((struct plain *)instance)->env.world->rank;
}

static gyre_status plain_link(void *instance, int peer, struct gy_link **link_p, struct gy_error *error)
{
    struct plain *plain = instance;
    struct gy_world *world = plain->env.world;
    struct plain_link *link = find_or_make(plain, peer);
    if (!link)
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "rank %d has no memory for the link to rank %d", world->rank,
                            peer);
    if (!link->linked && peer < world->rank) {
        gyre_status status = gy_world_connect(world, peer, GY_PURPOSE_TCP, NULL, on_connected, link, error);
        if (status != GYRE_SUCCESS)
            return status;
    } else if (!link->linked && link->fd >= 0) {
        begin(link);
    }
    link->linked = true;
    *link_p = &link->base;
    return GYRE_SUCCESS;
}

/* A grant overtakes payloads: the peer needs it to send concurrently. */
static void plain_post(struct gy_link *base, struct gy_frame_out *frame)
{
    struct plain_link *link = (struct plain_link *)base;
    if (frame->header.kind == GY_FRAME_GRANT)
        gy_link_push_ahead(base, frame, base->first && base->first->sent);
    else
        gy_link_push(base, frame);
    if (base->state == GY_LINK_OPEN && !frame->coalesce)
        flush(link);
    if (base->state == GY_LINK_OPEN && gy_poller_has_sleeper(link->plain->env.poller))
        watch_room(link);
}

/* The poller is level-triggered: unread bytes end the sleep at once. */
static bool plain_arm(void *instance)
{
    for (struct plain_link *link = ((struct plain *)instance)->links; link; link = link->next) {
        if (link->base.state == GY_LINK_FAILED)
            return false;
        watch_room(link);
    }
    return true;
}

static void plain_disarm(void *instance)
{
    (void)instance;
}

static void plain_close(void *instance)
{
    struct plain *plain = instance;
    if (plain->closed)
        return;
    plain->closed = true;
    gy_world_off(plain->env.world, GY_PURPOSE_TCP, plain);
    for (struct plain_link *link = plain->links; link; link = link->next) {
        gy_world_cancel_connectors(plain->env.world, link);
        disconnect(link);
        link->base.first = link->base.last = NULL;
        link->base.state = GY_LINK_DEAD;
    }
}

/* Waits for acknowledgements too: closing with unread bytes resets the connection, which may lose data in flight. */
static void plain_stop(void *instance)
{
    int64_t deadline = gy_now() + STOP_NS;
    for (struct plain_link *link = ((struct plain *)instance)->links; link; link = link->next) {
        while (link->base.state == GY_LINK_OPEN && link->base.first && gy_now() < deadline)
            if (!flush(link))
                gy_poller_poll(link->plain->env.poller, GY_MILLISECOND);
        if (link->fd >= 0)
            (void)shutdown(link->fd, SHUT_WR);
        while (link->fd >= 0 && !gy_socket_delivered(link->fd) && gy_now() < deadline)
            (void)poll(NULL, 0, 1);
    }
}

static void plain_fini(void *instance, bool forked)
{
    struct plain *plain = instance;
    if (!forked)
        plain_close(instance);
    while (plain->links) {
        struct plain_link *link = plain->links;
        plain->links = link->next;
        if (link->fd >= 0) /* forked: the epoll set is the parent's, and is not changed */
            close(link->fd);
        gy_free(link);
    }
    gy_free(plain);
}

const struct gy_transport_ops gy_transport_plain = {
    .name = "plain",
    .counter = offsetof(gyre_counters, other_bytes),
    .eager = GY_FRAME_SHORT,
    .has_descriptor = true,
    .socket = true,
    .posts_quickly = true,
    .available = gy_transport_always_available,
    .open = plain_open,
    .reaches = plain_reaches,
    .link = plain_link,
    .post = plain_post,
    .send_short = gy_transport_send_no_short,
    .progress = plain_progress,
    .check = gy_transport_check_nothing,
    .describe = gy_transport_describe_nothing,
    .round_trip = gy_transport_round_trip_unknown,
    .arm = plain_arm,
    .disarm = plain_disarm,
    .register_memory = gy_transport_register_nothing,
    .unregister_memory = gy_transport_unregister_nothing,
    .register_device = gy_transport_register_no_device,
    .expose = gy_transport_expose_nothing,
    .conceal = gy_transport_conceal_nothing,
    .access = gy_transport_access_nothing,
    .reads_in_place = gy_transport_reads_nothing_in_place,
    .close = plain_close,
    .stop = plain_stop,
    .fini = plain_fini,
};
