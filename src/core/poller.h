/* One epoll set per context: listener, overlay, pidfds, links and the doorbell are all watched here, so that each of
 * them wakes a sleeping rank. Callbacks run inside gy_poller_poll, in the caller's thread.
 *
 * While no thread sleeps a watch may be quiet: the kernel reports no events for it, as each report costs the sender
 * time. Every sleep goes through here, and ends quiet watches first. */
#ifndef GY_CORE_POLLER_H
#define GY_CORE_POLLER_H

#include "base.h"
#include "error.h"

typedef void (*gy_poller_func)(void *owner, uint32_t epoll_events);

/* Embedded by its owner; the poller keeps a pointer until removal. A callback may remove any watch, its own included.
 * */
struct gy_watch {
    int fd;
    uint32_t events;
    gy_poller_func callback;
    void *owner;
    bool active;
    void (*listen)(void *owner); /* ends its quiet: the kernel reports all events again; NULL if it is never quiet */
    bool quiet;                  /* the poller's, as the next one */
    struct gy_watch *next;
};

struct gy_poller;
gyre_status gy_poller_create(struct gy_poller **poller_p, struct gy_error *error);
void gy_poller_free(struct gy_poller *poller);
/* Readable while a callback would run: to be watched by another poller, so that from now on nothing here is quiet. */
int gy_poller_fd(struct gy_poller *poller);
/* For a forked child: closes its copy of the set, which stays the parent's. Later removals do nothing. */
void gy_poller_abandon(struct gy_poller *poller);
gyre_status gy_poller_add(struct gy_poller *poller, struct gy_watch *watch, struct gy_error *error);
void gy_poller_change(struct gy_poller *poller, struct gy_watch *watch, uint32_t events);
void gy_poller_remove(struct gy_poller *poller, struct gy_watch *watch); /* idempotent; before the fd is closed */
/* Waits up to timeout_ns (0: not at all) and runs callbacks; returns their number. */
int gy_poller_poll(struct gy_poller *poller, int64_t timeout_ns);
/* Waits likewise and runs nothing; in between, from `leave` to `enter`, other threads may use the poller. */
void gy_poller_wait(struct gy_poller *poller, int64_t timeout_ns, void (*leave)(void *user), void (*enter)(void *user),
                    void *user);
/* True if another thread is asleep in it, or may be at any time. State read before that thread fell asleep may have
 * changed. */
bool gy_poller_has_sleeper(const struct gy_poller *poller);
/* Asks the kernel to report no events of the watch until listen is called. Returns false if a thread sleeps, or may at
 * any time. */
bool gy_poller_quiet(struct gy_poller *poller, struct gy_watch *watch);
/* Ends the quiet of a watch before a thread sleeps. Idempotent. */
void gy_poller_listen(struct gy_poller *poller, struct gy_watch *watch);

#endif
