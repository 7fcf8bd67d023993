/* Frames to bytes, over a tcp link.
 *
 *   queue --(16 frames a call: header, payload, header, payload ...)--> sendmsg
 *            sealed: envelope.h lays them out instead
 *
 * A frame's owner has it back when its last byte is in the socket. Where the socket is full the rest stays queued:
 * `sent` counts what of the first frame has left. A call goes no further than the turn of its rail (tcp_rails.c). */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "transport/tcp_private.h"

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

/* One short frame of which nothing has left, and that stays on this rail: put together, it goes by the plainer call. */
static bool is_short(const struct tcp_link *link)
{
    const struct gy_frame_out *frame = link->base.first;
    return !link->envelopes && !frame->next && frame->sent == 0 && frame->header.bytes <= SHORT_BYTES &&
           link->out.left >= GY_FRAME_BYTES + SHORT_BYTES;
}

static ssize_t send_short(const struct tcp_link *link)
{
    uint8_t wire[GY_FRAME_BYTES + SHORT_BYTES];
    const struct gy_frame_out *frame = link->base.first;
    gy_frame_encode(&frame->header, wire);
    if (frame->header.bytes > 0)
        memcpy(wire + GY_FRAME_BYTES, frame->payload, frame->header.bytes);
    return send(link->out.rail->watch.fd, wire, GY_FRAME_BYTES + frame->header.bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* So many pieces are the first `bytes`, or all; the last of them ends there. */
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

bool gy_tcp_flush(struct tcp_link *link)
{
    bool moved = false;
    for (int call = 0; call < SEND_CALLS && link->base.first && link->out.rail->watch.fd >= 0 && !link->mute; call++) {
        ssize_t sent = is_short(link) ? send_short(link) : send_gathered(link);
        if (sent < 0) {
            if (errno == EINTR)
                continue;
            if (errno == EAGAIN)
                break;
            if (link->rails)
                gy_tcp_rails_mute(link->out.rail, errno);
            else
                link->mute = true;
            break;
        }
        gy_tcp_passed(&link->out, (size_t)sent);
        account(link, (size_t)sent);
        moved = true;
    }
    return moved;
}
