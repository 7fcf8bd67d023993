/* gyre as a measured library: nothing but its public interface. */
#include <gyre/gyre.h>

#include <stdio.h>

#include "driver.h"

static gyre_comm *comm;

static void must(gyre_status status)
{
    if (status != GYRE_SUCCESS)
        gy_die("%s: %s", gyre_status_name(status), gyre_last_error(comm));
}

static struct gy_world join(struct gy_world world)
{
    char address[4096];
    snprintf(address, sizeof address, "file://%s/gyre", gy_store());
    gyre_config config = {.size = sizeof config, .rank = world.rank, .world_size = world.size, .address = address};
    must(gyre_comm_create(&config, &comm));
    return (struct gy_world){.rank = gyre_comm_rank(comm), .size = gyre_comm_size(comm)};
}

static void all_reduce(const struct gy_call *it)
{
    must(gyre_all_reduce(comm, it->input, it->output, it->count, GYRE_FLOAT32, GYRE_SUM));
}

static void reduce_scatter(const struct gy_call *it)
{
    must(gyre_reduce_scatter(comm, it->input, it->output, it->count, GYRE_FLOAT32, GYRE_SUM));
}

static void all_gather(const struct gy_call *it)
{
    must(gyre_all_gather(comm, it->input, it->output, it->count, GYRE_FLOAT32));
}

static void broadcast(const struct gy_call *it)
{
    must(gyre_broadcast(comm, it->output, it->output, it->count, GYRE_FLOAT32, 0));
}

static void reduce(const struct gy_call *it)
{
    must(gyre_reduce(comm, it->input, it->output, it->count, GYRE_FLOAT32, GYRE_SUM, 0));
}

static void all_to_all(const struct gy_call *it)
{
    must(gyre_all_to_all(comm, it->input, it->output, it->count, GYRE_FLOAT32));
}

static void barrier(const struct gy_call *it)
{
    (void)it;
    must(gyre_barrier(comm));
}

/* Freed with the world. */
static void *allocate(size_t bytes)
{
    void *memory;
    must(gyre_mem_alloc(comm, bytes, &memory));
    return memory;
}

static void leave(void)
{
    must(gyre_comm_destroy(comm));
}

const struct gy_driver gy_driver = {
    .name = "gyre",
    .rank_variable = "RANK",
    .init = join,
    .version = gyre_version,
    .call = {[GY_ALL_REDUCE] = all_reduce,
             [GY_REDUCE_SCATTER] = reduce_scatter,
             [GY_ALL_GATHER] = all_gather,
             [GY_BROADCAST] = broadcast,
             [GY_REDUCE] = reduce,
             [GY_ALL_TO_ALL] = all_to_all,
             [GY_BARRIER] = barrier},
    .alloc = allocate,
    .finish = leave,
};
