/* Staged calls on device memory: staged_call.h. */
#include "collectives/device/staged_call.h"

#include "collectives/engine/operands.h"
#include "core/dtype.h"

static size_t aligned(size_t bytes)
{
    return (bytes + 127) / 128 * 128;
}

static size_t part_bytes(const struct gyre_comm *comm, const struct gy_call *call, bool input)
{
    return gy_part_elements(comm, call, input, gy_part_here(comm, call, input)) * gyre_dtype_size(call->dtype);
}

gy_cu_result gy_staged_open(struct gy_staged_call *call, struct gy_staging *staging, const struct gyre_comm *comm,
                            const struct gy_call *user)
{
    if (!gy_kept_call_open(&call->user, user, comm->size))
        return GY_CU_OUT_OF_MEMORY;
    call->staged = call->user.call;
    call->staged.in_places = call->staged.out_places = NULL;
    size_t in = part_bytes(comm, &call->staged, true), out = part_bytes(comm, &call->staged, false);
    gy_cu_result result = gy_staging_take(staging, aligned(in) + out, &call->block);
    if (result != GY_CU_SUCCESS) {
        gy_staged_close(call);
        return result;
    }
    call->staged.input = call->block->data;
    call->staged.output = call->block->data + aligned(in);
    return GY_CU_SUCCESS;
}

void gy_staged_close(struct gy_staged_call *call)
{
    gy_kept_call_close(&call->user);
}

/* The addresses of an operand: the caller's, and in the block. */
struct sides {
    uintptr_t user, staged;
};

static gy_cu_result copy(const struct gy_staging *staging, struct sides at, bool in, size_t bytes, gy_cu_stream stream)
{
    if (bytes == 0)
        return GY_CU_SUCCESS;
    return staging->device->driver->copy_async(in ? at.staged : at.user, in ? at.user : at.staged, bytes, stream);
}

static gy_cu_result copy_blocks(const struct gy_staged_call *call, const struct gy_staging *staging, int size,
                                struct sides at, bool in, gy_cu_stream stream)
{
    size_t element = gyre_dtype_size(call->user.call.dtype);
    gy_cu_result result = GY_CU_SUCCESS;
    for (int b = 0; b < size && result == GY_CU_SUCCESS; b++) {
        struct sides block = {at.user + gy_block_place(&call->user.call, in, b) * element,
                              at.staged + gy_block_place(&call->staged, in, b) * element};
        result = copy(staging, block, in, gy_block_elements(&call->user.call, in, b) * element, stream);
    }
    return result;
}

static gy_cu_result copy_part(const struct gy_staged_call *call, const struct gy_staging *staging,
                              const struct gyre_comm *comm, struct sides at, bool in, gy_cu_stream stream)
{
    if (gy_part_here(comm, &call->user.call, in) == GY_PART_WHOLE && gy_blocks_are_placed(&call->user.call, in))
        return copy_blocks(call, staging, comm->size, at, in, stream);
    return copy(staging, at, in, part_bytes(comm, &call->staged, in), stream);
}

gy_cu_result gy_staged_copy_in(const struct gy_staged_call *call, const struct gy_staging *staging,
                               const struct gyre_comm *comm, gy_cu_stream stream)
{
    struct sides at = {(uintptr_t)call->user.call.input, (uintptr_t)call->staged.input};
    return copy_part(call, staging, comm, at, true, stream);
}

gy_cu_result gy_staged_copy_out(const struct gy_staged_call *call, const struct gy_staging *staging,
                                const struct gyre_comm *comm, gy_cu_stream stream)
{
    struct sides at = {(uintptr_t)call->user.call.output, (uintptr_t)call->staged.output};
    return copy_part(call, staging, comm, at, false, stream);
}
