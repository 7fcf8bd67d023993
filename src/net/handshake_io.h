/* One handshake on one socket, driven by the poller: connects if it must, then greets, then hands the socket over. */
#ifndef GY_NET_HANDSHAKE_IO_H
#define GY_NET_HANDSHAKE_IO_H

#include "core/poller.h"
#include "net/address.h"
#include "net/handshake.h"
#include "net/socket.h"

struct gy_handshake_io;
/* errnum 0 and state DONE: handshake->fd is the caller's (the handshake forgets it). Otherwise the socket is closed;
 * errnum says why, or is 0 when the handshake was refused. The callback may free the handshake. */
typedef void (*gy_handshake_io_func)(void *user, struct gy_handshake_io *handshake_io, int errnum);

struct gy_handshake_io {
    struct gy_poller *poller;
    struct gy_watch watch;
    int fd;
    bool connecting;
    bool unanswered; /* initiator: the acceptor read message 1 and closed without an answer: it has another secret */
    int64_t started;
    unsigned ticks;             /* of its owner's clock, at which it was still there; the listener's */
    int64_t ticked;             /* how long these took, if none came late */
    char from[GY_ADDRESS_TEXT]; /* where the inbound connection comes from, for error messages; the listener's */
    struct gy_handshake handshake;
    gy_handshake_io_func done;
    void *user;
    struct gy_handshake_io *next; /* the owner's list */
};

/* `handshake->handshake` has been begun by the caller; takes over `fd`, which may still be connecting. false: could not
 * be watched, fd is closed. */
bool gy_handshake_io_start(struct gy_handshake_io *handshake_io, struct gy_poller *poller, int fd, bool connecting,
                           gy_handshake_io_func done, void *user);
/* Attempts in a row that the acceptor has ended without an answer. */
struct gy_unanswered {
    unsigned attempts;
    int64_t since;
};

/* Initiator, when an attempt is over: returns true if the acceptor seems not to know the key of this process. It
 * then ends the connection without an answer. A process that ends may do so too, but not three times in a fifth of a
 * second. */
bool gy_handshake_io_is_of_another_secret(const struct gy_handshake_io *handshake_io, struct gy_unanswered *unanswered);
/* Initiator, before it closes `fd` without a handshake: sends what is left of message 1, as far as that does not block.
 * The acceptor then knows that the connection came from a member. */
void gy_handshake_io_introduce(int fd, struct gy_handshake *handshake);
/* Closes without a callback; idempotent. */
void gy_handshake_io_cancel(struct gy_handshake_io *handshake_io);

#endif
