/* How the process of a rank has ended, and the words and the exit status for it. */
#ifndef GYRE_TOOLS_RANK_END_H
#define GYRE_TOOLS_RANK_END_H

#include <stdbool.h>
#include <stddef.h>

struct gy_rank_end {
    int rank; /* in the world */
    int pid;
    bool by_signal;
    int status; /* number of the signal, or exit status */
    /* The process was ending before this host knew of any failure. A death by signal is then the cause of the job's
     * end even if the exit status of another rank was reported first. */
    bool early;
};

/* Writes "was killed by signal 9 (Killed)" or "ended with exit status 3". Returns `text`. */
const char *gy_rank_end_describe(const struct gy_rank_end *end, char *text, size_t bytes);
/* Returns the exit status in the form that a shell uses. */
int gy_rank_end_status(const struct gy_rank_end *end);

#endif
