/* The operands of a call: operands.h. */
#include "collectives/engine/operands.h"

static const struct {
    enum gy_part in, out;
    bool in_root, out_root; /* on the root only */
} parts[GY_COLLECTIVES] = {
    [GY_ALL_REDUCE] = {GY_PART_VECTOR, GY_PART_VECTOR, false, false},
    [GY_REDUCE_SCATTER] = {GY_PART_WHOLE, GY_PART_BLOCK, false, false},
    [GY_ALL_GATHER] = {GY_PART_BLOCK, GY_PART_WHOLE, false, false},
    [GY_BROADCAST] = {GY_PART_VECTOR, GY_PART_VECTOR, true, false},
    [GY_BARRIER] = {GY_PART_NONE, GY_PART_NONE, false, false},
    [GY_REDUCE_TO] = {GY_PART_VECTOR, GY_PART_VECTOR, false, true},
    [GY_GATHER_TO] = {GY_PART_BLOCK, GY_PART_WHOLE, false, true},
    [GY_SCATTER_FROM] = {GY_PART_WHOLE, GY_PART_BLOCK, true, false},
    [GY_ALL_TO_ALL] = {GY_PART_WHOLE, GY_PART_WHOLE, false, false},
    [GY_SEND_TO] = {GY_PART_VECTOR, GY_PART_NONE, false, false},
    [GY_RECEIVE_FROM] = {GY_PART_NONE, GY_PART_VECTOR, false, false},
};

enum gy_part gy_part_of(enum gy_collective collective, bool input)
{
    return input ? parts[collective].in : parts[collective].out;
}

enum gy_part gy_part_here(const struct gyre_comm *comm, const struct gy_call *call, bool input)
{
    bool root_only = input ? parts[call->collective].in_root : parts[call->collective].out_root;
    return root_only && comm->rank != call->root ? GY_PART_NONE : gy_part_of(call->collective, input);
}

static const size_t *counts_of(const struct gy_call *call, bool input)
{
    return !call->varying ? NULL : input ? call->in_counts : call->out_counts;
}

static const size_t *places_of(const struct gy_call *call, bool input)
{
    return !call->varying ? NULL : input ? call->in_places : call->out_places;
}

bool gy_blocks_are_placed(const struct gy_call *call, bool input)
{
    return places_of(call, input) != NULL;
}

size_t gy_block_elements(const struct gy_call *call, bool input, int b)
{
    const size_t *counts = counts_of(call, input);
    return counts ? counts[b] : call->count;
}

size_t gy_block_place(const struct gy_call *call, bool input, int b)
{
    const size_t *counts = counts_of(call, input), *places = places_of(call, input);
    if (places)
        return places[b];
    if (!counts)
        return call->count * (size_t)b;
    size_t place = 0;
    for (int i = 0; i < b; i++)
        place += counts[i];
    return place;
}

static size_t whole_elements(const struct gy_call *call, bool input, int size)
{
    const size_t *counts = counts_of(call, input), *places = places_of(call, input);
    size_t end = 0, sum = 0;
    if (!counts)
        return call->count * (size_t)size;
    for (int b = 0; b < size; b++) {
        size_t place = places ? places[b] : sum, here;
        if (__builtin_add_overflow(place, counts[b], &here) || here > SIZE_MAX >> 1)
            return SIZE_MAX;
        if (__builtin_add_overflow(sum, counts[b], &sum) || sum > SIZE_MAX >> 1)
            return SIZE_MAX;
        end = gy_max_size(end, here);
    }
    return end;
}

size_t gy_part_elements(const struct gyre_comm *comm, const struct gy_call *call, bool input, enum gy_part part)
{
    switch (part) {
    case GY_PART_NONE: return 0;
    case GY_PART_VECTOR: return call->count;
    case GY_PART_BLOCK: return gy_block_elements(call, input, comm->rank);
    default: return whole_elements(call, input, comm->size);
    }
}
