/* When a rank that failed is started again: after a pause that doubles from failure to failure, and not for ever. */
#ifndef GYRE_TOOLS_RESTART_H
#define GYRE_TOOLS_RESTART_H

#include <stdbool.h>
#include <stdint.h>

struct gy_restart {
    int64_t began_ms; /* of the process that runs, or ran last */
    int64_t due_ms;   /* of the next start; 0: none is due */
    int failures;     /* in a row, none of which came after a steady time */
};

void gy_restart_began(struct gy_restart *restart, int64_t now_ms);
/* The process has failed; gave_up: a joiner, by an exit status, so that perhaps it was never let in. False: it has done
 * so `limit` times already, and is not started again. */
bool gy_restart_failed(struct gy_restart *restart, int64_t now_ms, bool gave_up, int limit);

#endif
