/* Bounded messages on an authenticated socket: 4 bytes of length, 1 of kind, 3 of zero, then the body; protected with
 * the connection's keys (record_protection.h). */
#ifndef GY_NET_MESSAGE_STREAM_H
#define GY_NET_MESSAGE_STREAM_H

#include "core/poller.h"
#include "net/record_protection.h"

#define GY_STREAM_HEADER 8u
#define GY_STREAM_WIRE (GY_STREAM_HEADER + GY_SEAL_HEAD_MORE)

struct gy_stream;
/* One whole message. May close this stream, must not free its memory. */
typedef void (*gy_stream_message_func)(void *user, struct gy_stream *stream, uint8_t kind, uint8_t *body, size_t bytes);
/* The peer closed (errnum 0), the connection broke, or the peer sent malformed data (EPROTO). Or the data received are
 * not those sent (EBADMSG, and stream->flaw says why), or there was no memory to receive (ENOMEM). The socket is closed
 * already, with one exception. After EBADMSG, and after every decision of this side if stream->keeps, the stream is
 * deaf: nothing more is read from it, and queued data still leave, so that the peer can be told why. */
typedef void (*gy_stream_closed_func)(void *user, struct gy_stream *stream, int errnum);

struct gy_stream {
    struct gy_poller *poller;
    struct gy_watch watch;
    int fd;       /* −1: closed */
    bool deaf;    /* what comes is not believed any more */
    bool keeps;   /* set by the user: an end of this socket would tell the peer that this process has ended */
    size_t limit; /* longest body that is believed */
    size_t room;  /* for a body; grows up to limit where gy_stream_widen has raised that */
    struct gy_seal seal_out, seal_in;
    enum gy_flaw flaw;                                      /* kept after the end */
    uint8_t header[GY_STREAM_HEADER], wire[GY_STREAM_WIRE]; /* opened, and as it came */
    size_t header_got;
    uint8_t *body;
    size_t body_bytes, body_got; /* room: limit, and a tag */
    uint8_t *out;
    size_t out_begin, out_end, out_room;
    int send_errnum; /* the first error of sending, 0: none */
    gy_stream_message_func message;
    gy_stream_closed_func closed;
    void *user;
    uint64_t *sent_count, *received_count; /* counters, or NULL */
};

/* Takes over `fd`; on failure it stays the caller's. `stream` was zeroed or closed before. `keys` come from its
 * handshake. */
gyre_status gy_stream_open(struct gy_stream *stream, struct gy_poller *poller, int fd, const struct gy_seal_keys *keys,
                           size_t limit, gy_stream_message_func message, gy_stream_closed_func closed, void *user,
                           struct gy_error *error);
/* From now on bodies of up to `limit` bytes are believed; memory for the long ones is had when they come. */
void gy_stream_widen(struct gy_stream *stream, size_t limit);
/* Queues a copy and sends what the socket takes. Returns false if there is no memory (never for the first kilobyte that
 * waits), or the stream is closed. A broken socket is reported by `closed`, later. */
bool gy_stream_send(struct gy_stream *stream, uint8_t kind, const void *body, size_t bytes);
/* The same for what is in no hurry: while received data are unread, it waits until they have been read. A message to a
 * peer that has closed resets the connection, and with it goes what the peer has sent and its kernel still holds. */
bool gy_stream_post(struct gy_stream *stream, uint8_t kind, const void *body, size_t bytes);
/* For a socket without a stream: sends one message, as far as the socket takes it at once, and closes. Allocates no
 * memory. */
void gy_stream_refuse(int fd, const struct gy_seal_keys *keys, uint8_t kind, const void *body, size_t bytes);
bool gy_stream_flushed(const struct gy_stream *stream);
/* Reads and delivers what is there, now, and sends what waited for that. */
void gy_stream_drain(struct gy_stream *stream);
/* Frees and closes, no callback; idempotent. */
void gy_stream_close(struct gy_stream *stream);
/* The same in a forked child, where the poller belongs to the parent. */
void gy_stream_abandon(struct gy_stream *stream);

#endif
