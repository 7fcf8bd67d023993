#include "trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exact.h"

#define PAINT 0xa5
#define GUARD 16 /* elements before and behind */

uint64_t trial_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

uint64_t trial_below(uint64_t *state, uint64_t end)
{
    return trial_random(state) % end;
}

const char *trial_name(enum trial_kind kind)
{
    static const char *const names[] = {"all_reduce",      "reduce",      "reduce_scatter", "broadcast",
                                        "all_gather",      "gather",      "scatter",        "all_to_all",
                                        "barrier",         "all_gatherv", "gatherv",        "scatterv",
                                        "reduce_scatterv", "all_to_allv", "send",           "recv"};
    return names[kind];
}

/* ---- layout ---- */

static bool is_varying(enum trial_kind kind)
{
    return kind >= TRIAL_ALL_GATHERV && kind <= TRIAL_ALL_TO_ALLV;
}

static size_t count_of(const struct trial *it, int from, int to)
{
    if (!is_varying(it->kind))
        return it->count;
    if (it->kind == TRIAL_ALL_TO_ALLV)
        return it->counts[from][to];
    bool spreads = it->kind == TRIAL_SCATTERV || it->kind == TRIAL_REDUCE_SCATTERV;
    return it->counts[0][spreads ? to : from];
}

