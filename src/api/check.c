#include "api/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/call_group.h"
#include "collectives/engine/operands.h"
#include "collectives/lifecycle/comm_teardown.h"
#include "collectives/lifecycle/uniform_completion.h"
#include "core/dtype.h"
#include "core/handle.h"
#include "cuda/pointer.h"

static _Thread_local struct gy_error own_error;

struct gy_error *gy_check_own_error(void)
{
    return &own_error;
}

gyre_status gy_check_none(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    gy_error_clear(&own_error);
    vsnprintf(own_error.text, sizeof(own_error.text), format, args);
    va_end(args);
    return GYRE_INVALID_ARGUMENT;
}

static bool lives(const void *handle, enum gy_handle_kind kind, const char *name, const char *function)
{
    if (gy_handle_lives(handle, kind))
        return true;
    if (handle)
        gy_check_none("%s: %p is no %s, or one that was destroyed", function, handle, name);
    else
        gy_check_none("%s: the %s is NULL", function, name);
    return false;
}

bool gy_check_lives(const struct gyre_comm *comm, const char *function)
{
    return lives(comm, GY_HANDLE_COMM, "communicator", function);
}

bool gy_check_window(const struct gyre_window *window, const char *function)
{
    return lives(window, GY_HANDLE_WINDOW, "window", function);
}

bool gy_check_ungrouped(struct gyre_comm *comm, const char *function)
{
    if (!gy_call_group_open())
        return true;
    gy_check_fail(comm, GYRE_INVALID_ARGUMENT,
                  "%s inside a group: it waits for the other ranks at once, and would wait for what the group has not "
                  "started yet; end the group first",
                  function);
    return false;
}

gyre_status gy_check_fail(struct gyre_comm *comm, gyre_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    comm->error.status = GYRE_SUCCESS; /* the communicator is as before: only the message stays */
    comm->error.rank = -1;
    vsnprintf(comm->error.text, sizeof(comm->error.text), format, args);
    va_end(args);
    return status;
}

gyre_status gy_check_owner(struct gyre_comm *comm)
{
    if (comm->ctx->generation == atomic_load_explicit(&gy_fork_generation, memory_order_relaxed))
        return GYRE_SUCCESS;
    return gy_check_fail(comm, GYRE_FORKED,
                         "this communicator belongs to the parent of this process; a child makes its own");
}

gyre_status gy_check_comm(struct gyre_comm *comm)
{
    struct gy_context *ctx = comm->ctx;
    if (gy_check_owner(comm) != GYRE_SUCCESS)
        return GYRE_FORKED;
    if (ctx->closed) {
        gy_uniform_attend(ctx);
        return ctx->error.status;
    }
    if (gy_overlay_check(ctx->overlay, &ctx->error) != GYRE_SUCCESS) {
        gy_context_fail(ctx);
        return ctx->error.status;
    }
    return GYRE_SUCCESS;
}

