/* Bytes to frames, over a tcp link.
 *
 *   recv(msg) --> [rest of the payload under way, in the receive handler's memory][65 KiB read-ahead]
 *
 * Neither passes the turn of this rail (striping.c). The read-ahead makes a stream of short frames cost one call,
 * and receives the header behind a payload. After a long payload it is small, since payload bytes in it are copied
 * once more. Frames that are complete in the read-ahead are delivered in place; others are completed in the receive
 * handler's memory. An eager frame of 64 KiB exceeds a packet of the loopback interface. The few bytes of its second
 * packet are awaited, as the receive handler would stash an incomplete frame. On a sealed link a header is verified
 * before use, and a payload in place before the receive handler is told. Wrong bytes may reach the handler's memory,
 * but never count as received.
 *
 * Invariant: the read-ahead holds bytes only while no payload is incomplete, or was just used up. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "core/clock.h"
#include "transport/tcp/internal.h"

#define SLEEP_BYTES ((size_t)128 << 10)        /* end a sleep at the latest */
#define QUIET_BYTES ((size_t)GY_TCP_AHEAD + 1) /* more than any eager frame */
#define QUIET_AFTER 32                         /* number of arrivals */
#define HEADERS ((size_t)1024)                 /* read-ahead while long payloads are expected */
#define RECEIVE_FRAMES 16                      /* per call */
#define RECEIVE_BYTES (UINT64_C(1) << 20)      /* per call */

