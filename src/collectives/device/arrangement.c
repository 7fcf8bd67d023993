/* The arrangement of ranks on processes and devices: arrangement.h. */
#include "collectives/device/arrangement.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "cuda/kernels/arguments.h"
#include "net/handshake.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint64_t drawn[2];

static void draw(void)
{
    gy_random(drawn, sizeof(drawn));
}

/* A forked child inherits the random words of its parent, but differs in its process id or its number of forks. */
void gy_device_fact_begin(struct gy_device_fact *fact)
{
    *fact = (struct gy_device_fact){.status = GYRE_SUCCESS};
    pthread_once(&once, draw);
    fact->process[0] = drawn[0];
    fact->process[1] = drawn[1];
    fact->process[2] = (uint64_t)getpid();
    fact->process[3] = atomic_load(&gy_fork_generation);
}

uint64_t gy_arrangement_meeting(const struct gyre_comm *comm, const struct gy_device_fact *all, char *why,
                                size_t why_bytes)
{
    if (comm->attributes.uniform || comm->ctx->config.verify > 0) {
        snprintf(why, why_bytes, "the ends of calls or their results are compared (GYRE_ENDS, GYRE_VERIFY)");
        return 0;
    }
    for (int r = 0; r < comm->size; r++) {
        const struct gy_device_fact *fact = &all[r];
        if (!fact->has_device)
            snprintf(why, why_bytes, "rank %d has no GPU", r);
        else if (memcmp(fact->process, all[0].process, sizeof(fact->process)) != 0)
            snprintf(why, why_bytes, "rank %d is in another process than rank 0", r);
        else if (memcmp(&fact->uuid, &all[0].uuid, sizeof(fact->uuid)) != 0)
            snprintf(why, why_bytes, "rank %d is on another GPU than rank 0", r);
        else if (!fact->has_image || (r == 0 && fact->meeting == 0))
            snprintf(why, why_bytes, "rank %d: %.*s", r, (int)sizeof(fact->why) - 1, fact->why);
        else
            continue;
        return 0;
    }
    if (comm->size > GY_GROUP_MOST) {
        snprintf(why, why_bytes, "kernels take at most %d ranks", GY_GROUP_MOST);
        return 0;
    }
    return all[0].meeting;
}
