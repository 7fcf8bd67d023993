/* Frames to bytes, over a tcp link.
 *
 *   queue --(16 frames a call: header, payload, header, payload ...)--> sendmsg
 *            sealed: sealed_frames.h lays them out instead
 *
 * A frame returns to its owner when its last byte is in the socket. If the socket is full the rest stays queued:
 * `sent` counts the bytes of the first frame that have left. A call does not pass the turn of its rail (striping.c).
 *
 * send_short has no owner: if the queue is empty the frame is sent in place, by one call. After a partial send the
 * rest is copied and becomes the first of the queue, so later frames follow it. On sealed links, and on those of
 * several rails, the frame is always copied and queued. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "core/clock.h"
#include "transport/tcp/internal.h"

#define SEND_FRAMES 16 /* per sendmsg */
#define SEND_CALLS 4   /* per flush */
#define SHORT_BYTES 1024

_Static_assert(SEND_FRAMES == GY_ENVELOPES, "as many sealed as others");

/* Lays out frames from the queue's head, without the `sent` bytes of the first. Returns the number of pieces. */
static size_t gather(const struct tcp_link *link, struct iovec *pieces, uint8_t headers[][GY_FRAME_BYTES])
{
    size_t count = 0;
    const struct gy_frame_out *frame = link->base.first;
    for (size_t i = 0; i < SEND_FRAMES && frame; i++, frame = frame->next) {
        if (i > 0 && frame->header.flags & GY_TCP_FRAME_NT)
            break; /* by another call: zero_copy_pool.c */
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
        size_t whole = link->envelopes ? gy_envelope_bytes(&frame->header) : GY_FRAME_BYTES + frame->header.bytes;
        size_t rest = whole - frame->sent;
        if (bytes < rest) {
            frame->sent += bytes;
            return;
        }
        bytes -= rest;
        if (link->envelopes)
            gy_envelopes_gone(link->envelopes);
        gy_link_complete_first(&link->base);
    }
}

