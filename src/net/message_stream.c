/* in:  header (8) ──opened, length <= limit──► body ──complete, opened──► message()
 * out: [begin .. end) of one growing buffer; what the socket does not take at once leaves on EPOLLOUT.
 *
 * Invariant: no callback is called after close (fd < 0), and none once the stream is deaf. A callback may close the
 * stream, so `fd` is checked after each. */
#include "net/message_stream.h"

#include <errno.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/mem.h"
#include "net/byte_codec.h"

#define OUT_ROOM 2048 /* bytes: what a stream can hold back without asking for memory */

#define READS_PER_EVENT 64
#define READS_AT_END (1 << 16) /* of a connection that has ended, or is to: many ranks that leave at once send much */

static void forget(struct gy_stream *stream)
{
    gy_free(stream->body);
    gy_free(stream->out);
    gy_seal_end(&stream->seal_out);
    gy_seal_end(&stream->seal_in);
    stream->body = stream->out = NULL;
    stream->out_room = stream->out_begin = stream->out_end = 0;
    stream->header_got = stream->body_got = stream->body_bytes = 0;
    stream->fd = -1;
}

void gy_stream_close(struct gy_stream *stream)
{
    if (!stream->poller || stream->fd < 0)
        return;
    gy_poller_remove(stream->poller, &stream->watch);
    close(stream->fd);
    forget(stream);
}

void gy_stream_abandon(struct gy_stream *stream)
{
    if (!stream->poller || stream->fd < 0)
        return;
    close(stream->fd);
    forget(stream);
}

static void watch(struct gy_stream *stream, bool room)
{
    uint32_t in = stream->deaf ? 0 : EPOLLIN | EPOLLRDHUP;

    gy_poller_change(stream->poller, &stream->watch, in | (room ? (uint32_t)EPOLLOUT : 0));
}

static void broken(struct gy_stream *stream, int errnum)
{
    stream->deaf = errnum == EBADMSG || (stream->keeps && (errnum == EPROTO || errnum == ENOMEM));
    if (stream->deaf)
        watch(stream, stream->out_begin < stream->out_end);
    else
        gy_stream_close(stream);
    stream->closed(stream->user, stream, errnum);
}

