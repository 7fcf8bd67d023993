/* The protocol of bootstrap, which builds the member table. world.c chooses the place and the key; this moves the
 * records. */
#ifndef GY_BOOTSTRAP_MESSAGES_H
#define GY_BOOTSTRAP_MESSAGES_H

#include "bootstrap/identity.h"
#include "bootstrap/world.h"
#include "net/listener.h"

#define GY_MEMBER_WIRE (32 + GY_ADDRESS_WIRE)

void gy_member_encode(const struct gy_member *member, uint8_t wire_p[GY_MEMBER_WIRE]);
bool gy_member_decode(const uint8_t wire[GY_MEMBER_WIRE], struct gy_member *member_p);

/* Where the others find rank 0 now; called before every attempt. false: not known yet. */
struct gy_rendezvous_endpoint {
    struct gy_endpoint endpoint; /* when `path` is empty */
    const char *path;            /* the file that holds the place, or NULL */
    bool local_only;             /* no secret: only an abstract Unix socket will do */
    char what[320];              /* the place as the user wrote it */
    char hint[240];              /* " ...": what may be wrong with it, or empty */
};

/* The inputs and outputs of bootstrap; world->members[world->rank] is filled by the caller. */
struct gy_rendezvous {
    struct gy_world *world;
    const struct gy_identity *identity;
    const struct gy_rendezvous_endpoint *endpoint;
    int listen_fd;              /* rank 0: listening descriptor, taken over */
    uint8_t salt[GY_KEY_BYTES]; /* rank 0 makes it; without a secret it is the secret, sent over the Unix socket */
    int64_t deadline;
    size_t settings_bytes;
    char settings[GY_CONFIG_SHARED]; /* of gy_config_shared */
};

/* rank 0: world->job and salt are set by the caller. Returns when every rank has the table. */
gyre_status gy_bootstrap_as_root(struct gy_rendezvous *meeting, struct gy_error *error);
/* Other ranks: sets world->job, world->key and the table; opens world->listener. */
gyre_status gy_bootstrap_as_member(struct gy_rendezvous *meeting, struct gy_error *error);
/* By the exchange callback (allgather.c). The listener has been made, and is opened. */
gyre_status gy_bootstrap_by_exchange(struct gy_rendezvous *meeting, struct gy_error *error);
/* Opens world->listener to every rank that knows world->key. */
gyre_status gy_bootstrap_open_listener(struct gy_world *world, struct gy_error *error);

/* Parent and children in the binomial tree of tree positions: a parent has its child's lowest set bit cleared. Returns
 * child k of `position`, or −1. */
int gy_bootstrap_child(int position, int size, int k);

/* rendezvous_file.c: the file of file://. write: atomic, by rename. read: true if there is a complete one. */
gyre_status gy_rendezvous_write(const char *path, const struct gy_endpoint *endpoint, uint64_t nonce,
                                struct gy_error *error);
bool gy_rendezvous_read(const char *path, bool local_only, struct gy_endpoint *endpoint_p, uint64_t *nonce_p,
                        char *why_p, size_t why_bytes);
/* True if the file leads to another place than `place` now; false if there is no file or it is incomplete. */
bool gy_rendezvous_moved(const char *path, bool local_only, const struct gy_endpoint *endpoint);
void gy_rendezvous_remove(const char *path, uint64_t nonce);

/* Messages of bootstrap, in streams. */
enum gy_bootstrap_kind {
    GY_BOOTSTRAP_HELLO = 1,  /* member -> root: size, label, member record, shared settings */
    GY_BOOTSTRAP_POSITION,   /* root -> member: job, salt, nanoseconds left, tree position, parent's rank and record */
    GY_BOOTSTRAP_POSITIONED, /* member -> root: welcome at the parent's; this socket is done with */
    GY_BOOTSTRAP_TABLE,      /* down the tree: size, member records */
    GY_BOOTSTRAP_DONE,       /* up: the whole subtree has the table */
    GY_BOOTSTRAP_GO,         /* down: every rank has the table, bootstrap is over */
    GY_BOOTSTRAP_FAILED,     /* every way: status, rank, error message */
    GY_BOOTSTRAP_HERE,       /* up: from now on an end of file without FAILED is a death */
    GY_BOOTSTRAP_WELCOME,    /* down: HERE has arrived, the parent watches */
};

/* A HELLO ends with the text of gy_config_shared. */
#define GY_HELLO_LEAST (12 + GY_MEMBER_WIRE)
#define GY_HELLO_MOST (GY_HELLO_LEAST + GY_CONFIG_SHARED)
#define GY_POSITION_BYTES (8 + GY_KEY_BYTES + 8 + 4 + 4 + GY_MEMBER_WIRE)

/* Checks that the record of a rank agrees with `own`. Otherwise `error` gets the message, which names `rank`, the
 * setting and both values. `settings` are the text of gy_config_shared, not terminated. */
struct gy_bootstrap_register {
    int rank;
    uint32_t size;
    uint64_t label;
    const uint8_t *settings;
    size_t settings_bytes;
};
bool gy_bootstrap_agree(const struct gy_bootstrap_register *own, const struct gy_bootstrap_register *theirs,
                        struct gy_error *error);

#define GY_BOOTSTRAP_TEXT 512
/* An out-of-resources error that names no rank is attributed to `own`. */
size_t gy_bootstrap_failed_encode(const struct gy_error *error, int own, uint8_t body_p[8 + GY_BOOTSTRAP_TEXT]);
/* false: not understood. Fills error (which holds nothing yet) and logs it at INFO: it was decided elsewhere. */
bool gy_bootstrap_failed_decode(uint8_t *body, size_t bytes, struct gy_error *error);
bool gy_bootstrap_table_encode(const struct gy_world *world, uint8_t **body_p, size_t *bytes_p);
bool gy_bootstrap_table_decode(struct gy_world *world, uint8_t *body, size_t bytes);

#endif
