/* Facts of a call: call_fact.h. */
#include "collectives/device/call_fact.h"

#include <unistd.h>

#include "collectives/engine/operands.h"
#include "core/dtype.h"
#include "cuda/pointer.h"

size_t gy_call_fact_bytes(int size)
{
    return sizeof(struct gy_call_fact) + GY_FACT_LISTS * (size_t)size * sizeof(uint64_t);
}

static void fill_operand(struct gy_operand_fact *fact, const struct gyre_comm *comm, const struct gy_call *call,
                         bool input, struct gy_share *share)
{
    char why[200];
    const void *operand = input ? call->input : call->output;
    const enum gy_part part = gy_part_here(comm, call, input);
    const size_t elements = part == GY_PART_NONE ? 0 : gy_part_elements(comm, call, input, part);
    fact->kind = GY_OPERAND_NONE;
    fact->address = (uintptr_t)operand;
    fact->bytes = elements * gyre_dtype_size(call->dtype);
    if (elements == 0)
        return;
    const bool is_shared = gy_pointer_look(operand).kind == GY_POINTER_DEVICE &&
                           gy_share_offer(share->exports, fact->address, fact->bytes, &fact->offer, why, sizeof(why));
    fact->kind = is_shared ? GY_OPERAND_SHARED : GY_OPERAND_PRIVATE;
}

static void fill_lists(struct gy_call_fact *fact, const struct gy_call *call, int size)
{
    const size_t *lists[GY_FACT_LISTS] = {call->in_counts, call->out_counts, call->in_places, call->out_places};
    for (int i = 0; call->varying && i < GY_FACT_LISTS; i++) {
        if (!lists[i])
            continue;
        fact->lists |= 1u << i;
        memcpy(fact->list + (size_t)i * (size_t)size, lists[i], (size_t)size * sizeof(*fact->list));
    }
}

void gy_call_fact_fill(struct gy_call_fact *fact, const struct gy_arrival *arrival, struct gy_share *share,
                       uint64_t *seen_p)
{
    const struct gyre_comm *comm = arrival->comm;
    memset(fact, 0, gy_call_fact_bytes(comm->size));
    fact->shape = arrival->shape;
    fact->kernel = arrival->kernel;
    fact->count = arrival->call->count;
    fact->scalar = arrival->scalar;
    fill_operand(&fact->input, comm, arrival->call, true, share);
    fill_operand(&fact->output, comm, arrival->call, false, share);
    fill_lists(fact, arrival->call, comm->size);
    fact->pid = (int32_t)getpid();
    fact->process = gy_share_process();
    fact->forgotten = (uint32_t)gy_share_forgotten(share->exports, seen_p, fact->forgotten_serial, GY_FACT_FORGOTTEN);
}

void gy_call_fact_close_forgotten(const struct gy_call_fact *fact, struct gy_share *share)
{
    for (uint32_t i = 0; i < fact->forgotten && i < GY_FACT_FORGOTTEN; i++)
        gy_share_close(share->mappings, fact->pid, fact->process, fact->forgotten_serial[i]);
}

bool gy_call_fact_is_shared(const struct gy_call_fact *fact)
{
    return fact->input.kind != GY_OPERAND_PRIVATE && fact->output.kind != GY_OPERAND_PRIVATE;
}

void gy_call_fact_apply(const struct gy_call_fact *fact, int size, struct gy_call *call)
{
    const size_t **fields[GY_FACT_LISTS] = {&call->in_counts, &call->out_counts, &call->in_places, &call->out_places};
    call->count = (size_t)fact->count;
    for (int i = 0; i < GY_FACT_LISTS; i++)
        *fields[i] = fact->lists >> i & 1 ? (const size_t *)(fact->list + (size_t)i * (size_t)size) : NULL;
}
