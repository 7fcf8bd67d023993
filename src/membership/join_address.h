/* The house of a world that lets newcomers in: where they find it, and by what it knows them.
 *
 * Every process of a world has one; nothing is open before somebody asks for its address or grows. It goes on into the
 * next epochs of the world, listeners included, so that an address that was once said stays right as long as its process
 * lives. */
#ifndef GY_MEMBERSHIP_JOIN_ADDRESS_H
#define GY_MEMBERSHIP_JOIN_ADDRESS_H

#include "bootstrap/identity.h"
#include "bootstrap/world.h"
#include "net/socket.h"

/* A listener at which nobody answers but while the world grows: newcomers wait in the kernel's backlog. */
struct gy_house_door {
    int fd; /* −1: there is none */
    struct gy_place place;
};

struct gy_house {
    uint8_t key[GY_KEY_BYTES]; /* of the secret, as in a meeting */
    uint64_t label, nonce;     /* the launcher's run; of the line in the file */
    size_t settings_bytes; /* of the run: a newcomer takes attributes over from its world, and asks later ones for */
    char settings[GY_CONFIG_SHARED]; /* what it was started with itself */
    bool local_only;                 /* no secret: Unix sockets of this user */
    bool handed;                     /* the next epoch has it: the file is that one's */
    bool used;                  /* the world has grown, or been asked for its address: the next epoch is found too */
    struct gy_address address;  /* where the first epoch met; kind NONE: nowhere */
    struct gy_house_door own;   /* this process's, open in every member that has been asked */
    struct gy_house_door known; /* rank 0's: at `address`, where that is a port of this host */
};

/* NULL: no memory. */
struct gy_house *gy_house_make(const struct gy_identity *identity, const struct gy_config *config);
/* For the next epoch. NULL: no memory, or descriptors: errno. */
struct gy_house *gy_house_inherit(const struct gy_house *house);
/* The same listener once more, for one growing. false: errno. */
bool gy_house_door_again(const struct gy_house_door *door, struct gy_house_door *door_p);
/* Removes the file where it is this house's. NULL is allowed. */
void gy_house_free(struct gy_house *house);
/* Closes descriptors only: for a forked child. */
void gy_house_abandon(struct gy_house *house);

/* An address of this process that the others of `world` reach, port 0. */
gyre_status gy_house_address(const struct gy_world *world, struct sockaddr_storage *own_p, struct gy_error *error);
/* Opens `own`. Idempotent. */
gyre_status gy_house_open(struct gy_world *world, struct gy_error *error);
/* Rank 0, whose house is open: is found at the world's first address from now on, as far as that can be. What cannot be
 * is logged: there is still `own`. */
void gy_house_announce(struct gy_world *world);
/* "tcp://10.0.0.1:4711", where the house is open. Returns `text_p`. */
#define GY_HOUSE_TEXT (GY_ADDRESS_TEXT + 8)
const char *gy_house_text(const struct gy_house *house, char text_p[GY_HOUSE_TEXT]);

#endif
