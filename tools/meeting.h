/* What a launcher and its ranks say to each other by environment variables, as torchrun's: who a rank is, and where and by
 * which secret all of them meet. */
#ifndef GYRE_TOOLS_MEETING_H
#define GYRE_TOOLS_MEETING_H

#include <stdbool.h>

struct gy_meeting {
    char port[8];
    int reserved; /* socket that is bound to the port and never listens */
    int secret;   /* memory that holds the secret, sealed and readable by this user alone */
};

/* Reserves a free port of this host for the life of the job, and makes a secret. −1: there is none, errno says why. */
int gy_meeting_choose(struct gy_meeting *meeting);
void gy_meeting_end(struct gy_meeting *meeting);
/* Writes this process's environment: rank `rank` of `ranks`, all of this host. A newcomer joins a world that runs. The program that
 * this process becomes inherits the descriptor of the secret, unless GYRE_SECRET or GYRE_SECRET_FILE is set. */
void gy_meeting_tell(const struct gy_meeting *meeting, int rank, int ranks, bool newcomer);

/* Was this process started by a launcher that gyre knows (src/bootstrap/launcher.c), as one of its ranks? */
bool gy_launch_found(void);
/* By none, or as the only rank: WORLD_SIZE=1, and no other launcher says anything. */
bool gy_launch_alone(void);

#endif
