/* Pieces and moves of a call: fused_plan.h. */
#include "collectives/device/fused_plan.h"

#include <stdlib.h>

#include "collectives/engine/operands.h"
#include "core/dtype.h"
#include "core/mem.h"

bool gy_fused_plan_open(struct gy_fused_plan *plan, int size)
{
    size_t ranks = (size_t)size;
    *plan = (struct gy_fused_plan){.room = 2 * ranks * ranks + 2 * ranks};
    plan->piece = gy_alloc(ranks * sizeof(*plan->piece));
    plan->move = gy_alloc(plan->room * sizeof(*plan->move));
    plan->taker = gy_alloc(plan->room * sizeof(*plan->taker));
    plan->span = gy_alloc(plan->room * sizeof(*plan->span));
    if (plan->piece && plan->move && plan->taker && plan->span)
        return true;
    gy_fused_plan_close(plan);
    return false;
}

void gy_fused_plan_close(struct gy_fused_plan *plan)
{
    gy_free(plan->piece);
    gy_free(plan->move);
    gy_free(plan->taker);
    gy_free(plan->span);
    *plan = (struct gy_fused_plan){0};
}

/* ---- Overlaps ---- */

static void add_span(struct gy_fused_plan *plan, const void *at, uint64_t bytes, bool written)
{
    if (bytes > 0)
        plan->span[plan->spans++] = (struct gy_plan_span){(uintptr_t)at, (uintptr_t)at + bytes, written};
}

static int compare_spans(const void *a, const void *b)
{
    const struct gy_plan_span *one = a, *other = b;
    return (one->first > other->first) - (one->first < other->first);
}

/* True if a byte that the plan writes is also read or written by another part of the plan. */
static bool spans_conflict(struct gy_fused_plan *plan)
{
    uintptr_t end = 0, end_of_written = 0;
    qsort(plan->span, plan->spans, sizeof(*plan->span), compare_spans);
    for (size_t i = 0; i < plan->spans; i++) {
        const struct gy_plan_span *span = &plan->span[i];
        if (span->first < (span->written ? end : end_of_written))
            return true;
        end = span->end > end ? span->end : end;
        if (span->written)
            end_of_written = span->end > end_of_written ? span->end : end_of_written;
    }
    return false;
}

static bool is_destination(const struct gy_plan_piece *piece, const void *source)
{
    for (int d = 0; d < piece->ndst; d++)
        if (piece->dst[d] == source)
            return true;
    return false;
}

static void add_spans_of_piece(struct gy_fused_plan *plan, const struct gy_plan_piece *piece, size_t element)
{
    for (int s = 0; s < piece->nsrc; s++)
        if (!is_destination(piece, piece->src[s]))
            add_span(plan, piece->src[s], piece->count * element, false);
    for (int d = 0; d < piece->ndst; d++)
        add_span(plan, piece->dst[d], piece->count * element, true);
}

static void add_spans_of_move(struct gy_fused_plan *plan, const struct gy_one_move *move)
{
    const uint64_t bytes = move->bytes & ~GY_EXCHANGE;
    add_span(plan, move->src, bytes, (move->bytes & GY_EXCHANGE) != 0);
    add_span(plan, move->dst, bytes, true);
}

/* ---- Reductions ---- */

static char *block_at(const struct gy_arrival *arrival, bool input, int block)
{
    const struct gy_call *call = arrival->call;
    uintptr_t base = input ? (uintptr_t)call->input : (uintptr_t)call->output;
    return (char *)(base + gy_block_place(call, input, block) * gyre_dtype_size(call->dtype));
}

/* Adds a piece: it reduces every rank's vector, or one block of it, into the outputs of ranks [first, end). */
static void add_piece(struct gy_fused_plan *plan, struct gy_arrival *const *of, int size, int block, int first, int end)
{
    struct gy_plan_piece *piece = &plan->piece[plan->pieces++];
    const struct gy_call *call = of[first]->call;
    piece->count = block < 0 ? call->count : gy_block_elements(call, true, block);
    piece->nsrc = size;
    piece->ndst = end - first;
    piece->taker = block < 0 ? GY_TAKER_ANY : first;
    for (int r = 0; r < size; r++)
        piece->src[r] = block < 0 ? of[r]->call->input : block_at(of[r], true, block);
    for (int r = first; r < end; r++)
        piece->dst[r - first] = of[r]->call->output;
    if (piece->count == 0)
        plan->pieces--;
    else
        add_spans_of_piece(plan, piece, gyre_dtype_size(call->dtype));
}

/* ---- Moves ---- */

static void add_move(struct gy_fused_plan *plan, int taker, void *to, const void *from, uint64_t elements,
                     gyre_dtype dtype)
{
    if (elements == 0 || to == from)
        return;
    plan->taker[plan->moves] = taker;
    plan->move[plan->moves++] = (struct gy_one_move){to, (char *)(uintptr_t)from, elements * gyre_dtype_size(dtype)};
}

/* Rank `to` receives the block of each rank, as all_gather and gather do. */
static void add_gathered(struct gy_fused_plan *plan, struct gy_arrival *const *of, int size, int to)
{
    const struct gy_call *call = of[to]->call;
    for (int from = 0; from < size; from++)
        add_move(plan, to, block_at(of[to], false, from), of[from]->call->input, gy_block_elements(call, false, from),
                 call->dtype);
}

