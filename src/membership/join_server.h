/* Newcomers and the members that receive them: what they say to each other. join_server.c is the members' side, join_client.c the
 * newcomers', join_address.h says where they find each other.
 *
 *   newcomer                          a member                            rank 0
 *     HELLO(record, settings) ─────────▶ ELSEWHERE(rank 0's place)
 *     HELLO ────────────────────────────────────────────────────────────▶ waits until the world has decided to grow
 *     WAIT(patience) ◀─────────────────────────────────────────────────── again and again until WELCOME
 *     CALL ◀───────────────────────────────────────────────────────────── is it still there?
 *     HERE ──────────────────────────────────────────────────────────────▶ told to the other members, who agree
 *     WELCOME ◀────────────────────────────────────────────────────────── job, salt, rank, table: the next epoch
 *
 * on sockets with the greeting of handshake.h, purpose JOIN, under the key of the secret, between "rank 1 of 2" and "rank
 * 0". A socket that ends before WELCOME means: come again. So does silence for longer than the last WAIT allows: rank 0 is
 * stopped, or cut off, and the others wait for nobody behind a door that is closed (join_client.c). */
#ifndef GY_MEMBERSHIP_JOIN_SERVER_H
#define GY_MEMBERSHIP_JOIN_SERVER_H

#include "bootstrap/messages.h"
#include "membership/epoch.h"
#include "membership/join_address.h"

#define GY_NEWCOMERS_MOST 64 /* in one growing */
#define GY_CHARTER_MOST 1024 /* bytes of what the layers above tell a newcomer */

enum gy_join_kind {
    GY_JOIN_HELLO = 1, /* label 8, member record, shared settings */
    GY_JOIN_ELSEWHERE, /* place */
    GY_JOIN_CALL,
    GY_JOIN_HERE,
    GY_JOIN_WELCOME, /* job 8, salt, epoch 4, rank 4, size 4, charter: length 2 and bytes, members in order of rank */
    GY_JOIN_FAILED,  /* as the meeting's */
    GY_JOIN_WAIT,    /* patience in milliseconds 4, not 0 */
};

#define GY_JOIN_HELLO_LEAST (8 + GY_MEMBER_WIRE)
#define GY_JOIN_HELLO_MOST (GY_JOIN_HELLO_LEAST + GY_CONFIG_SHARED)
#define GY_JOIN_WELCOME_LEAST (8 + GY_KEY_BYTES + 4 + 4 + 4 + 2)
#define GY_PLACE_WIRE (1 + GY_ADDRESS_WIRE + 64)

void gy_place_encode(const struct gy_place *place, uint8_t wire_p[GY_PLACE_WIRE]);
/* false: nonsense. */
bool gy_place_decode(const uint8_t wire[GY_PLACE_WIRE], struct gy_place *place_p);

/* What a newcomer is told of the epoch that it is part of, besides the members. */
struct gy_charter {
    uint8_t bytes[GY_CHARTER_MOST];
    size_t size;
};

struct gy_reception;

/* Begins to answer those who stand at the doors of world->house, which is open. `elsewhere`: where rank 0 answers; NULL:
 * this is rank 0. Callbacks of the world's poller do the work. */
gyre_status gy_reception_open(struct gy_world *world, const struct gy_place *elsewhere,
                              struct gy_reception **reception_p, struct gy_error *error);
/* How many wait to be let in. */
int gy_reception_waiting(struct gy_reception *reception);
/* Has somebody just come who may be one of them in a moment? */
bool gy_reception_busy(const struct gy_reception *reception);
/* Asks the first `most` of those who wait whether they are still there; `called`: has somebody not answered yet? */
void gy_reception_call(struct gy_reception *reception, int most);
bool gy_reception_called(const struct gy_reception *reception);
/* Those who have answered, in the order in which they came: how many. members_p: [GY_NEWCOMERS_MOST]. */
int gy_reception_take(struct gy_reception *reception, struct gy_member *members_p);
/* Tells those who were taken: they are the last ranks of `plan`. */
void gy_reception_welcome(struct gy_reception *reception, const struct gy_next_plan *plan, uint32_t epoch,
                          const struct gy_charter *charter);
/* Sends what is to be sent, for a short time, and closes; who was not let in comes again. NULL is allowed. */
void gy_reception_close(struct gy_reception *reception);

/* join_client.c. A newcomer: blocks until a world has let this process in, at most config->meet_timeout_ns. As gy_world_open. */
gyre_status gy_world_join(const gyre_config *user, struct gy_config *config, struct gy_poller *poller,
                          struct gy_world **world_p, struct gy_charter *charter_p, struct gy_error *error);

#endif
