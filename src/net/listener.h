/* The door of a rank: a listener whose visitors are greeted without blocking and then handed to whoever asked for their
 * purpose. */
#ifndef GY_NET_LISTENER_H
#define GY_NET_LISTENER_H

#include "core/error.h"
#include "net/handshake_io.h"

#define GY_DOOR_GREETINGS 64                       /* unauthenticated visitors at once */
#define GY_DOOR_PATIENCE (5 * INT64_C(1000000000)) /* each of them has this long, if the rank looks */

struct gy_door;

/* An accepted, authenticated connection for someone above (GY_PURPOSE_LINK or GY_PURPOSE_RDMA): the callee owns `fd`
 * (non-blocking), and seals what it says there with `keys`, which are valid during the call; NULL where fd is −1. */
typedef void (*gy_door_func)(void *user, int rank, int fd, const struct gy_seal_keys *keys);
/* Told when visitors could not be accepted for a second, for want of descriptors or memory. callback NULL: nobody. */
typedef void (*gy_door_starved_func)(void *user, int errnum);
/* Told about every refused visitor, for sentences about who is missing; `handshake->from` is unproven. May be NULL. */
typedef void (*gy_door_refused_func)(void *user, const struct gy_handshake *handshake);

struct gy_door_env {
    struct gy_poller *poller;
    const uint8_t *key;
    uint64_t job;
    int rank, size;
    uint32_t purposes; /* mask of 1 << enum gy_purpose */
    int64_t peer_timeout_ns;
    enum gy_integrity integrity;
    int most;                 /* 0: GY_DOOR_GREETINGS at once, and those handed over do not count. Else this many
                               * together with the guests, which are those handed over and not yet released: whoever
                               * comes later waits in the kernel's backlog */
    uint64_t *sockets_opened; /* counter, or NULL */
};

/* Takes over the listening `fd`. */
gyre_status gy_door_create(int fd, struct gy_door **door_p, struct gy_error *error);
/* Begins to accept; until then visitors wait in the backlog. `env` is copied, the key too. */
gyre_status gy_door_open(struct gy_door *door, const struct gy_door_env *env, struct gy_error *error);
/* Visitors with a purpose that has no callback yet are kept for it. callback NULL: keep again. */
void gy_door_on(struct gy_door *door, enum gy_purpose purpose, gy_door_func callback, void *user);
void gy_door_on_refused(struct gy_door *door, gy_door_refused_func callback, void *user);
void gy_door_on_starved(struct gy_door *door, gy_door_starved_func callback, void *user);
/* How many visitors are being greeted now. */
int gy_door_greeting(const struct gy_door *door);
/* A second descriptor of its listener, which keeps the address from being refused after the door is closed; −1, errno. */
int gy_door_hold(const struct gy_door *door);
/* A guest is gone, or shall no longer count. */
void gy_door_release(struct gy_door *door);
void gy_door_free(struct gy_door *door);
/* Closes descriptors and frees, in a forked child: the poller is the parent's. */
void gy_door_abandon(struct gy_door *door);

#endif