/* An errno; 0: all sent; EAGAIN: the rest later. */
static int flush(struct gy_stream *stream)
{
    while (stream->out_begin < stream->out_end) {
        ssize_t sent = send(stream->fd, stream->out + stream->out_begin, stream->out_end - stream->out_begin,
                            MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return errno;
        stream->out_begin += (size_t)sent;
    }
    stream->out_begin = stream->out_end = 0;
    return 0;
}

static bool sealed(const struct gy_stream *stream)
{
    return stream->seal_in.suite != GY_SUITE_OFF;
}

/* As they travel: of a header, and of the body that was announced. */
static size_t header_wire(const struct gy_stream *stream)
{
    return sealed(stream) ? GY_STREAM_WIRE : GY_STREAM_HEADER;
}

static size_t body_wire(const struct gy_stream *stream)
{
    return stream->body_bytes + (sealed(stream) && stream->body_bytes ? GY_SEAL_TAG_BYTES : 0);
}

/* The header is complete. */
static int begin_body(struct gy_stream *stream)
{
    struct gy_wire wire = gy_wire_over(stream->header, GY_STREAM_HEADER);
    size_t bytes;

    if (sealed(stream))
        stream->flaw = gy_seal_open_head(&stream->seal_in, stream->wire, GY_STREAM_HEADER, stream->header);
    else
        memcpy(stream->header, stream->wire, GY_STREAM_HEADER);
    if (stream->flaw != GY_FLAW_NONE)
        return EBADMSG;
    bytes = (size_t)gy_wire_get(&wire, 4);
    if (bytes > stream->limit || stream->header[5] || stream->header[6] || stream->header[7])
        return EPROTO;
    if (bytes > stream->room) {
        uint8_t *grown = gy_realloc(stream->body, bytes + GY_SEAL_TAG_BYTES);

        if (!grown)
            return ENOMEM;
        stream->body = grown;
        stream->room = bytes;
    }
    stream->body_bytes = bytes;
    stream->body_got = 0;
    return 0;
}

/* The body is complete. */
static int deliver(struct gy_stream *stream)
{
    if (sealed(stream) && stream->body_bytes &&
        !gy_seal_open_body(&stream->seal_in, stream->body, stream->body_bytes, stream->body + stream->body_bytes)) {
        stream->flaw = GY_FLAW_DAMAGED;
        return EBADMSG;
    }
    stream->header_got = 0;
    if (stream->received_count)
        ++*stream->received_count;
    stream->message(stream->user, stream, stream->header[4], stream->body, stream->body_bytes);
    return 0;
}

void gy_stream_widen(struct gy_stream *stream, size_t limit)
{
    stream->limit = limit > stream->limit ? limit : stream->limit;
}

/* One read. 0: continue; EAGAIN: no data; −1: the peer ended. */
static int read_some(struct gy_stream *stream)
{
    bool in_header = stream->header_got < header_wire(stream);
    uint8_t *at = in_header ? stream->wire + stream->header_got : stream->body + stream->body_got;
    size_t want = in_header ? header_wire(stream) - stream->header_got : body_wire(stream) - stream->body_got;
    ssize_t got = recv(stream->fd, at, want, 0);
    int errnum;

    if (got < 0)
        return errno == EINTR ? 0 : errno;
    if (got == 0)
        return -1;
    if (in_header) {
        stream->header_got += (size_t)got;
        if (stream->header_got < header_wire(stream))
            return 0;
        errnum = begin_body(stream);
        if (errnum || stream->body_bytes)
            return errnum;
    } else {
        stream->body_got += (size_t)got;
    }
    return stream->body_got == body_wire(stream) ? deliver(stream) : 0;
}

static void discard(int fd)
{
    uint8_t bytes[OUT_ROOM];

    for (int i = 0; i < READS_PER_EVENT && recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0; i++)
        ;
}

/* The kernel reports an error once. If a send got the error, a read sees an end of file, which must not be taken for
 * the end of the peer's process. */
static int end_of(const struct gy_stream *stream)
{
    return stream->send_errnum == EPIPE ? 0 : stream->send_errnum;
}

static void drain(struct gy_stream *stream, int reads)
{
    if (stream->poller && stream->fd >= 0 && stream->deaf)
        discard(stream->fd);
    for (int i = 0; i < reads && stream->poller && stream->fd >= 0 && !stream->deaf; i++) {
        int errnum = read_some(stream);

        if (errnum == EAGAIN || stream->fd < 0)
            return;
        if (errnum) {
            broken(stream, errnum < 0 ? end_of(stream) : errnum);
            return;
        }
    }
}

/* Sends what waits, and asks for an event if some is left: a real error comes back so, too. */
static void push(struct gy_stream *stream)
{
    int errnum = flush(stream);

    if (errnum != 0)
        watch(stream, true);
    if (errnum != 0 && errnum != EAGAIN && stream->send_errnum == 0)
        stream->send_errnum = errnum;
}

void gy_stream_drain(struct gy_stream *stream)
{
    drain(stream, READS_AT_END);
    if (stream->poller && stream->fd >= 0 && !stream->deaf && stream->out_begin < stream->out_end)
        push(stream);
}

static bool has_unread(const struct gy_stream *stream)
{
    int bytes = 0;

    return !stream->deaf && ioctl(stream->fd, FIONREAD, &bytes) == 0 && bytes > 0;
}

static void on_event(void *owner, uint32_t events)
{
    struct gy_stream *stream = owner;
    bool waits = stream->out_begin < stream->out_end;
    int errnum;

    if (stream->deaf && events & (EPOLLHUP | EPOLLERR)) {
        gy_stream_close(stream);
        return;
    }
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR | EPOLLRDHUP))
        drain(stream,
              waits ? READS_AT_END : READS_PER_EVENT); /* first: a last message may wait in front of the error */
    if (stream->fd < 0 || !(events & EPOLLOUT))
        return;
    errnum = flush(stream);
    if (errnum == 0)
        watch(stream, false);
    if (errnum == 0 || errnum == EAGAIN)
        return;
    if (stream->deaf) { /* its end has been reported already, with the reason */
        gy_stream_close(stream);
        return;
    }
    if (stream->send_errnum == 0)
        stream->send_errnum = errnum; /* reading would take it for an end of file */
    gy_stream_drain(stream);          /* all that was sent before the end */
    if (stream->fd >= 0)
        broken(stream, errnum);
}

gyre_status gy_stream_open(struct gy_stream *stream, struct gy_poller *poller, int fd, const struct gy_seal_keys *keys,
                           size_t limit, gy_stream_message_func message, gy_stream_closed_func closed, void *user,
                           struct gy_error *error)
{
    gyre_status status;

