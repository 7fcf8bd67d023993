#include "api/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/dtype.h"

gyre_status gy_check_fail(struct gyre_comm *comm, gyre_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    comm->error.status = GYRE_SUCCESS; /* the communicator is as before: only the sentence stays */
    comm->error.rank = -1;
    vsnprintf(comm->error.text, sizeof(comm->error.text), format, args);
    va_end(args);
    return status;
}

gyre_status gy_check_comm(struct gyre_comm *comm)
{
    struct gy_context *ctx = comm->ctx;
    if (ctx->generation != atomic_load_explicit(&gy_fork_generation, memory_order_relaxed))
        return gy_check_fail(comm, GYRE_FORKED,
                             "this communicator belongs to the parent of this process; a child makes its own");
    if (ctx->closed)
        return ctx->error.status;
    if (gy_overlay_check(ctx->overlay, &ctx->error) != GYRE_SUCCESS) {
        gy_context_fail(ctx);
        return ctx->error.status;
    }
    return GYRE_SUCCESS;
}

gyre_status gy_check_refused(struct gyre_comm *comm, const struct gy_call *call, gyre_status status)
{
    if (status == GYRE_FORKED || comm->refused)
        return status;
    comm->refused = true;
    struct gy_arrival shape = {.sequence = comm->sequence + 1,
                               .count = call->count,
                               .root = (uint32_t)call->root,
                               .collective = (uint8_t)call->collective,
                               .dtype = (uint8_t)call->dtype,
                               .op = (uint8_t)call->op,
                               .algorithm = GY_ALGORITHMS};
    char text[160];
    size_t used = strlen(comm->error.text);
    gy_shape_print(&shape, text, sizeof(text));
    snprintf(comm->error.text + used, sizeof(comm->error.text) - used, "; met by its call of %s", text);
    return status;
}

static size_t input_elements(const struct gyre_comm *comm, const struct gy_call *call)
{
    if (call->collective == GY_BROADCAST && comm->rank != call->root)
        return 0;
    return call->collective == GY_REDUCE_SCATTER ? call->count * (size_t)comm->size : call->count;
}

static size_t output_elements(const struct gyre_comm *comm, const struct gy_call *call)
{
    return call->collective == GY_ALL_GATHER ? call->count * (size_t)comm->size : call->count;
}

/* Where input lies when a call is in place, as an offset from the output. */
static const unsigned char *in_place(const struct gyre_comm *comm, const struct gy_call *call, size_t element)
{
    const unsigned char *output = call->output;
    size_t block = (size_t)comm->rank * call->count * element;
    if (call->collective == GY_ALL_GATHER)
        return output + block;
    return call->collective == GY_REDUCE_SCATTER ? output - block : output;
}

static gyre_status check_buffers(struct gyre_comm *comm, const struct gy_call *call)
{
    size_t element = gyre_dtype_size(call->dtype);
    if (call->count > UINT32_MAX && call->count > (SIZE_MAX >> 1) / element / (size_t)comm->size)
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT,
                             "count %zu of %zu-byte elements on %d ranks is more than memory can hold", call->count,
                             element, comm->size);
    size_t in = input_elements(comm, call) * element, out = output_elements(comm, call) * element;
    const unsigned char *input = call->input, *output = call->output;
    if ((in > 0 && !input) || (out > 0 && !output))
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "%s: %s is NULL", gy_collective_name(call->collective),
                             in > 0 && !input ? "input" : "output");
    if (in == 0 || out == 0 || input == in_place(comm, call, element))
        return GYRE_SUCCESS;
    if ((uintptr_t)input < (uintptr_t)output + out && (uintptr_t)output < (uintptr_t)input + in)
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "%s: input and output overlap, and not as in place means it",
                             gy_collective_name(call->collective));
    return GYRE_SUCCESS;
}

gyre_status gy_check_call(struct gyre_comm *comm, const struct gy_call *call)
{
    if (!gy_dtype_valid((int)call->dtype))
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "%d is not an element type", (int)call->dtype);
    if (!gy_op_known((int)call->op))
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "%d is not an operation", (int)call->op);
    if (!gy_op_valid((int)call->op, call->dtype))
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "%s is for integers, not for %s", gyre_op_name(call->op),
                             gyre_dtype_name(call->dtype));
    if (call->op == GYRE_AVERAGE || call->op == GYRE_PREMUL_SUM)
        return gy_check_fail(comm, GYRE_UNSUPPORTED,
                             "%s is not in this version: use sum, and scale before or after the call",
                             gyre_op_name(call->op));
    if (call->root < 0 || call->root >= comm->size)
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "root %d is not a rank: there are %d", call->root,
                             comm->size);
    return check_buffers(comm, call);
}
