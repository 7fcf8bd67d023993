/* The time at which a failed rank is started again: after a pause that doubles with each failure, up to a limit of
 * starts. */
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
/* Records a failure. gave_up: a joiner ended with an exit status, so perhaps it was never let in. Returns false if
 * it has already failed `limit` times; it is not started again then. */
bool gy_restart_failed(struct gy_restart *restart, int64_t now_ms, bool gave_up, int limit);

#endif
