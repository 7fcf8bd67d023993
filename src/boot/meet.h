/* The meeting itself: how the member table comes about. world.c decides where and with which key; this moves the
 * records. */
#ifndef GY_BOOT_MEET_H
#define GY_BOOT_MEET_H

#include "boot/door.h"
#include "boot/environment.h"

#define GY_MEMBER_WIRE (24 + GY_ADDRESS_WIRE)

void gy_member_encode(const struct gy_member *member, uint8_t wire_p[GY_MEMBER_WIRE]);
bool gy_member_decode(const uint8_t wire[GY_MEMBER_WIRE], struct gy_member *member_p);

/* Where the others find rank 0 now; called before every attempt. false: not known yet. */
struct gy_meeting_place {
    struct gy_place place; /* when `path` is empty */
    const char *path;      /* the file that holds the place, or NULL */
    bool local_only;       /* no secret: only an abstract Unix socket will do */
    char what[320];        /* the place as the user wrote it */
};

/* Everything the meeting reads and fills; world->members[world->rank] is filled by the caller. */
struct gy_meeting {
    struct gy_world *world;
    const struct gy_identity *identity;
    const struct gy_meeting_place *place;
    int listener;               /* rank 0: listening descriptor, taken over */
    uint8_t salt[GY_KEY_BYTES]; /* rank 0 makes it; without a secret it is the secret, sent over the Unix socket */
    int64_t deadline;
};

/* rank 0: world->job and salt are set by the caller. Returns when every rank has the table. */
gyre_status gy_meet_as_root(struct gy_meeting *meeting, struct gy_error *error);
/* Others: sets world->job, world->key and the table; opens world->door. */
gyre_status gy_meet_as_member(struct gy_meeting *meeting, struct gy_error *error);
/* Opens world->door for everybody who knows world->key. */
gyre_status gy_meet_open_door(struct gy_world *world, struct gy_error *error);

/* Parent and children in the binomial tree: a rank's parent has its lowest set bit cleared. Child k of `rank`, or
 * −1. */
int gy_meet_child(int rank, int size, int k);

/* rendezvous.c: the file of file://. write: atomic, by rename. read: true when there is one that is whole. */
gyre_status gy_rendezvous_write(const char *path, const struct gy_place *place, uint64_t nonce, struct gy_error *error);
bool gy_rendezvous_read(const char *path, bool local_only, struct gy_place *place_p, uint64_t *nonce_p, char *why_p,
                        size_t why_bytes);
void gy_rendezvous_remove(const char *path, uint64_t nonce);

/* Messages of the meeting, in streams. */
enum gy_meet_kind {
    GY_MEET_HELLO = 1,  /* member -> root: size, label, member record */
    GY_MEET_REGISTERED, /* root -> member: job, salt, nanoseconds left */
    GY_MEET_TABLE,      /* down the tree: size, member records */
    GY_MEET_DONE,       /* member -> root: has the table and passed it on */
    GY_MEET_FAILED,     /* either way: status, rank, sentence */
    GY_MEET_END,        /* root -> member: every rank has the table */
};

#define GY_MEET_TEXT 512
size_t gy_meet_failed_encode(const struct gy_error *error, uint8_t body_p[8 + GY_MEET_TEXT]);
/* false: not understood. Fills error (which holds nothing yet) and logs it at INFO: it was decided elsewhere. */
bool gy_meet_failed_decode(uint8_t *body, size_t bytes, struct gy_error *error);
bool gy_meet_table_encode(const struct gy_world *world, uint8_t **body_p, size_t *bytes_p);
bool gy_meet_table_decode(struct gy_world *world, uint8_t *body, size_t bytes);

#endif