static void add_call(struct gyre_comm *comm, const struct gy_call *call)
{
    struct gy_call_signature shape = {.sequence = comm->sequence + 1,
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
}

gyre_status gy_check_refused(struct gyre_comm *comm, const struct gy_call *call, gyre_status status)
{
    if (status == GYRE_FORKED || comm->refused)
        return status;
    comm->refused = true;
    add_call(comm, call);
    return status;
}

gyre_status gy_check_ended(struct gyre_comm *comm, const struct gy_call *call)
{
    gyre_status status = gy_comm_end_refuse(comm);
    add_call(comm, call);
    return status;
}

/* True if two blocks overlap. Ordered lists need one comparison per block. */
static bool blocks_overlap(const struct gy_call *call, bool input, int size)
{
    const size_t *counts = input ? call->in_counts : call->out_counts;
    const size_t *places = input ? call->in_places : call->out_places;
    bool ordered = true;
    size_t end = 0;
    for (int b = 0; places && b < size; b++) {
        if (counts[b] == 0)
            continue;
        ordered &= places[b] >= end;
        end = places[b] + counts[b];
    }
    for (int b = 1; !ordered && b < size; b++)
        for (int a = 0; a < b; a++)
            if (counts[a] > 0 && counts[b] > 0 && places[a] < places[b] + counts[b] &&
                places[b] < places[a] + counts[a])
                return true;
    return false;
}

#define MOST_BYTES ((size_t)1 << 57) /* an address space of five page levels has no more */

static bool overlaps(const struct gyre_comm *comm, const struct gy_call *call, size_t in, size_t out)
{
    size_t element = gyre_dtype_size(call->dtype);
    enum gy_part from = gy_part_of(call->collective, true), to = gy_part_of(call->collective, false);
    uintptr_t input = (uintptr_t)call->input, output = (uintptr_t)call->output;
    if (from == GY_PART_BLOCK && to == GY_PART_WHOLE &&
        input == output + gy_block_place(call, false, comm->rank) * element)
        return false;
    if (from == GY_PART_WHOLE && to == GY_PART_BLOCK &&
        output == input + gy_block_place(call, true, comm->rank) * element)
        return false;
    if (from == to && input == output)
        return false;
    return input < output + out * element && output < input + in * element;
}

/* True if blocks overlap in the whole vectors that this rank reads or writes. */
static bool any_blocks_overlap(const struct gyre_comm *comm, const struct gy_call *call, size_t in, size_t out)
{
    return (gy_part_of(call->collective, true) == GY_PART_WHOLE && in > 0 && blocks_overlap(call, true, comm->size)) ||
           (gy_part_of(call->collective, false) == GY_PART_WHOLE && out > 0 && blocks_overlap(call, false, comm->size));
}

/* True if the lists differ. In place, data sent to a rank lies where the data from that rank arrives. */
static bool lists_differ(const struct gyre_comm *comm, const struct gy_call *call)
{
    if (call->collective != GY_ALL_TO_ALL || !call->varying || call->input != call->output)
        return false;
    for (int b = 0; b < comm->size; b++)
        if (gy_block_elements(call, true, b) != gy_block_elements(call, false, b) ||
            gy_block_place(call, true, b) != gy_block_place(call, false, b))
            return true;
    return false;
}

/* True if the call's vector, of which this rank may have only a part, can be addressed. Then every rank's
 * computations with its bytes, as floats of four times their width and with a few bits to spare, fit 64 bits. */
static bool addressable(const struct gyre_comm *comm, const struct gy_call *call, size_t element)
{
    enum gy_part in = gy_part_of(call->collective, true), out = gy_part_of(call->collective, false);
    bool blocked = in == GY_PART_BLOCK || in == GY_PART_WHOLE || out == GY_PART_BLOCK || out == GY_PART_WHOLE;
    size_t bytes = element, ins = 0, outs = 0;
    for (int b = 0; call->varying && b < comm->size; b++)
        if (__builtin_add_overflow(ins, call->in_counts[b], &ins) ||
            __builtin_add_overflow(outs, call->out_counts[b], &outs))
            return false;
    size_t count = call->varying ? gy_max_size(ins, outs) : call->count;
    if (blocked && !call->varying && __builtin_mul_overflow(bytes, (size_t)comm->size, &bytes))
        return false;
    return !__builtin_mul_overflow(bytes, count, &bytes) && bytes <= MOST_BYTES;
}

static gyre_status check_buffers(struct gyre_comm *comm, const struct gy_call *call)
{
    size_t element = gyre_dtype_size(call->dtype);
    const char *name = gy_collective_name(call->collective);
    if (call->varying && (!call->in_counts || !call->out_counts))
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "%sv: a list of counts is NULL", name);
    size_t in = gy_part_elements(comm, call, true, gy_part_here(comm, call, true));
    size_t out = gy_part_elements(comm, call, false, gy_part_here(comm, call, false));
    if (!addressable(comm, call, element) || (call->varying && gy_max_size(in, out) > MOST_BYTES / element))
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT,
                             "count %zu of %zu-byte elements on %d ranks is more than memory can hold",
                             gy_max_size(call->count, gy_max_size(in, out)), element, comm->size);
    if ((in > 0 && !call->input) || (out > 0 && !call->output))
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "%s: %s is NULL", name,
                             in > 0 && !call->input ? "input" : "output");
    if (call->varying && call->in_counts[comm->rank] != call->out_counts[comm->rank])
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "%sv: rank %d sends itself %zu elements and expects %zu",
                             name, comm->rank, call->in_counts[comm->rank], call->out_counts[comm->rank]);
    if (call->varying && any_blocks_overlap(comm, call, in, out))
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "%sv: by their displacements, blocks overlap", name);
    if (in == 0 || out == 0)
        return GYRE_SUCCESS;
    if (overlaps(comm, call, in, out))
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "%s: input and output overlap, and not as in place means it",
                             name);
    if (lists_differ(comm, call))
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT,
                             "%sv in place: the counts and displacements of input and output differ", name);
    return GYRE_SUCCESS;
}

