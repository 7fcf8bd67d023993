/* Links over TCP, one socket per pair of ranks, made when first wanted: the higher rank dials, the lower waits for the
 * door.
 *
 *   out:  queue --(16 frames a call: header, payload, header, payload ...)--> sendmsg
 *   in:   recvmsg --> [rest of the payload under way, in the sink's memory][16 KiB read-ahead]
 *
 * The second half of that vector makes a stream of tiny frames cost one call, and lets the header behind a payload come
 * with it. Frames that lie whole in the read-ahead are given to the sink there; the others are completed in its own
 * memory.
 *
 * Invariants: the read-ahead holds bytes only while no payload is under way, or was just used up; progress never waits;
 * EPOLLIN is watched from the first moment to the last, EPOLLOUT only while frames are stuck and somebody is about to
 * sleep. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "transport/link.h"

#define READ_AHEAD (16u << 10)
#define SEND_FRAMES 16                    /* per sendmsg */
#define SEND_CALLS 4                      /* per flush */
#define RECEIVE_FRAMES 16                 /* per progress */
#define RECEIVE_BYTES (UINT64_C(1) << 20) /* per progress */
#define STOP_NS (200 * GY_MILLISECOND)

struct tcp_link {
    struct gy_link base;
    struct tcp *tcp;
    struct gy_watch watch; /* fd −1: not connected yet, or no more */
    struct tcp_link *next;
    bool mute;         /* sending failed: what the peer sent before it went is still read, then the end is reported */
    size_t start, end; /* unread bytes of ahead */
    unsigned char ahead[READ_AHEAD];
};

struct tcp {
    struct gy_transport_env env;
    struct tcp_link *links; /* asked for so far */
    int *parked;            /* [world size] accepted before anybody here asked for the link, −1: none */
    bool closed;
};

/* ---- sending ---- */

static void fail(struct tcp_link *link, int reason)
{
    gy_link_fail(&link->base, GYRE_PEER_UNREACHABLE, "the tcp connection to rank %d broke: %s", link->base.peer,
                 reason ? strerror(reason) : "closed by the peer");
}

/* Lays out frames from the queue's head, without the `sent` bytes of the first. Returns the number of pieces. */
static size_t gather(const struct tcp_link *link, struct iovec *pieces, uint8_t headers[][GY_FRAME_BYTES])
{
    size_t count = 0;
    const struct gy_frame_out *frame = link->base.first;
    for (size_t i = 0; i < SEND_FRAMES && frame; i++, frame = frame->next) {
        if (frame->sent < GY_FRAME_BYTES) {
            gy_frame_encode(&frame->header, headers[i]);
            pieces[count++] = (struct iovec){headers[i] + frame->sent, GY_FRAME_BYTES - frame->sent};
        }
        size_t from = frame->sent > GY_FRAME_BYTES ? frame->sent - GY_FRAME_BYTES : 0;
        if (from < frame->header.bytes)
            pieces[count++] = (struct iovec){(char *)(uintptr_t)frame->payload + from, frame->header.bytes - from};
    }
    return count;
}

/* `bytes` left: completes frames from the queue's head. */
static void account(struct tcp_link *link, size_t bytes)
{
    while (bytes > 0) {
        struct gy_frame_out *frame = link->base.first;
        size_t rest = GY_FRAME_BYTES + frame->header.bytes - frame->sent;
        if (bytes < rest) {
            frame->sent += bytes;
            return;
        }
        bytes -= rest;
        gy_link_complete_first(&link->base);
    }
}

static bool flush(struct tcp_link *link)
{
    bool moved = false;
    for (int call = 0; call < SEND_CALLS && link->base.first && link->watch.fd >= 0 && !link->mute; call++) {
        uint8_t headers[SEND_FRAMES][GY_FRAME_BYTES];
        struct iovec pieces[2 * SEND_FRAMES];
        struct msghdr message = {.msg_iov = pieces, .msg_iovlen = gather(link, pieces, headers)};
        ssize_t sent = sendmsg(link->watch.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0) {
            if (errno == EINTR)
                continue;
            link->mute = errno != EAGAIN;
            break;
        }
        account(link, (size_t)sent);
        moved = true;
    }
    return moved;
}