/* Places of `size` blocks; the elements they span. */
static size_t place(const size_t *counts, int size, enum trial_layout layout, uint64_t *random, size_t *places)
{
    int order[TRIAL_RANKS];
    size_t at = 0;
    for (int i = 0; i < size; i++)
        order[i] = i;
    for (int i = size - 1; layout == TRIAL_SHUFFLED && i > 0; i--) {
        int other = (int)trial_below(random, (uint64_t)i + 1), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    for (int i = 0; i < size; i++) {
        at += layout == TRIAL_PACKED ? 0 : trial_below(random, 5);
        places[order[i]] = at;
        at += counts[order[i]];
    }
    return at;
}

static void add(struct trial_block *blocks, int *count, size_t where, size_t elements, size_t first, int owner)
{
    blocks[(*count)++] = (struct trial_block){GUARD + where, elements, first, owner};
}

static int pair(int from, int to)
{
    return 16 * from + to;
}

enum part { NOTHING, VECTOR, BLOCK, WHOLE };

static const struct {
    enum part in, out;
} parts[TRIAL_KINDS] = {
    [TRIAL_ALL_REDUCE] = {VECTOR, VECTOR},    [TRIAL_REDUCE] = {VECTOR, VECTOR},
    [TRIAL_REDUCE_SCATTER] = {WHOLE, BLOCK},  [TRIAL_BROADCAST] = {VECTOR, VECTOR},
    [TRIAL_ALL_GATHER] = {BLOCK, WHOLE},      [TRIAL_GATHER] = {BLOCK, WHOLE},
    [TRIAL_SCATTER] = {WHOLE, BLOCK},         [TRIAL_ALL_TO_ALL] = {WHOLE, WHOLE},
    [TRIAL_BARRIER] = {NOTHING, NOTHING},     [TRIAL_ALL_GATHERV] = {BLOCK, WHOLE},
    [TRIAL_GATHERV] = {BLOCK, WHOLE},         [TRIAL_SCATTERV] = {WHOLE, BLOCK},
    [TRIAL_REDUCE_SCATTERV] = {WHOLE, BLOCK}, [TRIAL_ALL_TO_ALLV] = {WHOLE, WHOLE},
    [TRIAL_SEND] = {VECTOR, NOTHING},         [TRIAL_RECV] = {NOTHING, VECTOR},
};

static bool reads(const struct trial *it)
{
    bool root_only = it->kind == TRIAL_BROADCAST || it->kind == TRIAL_SCATTER || it->kind == TRIAL_SCATTERV;
    return !root_only || it->rank == it->root;
}

static bool writes(const struct trial *it)
{
    bool root_only = it->kind == TRIAL_REDUCE || it->kind == TRIAL_GATHER || it->kind == TRIAL_GATHERV;
    return !root_only || it->rank == it->root;
}

/* Whose vector a whole buffer's block r comes from, and where in it. */
static void describe_whole(struct trial *it, bool input)
{
    size_t first = 0;
    const size_t *counts = input ? it->in_counts : it->out_counts, *places = input ? it->in_places : it->out_places;
    for (int r = 0; r < it->size; r++) {
        bool all = parts[it->kind].in == WHOLE && parts[it->kind].out == WHOLE;
        if (all)
            add(input ? it->in : it->out, input ? &it->ins : &it->outs, places[r], counts[r], 0,
                input ? pair(it->rank, r) : pair(r, it->rank));
        else if (input)
            add(it->in, &it->ins, places[r], counts[r], first, it->rank);
        else
            add(it->out, &it->outs, places[r], counts[r], 0, r);
        first += counts[r];
    }
}

static int out_owner(const struct trial *it)
{
    switch (it->kind) {
    case TRIAL_BROADCAST:
    case TRIAL_SCATTER:
    case TRIAL_SCATTERV: return it->root;
    case TRIAL_RECV: return pair(it->root, it->rank);
    default: return -1;
    }
}

static void describe(struct trial *it)
{
    size_t before = 0;
    for (int r = 0; r < it->rank; r++)
        before += count_of(it, 0, r);
    if (reads(it) && parts[it->kind].in == WHOLE)
        describe_whole(it, true);
    if (writes(it) && parts[it->kind].out == WHOLE)
        describe_whole(it, false);
    if (reads(it) && (parts[it->kind].in == VECTOR || parts[it->kind].in == BLOCK))
        add(it->in, &it->ins, 0, count_of(it, it->rank, it->rank), 0,
            it->kind == TRIAL_SEND ? pair(it->rank, it->root) : it->rank);
    if (writes(it) && parts[it->kind].out == VECTOR)
        add(it->out, &it->outs, 0, it->count, 0, out_owner(it));
    if (writes(it) && parts[it->kind].out == BLOCK)
        add(it->out, &it->outs, 0, count_of(it, it->rank, it->rank), before, out_owner(it));
}

/* In place, the smaller side's block lies inside the larger one. */
static void merge(struct trial *it)
{
    enum part in = parts[it->kind].in, out = parts[it->kind].out;
    if (in == BLOCK && out == WHOLE)
        it->in[0].place = it->out[it->rank].place;
    else if (in == WHOLE && out == BLOCK)
        it->out[0].place = it->in[it->rank].place;
}

size_t trial_bytes(const struct trial *it, int side)
{
    return it->elements[side] * gyre_dtype_size(it->dtype) + 8;
}

void trial_make(struct trial *it, uint64_t *random)
{
    size_t span[2] = {0, 0}, element = gyre_dtype_size(it->dtype);
    bool placed_in = it->kind == TRIAL_SCATTERV || it->kind == TRIAL_ALL_TO_ALLV;
    bool placed_out = it->kind == TRIAL_ALL_GATHERV || it->kind == TRIAL_GATHERV || it->kind == TRIAL_ALL_TO_ALLV;
    for (int r = 0; r < it->size; r++) {
        it->in_counts[r] = count_of(it, it->rank, r);
        it->out_counts[r] = count_of(it, r, it->rank);
    }
    if (it->in_place) /* where sides must be alike, and only where both of them count */
        it->in_place = reads(it) && writes(it) && it->kind != TRIAL_SEND && it->kind != TRIAL_RECV &&
                       (it->kind != TRIAL_ALL_TO_ALLV ||
                        memcmp(it->in_counts, it->out_counts, (size_t)it->size * sizeof(size_t)) == 0);
    span[0] = place(it->in_counts, it->size, placed_in ? it->layout : TRIAL_PACKED, random, it->in_places);
    span[1] = place(it->out_counts, it->size, placed_out ? it->layout : TRIAL_PACKED, random, it->out_places);
    if (it->in_place && it->kind == TRIAL_ALL_TO_ALLV) {
        memcpy(it->out_places, it->in_places, sizeof it->in_places);
        span[1] = span[0];
    }
    it->ins = it->outs = 0;
    describe(it);
    if (it->in_place)
        merge(it);
    size_t most = span[0] > span[1] ? span[0] : span[1];
    for (int side = 0; side < 2; side++) {
        it->elements[side] = most + 2 * GUARD;
        it->memory[side] = malloc(trial_bytes(it, side));
        if (!it->memory[side])
            abort();
    }
    /* Buffers that are ignored are NULL, where there is no block at all. */
    unsigned char *in = it->memory[it->in_place] + it->shift, *out = it->memory[1] + it->shift;
    size_t at_in = it->in_place && parts[it->kind].in == BLOCK ? it->in[0].place : GUARD;
    size_t at_out = it->in_place && parts[it->kind].out == BLOCK ? it->out[0].place : GUARD;
    it->input = it->ins > 0 ? in + at_in * element : NULL;
    it->output = it->outs > 0 ? out + at_out * element : NULL;
}

void trial_free(struct trial *it)
{
    free(it->memory[0]);
    free(it->memory[1]);
}

/* ---- data ---- */

static unsigned char *memory_at(const struct trial *it, int side, size_t where)
{
    return it->memory[it->in_place ? 1 : side] + it->shift + where * gyre_dtype_size(it->dtype);
}

void trial_fill(struct trial *it, uint64_t salt)
{
    size_t element = gyre_dtype_size(it->dtype);
    it->salt = salt;
    for (int side = 0; side < 2; side++)
        memset(it->memory[side], PAINT, trial_bytes(it, side));
    for (int b = 0; b < it->ins; b++) {
        const struct trial_block *block = &it->in[b];
        unsigned char *memory = memory_at(it, 0, block->place);
        for (size_t i = 0; it->data && i < block->count; i++) {
            uint64_t bits = it->data->give(it, block->owner, block->first + i);
            memcpy(memory + i * element, &bits, element); /* little-endian: the low bytes */
        }
        if (!it->data)
            gy_exact_fill(memory, block->first, block->count, it->dtype, it->op, block->owner, salt);
    }
}

static size_t wrong_of_own(const struct trial *it, const unsigned char *memory, const struct trial_block *block)
{
    size_t wrong = 0, element = gyre_dtype_size(it->dtype);
    for (size_t i = 0; i < block->count; i++) {
        uint64_t bits = block->owner < 0 ? it->data->reduced(it, block->first + i)
                                         : it->data->give(it, block->owner, block->first + i);
        wrong += memcmp(memory + i * element, &bits, element) != 0;
    }
    return wrong;
}

static size_t wrong_in(const struct trial *it, int side, const struct trial_block *block)
{
    const void *memory = memory_at(it, side, block->place);
    if (it->data)
        return wrong_of_own(it, memory, block);
    return block->owner < 0
               ? gy_exact_wrong_reduced(memory, block->first, block->count, it->dtype, it->op, it->size, it->salt)
               : gy_exact_wrong(memory, block->first, block->count, it->dtype, it->op, block->owner, it->salt);
}

static void paint(const struct trial *it, int side, const struct trial_block *block)
{
    memset(memory_at(it, side, block->place), PAINT, block->count * gyre_dtype_size(it->dtype));
}

/* In place, an input block that has become output. */
static bool is_replaced(const struct trial *it, const struct trial_block *in)
{
    for (int b = 0; it->in_place && b < it->outs; b++)
        if (it->out[b].count > 0 && it->out[b].place == in->place)
            return true;
    return false;
}

/* Most often there are none: each byte is what the one before it is. */
static size_t unpainted(const unsigned char *memory, size_t bytes)
{
    size_t count = 0;
    if (memory[0] == PAINT && memcmp(memory, memory + 1, bytes - 1) == 0)
        return 0;
    for (size_t i = 0; i < bytes; i++)
        count += memory[i] != PAINT;
    return count;
}

const char *trial_wrong(struct trial *it)
{
    static char text[400];
    size_t wrong = 0;
    const char *what = NULL;
    for (int b = 0; b < it->outs && !what; b++) {
        wrong = wrong_in(it, 1, &it->out[b]);
        what = wrong ? "elements of the output are wrong" : NULL;
        paint(it, 1, &it->out[b]);
    }
    for (int b = 0; b < it->ins && !what; b++) {
        if (is_replaced(it, &it->in[b]))
            continue;
        wrong = wrong_in(it, 0, &it->in[b]);
        what = wrong ? "elements of the input were changed" : NULL;
        paint(it, 0, &it->in[b]);
    }
    for (int side = 0; side < 2 && !what; side++) {
        wrong = unpainted(it->memory[side], trial_bytes(it, side));
        what = wrong ? (side ? "bytes outside the output were written" : "bytes outside the input were written") : NULL;
    }
    if (!what)
        return NULL;
    snprintf(text, sizeof text, "%s of %zu (%zu) %s %s, root or peer %d, rank %d of %d, layout %d, in place %d: %zu %s",
             trial_name(it->kind), it->count, it->ins ? it->in[0].count : 0, gyre_dtype_name(it->dtype),
             gyre_op_name(it->op), it->root, it->rank, it->size, it->layout, it->in_place, wrong, what);
    return text;
}

/* ---- the call, in its forms ---- */

enum form { CALL, START, INIT, ON };

#define IN_FORM(name, ...)                                                   \
    (form == CALL    ? gyre_##name(it->comm, __VA_ARGS__)                    \
     : form == START ? gyre_##name##_start(it->comm, __VA_ARGS__, request_p) \
     : form == INIT  ? gyre_##name##_init(it->comm, __VA_ARGS__, request_p)  \
                     : gyre_##name##_on(it->comm, __VA_ARGS__, it->stream))

static gyre_status make_varying(const struct trial *it, enum form form, gyre_request **request_p)
{
    const size_t *in_places = it->layout == TRIAL_PACKED ? NULL : it->in_places;
    const size_t *out_places = it->layout == TRIAL_PACKED ? NULL : it->out_places, *counts = it->counts[0];
    switch (it->kind) {
    case TRIAL_ALL_GATHERV: return IN_FORM(all_gatherv, it->input, it->output, counts, out_places, it->dtype);
    case TRIAL_GATHERV: return IN_FORM(gatherv, it->input, it->output, counts, out_places, it->dtype, it->root);
    case TRIAL_SCATTERV: return IN_FORM(scatterv, it->input, counts, in_places, it->output, it->dtype, it->root);
    case TRIAL_REDUCE_SCATTERV: return IN_FORM(reduce_scatterv, it->input, it->output, counts, it->dtype, it->op);
    default:
        return IN_FORM(all_to_allv, it->input, it->in_counts, in_places, it->output, it->out_counts, out_places,
                       it->dtype);
    }
}

static gyre_status make(const struct trial *it, enum form form, gyre_request **request_p)
{
    switch (it->kind) {
    case TRIAL_ALL_REDUCE: return IN_FORM(all_reduce, it->input, it->output, it->count, it->dtype, it->op);
    case TRIAL_REDUCE: return IN_FORM(reduce, it->input, it->output, it->count, it->dtype, it->op, it->root);
    case TRIAL_REDUCE_SCATTER: return IN_FORM(reduce_scatter, it->input, it->output, it->count, it->dtype, it->op);
    case TRIAL_BROADCAST: return IN_FORM(broadcast, it->input, it->output, it->count, it->dtype, it->root);
    case TRIAL_ALL_GATHER: return IN_FORM(all_gather, it->input, it->output, it->count, it->dtype);
    case TRIAL_GATHER: return IN_FORM(gather, it->input, it->output, it->count, it->dtype, it->root);
    case TRIAL_SCATTER: return IN_FORM(scatter, it->input, it->output, it->count, it->dtype, it->root);
    case TRIAL_ALL_TO_ALL: return IN_FORM(all_to_all, it->input, it->output, it->count, it->dtype);
    case TRIAL_BARRIER:
        return form == CALL    ? gyre_barrier(it->comm)
               : form == START ? gyre_barrier_start(it->comm, request_p)
               : form == INIT  ? gyre_barrier_init(it->comm, request_p)
                               : gyre_barrier_on(it->comm, it->stream);
    case TRIAL_SEND: return IN_FORM(send, it->input, it->count, it->dtype, it->root);
    case TRIAL_RECV: return IN_FORM(recv, it->output, it->count, it->dtype, it->root);
    default: return make_varying(it, form, request_p);
    }
}

gyre_status trial_call(const struct trial *it)
{
    return make(it, CALL, NULL);
}

gyre_status trial_start(const struct trial *it, gyre_request **request_p)
{
    return make(it, START, request_p);
}

gyre_status trial_init(const struct trial *it, gyre_request **request_p)
{
    return make(it, INIT, request_p);
}

gyre_status trial_call_on(const struct trial *it)
{
    return make(it, ON, NULL);
}