static gyre_status refuse_operation(struct gyre_comm *comm, const struct gy_call *call)
{
    char text[256];
    gy_op_explain((int)call->op, call->dtype, text, sizeof(text));
    return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "%s", text);
}

static gyre_status check_operation(struct gyre_comm *comm, const struct gy_call *call)
{
    const struct gy_op_made *made = gy_operations_find(&comm->ctx->operations, call->op);
    if (made && !made->func && made->dtype != call->dtype)
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "the pre-multiplied sum was made for %s, not for %s",
                             gyre_dtype_name(made->dtype), gyre_dtype_name(call->dtype));
    if (made)
        return GYRE_SUCCESS;
    if (!gy_op_known((int)call->op))
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "%d is not an operation", (int)call->op);
    if (!gy_op_valid((int)call->op, call->dtype))
        return refuse_operation(comm, call);
    if (call->op == GYRE_PREMUL_SUM)
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT,
                             "a pre-multiplied sum needs its scalar: make it with gyre_op_create_premul_sum");
    return GYRE_SUCCESS;
}

/* True if no further checks are needed. Most calls are like that, and some take less time than the checks: a whole
 * vector of a known type, an operation that every type has, buffers that do not overlap or, where that is in place,
 * are the same. */
static bool is_plain(const struct gyre_comm *comm, const struct gy_call *call)
{
    if ((unsigned)call->dtype >= GY_DTYPES_AVERAGED || (unsigned)call->op > GYRE_AVERAGE ||
        (unsigned)call->root >= (unsigned)comm->size || call->varying || call->count > UINT32_MAX ||
        comm->size > UINT16_MAX)
        return false;
    switch (call->collective) {
    case GY_SEND_TO: return call->input != NULL;
    case GY_RECEIVE_FROM: return call->output != NULL;
    default: return gy_call_has_usual_buffers(call, call->count * gy_dtype_bytes(call->dtype), comm->size);
    }
}

gyre_status gy_check_call(struct gyre_comm *comm, const struct gy_call *call)
{
    if (is_plain(comm, call))
        return GYRE_SUCCESS;
    if (!gy_dtype_valid((int)call->dtype))
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "%d is not an element type", (int)call->dtype);
    gyre_status status = check_operation(comm, call);
    if (status != GYRE_SUCCESS)
        return status;
    if (call->root < 0 || call->root >= comm->size)
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "%s %d is not a rank: there are %d",
                             gy_is_point_to_point(call->collective) ? "peer" : "root", call->root, comm->size);
    return check_buffers(comm, call);
}

gyre_status gy_check_apart(struct gyre_comm *comm, const struct gy_call *sends, const struct gy_call *receives)
{
    size_t element = gyre_dtype_size(sends->dtype);
    uintptr_t input = (uintptr_t)sends->input, output = (uintptr_t)receives->output;
    if (sends->count > 0 && receives->count > 0 && input < output + receives->count * element &&
        output < input + sends->count * element)
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "sendrecv: input and output overlap");
    return GYRE_SUCCESS;
}

gyre_status gy_check_entry(struct gyre_comm *comm, const struct gy_call *call, bool blocks)
{
    gyre_status status = gy_check_comm(comm);
    if (status == GYRE_SUCCESS && comm->ended.status == GYRE_SUCCESS)
        return gy_check_call(comm, call);
    if (status == GYRE_SUCCESS)
        return gy_check_ended(comm, call);
    if (status != GYRE_FORKED && !gy_is_point_to_point(call->collective))
        gy_uniform_refuse(comm, blocks);
    return gy_check_refused(comm, call, status);
}

bool gy_check_device_memory(struct gyre_comm *comm, const char *function, const void *memory)
{
    if (!comm->attachment || !memory || gy_pointer_look(memory).kind != GY_POINTER_DEVICE)
        return false;
    gy_check_fail(comm, GYRE_UNSUPPORTED, "%s: %p is memory of a GPU, which one-sided calls do not reach", function,
                  memory);
    return true;
}
