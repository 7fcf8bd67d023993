/* Kernels over mapped operands: mapper.h. */
#include "collectives/device/mapper.h"

#include <stdio.h>

#include "core/dtype.h"
#include "core/mem.h"

enum { PROBE_BYTES = 256 };

/* ---- Open and close ---- */

static bool open_arrays(struct gy_mapper *mapper)
{
    const size_t ranks = (size_t)mapper->size;
    mapper->fact_bytes = gy_call_fact_bytes(mapper->size);
    mapper->part_of = gy_alloc_zero(ranks, sizeof(*mapper->part_of));
    mapper->facts = gy_alloc_zero(ranks + 1, mapper->fact_bytes);
    mapper->call = gy_alloc_zero(ranks, sizeof(*mapper->call));
    mapper->arrival = gy_alloc_zero(ranks, sizeof(*mapper->arrival));
    mapper->of = gy_alloc_zero(ranks, sizeof(struct gy_arrival *));
    mapper->mapping = gy_alloc_zero(2 * ranks, sizeof(struct gy_share_mapping *));
    return mapper->facts && mapper->part_of && mapper->call && mapper->arrival && mapper->of && mapper->mapping &&
           gy_fused_plan_open(&mapper->plan, mapper->size);
}

/* The launcher of a leader. */
static bool open_launcher(struct gy_mapper *mapper, const struct gy_mapper_setup *setup, char *why, size_t why_bytes)
{
    struct gy_image *image = gy_image_get(mapper->device, setup->kernels, why, why_bytes);
    if (!image)
        return false;
    mapper->leads = true; /* from here on gy_mapper_close closes it */
    gy_cu_result result = gy_launcher_open(&mapper->launcher, mapper->device, image, setup->blocks_most);
    if (result != GY_CU_SUCCESS)
        gy_driver_sentence(mapper->device->driver, result, mapper->launcher.what, why, why_bytes);
    return result == GY_CU_SUCCESS;
}

static bool open_stream(struct gy_mapper *mapper, char *why, size_t why_bytes)
{
    gy_cu_result result = mapper->device->driver->stream_create(&mapper->stream, GY_CU_STREAM_NON_BLOCKING);
    if (result != GY_CU_SUCCESS)
        gy_driver_sentence(mapper->device->driver, result, "cuStreamCreate", why, why_bytes);
    return result == GY_CU_SUCCESS;
}

static bool is_leader(const struct gy_mapper *mapper, int rank)
{
    int lowest = 0;
    while (mapper->part_of[lowest] != mapper->part_of[rank])
        lowest++;
    return lowest == rank;
}

static bool open_parts(struct gy_mapper *mapper, const struct gy_mapper_setup *setup, char *why, size_t why_bytes)
{
    if (!open_arrays(mapper)) {
        snprintf(why, why_bytes, "out of memory for the calls of %d ranks", mapper->size);
        return false;
    }
    mapper->parts = gy_arrangement_devices(setup->facts, mapper->size, mapper->part_of);
    mapper->part = mapper->part_of[setup->rank];
    mapper->share = gy_share_get(mapper->device, why, why_bytes);
    return mapper->share && open_stream(mapper, why, why_bytes) &&
           (!is_leader(mapper, setup->rank) || open_launcher(mapper, setup, why, why_bytes));
}

bool gy_mapper_open(struct gy_mapper *mapper, struct gy_device *device, const struct gy_mapper_setup *setup, char *why,
                    size_t why_bytes)
{
    *mapper = (struct gy_mapper){.device = device, .size = setup->size};
    mapper->staging.device = device;
    if (open_parts(mapper, setup, why, why_bytes))
        return true;
    gy_mapper_close(mapper);
    return false;
}

void gy_mapper_close(struct gy_mapper *mapper)
{
    if (!mapper->device)
        return;
    gy_mapper_release(mapper);
    if (mapper->leads)
        gy_launcher_close(&mapper->launcher);
    gy_staging_close(&mapper->staging);
    if (mapper->probe) {
        gy_share_withdraw(mapper->share->exports, mapper->probe, PROBE_BYTES);
        (void)mapper->device->driver->mem_free(mapper->probe);
    }
    if (mapper->stream)
        (void)mapper->device->driver->stream_destroy(mapper->stream);
    gy_share_put(mapper->share);
    gy_fused_plan_close(&mapper->plan);
    gy_free(mapper->facts);
    gy_free(mapper->part_of);
    gy_free(mapper->call);
    gy_free(mapper->arrival);
    gy_free(mapper->of);
    gy_free(mapper->mapping);
    *mapper = (struct gy_mapper){0};
}

/* ---- Operands ---- */

struct gy_call_fact *gy_mapper_fact(const struct gy_mapper *mapper, int rank)
{
    return (struct gy_call_fact *)(void *)(mapper->facts + (size_t)rank * mapper->fact_bytes);
}

/* Returns true if an operand lies in what its rank offers. */
static bool is_inside(const struct gy_operand_fact *operand)
{
    const struct gy_share_offer *offer = &operand->offer;
    return operand->address >= offer->base && operand->address - offer->base <= offer->bytes &&
           operand->bytes <= offer->bytes - (operand->address - offer->base);
}

