/* The protocol between joiners and the members that receive them. join_server.c is the members' side, join_client.c the
 * joiners', and join_address.h says where they find each other.
 *
 *   joiner                          a member                            rank 0
 *     HELLO(record, settings) ─────────▶ ELSEWHERE(rank 0's address)
 *     HELLO ────────────────────────────────────────────────────────────▶ waits until the world has decided to grow
 *     WAIT(patience) ◀─────────────────────────────────────────────────── repeated until WELCOME
 *     CALL ◀───────────────────────────────────────────────────────────── asks for a sign of life
 *     HERE ──────────────────────────────────────────────────────────────▶ told to the other members, which agree
 *     WELCOME ◀────────────────────────────────────────────────────────── job, salt, rank, table: the next epoch
 *
 * The sockets use the handshake of handshake.h, purpose JOIN, under the key of the secret, between "rank 1 of 2" and
 * "rank 0". The end of a socket before WELCOME means: reconnect. So does silence for longer than the last WAIT allows:
 * rank 0 is stopped or cut off, and the members do not wait for a joiner whose listener is closed (join_client.c). */
#ifndef GY_MEMBERSHIP_JOIN_SERVER_H
#define GY_MEMBERSHIP_JOIN_SERVER_H

#include "bootstrap/messages.h"
#include "membership/epoch.h"
#include "membership/join_address.h"

#define GY_JOINERS_MOST 64   /* in one growing */
#define GY_CHARTER_MOST 1024 /* bytes of the data that the layers above send to a joiner */

enum gy_join_kind {
    GY_JOIN_HELLO = 1, /* label 8, member record, shared settings */
    GY_JOIN_ELSEWHERE, /* endpoint */
    GY_JOIN_CALL,
    GY_JOIN_HERE,
    GY_JOIN_WELCOME, /* job 8, salt, epoch 4, rank 4, size 4, charter: length 2 and bytes, members in order of rank */
    GY_JOIN_FAILED,  /* as in bootstrap */
    GY_JOIN_WAIT,    /* timeout in milliseconds 4, not 0 */
};

#define GY_JOIN_HELLO_LEAST (8 + GY_MEMBER_WIRE)
#define GY_JOIN_HELLO_MOST (GY_JOIN_HELLO_LEAST + GY_CONFIG_SHARED)
#define GY_JOIN_WELCOME_LEAST (8 + GY_KEY_BYTES + 4 + 4 + 4 + 2)
#define GY_ENDPOINT_WIRE (1 + GY_ADDRESS_WIRE + 64)

void gy_endpoint_encode(const struct gy_endpoint *endpoint, uint8_t wire_p[GY_ENDPOINT_WIRE]);
/* false: nonsense. */
bool gy_endpoint_decode(const uint8_t wire[GY_ENDPOINT_WIRE], struct gy_endpoint *endpoint_p);

/* The data of the epoch that a joiner gets, besides the members. */
struct gy_charter {
    uint8_t bytes[GY_CHARTER_MOST];
    size_t size;
};

struct gy_join_server;

/* Starts to answer joiners at the listeners of world->join address, which is open. `elsewhere`: the endpoint where rank
 * 0 answers; NULL: this is rank 0. Callbacks of the world's poller do the work. */
gyre_status gy_join_server_open(struct gy_world *world, const struct gy_endpoint *elsewhere,
                                struct gy_join_server **join_server_p, struct gy_error *error);
/* How many wait to be let in. */
int gy_join_server_waiting(struct gy_join_server *join_server);
/* True if a process has just connected that may become a joiner in a moment. */
bool gy_join_server_busy(const struct gy_join_server *join_server);
/* call: asks the first `most` waiting joiners whether they are alive. called: true if one of them has not answered
 * yet. */
void gy_join_server_call(struct gy_join_server *join_server, int most);
bool gy_join_server_called(const struct gy_join_server *join_server);
/* Returns the number of joiners that have answered, in order of arrival. members_p: [GY_JOINERS_MOST]. */
int gy_join_server_take(struct gy_join_server *join_server, struct gy_member *members_p);
/* Sends WELCOME to the joiners that were taken: they are the last ranks of `plan`. */
void gy_join_server_welcome(struct gy_join_server *join_server, const struct gy_next_plan *plan, uint32_t epoch,
                            const struct gy_charter *charter);
/* Sends what is queued, for a short time, and closes. A joiner that was not taken reconnects. NULL is allowed. */
void gy_join_server_close(struct gy_join_server *join_server);

/* join_client.c. Joins a world: blocks until a world has let this process in, at most config->meet_timeout_ns.
 * Arguments as for gy_world_open. */
gyre_status gy_world_join(const gyre_config *user, struct gy_config *config, struct gy_poller *poller,
                          struct gy_world **world_p, struct gy_charter *charter_p, struct gy_error *error);

#endif
