/* Probes whether a host answers. A TCP ping: a connection to a port that hardly any process listens at, so the host's
 * kernel refuses it in any state of its processes. A host behind a filter that drops such packets does not answer. */
#ifndef GY_NET_HOST_PROBE_H
#define GY_NET_HOST_PROBE_H

#include <sys/socket.h>

#include "core/poller.h"

/* May free the ping. */
typedef void (*gy_ping_func)(void *user, bool answered);

/* All zeros: none is under way. */
struct gy_ping {
    struct gy_poller *poller; /* NULL: none is under way */
    struct gy_watch watch;
    gy_ping_func done;
    void *user;
};

enum gy_ping_outcome { GY_PING_UNDER_WAY, GY_PING_ANSWERED, GY_PING_FAILED };

/* Probes the host of `to`, whose port does not matter, from `from`, an address of ours (NULL: any). UNDER_WAY: calls
 * `done` once, after `patience_ns` at most. Any other outcome is final, and `done` is not called. */
enum gy_ping_outcome gy_ping_start(struct gy_ping *ping, struct gy_poller *poller, const struct sockaddr_storage *to,
                                   const struct sockaddr_storage *from, int64_t patience_ns, gy_ping_func done,
                                   void *user);
/* Ends it without calling `done`; idempotent. `forked`: in a forked child, where the poller is the parent's, it only
 * closes its copy of the socket. */
void gy_ping_cancel(struct gy_ping *ping, bool forked);

#endif
