/* The environment variables by which a launcher configures its ranks, named as torchrun's: the rank, the address of
 * the bootstrap, and its secret. */
#ifndef GYRE_TOOLS_MEETING_H
#define GYRE_TOOLS_MEETING_H

#include <stdbool.h>

#define GY_RENDEZVOUS_SECRET_BYTES 65u /* a random secret as text, with its final 0 */

struct gy_rendezvous {
    char address[256]; /* of rank 0's host */
    char port[8];
    int first;    /* number of this host's first rank */
    int world;    /* ranks of the job */
    int reserved; /* socket that is bound to the port and never listens, −1: none */
    int secret;   /* memory that holds the secret, sealed and readable by this user alone, −1: none */
};

/* Prepares a job of `ranks` ranks, all of this host: reserves a free port for the life of the job, and makes a secret.
 * Returns −1 and sets errno on failure. */
int gy_rendezvous_choose(struct gy_rendezvous *rendezvous, int ranks);
void gy_rendezvous_end(struct gy_rendezvous *rendezvous);
/* The parts of it. Reserves a free port: of loopback, or of all addresses of this host. */
int gy_rendezvous_reserve(struct gy_rendezvous *rendezvous, bool loopback);
/* Writes a new random secret. */
int gy_rendezvous_draw_secret(char text[GY_RENDEZVOUS_SECRET_BYTES]);
/* Puts the secret into sealed memory. */
int gy_rendezvous_hold_secret(struct gy_rendezvous *rendezvous, const char *text);
/* Writes this process's environment: rank `local` of the `locals` ranks of this host. A joiner joins a running world.
 * The program that this process executes inherits the descriptor of the secret, unless GYRE_SECRET or
 * GYRE_SECRET_FILE is set. */
void gy_rendezvous_tell(const struct gy_rendezvous *rendezvous, int local, int locals, bool joiner);

/* True if a launcher that gyre knows (src/bootstrap/launcher.c) started this process as one of its ranks. */
bool gy_launch_found(void);
/* True if no launcher started it, or it is the only rank: WORLD_SIZE=1, and no other launcher's variable is set. */
bool gy_launch_alone(void);

#endif