    /* Allocates all buffers now: a stream lives beside collectives, which are guaranteed not to allocate. A rank
     * without memory fails here, where it can still report it, not at the message that would tell the others. */
    memset(stream, 0, sizeof(*stream));
    stream->poller = poller;
    stream->fd = fd;
    stream->limit = stream->room = limit;
    stream->message = message;
    stream->closed = closed;
    stream->user = user;
    stream->watch = (struct gy_watch){.fd = fd, .events = EPOLLIN | EPOLLRDHUP, .callback = on_event, .owner = stream};
    bool sealed = keys->suite == GY_SUITE_OFF || (gy_seal_begin(&stream->seal_out, keys->suite, keys->out) &&
                                                  gy_seal_begin(&stream->seal_in, keys->suite, keys->in));
    stream->body = gy_alloc(limit + GY_SEAL_TAG_BYTES);
    stream->out = gy_alloc(OUT_ROOM);
    stream->out_room = OUT_ROOM;
    if (!stream->body || !stream->out || !sealed) {
        status = gy_error_set(error, GYRE_NO_MEMORY, -1, "no memory for messages of %zu bytes", limit);
        goto forget_fd;
    }
    status = gy_poller_add(poller, &stream->watch, error);
    if (status == GYRE_SUCCESS)
        return status;
forget_fd:
    forget(stream);
    return status;
}

/* If the end of the buffer is reached, the waiting bytes move to its beginning. So its size is bounded by the bytes
 * waiting at once, not by the bytes ever sent. */
static bool make_room(struct gy_stream *stream, size_t bytes)
{
    size_t waits = stream->out_end - stream->out_begin, room = waits + bytes;
    uint8_t *grown;

    if (stream->out_end + bytes <= stream->out_room)
        return true;
    memmove(stream->out, stream->out + stream->out_begin, waits);
    stream->out_begin = 0;
    stream->out_end = waits;
    if (room <= stream->out_room)
        return true;
    room = gy_max_size(room, 2 * stream->out_room); /* what waits is moved each time */
    grown = gy_realloc(stream->out, room);
    if (!grown)
        return false;
    stream->out = grown;
    stream->out_room = room;
    return true;
}

/* At most so many bytes of a message travel. */
static size_t wire_most(size_t bytes)
{
    return GY_STREAM_WIRE + bytes + GY_SEAL_TAG_BYTES;
}

/* Returns how many they are. */
static size_t encode(uint8_t *at, struct gy_seal *seal, uint8_t kind, const void *body, size_t bytes)
{
    uint8_t header[GY_STREAM_HEADER];
    struct gy_wire wire = gy_wire_over(header, sizeof(header));
    bool plain = seal->suite == GY_SUITE_OFF;
    size_t used = plain ? GY_STREAM_HEADER : GY_STREAM_WIRE;

    gy_wire_put(&wire, bytes, 4);
    gy_wire_put(&wire, kind, 1);
    gy_wire_put(&wire, 0, 3);
    if (plain)
        memcpy(at, header, sizeof(header));
    else
        gy_seal_close_head(seal, header, sizeof(header), at);
    if (bytes == 0)
        return used;
    if (plain || !gy_seal_hides(seal))
        memcpy(at + used, body, bytes);
    if (plain)
        return used + bytes;
    gy_seal_close_body(seal, body, bytes, at + used, at + used + bytes);
    return used + bytes + GY_SEAL_TAG_BYTES;
}

static bool queue(struct gy_stream *stream, uint8_t kind, const void *body, size_t bytes)
{
    if (!stream->poller || stream->fd < 0 || !make_room(stream, wire_most(bytes)))
        return false;
    stream->out_end += encode(stream->out + stream->out_end, &stream->seal_out, kind, body, bytes);
    if (stream->sent_count)
        ++*stream->sent_count;
    return true;
}

bool gy_stream_send(struct gy_stream *stream, uint8_t kind, const void *body, size_t bytes)
{
    if (!queue(stream, kind, body, bytes))
        return false;
    push(stream);
    return true;
}

bool gy_stream_post(struct gy_stream *stream, uint8_t kind, const void *body, size_t bytes)
{
    if (!queue(stream, kind, body, bytes))
        return false;
    if (has_unread(stream))
        watch(stream, true);
    else
        push(stream);
    return true;
}

void gy_stream_refuse(int fd, const struct gy_seal_keys *keys, uint8_t kind, const void *body, size_t bytes)
{
    uint8_t out[OUT_ROOM];
    struct gy_seal seal = gy_seal_of(keys->suite, keys->out);

    if (wire_most(bytes) <= sizeof(out))
        (void)!send(fd, out, encode(out, &seal, kind, body, bytes), MSG_NOSIGNAL | MSG_DONTWAIT);
    shutdown(fd, SHUT_WR);
    discard(fd); /* unread bytes at close would make a reset of it */
    close(fd);
}

/* What the kernel has accepted and not sent is lost if the peer's next message resets the connection: it holds back all
 * but the first ten of many small packets until the peer's kernel acknowledges them, which takes 40 ms. */
bool gy_stream_flushed(const struct gy_stream *stream)
{
    int unsent = 0;

    if (!stream->poller || stream->fd < 0)
        return true;
    return stream->out_begin == stream->out_end && (ioctl(stream->fd, SIOCOUTQNSD, &unsent) < 0 || unsent == 0);
}