/* Fills the current payload and then the read-ahead; −1: no data (or broken), else bytes. */
static ssize_t fill(struct tcp_link *link, bool *more_p)
{
    struct iovec pieces[2];
    size_t count = 0, wanted = 0, room;
    if (link->base.inbound.active) {
        size_t got = link->base.inbound.got;
        wanted = gy_min_size(link->base.inbound.frame.bytes - got, link->in.left);
        pieces[count++] = (struct iovec){link->base.inbound.place + got, wanted};
    }
    if (link->start == link->end)
        link->policy.unnamed = 0, link->policy.unnamed_ns = 0;
    else
        memmove(link->ahead, link->ahead + link->start, link->end - link->start);
    link->end -= link->start;
    link->start = 0;
    room = gy_min_size(GY_TCP_AHEAD - link->end, link->in.left - wanted);
    room = link->lengthy ? gy_min_size(room, HEADERS) : room;
    pieces[count++] = (struct iovec){link->ahead + link->end, room};
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = count};
    struct tcp_rail *rail = link->in.rail;
    bool times = link->policy.reading_timed;
    int64_t before = times ? gy_now() : 0;
    ssize_t got;
    do {
        got = count == 1 ? recv(rail->watch.fd, pieces[0].iov_base, pieces[0].iov_len, MSG_DONTWAIT)
                         : recvmsg(rail->watch.fd, &message, MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    if (got <= 0) {
        if (got == 0 || errno != EAGAIN)
            gy_tcp_fail(rail, got == 0 ? 0 : errno);
        return -1;
    }
    if (times)
        gy_tcp_zero_copy_read(link, (size_t)got, gy_now() - before);
    *more_p = (size_t)got == wanted + room; /* short: the socket is empty now, do not read again */
    size_t direct = gy_min_size(wanted, (size_t)got);
    link->base.inbound.got += direct;
    link->end += (size_t)got - direct;
    gy_tcp_passed(&link->in, (size_t)got);
    return got;
}

bool gy_tcp_digestible(const struct tcp_link *link)
{
    size_t available = link->end - link->start;
    if (link->base.inbound.active && link->base.inbound.got < link->base.inbound.frame.bytes)
        return available > 0;
    if (link->base.inbound.active)
        return !link->envelopes || available >= GY_SEAL_TAG_BYTES;
    return available >= (link->envelopes ? GY_ENVELOPE_HEAD : gy_max_size(link->whole, GY_FRAME_BYTES));
}

/* The received bytes failed verification. */
static bool refuse(struct tcp_link *link, const struct gy_frame *frame, enum gy_flaw flaw)
{
    char what[64] = "";
    if (frame)
        snprintf(what, sizeof(what), " (%s, %u bytes, operation %llu)", gy_frame_kind_name(frame->kind), frame->bytes,
                 (unsigned long long)frame->sequence);
    gy_link_fail(&link->base, GYRE_CORRUPTED,
                 "frame %llu%s from rank %d to rank %d %s (GYRE_INTEGRITY=%s); look for a bad network card or a "
                 "stranger on the way",
                 (unsigned long long)link->opens.number + (frame ? 0 : 1), what, link->base.peer,
                 link->tcp->env.world->rank, gy_flaw_text(flaw), gy_suite_name(link->opens.suite));
    return false;
}

/* The current payload is complete; its tag, if any, is in memory. */
static bool finish(struct tcp_link *link)
{
    const struct gy_frame *frame = &link->base.inbound.frame;
    if (link->envelopes) {
        if (!gy_seal_open_body(&link->opens, link->base.inbound.place, frame->bytes, link->ahead + link->start))
            return refuse(link, frame, GY_FLAW_DAMAGED);
        link->start += GY_SEAL_TAG_BYTES;
    }
    return gy_link_inbound_end(&link->base, link->handler);
}

/* Verifies a received header; *bytes_p is its length on the wire. */
static bool open_header(struct tcp_link *link, struct gy_frame *frame_p, size_t *bytes_p)
{
    const unsigned char *wire = link->ahead + link->start;
    unsigned char opened[GY_FRAME_BYTES];
    *bytes_p = GY_FRAME_BYTES;
    if (link->envelopes) {
        enum gy_flaw flaw = gy_seal_open_head(&link->opens, wire, GY_FRAME_BYTES, opened);
        if (flaw != GY_FLAW_NONE)
            return refuse(link, NULL, flaw);
        wire = opened;
        *bytes_p = GY_ENVELOPE_HEAD;
    }
    if (gy_frame_decode(wire, frame_p))
        return true;
    gy_link_fail(&link->base, GYRE_PROTOCOL, "rank %d sent something over tcp that is no frame of gyre",
                 link->base.peer);
    return false;
}

/* True if the rest is likely to arrive at once, and has room behind its beginning. */
static bool comes_whole(const struct tcp_link *link, const struct gy_frame *frame)
{
    return link->same_machine && !link->envelopes && !link->rails && link->start == 0 &&
           frame->flags & GY_FRAME_EAGER && GY_FRAME_BYTES + (size_t)frame->bytes <= GY_TCP_AHEAD;
}

/* One step from memory: a header, or the rest of a payload. *frames_p counts completed frames. Returns false if the
 * link is closed. */
static bool digest(struct tcp_link *link, int *frames_p)
{
    const struct gy_receive_handler *handler = link->handler;
    size_t available = link->end - link->start, bytes;
    if (link->base.inbound.active) {
        size_t rest = gy_min_size(link->base.inbound.frame.bytes - link->base.inbound.got, available);
        memcpy(link->base.inbound.place + link->base.inbound.got, link->ahead + link->start, rest);
        link->base.inbound.got += rest;
        link->start += rest;
        if (link->base.inbound.got < link->base.inbound.frame.bytes || !gy_tcp_digestible(link))
            return true;
        ++*frames_p;
        return finish(link);
    }
    struct gy_frame frame;
    if (!open_header(link, &frame, &bytes))
        return false;
    gy_tcp_zero_copy_heard(link, &frame);
    size_t tail = link->envelopes && frame.bytes ? GY_SEAL_TAG_BYTES : 0;
    if (frame.bytes > 0)
        link->lengthy = bytes + frame.bytes + tail > GY_TCP_AHEAD;
    link->whole = available < bytes + frame.bytes && comes_whole(link, &frame) ? bytes + frame.bytes : 0;
    if (link->whole > 0)
        return true;
    link->start += bytes;
    gy_tcp_zero_copy_begin(link, &frame);
    if (available - bytes < frame.bytes + tail)
        return gy_link_inbound_begin(&link->base, handler, &frame);
    unsigned char *payload = link->ahead + link->start;
    if (tail && !gy_seal_open_body(&link->opens, payload, frame.bytes, payload + frame.bytes))
        return refuse(link, &frame, GY_FLAW_DAMAGED);
    link->start += frame.bytes + tail;
    ++*frames_p;
    return gy_link_arrived(&link->base, handler, &frame, frame.bytes ? payload : NULL);
}

/* Returns the bytes that this rail must still deliver of the current payload. */
static size_t lacking(const struct tcp_link *link)
{
    size_t rest = link->base.inbound.active ? link->base.inbound.frame.bytes - link->base.inbound.got : 0;
    return gy_min_size(rest, link->in.left);
}

/* If a link is slower than its reader, each packet would wake the reader for a piece that it can only store. The
 * kernel counts instead, up to the size of its buffer: it grows the buffer, and wakes when it is full. The end of
 * the connection always wakes. */
static void wake_at(struct tcp_rail *rail, size_t bytes)
{
    int lowest = (int)gy_max_size(bytes, 1);
    if (rail->watch.fd >= 0 && gy_max_size(rail->wakes_at, 1) != (size_t)lowest &&
        setsockopt(rail->watch.fd, SOL_SOCKET, SO_RCVLOWAT, &lowest, sizeof(lowest)) == 0)
        rail->wakes_at = (size_t)lowest;
}

void gy_tcp_listen(struct tcp_link *link)
{
    link->arrivals = 0;
    gy_poller_listen(link->tcp->env.poller, &link->in.rail->watch);
}

void gy_tcp_end_quiet(void *owner)
{
    struct tcp_rail *rail = owner;
    rail->link->arrivals = 0;
    wake_at(rail, 0);
}

void gy_tcp_expect(struct tcp_link *link)
{
    gy_tcp_listen(link);
    wake_at(link->in.rail, gy_min_size(lacking(link), SLEEP_BYTES));
}

/* The event set handles every packet on the sending rank's core, which costs a thirtieth of an exchange of short
 * frames. It is not needed while ranks answer so quickly that none sleeps. So after a while the kernel is told not
 * to report less than an eager frame. This ends when a thread goes to sleep (poller.h) or posts a frame, such as a
 * grant; the connection's end is always reported. The kernel also acknowledges long frames sooner then: 64 KiB in
 * both directions at once took from the same time to three times as long without. */
static void grow_quiet(struct tcp_link *link)
{
    struct tcp_rail *rail = link->in.rail;
    if (link->arrivals < QUIET_AFTER)
        link->arrivals++;
    else if (!rail->watch.quiet && gy_poller_quiet(link->tcp->env.poller, &rail->watch))
        wake_at(rail, QUIET_BYTES);
}

static bool receive(struct tcp_link *link)
{
    uint64_t bytes = 0;
    int frames = 0;
    bool more = true, moved = false;
    while (link->base.state == GY_LINK_OPEN && frames < RECEIVE_FRAMES && bytes < RECEIVE_BYTES) {
        if (gy_tcp_digestible(link)) {
            if (!digest(link, &frames))
                break;
            moved = true;
            continue;
        }
        ssize_t got = more && link->in.rail->watch.fd >= 0 ? fill(link, &more) : -1;
        if (got < 0)
            break;
        bytes += (uint64_t)got;
        moved = true;
    }
    return moved;
}

/* A sleeper for which another thread reads must not wait for more bytes than are still to arrive. */
bool gy_tcp_receive(struct tcp_link *link)
{
    bool moved = receive(link);
    if (!link->in.rail->watch.quiet && link->in.rail->wakes_at > lacking(link))
        wake_at(link->in.rail, lacking(link));
    if (moved && link->same_machine && !link->rails && link->base.state == GY_LINK_OPEN)
        grow_quiet(link);
    return moved;
}
