/* The arrangement of ranks on processes and devices: arrangement.h. */
#include "collectives/device/arrangement.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "collectives/call/blocking.h"
#include "collectives/lifecycle/comm_open.h"
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

static bool same_process(const struct gy_device_fact *a, const struct gy_device_fact *b)
{
    return memcmp(a->process, b->process, sizeof(a->process)) == 0;
}

static bool same_device(const struct gy_device_fact *a, const struct gy_device_fact *b)
{
    return memcmp(&a->uuid, &b->uuid, sizeof(a->uuid)) == 0;
}

/* Returns a lower rank in the process of rank r with another device; −1: there is none. */
static int find_split_process(const struct gy_device_fact *all, int r)
{
    int other = r - 1;
    while (other >= 0 && (!same_process(&all[other], &all[r]) || same_device(&all[other], &all[r])))
        other--;
    return other;
}

/* Returns true if kernels can execute the calls, as far as each rank alone decides it. */
static bool has_kernels(const struct gyre_comm *comm, const struct gy_device_fact *all, char *why, size_t why_bytes)
{
    if (comm->attributes.uniform || comm->ctx->config.verify > 0) {
        snprintf(why, why_bytes, "the ends of calls or their results are compared (GYRE_ENDS, GYRE_VERIFY)");
        return false;
    }
    for (int r = 0; r < comm->size; r++) {
        if (!all[r].has_device)
            snprintf(why, why_bytes, "rank %d has no GPU", r);
        else if (!all[r].has_image)
            snprintf(why, why_bytes, "rank %d: %.*s", r, (int)sizeof(all[r].why) - 1, all[r].why);
        else
            continue;
        return false;
    }
    if (comm->size <= GY_GROUP_MOST)
        return true;
    snprintf(why, why_bytes, "kernels take at most %d ranks", GY_GROUP_MOST);
    return false;
}

enum gy_way gy_arrangement_way(const struct gyre_comm *comm, const struct gy_device_fact *all, char *why,
                               size_t why_bytes)
{
    bool one_process = true;
    if (!has_kernels(comm, all, why, why_bytes))
        return GY_WAY_STAGED;
    for (int r = 0; r < comm->size; r++) {
        const int other = find_split_process(all, r);
        one_process &= same_process(&all[r], &all[0]);
        if (other < 0)
            continue;
        snprintf(why, why_bytes, "ranks %d and %d are one process and on different GPUs", other, r);
        return GY_WAY_STAGED;
    }
    if (one_process && all[0].meeting == 0)
        snprintf(why, why_bytes, "rank 0: %.*s", (int)sizeof(all[0].why) - 1, all[0].why);
    else if (one_process)
        return GY_WAY_FUSED;
    else if (gy_comm_together(comm->ctx, &comm->group))
        return GY_WAY_MAPPED;
    else
        snprintf(why, why_bytes, "the ranks are on several hosts");
    return GY_WAY_STAGED;
}

int gy_arrangement_devices(const struct gy_device_fact *all, int size, int *device_of)
{
    int devices = 0;
    for (int r = 0; r < size; r++) {
        int first = 0;
        while (!same_device(&all[first], &all[r]))
            first++;
        device_of[r] = first < r ? device_of[first] : devices++;
    }
    return devices;
}

gyre_status gy_arrangement_agree(struct gyre_comm *comm, bool can, int *lowest_p)
{
    const int32_t mine = can ? comm->size : comm->rank;
    int32_t lowest = 0;
    const struct gy_call call = {.collective = GY_ALL_REDUCE,
                                 .input = &mine,
                                 .output = &lowest,
                                 .count = 1,
                                 .dtype = GYRE_INT32,
                                 .op = GYRE_MIN};
    const gyre_status status = gy_run_own(comm, &call);
    *lowest_p = lowest;
    return status;
}
