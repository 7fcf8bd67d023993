/* Bootstrap: from an address and a rank to a table of all members.
 *
 *   every rank --- HELLO (rank, size, job, version, settings, own address) --> rank 0's address    short-lived socket
 *   rank 0     --- refuses duplicates, other sizes, jobs, versions, settings; reports missing ranks at the deadline
 *   rank 0     --- gives each rank a tree position in a binomial tree; failures and the member table travel over it: at
 *                  most log2 N + 1 sockets each
 *
 * All sockets use the authenticated handshake of handshake.h. After bootstrap no rank is special. */
#ifndef GY_BOOTSTRAP_WORLD_H
#define GY_BOOTSTRAP_WORLD_H

#include <netinet/in.h>
#include <sys/types.h>
#include <sys/un.h>

#include "core/config.h"
#include "core/error.h"
#include "core/poller.h"
#include "net/listener.h"

#define GY_KEY_BYTES GY_HANDSHAKE_KEY_BYTES
#define GY_EPOCHS_HELD 8

struct gy_member {
    uint64_t host_key; /* equal for ranks that can share memory */
    int32_t pid;
    uint64_t nonce;                  /* random, tells a restarted process from its predecessor; also names its Unix
                                      * sockets */
    struct sockaddr_storage address; /* where its listener can be reached over TCP */
    uint16_t cores;                  /* gy_topology_host_cores */
    uint16_t binding;      /* what it is bound to, if GYRE_HIERARCHY is numa or cache: gy_topology_binding; else 0 */
    uint32_t fabrics;      /* by what it can be reached besides TCP: enum gy_fabric of transport.h */
    uint32_t fabric_links; /* by how many others at most: it has locked memory for so many */
    int host;              /* dense host index, in order of lowest rank */
    int local;             /* index among the ranks of that host, in rank order */
};

struct gy_join_address;

struct gy_world {
    int rank, size;
    uint32_t epoch;            /* 1 for a fresh world */
    int64_t known_running;     /* when this process was last known not to be stopped, before it knew of this epoch; 0 */
    uint64_t job;              /* random, made by rank 0 */
    uint8_t *key;              /* [GY_KEY_BYTES], from the secret; keys every handshake; secret memory */
    struct gy_member *members; /* [size] */
    int hosts;                 /* number of hosts */
    int *locals;               /* ranks of this host, ascending, [nlocals] */
    int nlocals, local;        /* local: this rank's index in it */
    struct gy_poller *poller;
    struct gy_config *config;
    struct gy_listener *listener; /* the listener; see listener.h */
    int held[GY_EPOCHS_HELD];     /* listeners of previous epochs, which never accept: see next_epoch.c */
    int helds;
    struct gy_join_address *join_address; /* where joiners find it: join_address.h */
    struct gy_agreement *agreement;       /* agreement.h */
    struct gy_overlay *overlay;           /* NULL until it is made: a waiting rank asks it for the first failure */
    struct gy_overlay *spare; /* its memory, allocated before bootstrap: a rank without memory fails while it can still
                               * report it */
    struct gy_connector *connectors; /* under way */
    int connect_errnum;              /* the error of the failed connect whose callback runs */
    bool complete;                   /* every rank below in the bootstrap tree has the table: some may have finished */
    struct gy_error bootstrap_failure; /* the failure of such a bootstrap here, or success; the overlay tells the
                                        * others */
    struct gy_boot_counters {
        uint64_t messages_sent, messages_received, sockets_opened;
        uint64_t registrations; /* sockets of rank 0's HELLOs, not in the others */
    } counters;
};

struct gy_identity;

/* Makes a world of `size` ranks without members. config and poller stay the caller's and outlive it. NULL: no
 * memory. */
struct gy_world *gy_world_make(int rank, int size, uint32_t epoch, struct gy_config *config, struct gy_poller *poller);
/* Bootstraps: fills the table of members and opens the listener. Blocks at most config->meet_timeout_ns. A failure
 * after others may already have finished is stored in `bootstrap_failure`, and the status is GYRE_SUCCESS: the overlay
 * tells the others. */
gyre_status gy_world_bootstrap(struct gy_world *world, const struct gy_identity *identity, struct gy_error *error);
/* Ends pending connects, closes the listener and frees the world, but not the parts that layers above own. `forked`: in
 * a forked child, where the poller is the parent's. */
void gy_world_release(struct gy_world *world, bool forked);
/* Cancels the pending connects that were begun with `user`, without a callback: called before `user` is freed. */
void gy_world_cancel_connectors(struct gy_world *world, const void *user);
/* All of them, without a callback: at the end of the world. */
void gy_world_end_connectors(struct gy_world *world, bool forked);
/* What this process is, but for where it is reached. */
void gy_member_know_myself(struct gy_member *own, const struct gy_config *config);
/* Fills the fields that follow from the table of members: hosts and locals. Also, the same on all ranks: the members
 * that are reached only by TCP, because a world of this size needs more links than they have locked memory for. */
void gy_world_know_members(struct gy_world *world);
void gy_world_on_no_memory(struct gy_world *world, gy_listener_no_memory_func callback, void *user);

/* Authenticated connections between two members, for the overlay and for each transport that needs some. Each has a
 * purpose of its own (enum gy_purpose of handshake.h), and a purpose has one owner at a time.
 *
 *   initiator: gy_world_connect --> its callback        acceptor: gy_world_on, any time --> its callback
 *
 * The callback is called from the poller, or by gy_world_on itself for a connection that has been waiting. It gets the
 * peer's rank, the connected, non-blocking `fd`, which it owns, and the connection's keys, which are valid during the
 * call: see gy_seal_begin of record_protection.h. The suite GY_SUITE_OFF means that the bytes travel as they are. */

/* Hands inbound connections of the purpose to `callback`. They may come as soon as the peer has the table of members:
 * those that come earlier are kept. INTERNAL: the purpose has an owner already. */
gyre_status gy_world_on(struct gy_world *world, enum gy_purpose purpose, gy_listener_func callback, void *user,
                        struct gy_error *error);
/* Ends it, if `user` is the owner. Later connections are kept for the next owner. */
void gy_world_off(struct gy_world *world, enum gy_purpose purpose, const void *user);
/* Where a connection leads if not from any address to the member's: both lead to the same listener. */
struct gy_route {
    struct sockaddr_storage from, to; /* port 0; with a port */
};
/* Begins a connection to `rank`'s listener, which is open before the peer's transports are. `route` NULL: to the
 * member's address. Later calls `callback` as above, with fd = −1 and keys NULL when the connection failed: then
 * world->connect_errnum says why. The reason is logged, and the overlay knows it if the peer is dead. */
gyre_status gy_world_connect(struct gy_world *world, int rank, enum gy_purpose purpose, const struct gy_route *route,
                             gy_listener_func callback, void *user, struct gy_error *error);
/* The abstract name of a Unix socket of the member: "gyre-", `prefix` and a hash, so that /proc/net/unix reveals no
 * number from which a future name could be computed. Any process of the host may connect to it: the acceptor checks the
 * user, or runs the handshake. Returns the length of the address. */
socklen_t gy_world_unix_name(const struct gy_world *world, int rank, const char *prefix, struct sockaddr_un *name_p);

#endif
