/* The mapper of a communicator: mapper_attach.h. */
#include "collectives/device/mapper_attach.h"

#include <stdio.h>

#include "collectives/call/blocking.h"
#include "core/mem.h"

static struct gy_mapper *open_mapper(const struct gyre_comm *comm, struct gy_device *device,
                                     const struct gy_device_fact *facts, char *why, size_t why_bytes)
{
    const struct gy_config *config = &comm->ctx->config;
    const struct gy_mapper_setup setup = {.size = comm->size,
                                          .rank = comm->rank,
                                          .facts = facts,
                                          .kernels = config->cuda_kernels,
                                          .blocks_most = (unsigned)config->cuda_blocks};
    struct gy_mapper *mapper = gy_alloc_zero(1, sizeof(*mapper));
    if (!mapper) {
        snprintf(why, why_bytes, "out of memory for the calls of %d ranks", comm->size);
        return NULL;
    }
    if (gy_mapper_open(mapper, device, &setup, why, why_bytes))
        return mapper;
    gy_free(mapper);
    return NULL;
}

/* All ranks offer a piece of memory, which the leaders map. Writes whether this rank can do its part. */
static gyre_status probe(struct gyre_comm *comm, struct gy_mapper *mapper, bool *can, char *why, size_t why_bytes)
{
    const bool offers = gy_mapper_offer_probe(mapper, why, why_bytes);
    const struct gy_call gather = {.collective = GY_ALL_GATHER,
                                   .input = gy_mapper_fact(mapper, comm->size),
                                   .output = mapper->facts,
                                   .count = mapper->fact_bytes,
                                   .dtype = GYRE_UINT8};
    const gyre_status status = gy_run_own(comm, &gather);
    *can = offers && status == GYRE_SUCCESS && (!mapper->leads || gy_mapper_map_probes(mapper, why, why_bytes));
    return status;
}

/* Writes the lowest rank that lacks its part. mapper: NULL if this rank could not open it. */
static gyre_status prove(struct gyre_comm *comm, struct gy_mapper *mapper, int *lowest_p, char *why, size_t why_bytes)
{
    bool can;
    gyre_status status = gy_arrangement_agree(comm, mapper != NULL, lowest_p);
    if (!mapper || status != GYRE_SUCCESS || *lowest_p < comm->size)
        return status;
    status = probe(comm, mapper, &can, why, why_bytes);
    return status == GYRE_SUCCESS ? gy_arrangement_agree(comm, can, lowest_p) : status;
}

gyre_status gy_mapper_attach(struct gyre_comm *comm, struct gy_device *device, const struct gy_device_fact *facts,
                             struct gy_mapper **mapper_p, char *why, size_t why_bytes)
{
    int lowest = 0;
    const gy_cu_result result = gy_device_enter(device);
    const bool entered = result == GY_CU_SUCCESS;
    if (!entered)
        gy_driver_sentence(device->driver, result, "cuCtxPushCurrent", why, why_bytes);
    struct gy_mapper *mapper = entered ? open_mapper(comm, device, facts, why, why_bytes) : NULL;
    const gyre_status status = prove(comm, mapper, &lowest, why, why_bytes);
    *mapper_p = status == GYRE_SUCCESS && lowest == comm->size ? mapper : NULL;
    if (!*mapper_p)
        gy_mapper_detach(mapper);
    if (entered)
        gy_device_leave(device);
    if (status == GYRE_SUCCESS && lowest < comm->size && lowest != comm->rank)
        snprintf(why, why_bytes, "rank %d cannot share or map memory of the devices", lowest);
    return status;
}

void gy_mapper_detach(struct gy_mapper *mapper)
{
    if (!mapper)
        return;
    gy_mapper_close(mapper);
    gy_free(mapper);
}
