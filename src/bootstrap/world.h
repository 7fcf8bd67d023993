/* The meeting: from an address and a rank to a table of all members.
 *
 *   every rank --- HELLO (rank, size, job, version, settings, own address) --> rank 0's address    short-lived socket
 *   rank 0     --- refuses duplicates, other sizes, jobs, versions, settings; names who is missing at the deadline
 *   rank 0     --- gives each rank a seat in a binomial tree; failures and the member table travel over it: at most
 *                  log2 N + 1 sockets each
 *
 * All sockets carry the authenticated handshake of handshake.h. After the meeting no rank is special. */
#ifndef GY_BOOTSTRAP_WORLD_H
#define GY_BOOTSTRAP_WORLD_H

#include <netinet/in.h>
#include <sys/types.h>

#include "core/config.h"
#include "core/error.h"
#include "core/poller.h"
#include "net/record_protection.h"

#define GY_KEY_BYTES 32
#define GY_EPOCHS_HELD 8

struct gy_member {
    uint64_t host_key; /* equal for ranks that can share memory */
    int32_t pid;
    uint64_t nonce;                  /* random, tells a restarted process from its predecessor; also names its Unix
                                      * sockets */
    struct sockaddr_storage address; /* where its listener (door) can be reached over TCP */
    uint16_t cores;                  /* gy_topology_host_cores */
    uint16_t place; /* what it is bound to, if GYRE_HIERARCHY is numa or cache: gy_topology_place; else 0 */
    uint32_t reach; /* by what it can be reached besides TCP: enum gy_reach of transport.h */
    uint32_t links; /* by how many others at most: it has locked memory for so many */
    int host;       /* dense host index, in order of lowest rank */
    int local;      /* index among the ranks of that host, in rank order */
};

/* An accepted, authenticated connection for someone above (GY_PURPOSE_LINK or GY_PURPOSE_RDMA): the callee owns `fd`
 * (non-blocking), and seals what it says there with `keys`, which are valid during the call; NULL where fd is −1. */
typedef void (*gy_door_func)(void *user, int rank, int fd, const struct gy_seal_keys *keys);

struct gy_house;

struct gy_world {
    int rank, size;
    uint32_t epoch;            /* 1 for a fresh world */
    int64_t looked;            /* when this process was last known not to be stopped, before it knew of this epoch; 0 */
    uint64_t job;              /* random, made by rank 0 */
    uint8_t key[GY_KEY_BYTES]; /* from the secret; keys every handshake */
    struct gy_member *members; /* [size] */
    int hosts;                 /* number of hosts */
    int *locals;               /* ranks of this host, ascending, [nlocals] */
    int nlocals, local;        /* local: my index in it */
    struct gy_poller *poller;
    struct gy_config *config;
    struct gy_door *door;     /* the listener; see listener.h */
    int held[GY_EPOCHS_HELD]; /* listeners of the epochs before, nobody accepts there: see next_epoch.c */
    int helds;
    struct gy_house *house;     /* where newcomers find it: join_address.h */
    struct gy_overlay *overlay; /* NULL until it is made: who waits for a rank asks it for the verdict */
    struct gy_overlay *spare; /* its memory, had before the meeting: whoever has none fails while it can still say so */
    struct gy_dial *dials;    /* under way */
    int dial_errnum;          /* why the dial failed whose callback runs */
    bool complete;            /* every rank below us in the meeting's tree has the table: it may be over for some */
    struct gy_error doom;     /* what ended such a meeting here, or success; the overlay tells the others */
    struct gy_boot_counters {
        uint64_t messages_sent, messages_received, sockets_opened;
        uint64_t registrations; /* sockets of rank 0's HELLOs, not in the others */
    } counters;
};

/* Meets. Blocks at most config->meet_timeout_ns. `user` may be NULL. On failure nothing is left; one that comes when
 * others may have been let go already is `doom`, with which gy_overlay_create fails. config and poller stay the caller's
 * and outlive the world. */
gyre_status gy_world_meet(const gyre_config *user, struct gy_config *config, struct gy_poller *poller,
                          struct gy_world **world_p, struct gy_error *error);
