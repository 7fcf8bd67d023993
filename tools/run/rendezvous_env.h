/* What a launcher and its ranks say to each other by environment variables, as torchrun's: who a rank is, and where and by
 * which secret all of them meet. */
#ifndef GYRE_TOOLS_MEETING_H
#define GYRE_TOOLS_MEETING_H

#include <stdbool.h>

struct gy_rendezvous {
    char port[8];
    int reserved; /* socket that is bound to the port and never listens */
    int secret;   /* memory that holds the secret, sealed and readable by this user alone */
};

/* Reserves a free port of this host for the life of the job, and makes a secret. −1: there is none, errno says why. */
int gy_rendezvous_choose(struct gy_rendezvous *rendezvous);
void gy_rendezvous_end(struct gy_rendezvous *rendezvous);
/* Writes this process's environment: rank `rank` of `ranks`, all of this host. A joiner joins a world that runs. The program that
 * this process becomes inherits the descriptor of the secret, unless GYRE_SECRET or GYRE_SECRET_FILE is set. */
void gy_rendezvous_tell(const struct gy_rendezvous *rendezvous, int rank, int ranks, bool joiner);

/* Was this process started by a launcher that gyre knows (src/bootstrap/launcher.c), as one of its ranks? */
bool gy_launch_found(void);
/* By none, or as the only rank: WORLD_SIZE=1, and no other launcher says anything. */
bool gy_launch_alone(void);

#endif
