/* The listener of a rank. Inbound connections go through the handshake without blocking, and are then handed to the
 * callback of their purpose. */
#ifndef GY_NET_LISTENER_H
#define GY_NET_LISTENER_H

#include "core/error.h"
#include "net/handshake_io.h"

#define GY_LISTENER_HANDSHAKES 64                     /* unauthenticated inbound connections at once */
#define GY_LISTENER_TIMEOUT (5 * INT64_C(1000000000)) /* time limit of each handshake, if the rank polls */

struct gy_listener;

/* An accepted, authenticated connection for the owner of its purpose. The callee owns `fd`
 * (non-blocking), and protects what it sends there with `keys`, which are valid during the call; NULL where fd is
 * −1. */
typedef void (*gy_listener_func)(void *user, int rank, int fd, const struct gy_seal_keys *keys);
/* Called when inbound connections could not be accepted for a second, for want of descriptors or memory. callback NULL:
 * no call. */
typedef void (*gy_listener_no_memory_func)(void *user, int errnum);
/* Called for every refused inbound connection, for error messages about missing ranks; `handshake->from` is not
 * authenticated. May be NULL. */
typedef void (*gy_listener_refused_func)(void *user, const struct gy_handshake *handshake);

struct gy_listener_env {
    struct gy_poller *poller;
    const uint8_t *key;
    uint64_t job;
    int rank, size;
    uint32_t purposes; /* mask of 1 << enum gy_purpose */
    int64_t peer_timeout_ns;
    enum gy_integrity integrity;
    int most;                 /* 0: GY_LISTENER_HANDSHAKES at once, not counting connections handed over. Otherwise this
                               * many together with the registrants, which are the connections handed over and not yet
                               * released: later ones wait in the kernel's backlog */
    uint64_t *sockets_opened; /* counter, or NULL */
};

/* Takes over the listening `fd`. */
gyre_status gy_listener_create(int fd, struct gy_listener **listener_p, struct gy_error *error);
/* Begins to accept; until then inbound connections wait in the backlog. `env` is copied, the key too. */
gyre_status gy_listener_open(struct gy_listener *listener, const struct gy_listener_env *env, struct gy_error *error);
/* Inbound connections with a purpose that has no callback yet are kept for it. callback NULL: keep again. */
void gy_listener_on(struct gy_listener *listener, enum gy_purpose purpose, gy_listener_func callback, void *user);
/* The `user` of the purpose's callback, or NULL if it has none. */
const void *gy_listener_owner(const struct gy_listener *listener, enum gy_purpose purpose);
void gy_listener_on_refused(struct gy_listener *listener, gy_listener_refused_func callback, void *user);
void gy_listener_on_no_memory(struct gy_listener *listener, gy_listener_no_memory_func callback, void *user);
/* Returns the number of handshakes in progress. */
int gy_listener_handshake(const struct gy_listener *listener);
/* Returns a second descriptor of the listening socket, which keeps the address from being refused after the listener is
 * closed; −1, errno. */
int gy_listener_hold(const struct gy_listener *listener);
/* A registrant is gone, or shall no longer count. */
void gy_listener_release(struct gy_listener *listener);
void gy_listener_free(struct gy_listener *listener);
/* Closes descriptors and frees, in a forked child: the poller is the parent's. */
void gy_listener_abandon(struct gy_listener *listener);

#endif