static void add_scattered(struct gy_fused_plan *plan, struct gy_arrival *const *of, int size, int root)
{
    const struct gy_call *call = of[root]->call;
    for (int to = 0; to < size; to++)
        add_move(plan, to, of[to]->call->output, block_at(of[root], true, to), gy_block_elements(call, true, to),
                 call->dtype);
}

/* Adds the move from one rank to another. Returns false if their counts differ. */
static bool add_pair(struct gy_fused_plan *plan, struct gy_arrival *const *of, int to, int from)
{
    const struct gy_call *receiver = of[to]->call, *sender = of[from]->call;
    size_t elements = gy_block_elements(receiver, false, from);
    if (elements != gy_block_elements(sender, true, to))
        return false;
    add_move(plan, to, block_at(of[to], false, from), block_at(of[from], true, to), elements, receiver->dtype);
    return true;
}

/* Replaces two moves that swap two blocks by one exchange. */
static void swap_last_two(struct gy_fused_plan *plan)
{
    struct gy_one_move *one = &plan->move[plan->moves - 2], *other = one + 1;
    if (one->dst != other->src || one->src != other->dst || one->bytes != other->bytes)
        return;
    one->bytes |= GY_EXCHANGE;
    plan->moves--;
}

static bool add_all_to_all(struct gy_fused_plan *plan, struct gy_arrival *const *of, int size)
{
    for (int a = 0; a < size; a++)
        for (int b = a; b < size; b++) {
            size_t before = plan->moves;
            if (!add_pair(plan, of, a, b) || (a != b && !add_pair(plan, of, b, a)))
                return false;
            if (plan->moves == before + 2)
                swap_last_two(plan);
        }
    return true;
}

static bool add_message(struct gy_fused_plan *plan, struct gy_arrival *const *of)
{
    const struct gy_call *send = of[0]->call, *receive = of[1]->call;
    if (send->count != receive->count || send->dtype != receive->dtype)
        return false;
    add_move(plan, 1, receive->output, send->input, send->count, send->dtype);
    return true;
}

/* Returns false if counts differ. */
static bool add_call(struct gy_fused_plan *plan, struct gy_arrival *const *of, int size)
{
    const struct gy_call *call = of[0]->call;
    const int root = call->root;
    switch (call->collective) {
    case GY_ALL_REDUCE: add_piece(plan, of, size, -1, 0, size); return true;
    case GY_REDUCE_TO: add_piece(plan, of, size, -1, root, root + 1); return true;
    case GY_REDUCE_SCATTER:
        for (int r = 0; r < size; r++)
            add_piece(plan, of, size, r, r, r + 1);
        return true;
    case GY_BROADCAST:
        for (int r = 0; r < size; r++)
            add_move(plan, r, of[r]->call->output, of[root]->call->input, call->count, call->dtype);
        return true;
    case GY_ALL_GATHER:
        for (int r = 0; r < size; r++)
            add_gathered(plan, of, size, r);
        return true;
    case GY_GATHER_TO: add_gathered(plan, of, size, root); return true;
    case GY_SCATTER_FROM: add_scattered(plan, of, size, root); return true;
    case GY_ALL_TO_ALL: return add_all_to_all(plan, of, size);
    case GY_SEND_TO: return add_message(plan, of);
    default: return true; /* a barrier */
    }
}

bool gy_fused_plan_make(struct gy_fused_plan *plan, struct gy_arrival *const *of, int size)
{
    plan->pieces = plan->moves = plan->spans = 0;
    if (!add_call(plan, of, size))
        return false;
    for (size_t m = 0; m < plan->moves; m++)
        add_spans_of_move(plan, &plan->move[m]);
    return !spans_conflict(plan);
}

/* ---- Parts ---- */

enum { SLICE_ELEMENTS = 64 }; /* slices begin at multiples of it, so that vectors stay aligned */

static void slice(struct gy_plan_piece *piece, size_t element, uint64_t part, uint64_t parts)
{
    const uint64_t each = (piece->count + parts * SLICE_ELEMENTS - 1) / (parts * SLICE_ELEMENTS) * SLICE_ELEMENTS;
    const uint64_t first = part * each < piece->count ? part * each : piece->count;
    piece->count = piece->count - first < each ? piece->count - first : each;
    for (int s = 0; s < piece->nsrc; s++)
        piece->src[s] = (const char *)piece->src[s] + first * element;
    for (int d = 0; d < piece->ndst; d++)
        piece->dst[d] = (char *)piece->dst[d] + first * element;
}

void gy_fused_plan_keep_part(struct gy_fused_plan *plan, size_t element, const int *part_of, int part, int parts)
{
    size_t pieces = 0, moves = 0;
    for (size_t p = 0; p < plan->pieces; p++) {
        struct gy_plan_piece *piece = &plan->piece[p];
        if (piece->taker == GY_TAKER_ANY)
            slice(piece, element, (uint64_t)part, (uint64_t)parts);
        else if (part_of[piece->taker] != part)
            continue;
        if (piece->count > 0)
            plan->piece[pieces++] = *piece;
    }
    for (size_t m = 0; m < plan->moves; m++)
        if (part_of[plan->taker[m]] == part)
            plan->move[moves++] = plan->move[m];
    plan->pieces = pieces;
    plan->moves = moves;
}
