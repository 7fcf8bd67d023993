/* The environment variables by which a launcher configures its ranks, named as torchrun's: the rank, the address of
 * the bootstrap, and its secret. */
#ifndef GYRE_TOOLS_MEETING_H
#define GYRE_TOOLS_MEETING_H

#include <stdbool.h>

struct gy_rendezvous {
    char port[8];
    int reserved; /* socket that is bound to the port and never listens */
    int secret;   /* memory that holds the secret, sealed and readable by this user alone */
};

/* Reserves a free port of this host for the life of the job, and makes a secret. Returns −1 and sets errno on
 * failure. */
int gy_rendezvous_choose(struct gy_rendezvous *rendezvous);
void gy_rendezvous_end(struct gy_rendezvous *rendezvous);
/* Writes this process's environment: rank `rank` of `ranks`, all of this host. A joiner joins a running world. The
 * program that this process executes inherits the descriptor of the secret, unless GYRE_SECRET or GYRE_SECRET_FILE
 * is set. */
void gy_rendezvous_tell(const struct gy_rendezvous *rendezvous, int rank, int ranks, bool joiner);

/* True if a launcher that gyre knows (src/bootstrap/launcher.c) started this process as one of its ranks. */
bool gy_launch_found(void);
/* True if no launcher started it, or it is the only rank: WORLD_SIZE=1, and no other launcher's variable is set. */
bool gy_launch_alone(void);

#endif
