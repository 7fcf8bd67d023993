/* A proxy for tests: stands in every TCP connection between the ranks of a test and does one bad thing to one of them.
 *
 *   rank ──gy_socket_connect(_from), wrapped──► proxy ──► the listener that was meant
 *
 * The rank's source port says which listener: it is written down in shared memory before it connects. The proxy knows
 * the handshake's length (docs/wire.md) and its purpose, and lets it through; what follows, in one direction, is
 * flipped, cut, repeated, swapped, or all of it delayed. A program that links proxy.c links gyre_internal too, with
 * --wrap of both. */
#ifndef GYRE_TESTS_SYSTEM_PROXY_H
#define GYRE_TESTS_SYSTEM_PROXY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "net/handshake.h"

enum proxy_fault {
    PROXY_NOTHING,
    PROXY_DELAY,  /* everything, both ways: pieces of random size after random pauses */
    PROXY_CLOSE,  /* both ends see the connection end */
    PROXY_FLIP,   /* one bit */
    PROXY_CUT,    /* these bytes are missing */
    PROXY_REPEAT, /* they come twice */
    PROXY_SWAP,   /* they come behind as many that follow */
    /* The same with a whole frame of a link; not where frames cannot be told: at encrypt. */
    PROXY_FRAME_CUT,
    PROXY_FRAME_REPEAT,
    PROXY_FRAME_SWAP,
    PROXY_FAULTS
};

struct proxy_plan {
    enum proxy_fault fault;
    enum gy_purpose purpose; /* of the connection */
    bool of_initiator;       /* what the initiator says, or what it hears */
    uint64_t at;             /* bytes, or frames, behind the handshake */
    unsigned bytes, bit;
    uint64_t seed; /* of the delays */
};

#define PROXY_ROUTES 64

/* Shared between the test, its proxy and its ranks. */
struct proxy {
    struct proxy_plan plan;
    uint16_t port; /* where the proxy listens */
    pid_t pid;
    _Atomic bool struck; /* the fault has happened */
    _Atomic int passing; /* directions of connections that are there */
    _Atomic unsigned routes;
    struct {
        _Atomic uint16_t source; /* the last to be written */
        struct sockaddr_storage target;
    } route[PROXY_ROUTES];
};

/* Makes `proxy`, which is shared memory, the one of this process and its children, and starts it. */
void proxy_start(struct proxy *proxy, const struct proxy_plan *plan);
/* When the ranks have ended, until their connections have, too: whether the fault has happened is known only then. */
void proxy_settle(const struct proxy *proxy);
void proxy_stop(struct proxy *proxy);
const char *proxy_fault_name(enum proxy_fault fault);

#endif
