/* The join address of a world that lets joiners in: its addresses, and the key by which it knows joiners.
 *
 * Every process of a world has one. No listener is open before the program asks for the address or grows. The join
 * address passes to the next epochs of the world, listeners included, so a published address stays valid as long as its
 * process lives. */
#ifndef GY_MEMBERSHIP_JOIN_ADDRESS_H
#define GY_MEMBERSHIP_JOIN_ADDRESS_H

#include "bootstrap/identity.h"
#include "bootstrap/world.h"
#include "net/socket.h"

/* A listener that answers only while the world grows; otherwise joiners wait in the kernel's backlog. */
struct gy_join_listener {
    int fd; /* −1: there is none */
    struct gy_endpoint endpoint;
};

struct gy_join_address {
    uint8_t *key;          /* [GY_KEY_BYTES], derived from the secret, as in bootstrap; secret memory */
    uint64_t label, nonce; /* the launcher's run; of the line in the file */
    size_t settings_bytes; /* of the run: a joiner takes attributes over from its world, and asks later ones for */
    char settings[GY_CONFIG_SHARED]; /* what it was started with itself */
    bool local_only;                 /* no secret: Unix sockets of this user */
    bool handed;                     /* the next epoch has it: the file is that one's */
    bool used;                     /* the world has grown, or been asked for its address: the next epoch is found too */
    struct gy_address address;     /* where the first epoch bootstrapped; kind NONE: no address */
    struct gy_join_listener own;   /* this process's, open in every member that has been asked */
    struct gy_join_listener known; /* rank 0's: at `address`, where that is a port of this host */
};

/* NULL: no memory. */
struct gy_join_address *gy_join_address_make(const struct gy_identity *identity, const struct gy_config *config);
/* For the next epoch. NULL: no memory, or descriptors: errno. */
struct gy_join_address *gy_join_address_inherit(const struct gy_join_address *join_address);
/* The same listener once more, for one growing. false: errno. */
bool gy_join_listener_dup(const struct gy_join_listener *listener, struct gy_join_listener *listener_p);
/* Removes the file where it is this join address's. NULL is allowed. */
void gy_join_address_free(struct gy_join_address *join_address);
/* Closes descriptors only: for a forked child. */
void gy_join_address_abandon(struct gy_join_address *join_address);

/* An address of this process that the others of `world` reach, port 0. */
gyre_status gy_join_address_find(const struct gy_world *world, struct sockaddr_storage *own_p, struct gy_error *error);
/* Opens `own`. Idempotent. */
gyre_status gy_join_address_open(struct gy_world *world, struct gy_error *error);
/* For rank 0, whose join address is open: listens at the world's first address from now on, as far as possible. A
 * failure is logged: `own` still works. */
void gy_join_address_announce(struct gy_world *world);
/* "tcp://10.0.0.1:4711", where the join address is open. Returns `text_p`. */
#define GY_JOIN_ADDRESS_TEXT (GY_ADDRESS_TEXT + 8)
const char *gy_join_address_text(const struct gy_join_address *join_address, char text_p[GY_JOIN_ADDRESS_TEXT]);

#endif
