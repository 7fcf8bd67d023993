#include "call.h"

#include "arguments.h"
#include "library.h"

#include <string.h>

/* Takes a buffer that will be read, or one that will be written to. */
static bool take(struct gypy_buffer *buffer, PyObject *source, int dtype, bool writable)
{
    return source && gypy_buffer_take(buffer, source, dtype) && !(writable && buffer->readonly);
}

static bool alike(const struct gypy_buffer *one, const struct gypy_buffer *other)
{
    return one->dtype == other->dtype && one->complex == other->complex;
}

/* The calls below this line fill `call` from what they take; `count` is of the input or of a block of it. */

/* Input and output of equal length, or one for both. */
static bool vector(struct gypy_call *call, const struct gypy_arguments *given, bool written)
{
    bool both = !given->output || given->output == given->input;
    if (!take(&call->in, given->input, given->dtype, both && written))
        return false;
    call->input = call->output = call->in.address;
    call->count = call->in.count;
    call->result = both ? given->input : given->output;
    if (both)
        return true;
    if (!take(&call->out, given->output, given->dtype, true))
        return false;
    call->output = call->out.address;
    return alike(&call->in, &call->out) && call->in.count == call->out.count;
}

static bool only_input(struct gypy_call *call, const struct gypy_arguments *given)
{
    if (!take(&call->in, given->input, given->dtype, false))
        return false;
    call->input = call->in.address;
    call->count = call->in.count;
    return true;
}

static bool only_output(struct gypy_call *call, const struct gypy_arguments *given, PyObject *output)
{
    if (!take(&call->out, output, given->dtype, true))
        return false;
    call->output = call->out.address;
    call->count = call->out.count;
    call->result = output;
    return true;
}

/* Elements of one of as many blocks as there are ranks. */
static bool divide(const struct gypy_buffer *whole, size_t ranks, size_t *block_p)
{
    size_t parts = whole->complex ? 2 : 1;
    *block_p = whole->count / ranks;
    return whole->count % (ranks * parts) == 0;
}

static void *block_of(const struct gypy_buffer *whole, size_t ranks, size_t rank)
{
    return (char *)whole->address + whole->bytes / ranks * rank;
}

/* All blocks as input, one of them as output: of its own, or this rank's of the input. */
static bool to_one_block(struct gypy_call *call, const struct gypy_arguments *given, struct gypy_core *core,
                         bool written)
{
    size_t ranks = (size_t)core->size, rank = (size_t)core->rank;
    if (!take(&call->in, given->input, given->dtype, written && !given->output) ||
        !divide(&call->in, ranks, &call->count))
        return false;
    call->input = call->in.address;
    call->result = given->output ? given->output : given->input;
    call->output = block_of(&call->in, ranks, rank);
    if (!given->output)
        return true;
    if (!take(&call->out, given->output, given->dtype, true))
        return false;
    call->output = call->out.address;
    return alike(&call->in, &call->out) && call->out.count == call->count;
}

/* One block as input, all of them as output; without input it is this rank's of the output. */
static bool from_one_block(struct gypy_call *call, const struct gypy_arguments *given, struct gypy_core *core)
{
    size_t ranks = (size_t)core->size, rank = (size_t)core->rank;
    if (!take(&call->out, given->output, given->dtype, true) || !divide(&call->out, ranks, &call->count))
        return false;
    call->output = call->out.address;
    call->input = block_of(&call->out, ranks, rank);
    call->result = given->output;
    if (!given->input)
        return true;
    if (!take(&call->in, given->input, given->dtype, false))
        return false;
    call->input = call->in.address;
    return alike(&call->in, &call->out) && call->in.count == call->count;
}

static bool fill(struct gypy_call *call, const struct gypy_arguments *given, struct gypy_core *core)
{
    bool root = core->rank == given->rank;
    switch (call->kind) {
    case GYPY_ALL_REDUCE:
    case GYPY_ALL_TO_ALL: return vector(call, given, true);
    case GYPY_REDUCE: return root ? vector(call, given, true) : only_input(call, given);
    case GYPY_REDUCE_SCATTER: return to_one_block(call, given, core, true);
    case GYPY_BROADCAST:
        return root ? vector(call, given, false)
                    : only_output(call, given, given->output ? given->output : given->input);
    case GYPY_ALL_GATHER: return from_one_block(call, given, core);
    case GYPY_GATHER: return root ? from_one_block(call, given, core) : only_input(call, given);
    case GYPY_SCATTER: return root ? to_one_block(call, given, core, true) : only_output(call, given, given->output);
    case GYPY_SEND: return only_input(call, given);
    case GYPY_RECV: return only_output(call, given, given->output);
    default: return true;
    }
}

/* What is left to say: the element type, blocks, what has no meaning for complex numbers. */
static bool finish(struct gypy_call *call, struct gypy_core *core)
{
    const struct gypy_buffer *typed = call->in.address || call->in.view.obj ? &call->in : &call->out;
    call->dtype = typed->dtype;
    call->bytes = call->in.bytes > call->out.bytes ? call->in.bytes : call->out.bytes;
    if (call->kind == GYPY_ALL_TO_ALL && !divide(&call->in, (size_t)core->size, &call->count))
        return false;
    return !typed->complex || call->op == GYRE_SUM || call->op == GYRE_AVERAGE;
}

bool gypy_call_prepare(struct gypy_call *call, enum gypy_kind kind, struct gypy_core *core, PyObject *const *arguments,
                       Py_ssize_t count, PyObject *names)
{
    struct gypy_arguments given;
    if (!gypy_arguments_read(&given, kind, arguments, count, names) || given.rank >= core->size)
        return false;
    memset(call, 0, sizeof(*call));
    call->kind = kind;
    call->op = (gyre_op)given.op;
    call->rank = given.rank;
    if (fill(call, &given, core) && finish(call, core))
        return true;
    gypy_call_release(call);
    return false;
}

void gypy_call_release(struct gypy_call *call)
{
    gypy_buffer_release(&call->in);
    gypy_buffer_release(&call->out);
}

gyre_status gypy_call_start(struct gypy_call *it, gyre_comm *comm, gyre_request **request_p)
{
    const struct gypy_library *lib = &gypy_library;
    void *in = it->input, *out = it->output;
    switch (it->kind) {
    case GYPY_ALL_REDUCE: return lib->all_reduce_start(comm, in, out, it->count, it->dtype, it->op, request_p);
    case GYPY_REDUCE: return lib->reduce_start(comm, in, out, it->count, it->dtype, it->op, it->rank, request_p);
    case GYPY_REDUCE_SCATTER: return lib->reduce_scatter_start(comm, in, out, it->count, it->dtype, it->op, request_p);
    case GYPY_BROADCAST: return lib->broadcast_start(comm, in, out, it->count, it->dtype, it->rank, request_p);
    case GYPY_ALL_GATHER: return lib->all_gather_start(comm, in, out, it->count, it->dtype, request_p);
    case GYPY_GATHER: return lib->gather_start(comm, in, out, it->count, it->dtype, it->rank, request_p);
    case GYPY_SCATTER: return lib->scatter_start(comm, in, out, it->count, it->dtype, it->rank, request_p);
    case GYPY_ALL_TO_ALL: return lib->all_to_all_start(comm, in, out, it->count, it->dtype, request_p);
    case GYPY_SEND: return lib->send_start(comm, in, it->count, it->dtype, it->rank, request_p);
    case GYPY_RECV: return lib->recv_start(comm, out, it->count, it->dtype, it->rank, request_p);
    default: return lib->barrier_start(comm, request_p);
    }
}