/* ---- receiving ---- */

/* Fills the payload under way and then the read-ahead; −1: nothing there (or broken), else bytes. */
static ssize_t fill(struct tcp_link *link, bool *more_p)
{
    struct iovec pieces[2];
    size_t count = 0, wanted = 0;
    if (link->base.inbound.active) {
        size_t got = link->base.inbound.got;
        wanted = link->base.inbound.frame.bytes - got;
        pieces[count++] = (struct iovec){link->base.inbound.place + got, wanted};
    }
    memmove(link->ahead, link->ahead + link->start, link->end - link->start);
    link->end -= link->start;
    link->start = 0;
    pieces[count++] = (struct iovec){link->ahead + link->end, READ_AHEAD - link->end};
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = count};
    ssize_t got;
    do {
        got = recvmsg(link->watch.fd, &message, MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    if (got <= 0) {
        if (got == 0 || errno != EAGAIN)
            fail(link, got == 0 ? 0 : errno);
        return -1;
    }
    *more_p = (size_t)got == wanted + READ_AHEAD - link->end; /* short: the socket is empty now, do not ask again */
    size_t direct = gy_min_size(wanted, (size_t)got);
    link->base.inbound.got += direct;
    link->end += (size_t)got - direct;
    return got;
}

/* Is there something to do with what is in memory already? */
static bool digestible(const struct tcp_link *link)
{
    if (link->base.inbound.active)
        return link->end > link->start || link->base.inbound.got == link->base.inbound.frame.bytes;
    return link->end - link->start >= GY_FRAME_BYTES;
}

/* One step from memory: a header, or the rest of a payload. *frames_p counts frames completed. False: the link is no
 * more. */
static bool digest(struct tcp_link *link, int *frames_p)
{
    const struct gy_sink *sink = &link->tcp->env.sink;
    size_t available = link->end - link->start;
    const unsigned char *bytes = link->ahead + link->start;
    if (link->base.inbound.active) {
        size_t rest = gy_min_size(link->base.inbound.frame.bytes - link->base.inbound.got, available);
        memcpy(link->base.inbound.place + link->base.inbound.got, bytes, rest);
        link->base.inbound.got += rest;
        link->start += rest;
        if (link->base.inbound.got < link->base.inbound.frame.bytes)
            return true;
        ++*frames_p;
        return gy_link_inbound_end(&link->base, sink);
    }
    struct gy_frame frame;
    if (!gy_frame_decode(bytes, &frame)) {
        gy_link_fail(&link->base, GYRE_PROTOCOL, "rank %d sent something over tcp that is no frame of gyre",
                     link->base.peer);
        return false;
    }
    link->start += GY_FRAME_BYTES;
    if (available - GY_FRAME_BYTES < frame.bytes)
        return gy_link_inbound_begin(&link->base, sink, &frame);
    link->start += frame.bytes;
    ++*frames_p;
    return gy_link_arrived(&link->base, sink, &frame, frame.bytes ? bytes + GY_FRAME_BYTES : NULL);
}

static bool receive(struct tcp_link *link)
{
    uint64_t bytes = 0;
    int frames = 0;
    bool more = true, moved = false;
    while (link->base.state == GY_LINK_OPEN && link->watch.fd >= 0 && frames < RECEIVE_FRAMES &&
           bytes < RECEIVE_BYTES) {
        if (digestible(link)) {
            if (!digest(link, &frames))
                break;
            moved = true;
            continue;
        }
        ssize_t got = more ? fill(link, &more) : -1;
        if (got < 0)
            break;
        bytes += (uint64_t)got;
        moved = true;
    }
    return moved;
}

/* ---- connections ---- */

static void watch_out(struct tcp_link *link)
{
    uint32_t events = EPOLLIN | (link->base.first && !link->mute ? (uint32_t)EPOLLOUT : 0);
    if (link->watch.fd >= 0 && link->watch.events != events)
        gy_poller_change(link->tcp->env.poller, &link->watch, events);
}

static void disconnect(struct tcp_link *link)
{
    if (link->watch.fd < 0)
        return;
    gy_poller_remove(link->tcp->env.poller, &link->watch);
    close(link->watch.fd);
    link->watch.fd = -1;
}

static bool tcp_progress(struct gy_link *base)
{
    struct tcp_link *link = (struct tcp_link *)base;
    bool moved = false;
    if (base->state == GY_LINK_OPEN && link->watch.fd >= 0) {
        moved = receive(link);
        if (base->state == GY_LINK_OPEN)
            moved |= flush(link);
    }
    if (base->state != GY_LINK_OPEN)
        disconnect(link);
    return gy_link_report(base, &link->tcp->env.sink) || moved;
}

static void readable(void *owner, uint32_t events)
{
    struct tcp_link *link = owner;
    (void)events;
    tcp_progress(&link->base);
    if (link->watch.events & EPOLLOUT)
        watch_out(link);
}

/* Takes the connected socket into use. */
static void connected(struct tcp_link *link, int fd)
{
    int one = 1;
    struct gy_error error;
    gy_error_clear(&error);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)); /* slower without, not wrong */
    link->watch = (struct gy_watch){.fd = fd, .events = EPOLLIN, .callback = readable, .owner = link};
    if (gy_poller_add(link->tcp->env.poller, &link->watch, &error) != GYRE_SUCCESS) {
        close(fd);
        link->watch.fd = -1;
        gy_link_fail(&link->base, error.status, "%s", error.text);
    } else {
        flush(link);
        watch_out(link); /* the caller may be asleep in the poller already */
    }
}