/* Sends one whole frame of which nothing has left; a short one is assembled for the simpler call. */
static ssize_t send_frame(const struct tcp_link *link, const struct gy_frame *header, const void *payload)
{
    uint8_t wire[GY_FRAME_BYTES + SHORT_BYTES];
    int fd = link->out.rail->watch.fd;
    gy_frame_encode(header, wire);
    if (header->bytes <= SHORT_BYTES) {
        if (header->bytes > 0)
            memcpy(wire + GY_FRAME_BYTES, payload, header->bytes);
        return send(fd, wire, GY_FRAME_BYTES + header->bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    struct iovec pieces[2] = {{wire, GY_FRAME_BYTES}, {(void *)(uintptr_t)payload, header->bytes}};
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 2};
    return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* True for one short frame of which nothing has left, and that stays on this rail. */
static bool is_short(const struct tcp_link *link)
{
    const struct gy_frame_out *frame = link->base.first;
    return !link->envelopes && !frame->next && frame->sent == 0 && frame->header.bytes <= SHORT_BYTES &&
           link->out.left >= GY_FRAME_BYTES + SHORT_BYTES;
}

/* Returns how many pieces hold the first `bytes`, or all; the last of them is cut there. */
static size_t cut(struct iovec *pieces, size_t count, size_t bytes)
{
    for (size_t i = 0; i < count; i++) {
        if (pieces[i].iov_len >= bytes) {
            pieces[i].iov_len = bytes;
            return i + 1;
        }
        bytes -= pieces[i].iov_len;
    }
    return count;
}

static ssize_t send_gathered(const struct tcp_link *link)
{
    uint8_t headers[SEND_FRAMES][GY_FRAME_BYTES];
    struct iovec pieces[GY_ENVELOPE_PIECES * SEND_FRAMES];
    struct msghdr message = {.msg_iov = pieces};
    message.msg_iovlen = link->envelopes ? gy_envelopes_gather(link->envelopes, link->base.first, pieces)
                                         : gather(link, pieces, headers);
    if (link->rails)
        message.msg_iovlen = cut(pieces, message.msg_iovlen, link->out.left);
    return sendmsg(link->out.rail->watch.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Sends as much of a frame as one call takes: the first of the queue with those behind it, or alone. *pooled_p: by
 * non-temporal copy. */
static ssize_t send_long(struct tcp_link *link, struct gy_frame_out *frame, bool *pooled_p)
{
    *pooled_p = gy_tcp_pool_has(link, frame);
    if (*pooled_p)
        return gy_tcp_pool_send(link);
    return frame == link->base.first ? send_gathered(link) : send_frame(link, &frame->header, frame->payload);
}

static ssize_t send_timed(struct tcp_link *link, struct gy_frame_out *frame)
{
    bool pooled, times = frame->header.flags & GY_TCP_FRAME_TIMED;
    int64_t before = times ? gy_now() : 0;
    ssize_t sent = send_long(link, frame, &pooled);
    if (times && sent > 0 && !(pooled && link->policy.fresh)) {
        struct tcp_sort *sort = gy_tcp_zero_copy_sort(link, frame->header.bytes);
        gy_tcp_zero_copy_timed(&sort->sends[pooled], frame->header.bytes, (size_t)sent, gy_now() - before);
    }
    return sent;
}

/* Sends as much of the queue as one call takes: bytes, or −1 and errno. */
static ssize_t send_some(struct tcp_link *link)
{
    const struct gy_frame_out *frame = link->base.first;
    if (is_short(link))
        return send_frame(link, &frame->header, frame->payload);
    return send_timed(link, link->base.first);
}

/* True if the connection is over; reading will find that after the last bytes of the peer. */
static bool is_the_end(int reason)
{
    return reason == EPIPE || reason == ECONNRESET || reason == ECONNABORTED || reason == ETIMEDOUT ||
           reason == EHOSTUNREACH || reason == EHOSTDOWN || reason == ENETUNREACH || reason == ENETDOWN;
}

/* Other send errors, such as unreadable memory, are never found by reading. */
static void cannot_send(struct tcp_link *link, int reason)
{
    if (!is_the_end(reason))
        gy_link_fail(&link->base, GYRE_SYSTEM, "rank %d cannot send to rank %d over tcp: %s",
                     link->tcp->env.world->rank, link->base.peer, strerror(reason));
    else if (link->rails)
        gy_tcp_rails_send_failed(link->out.rail, reason);
    else
        link->send_failed = true;
}

bool gy_tcp_flush(struct tcp_link *link)
{
    bool moved = false;
    for (int call = 0; call < SEND_CALLS && link->base.first && link->out.rail->watch.fd >= 0 && !link->send_failed;
         call++) {
        ssize_t sent = send_some(link);
        if (sent < 0) {
            if (errno == EINTR)
                continue;
            if (errno == EAGAIN)
                break;
            cannot_send(link, errno);
            break;
        }
        gy_tcp_passed(&link->out, (size_t)sent);
        account(link, (size_t)sent);
        moved = true;
    }
    return moved;
}

/* The frame's flags may change. The kept frame's address represents it, so that a piece in the pool stays its own. */
static ssize_t send_alone(struct tcp_link *link, struct gy_frame *header, const void *payload)
{
    link->kept = (struct gy_frame_out){.header = *header, .payload = payload};
    ssize_t sent = send_timed(link, &link->kept);
    if (sent <= 0)
        link->policy.frame = NULL;
    *header = link->kept.header;
    return sent;
}

/* Keeps the link's own copy, of which `sent` bytes have left; nothing else is queued. */
static void keep(struct tcp_link *link, const struct gy_frame *header, const void *payload, size_t sent)
{
    link->kept = (struct gy_frame_out){.header = *header, .payload = link->rest};
    if (header->bytes > 0)
        memcpy(link->rest, payload, header->bytes);
    gy_link_push(&link->base, &link->kept);
    link->kept.sent = sent;
    link->base.kept = &link->kept;
    link->deferred = false;
}

bool gy_tcp_send_short(struct gy_link *base, const struct gy_frame *header, const void *payload)
{
    struct tcp_link *link = (struct tcp_link *)base;
    size_t whole = GY_FRAME_BYTES + header->bytes;
    if (base->first || base->state != GY_LINK_OPEN || link->out.rail->watch.fd < 0 || link->send_failed)
        return false;
    if (link->envelopes || link->rails) {
        keep(link, header, payload, 0);
        gy_tcp_flush(link);
        return true;
    }
    struct gy_frame marked = *header;
    gy_tcp_zero_copy_mark(link, &marked);
    ssize_t sent = header->bytes < GY_TCP_ZERO_COPY_LEAST ? send_frame(link, &marked, payload)
                                                          : send_alone(link, &marked, payload);
    if (sent <= 0) /* post finds the cause */
        return false;
    gy_tcp_passed(&link->out, (size_t)sent);
    if ((size_t)sent < whole)
        keep(link, &marked, payload, (size_t)sent);
    return true;
}