/* Writes the address of an operand in this process. */
static bool map(struct gy_mapper *mapper, const struct gy_operand_fact *operand, uintptr_t *address_p, char *why,
                size_t why_bytes)
{
    struct gy_share_mapping *mapping;
    gy_cu_address base;
    *address_p = (uintptr_t)operand->address;
    if (operand->kind != GY_OPERAND_SHARED)
        return true;
    if (!is_inside(operand)) {
        snprintf(why, why_bytes, "an operand of process %d lies outside of the memory that it offers",
                 operand->offer.pid);
        return false;
    }
    if (!gy_share_map(mapper->share->mappings, &operand->offer, &mapping, &base, why, why_bytes))
        return false;
    if (mapping)
        mapper->mapping[mapper->held++] = mapping;
    *address_p = (uintptr_t)(base + (operand->address - operand->offer.base));
    return true;
}

/* The call of rank r, as this process sees it. */
static bool map_call(struct gy_mapper *mapper, const struct gy_arrival *own, int r, char *why, size_t why_bytes)
{
    const struct gy_call_fact *fact = gy_mapper_fact(mapper, r);
    struct gy_call *call = &mapper->call[r];
    uintptr_t input, output;
    if (!map(mapper, &fact->input, &input, why, why_bytes) || !map(mapper, &fact->output, &output, why, why_bytes))
        return false;
    *call = *own->call;
    gy_call_fact_apply(fact, mapper->size, call);
    call->input = (const void *)input;
    call->output = (void *)output;
    mapper->arrival[r] = (struct gy_arrival){
        .comm = own->comm, .call = call, .kernel = fact->kernel, .scalar = fact->scalar, .shape = fact->shape};
    mapper->of[r] = &mapper->arrival[r];
    return true;
}

bool gy_mapper_plan(struct gy_mapper *mapper, const struct gy_arrival *own, char *why, size_t why_bytes)
{
    const int kernel = gy_arrival_kernel(own);
    if (kernel < 0) {
        snprintf(why, why_bytes, "there is no kernel for the type and operation");
        return false;
    }
    if (!gy_launcher_has(&mapper->launcher, kernel)) {
        snprintf(why, why_bytes, "%s", mapper->launcher.why);
        return false;
    }
    for (int r = 0; r < mapper->size; r++)
        if (!map_call(mapper, own, r, why, why_bytes))
            return false;
    if (!gy_fused_plan_make(&mapper->plan, mapper->of, mapper->size)) {
        snprintf(why, why_bytes, "operands overlap, or their counts differ");
        return false;
    }
    if (mapper->parts > 1)
        gy_fused_plan_keep_part(&mapper->plan, gyre_dtype_size(own->call->dtype), mapper->part_of, mapper->part,
                                mapper->parts);
    return true;
}

gy_cu_result gy_mapper_launch(struct gy_mapper *mapper)
{
    struct gy_launch *launch;
    gy_cu_result result = gy_launcher_begin(&mapper->launcher);
    if (result == GY_CU_SUCCESS)
        result = gy_launcher_add(&mapper->launcher, &mapper->plan, mapper->of, mapper->size);
    return result == GY_CU_SUCCESS ? gy_launcher_end(&mapper->launcher, 0, &launch) : result;
}

void gy_mapper_close_forgotten(struct gy_mapper *mapper)
{
    for (int r = 0; r < mapper->size; r++)
        gy_call_fact_close_forgotten(gy_mapper_fact(mapper, r), mapper->share);
}

void gy_mapper_release(struct gy_mapper *mapper)
{
    while (mapper->held > 0)
        gy_share_release(mapper->share->mappings, mapper->mapping[--mapper->held]);
}

/* ---- The probe ---- */

bool gy_mapper_offer_probe(struct gy_mapper *mapper, char *why, size_t why_bytes)
{
    struct gy_operand_fact *fact = &gy_mapper_fact(mapper, mapper->size)->input;
    gy_cu_result result = mapper->device->driver->mem_alloc(&mapper->probe, PROBE_BYTES);
    if (result != GY_CU_SUCCESS) {
        mapper->probe = 0;
        gy_driver_sentence(mapper->device->driver, result, "cuMemAlloc", why, why_bytes);
        return false;
    }
    fact->address = mapper->probe;
    fact->bytes = PROBE_BYTES;
    const bool offered = gy_share_offer(mapper->share->exports, mapper->probe, PROBE_BYTES, &fact->offer, why,
                                        why_bytes);
    fact->kind = offered ? GY_OPERAND_SHARED : GY_OPERAND_PRIVATE;
    return offered;
}

bool gy_mapper_map_probes(struct gy_mapper *mapper, char *why, size_t why_bytes)
{
    bool mapped = true;
    uintptr_t address;
    for (int r = 0; r < mapper->size && mapped; r++)
        mapped = map(mapper, &gy_mapper_fact(mapper, r)->input, &address, why, why_bytes);
    gy_mapper_release(mapper);
    return mapped;
}