static struct tcp_link *find(struct tcp *tcp, int peer)
{
    struct tcp_link *link = tcp->links;
    while (link && link->base.peer != peer)
        link = link->next;
    return link;
}

/* The door: a lower rank's half. Nothing is read before the layer above wants the link. */
static void accepted(void *user, int rank, int fd)
{
    struct tcp *tcp = user;
    struct tcp_link *link = find(tcp, rank);
    bool taken = link ? link->watch.fd >= 0 || link->base.state != GY_LINK_OPEN : tcp->parked[rank] >= 0;
    if (fd < 0 || tcp->closed || taken || rank <= tcp->env.world->rank) {
        gy_log(GY_LOG_WARN, "a data connection of rank %d was refused: there is one already", rank);
        if (fd >= 0)
            close(fd);
    } else if (link) {
        connected(link, fd);
    } else {
        tcp->parked[rank] = fd;
    }
}

/* The dial's answer: the higher rank's half. Close cancels what is under way, so `user` is alive. */
static void dialled(void *user, int rank, int fd)
{
    struct tcp *tcp = user;
    struct tcp_link *link = find(tcp, rank);
    if (!link || link->base.state != GY_LINK_OPEN) {
        if (fd >= 0)
            close(fd);
    } else if (fd >= 0) {
        connected(link, fd);
    } else {
        gy_link_fail(&link->base, GYRE_PEER_UNREACHABLE, "no tcp connection to rank %d could be made", rank);
        gy_link_report(&link->base, &tcp->env.sink);
    }
}

/* ---- the table ---- */

static gyre_status tcp_open(const struct gy_transport_env *env, void **instance_p, struct gy_error *error)
{
    size_t size = (size_t)env->world->size;
    struct tcp *tcp = gy_alloc_zero(1, sizeof(*tcp));
    int *parked = gy_alloc_zero(size, sizeof(int));
    if (!tcp || !parked) {
        gy_free(tcp);
        gy_free(parked);
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "no memory for the tcp transport");
    }
    for (size_t i = 0; i < size; i++)
        parked[i] = -1;
    tcp->env = *env;
    tcp->parked = parked;
    gy_world_on_link(env->world, accepted, tcp);
    *instance_p = tcp;
    return GYRE_SUCCESS;
}

static bool tcp_reaches(void *instance, int peer)
{
    return peer != ((struct tcp *)instance)->env.world->rank;
}