void gy_world_free(struct gy_world *world);    /* closes the door */
void gy_world_abandon(struct gy_world *world); /* the same in a forked child, where the poller is the parent's */
/* Ends the dials that were begun with `user`, without a callback: for who frees `user`. */
void gy_world_cancel_dials(struct gy_world *world, const void *user);
/* next_epoch.c: the next epoch of a world, made by some of its members. First each of them opens a door for it, whose
 * place is part of `own`; then, when all know all records and what the key is made of, the world. */
struct gy_next_world {
    struct gy_door *door;
    struct gy_member own;
};
gyre_status gy_world_next_prepare(const struct gy_world *old, struct gy_next_world *next_p, struct gy_error *error);
/* The same with a door in any case, at `own` (port 0): for who may be alone now and will not be. */
gyre_status gy_world_next_prepare_at(const struct gy_member *own, const struct sockaddr_storage *at,
                                     const struct gy_config *config, struct gy_next_world *next_p,
                                     struct gy_error *error);
void gy_world_next_cancel(struct gy_next_world *next);
/* The members of `members` are as they shall be; `next` is used up. */
struct gy_next_plan {
    int rank, size;
    uint64_t job;
    const uint8_t *salt; /* [GY_KEY_BYTES] */
    const struct gy_member *members;
    bool grown; /* newcomers are among them: the key is of the secret, which they know, and not of the old epoch's */
    int64_t looked; /* as in struct gy_world */
};
gyre_status gy_world_next(const struct gy_world *old, struct gy_next_world *next, const struct gy_next_plan *plan,
                          struct gy_config *config, struct gy_poller *poller, struct gy_world **world_p,
                          struct gy_error *error);
/* The same for a newcomer, which has no old world. Takes over `house`. */
gyre_status gy_world_enter(struct gy_house *house, uint32_t epoch, struct gy_next_world *next,
                           const struct gy_next_plan *plan, struct gy_config *config, struct gy_poller *poller,
                           struct gy_world **world_p, struct gy_error *error);
/* What this process is, but for where it is reached. */
void gy_member_know_myself(struct gy_member *own, const struct gy_config *config);
/* Fills what follows from the table of members: hosts, locals, and, the same on all of them, who is reached by nothing but TCP because
 * a world of this size takes more links than it has locked memory for. */
void gy_world_know_members(struct gy_world *world);
/* The overlay's counterpart of gy_world_on_link and gy_world_dial. */
void gy_world_on_overlay(struct gy_world *world, gy_door_func callback, void *user);
gyre_status gy_world_dial_overlay(struct gy_world *world, int rank, gy_door_func callback, void *user,
                                  struct gy_error *error);
/* Told when visitors could not be accepted for a second, for want of descriptors or memory. callback NULL: nobody. */
typedef void (*gy_door_starved_func)(void *user, int errnum);
void gy_world_on_starved(struct gy_world *world, gy_door_starved_func callback, void *user);
/* Whoever wants authenticated inbound data links registers here (one: the tcp transport). */
void gy_world_on_link(struct gy_world *world, gy_door_func callback, void *user);
/* Begins a non-blocking, authenticated connection to `rank`'s door; later calls `callback(user, rank, fd)` from the
 * poller with the connected fd and its keys, or fd = −1 when it could not be made (reason logged, and in the overlay if the peer is
 * dead). */
gyre_status gy_world_dial(struct gy_world *world, int rank, gy_door_func callback, void *user, struct gy_error *error);
/* The same from another address of ours (port 0) to another of the member's, behind which is the same door. */
struct gy_route {
    struct sockaddr_storage from, to;
};
gyre_status gy_world_dial_along(struct gy_world *world, int rank, const struct gy_route *route, gy_door_func callback,
                                void *user, struct gy_error *error);
/* The same for the rdma transport, whose connections agree on queue pairs and end when the peer does. */
void gy_world_on_rdma(struct gy_world *world, gy_door_func callback, void *user);
gyre_status gy_world_dial_rdma(struct gy_world *world, int rank, gy_door_func callback, void *user,
                               struct gy_error *error);

#endif
