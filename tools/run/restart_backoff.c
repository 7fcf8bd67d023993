/* A program that cannot run fails at once, each time. Its pauses grow from a quarter of a second to ten seconds, and
 * it is given up after `limit` starts. A program that has run for ten seconds is not of that kind: its pauses begin
 * anew. A joiner that ends by itself may have waited all that time for a world that has ended. It counts as one that
 * failed at once. */
#include "run/restart_backoff.h"

#define FIRST_MS 250
#define LONGEST_MS 10000
#define STEADY_MS 10000

void gy_restart_began(struct gy_restart *restart, int64_t now_ms)
{
    restart->began_ms = now_ms;
    restart->due_ms = 0;
}

bool gy_restart_failed(struct gy_restart *restart, int64_t now_ms, bool gave_up, int limit)
{
    int64_t pause = FIRST_MS;
    if (now_ms - restart->began_ms >= STEADY_MS && !gave_up)
        restart->failures = 0;
    if (restart->failures >= limit)
        return false;
    for (int i = 0; i < restart->failures && pause < LONGEST_MS; i++)
        pause *= 2;
    restart->failures++;
    restart->due_ms = now_ms + (pause < LONGEST_MS ? pause : LONGEST_MS);
    return true;
}