static gyre_status tcp_link(void *instance, int peer, struct gy_link **link_p, struct gy_error *error)
{
    struct tcp *tcp = instance;
    struct tcp_link *link = find(tcp, peer);
    if (link) {
        *link_p = &link->base;
        return GYRE_SUCCESS;
    }
    if (!tcp_reaches(instance, peer))
        return gy_error_set(error, GYRE_INTERNAL, -1,
                            "transport tcp was asked for a link to rank %d, which is this one", peer);
    link = gy_alloc_zero(1, sizeof(*link));
    if (!link)
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "rank %d has no memory for the link to rank %d",
                            tcp->env.world->rank, peer);
    link->base.peer = peer;
    link->tcp = tcp;
    link->watch.fd = -1;
    link->next = tcp->links;
    tcp->links = link;
    gyre_status status = GYRE_SUCCESS;
    if (peer < tcp->env.world->rank)
        status = gy_world_dial(tcp->env.world, peer, dialled, tcp, error);
    if (status != GYRE_SUCCESS) {
        tcp->links = link->next;
        gy_free(link);
        return status;
    }
    int fd = tcp->parked[peer];
    tcp->parked[peer] = -1;
    if (fd >= 0)
        connected(link, fd);
    *link_p = &link->base;
    return GYRE_SUCCESS;
}

static void tcp_post(struct gy_link *base, struct gy_frame_out *frame)
{
    gy_link_push(base, frame);
    if (base->state == GY_LINK_OPEN &&
        base->first == frame) /* else the socket was full a moment ago: progress goes on */
        flush((struct tcp_link *)base);
}

static bool tcp_arm(void *instance)
{
    struct tcp *tcp = instance;
    for (struct tcp_link *link = tcp->links; link; link = link->next) {
        if (link->base.state == GY_LINK_FAILED || (link->base.state == GY_LINK_OPEN && digestible(link)))
            return false;
        watch_out(link);
    }
    return true; /* what is in the kernel makes epoll return by itself: it is level-triggered */
}

static void tcp_disarm(void *instance)
{
    (void)instance;
}

static void tcp_close(void *instance)
{
    struct tcp *tcp = instance;
    if (tcp->closed)
        return;
    tcp->closed = true;
    gy_world_on_link(tcp->env.world, NULL, NULL);
    gy_world_cancel_dials(tcp->env.world, tcp);
    for (struct tcp_link *link = tcp->links; link; link = link->next) {
        disconnect(link);
        link->base.first = link->base.last = NULL;
        link->base.state = GY_LINK_DEAD;
    }
    for (int i = 0; i < tcp->env.world->size; i++) {
        if (tcp->parked[i] >= 0)
            close(tcp->parked[i]);
        tcp->parked[i] = -1;
    }
}

/* Sends what is queued and says that no more comes. Closing with unread bytes would reset the connection and could lose
 * what is on its way. */
static void tcp_stop(void *instance)
{
    struct tcp *tcp = instance;
    int64_t deadline = gy_now() + STOP_NS;
    for (struct tcp_link *link = tcp->links; link; link = link->next) {
        while (link->base.state == GY_LINK_OPEN && link->watch.fd >= 0 && link->base.first && !link->mute &&
               gy_now() < deadline) {
            struct pollfd room = {.fd = link->watch.fd, .events = POLLOUT};
            if (!flush(link))
                (void)poll(&room, 1, 5);
        }
        if (link->watch.fd >= 0)
            (void)shutdown(link->watch.fd, SHUT_WR);
    }
}

static void tcp_fini(void *instance, bool forked)
{
    struct tcp *tcp = instance;
    if (!forked)
        tcp_close(instance);
    while (tcp->links) {
        struct tcp_link *link = tcp->links;
        tcp->links = link->next;
        if (forked && link->watch.fd >= 0) /* the epoll set is the parent's: hands off */
            close(link->watch.fd);
        gy_free(link);
    }
    for (int i = 0; forked && i < tcp->env.world->size; i++)
        if (tcp->parked[i] >= 0)
            close(tcp->parked[i]);
    gy_free(tcp->parked);
    gy_free(tcp);
}

const struct gy_transport_ops gy_transport_tcp = {
    .name = "tcp",
    .available = gy_transport_always_available,
    .open = tcp_open,
    .reaches = tcp_reaches,
    .link = tcp_link,
    .post = tcp_post,
    .progress = tcp_progress,
    .arm = tcp_arm,
    .disarm = tcp_disarm,
    .close = tcp_close,
    .stop = tcp_stop,
    .fini = tcp_fini,
};
