/* Each call is drawn from (seed, number) alone: one of five collectives, with 1 to 32,768 elements in the whole vector,
 * every power of two as likely as any other, and any root. Seed 0 is all_reduce only, of a few elements. */
#include "fault_calls.h"

#define MOST 32768

enum kind { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, BARRIER, KINDS };

struct call {
    enum kind kind;
    uint64_t elements, root;
};

uint64_t fault_draw(uint64_t *stream, uint64_t below)
{
    *stream += 0x9e3779b97f4a7c15u;
    uint64_t x = (*stream ^ *stream >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (x ^ x >> 31) % below;
}

static struct call draw_call(uint64_t seed, uint64_t number)
{
    if (seed == 0)
        return (struct call){ALL_REDUCE, 1 + number % 7, 0};
    uint64_t stream = seed * 1000003 + number;
    struct call call = {.kind = (enum kind)fault_draw(&stream, KINDS)};
    uint64_t least = UINT64_C(1) << fault_draw(&stream, 15);
    call.elements = least + fault_draw(&stream, least);
    call.root = fault_draw(&stream, 1u << 20);
    return call;
}

const char *fault_call_name(uint64_t seed, uint64_t number)
{
    static const char *const names[] = {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "barrier"};
    return names[draw_call(seed, number).kind];
}

gyre_status fault_call(gyre_comm *comm, uint64_t seed, uint64_t number)
{
    static float input[MOST], output[MOST];
    struct call call = draw_call(seed, number);
    size_t size = (size_t)gyre_comm_size(comm), block = call.elements / size;
    switch (call.kind) {
    case ALL_REDUCE: return gyre_all_reduce(comm, input, output, call.elements, GYRE_FLOAT32, GYRE_SUM);
    case REDUCE_SCATTER: return gyre_reduce_scatter(comm, input, output, block, GYRE_FLOAT32, GYRE_MAX);
    case ALL_GATHER: return gyre_all_gather(comm, input, output, block, GYRE_FLOAT32);
    case BROADCAST: return gyre_broadcast(comm, input, output, call.elements, GYRE_FLOAT32, (int)(call.root % size));
    default: return gyre_barrier(comm);
    }
}
