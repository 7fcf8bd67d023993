/* What steps do to memory, in symbols: every element read or written is a checked access of a cell. */
#include "run.h"

#include <stdlib.h>

#include "tree.h"

/* The cell of element `e` of a rank's input or output; NULL: outside. */
static struct gy_cell *user_cell(struct run *run, int r, enum gy_space space, size_t e)
{
    struct rank_state *rank = &run->rank[r];
    const struct gy_checker_call *call = &run->calls[rank->call];
    const struct gy_schedule *schedule = schedule_of(run, r);
    int lo, width;
    form_view(schedule, space, &lo, &width);
    if (e < block_begin(call, schedule->blocks, lo) || e >= block_begin(call, schedule->blocks, lo + width))
        return NULL;
    return &(space == GY_INPUT ? rank->input : rank->output)[e];
}

/* Of a slot of the scratch, which begins with element `base`. */
static struct gy_cell *scratch_cell(struct run *run, const struct iteration *it, int slot, size_t base, size_t e)
{
    struct rank_state *rank = &run->rank[it->rank];
    slot %= it->schedule->scratch_slots;
    if (slot < 0 || e < base || e - base >= rank->scratch_length)
        return NULL;
    return &rank->scratch[(size_t)slot * rank->scratch_length + (e - base)];
}

/* The cell of element `e` of the vector, which is element `at` of its range; NULL: outside. */
static struct gy_cell *cell_at(struct run *run, const struct iteration *it, enum gy_space space, size_t e, size_t at)
{
    const struct gy_schedule *schedule = it->schedule;
    const struct gy_checker_call *call = &run->calls[run->rank[it->rank].call];
    if (space == GY_INPUT || space == GY_OUTPUT)
        return user_cell(run, it->rank, space, e);
    if (space != GY_SCRATCH || schedule->scratch_slots < 1)
        return NULL;
    size_t base = schedule->scratch_lo < 0 ? e - at : block_begin(call, schedule->blocks, schedule->scratch_lo);
    return scratch_cell(run, it, it->step->slot0 + it->step->slot_stride * it->round_in_step, base, e);
}

/* True if the rank exposes it in this iteration's call. */
static bool offers(const struct run *run, const struct iteration *it, int rank, enum gy_space space)
{
    return mapped_offers(run, run->rank[it->rank].call, rank, space);
}

/* What another rank offers in place; NULL: it is not there to be used. */
static struct gy_cell *far_cell(struct run *run, const struct iteration *it, int owner, enum gy_space space, size_t e)
{
    const struct rank_state *rank = &run->rank[owner];
    if (rank->call == run->rank[it->rank].call && rank->started)
        return user_cell(run, owner, space, e);
    run_fail(run, it->rank, "lane %d uses what rank %d %s", it->lane, owner,
             rank->call > run->rank[it->rank].call ? "has got back" : "has not offered yet");
    return NULL;
}

bool effect_load(struct run *run, const struct iteration *it, struct gy_cell *cell, size_t e, int32_t *value_p)
{
    if (cell == NULL)
        return run_fail(run, it->rank, "lane %d reads element %zu outside", it->lane, e);
    if (!gy_cell_read(&run->order, it->event, cell, value_p))
        return run_fail(run, it->rank, "lane %d reads element %zu, which is not ordered after its write", it->lane, e);
    bool moves = it->schedule->shape.collective ==
                 GY_ALL_TO_ALL; /* from one place of the vector to another: see the end */
    if (*value_p < 0 || (!moves && run->expression.node[*value_p].element != e))
        return run_fail(run, it->rank, "lane %d reads something that is not element %zu", it->lane, e);
    return true;
}

/* What the dataflow knows of a value: equal values of different calls are different data. */
static uint64_t contents_of(const struct run *run, int call, int32_t value)
{
    return run->expression.node[value].hash + (uint64_t)call * UINT64_C(0x9e3779b97f4a7c15);
}

bool effect_store(struct run *run, const struct iteration *it, struct gy_cell *cell, size_t e, int32_t value)
{
    if (cell == NULL)
        return run_fail(run, it->rank, "lane %d writes element %zu outside", it->lane, e);
    if (!gy_cell_write(&run->order, it->event, cell, value, contents_of(run, run->rank[it->rank].call, value)))
        return run_fail(run, it->rank, "lane %d writes element %zu, a race", it->lane, e);
    return true;
}

bool effect_join(struct run *run, const struct iteration *it, int32_t left, int32_t right, int32_t *value_p)
{
    *value_p = gy_expression_join(&run->expression, left, right);
    if (*value_p < 0)
        return run_fail(run, it->rank, "lane %d adds a contribution that is there already", it->lane);
    return true;
}

static bool combine_tree(struct run *run, const struct iteration *it, const int32_t *values, int n, int32_t *value_p)
{
    int32_t left, right;
    int half = 1;
    while (2 * half < n)
        half *= 2;
    *value_p = values[0];
    return n == 1 ||
           (combine_tree(run, it, values, half, &left) && combine_tree(run, it, values + half, n - half, &right) &&
            effect_join(run, it, left, right, value_p));
}

bool effect_combine(struct run *run, const struct iteration *it, const int32_t *values, int32_t *value_p)
{
    if (run->calls[run->rank[it->rank].call].canonical)
        return combine_tree(run, it, values, run->size, value_p);
    *value_p = values[0];
    for (int r = 1; r < run->size; r++)
        if (!effect_join(run, it, *value_p, values[r], value_p))
            return false;
    return true;
}

/* Elements of the iteration's range and tile; `skip_p`: where in the range they begin. */
static size_t extent(const struct run *run, const struct iteration *it, size_t *start_p, size_t *skip_p)
{
    int block = gy_range_block(it->step->range, it->schedule->blocks, it->round_in_step);
    *skip_p = 0;
    size_t count = piece_of(run, it, block, it->step->range.width, start_p);
    if (count > 0)
        *skip_p = *start_p - block_begin(&run->calls[run->rank[it->rank].call], it->schedule->blocks, block);
    return count;
}

bool effect_send(struct run *run, const struct iteration *it, size_t *start_p, size_t *count_p)
{
    size_t skip;
    *count_p = extent(run, it, start_p, &skip);
    for (size_t i = 0; i < *count_p; i++) {
        size_t e = *start_p + i;
        if (!effect_load(run, it, cell_at(run, it, it->step->src, e, skip + i), e, &run->message[i]))
            return false;
    }
    run->report->sent += *count_p;
    const int *groups = it->schedule->shape.groups;
    if (groups && groups[it->rank] != groups[it->step->peer])
        run->report->crossed += *count_p;
    return true;
}

bool effect_receive(struct run *run, const struct iteration *it, size_t start, size_t count)
{
    const struct gy_step *step = it->step;
    size_t my_start, skip;
    bool moves = it->schedule->shape.collective == GY_ALL_TO_ALL;
    if (extent(run, it, &my_start, &skip) != count || (count > 0 && !moves && my_start != start))
        return run_fail(run, it->rank, "lane %d receives other elements than rank %d sends", it->lane, step->peer);
    if (step->dst == GY_INPUT && count > 0)
        return run_fail(run, it->rank, "lane %d receives into the input", it->lane);
    for (size_t i = 0; i < count; i++) {
        size_t e = my_start + i;
        int32_t value = run->message[i], own;
        if (step->kind == GY_RECV_REDUCE) {
            if (!effect_load(run, it, cell_at(run, it, step->src, e, skip + i), e, &own) ||
                !effect_join(run, it, step->flip ? value : own, step->flip ? own : value, &value))
                return false;
        }
        if (!effect_store(run, it, cell_at(run, it, step->dst, e, skip + i), e, value))
            return false;
    }
    return true;
}

static bool copy_or_reduce(struct run *run, const struct iteration *it)
{
    const struct gy_step *step = it->step;
    size_t start, skip, count = extent(run, it, &start, &skip);
    if (step->dst == GY_INPUT && count > 0)
        return run_fail(run, it->rank, "lane %d writes the input", it->lane);
    for (size_t i = 0; i < count; i++) {
        size_t e = start + i;
        int32_t value, other;
        struct gy_cell *src = cell_at(run, it, step->src, e, skip + i), *dst = cell_at(run, it, step->dst, e, skip + i);
        if (step->kind == GY_COPY && src == dst && src != NULL)
            continue;
        if (!effect_load(run, it, src, e, &value))
            return false;
        if (step->kind == GY_REDUCE && (!effect_load(run, it, cell_at(run, it, step->src2, e, skip + i), e, &other) ||
                                        !effect_join(run, it, value, other, &value)))
            return false;
        if (!effect_store(run, it, dst, e, value))
            return false;
    }
    return true;
}

static struct gy_cell *slot_cell(struct run *run, const struct iteration *it, int rank, bool result, size_t at)
{
    struct rank_state *owner = &run->rank[rank];
    size_t slices = it->schedule->side_by_side > 1 ? (size_t)it->schedule->side_by_side : 1;
    if (at >= slices * run->calls[run->rank[it->rank].call].tile)
        return NULL;
    return &(result ? owner->result : owner->slots)[it->number % GY_REGION_SLOTS][at];
}

/* Where in its slot rank `owner` has published the tile of slice `block`. */
static size_t place_of(const struct run *run, const struct iteration *it, int owner, int block)
{
    size_t tile = run->calls[run->rank[it->rank].call].tile;
    return it->schedule->blocks == 1 ? 0 : (size_t)(block < owner ? block : block - 1) * tile;
}

static bool publish(struct run *run, const struct iteration *it)
{
    const struct gy_step *step = it->step;
    bool spread = step->range.width > 1;
    if (step->range.width > 1 && step->range.width != it->schedule->blocks)
        return run_fail(run, it->rank, "publishes %d of %d slices", step->range.width, it->schedule->blocks);
    if (offers(run, it, it->rank, GY_INPUT))
        return true;
    for (int b = 0; b < (step->range.width == 0 ? 0 : spread ? it->schedule->blocks : 1); b++) {
        if (spread && b == it->rank)
            continue;
        int block = spread ? b : gy_range_block(step->range, it->schedule->blocks, 0);
        size_t start, count = piece_of(run, it, block, 1, &start);
        size_t at = spread ? place_of(run, it, it->rank, b) : 0;
        for (size_t i = 0; i < count; i++) {
            int32_t value;
            if (!effect_load(run, it, cell_at(run, it, step->src, start + i, 0), start + i, &value) ||
                !effect_store(run, it, slot_cell(run, it, it->rank, false, at + i), start + i, value))
                return false;
        }
        run->report->shm_written += count;
    }
    return true;
}

static bool reduce_published(struct run *run, const struct iteration *it)
{
    const struct gy_step *step = it->step;
    if (step->range.width == 0)
        return true;
    bool apart = step->dst == GY_RESULT, keep = !apart && mapped_keeps(run, it->rank, step);
    int block = gy_range_block(step->range, it->schedule->blocks, 0);
    size_t start, count = step->range.width == 1 ? piece_of(run, it, block, 1, &start) : 0;
    for (size_t i = 0; i < count; i++) {
        size_t e = start + i;
        int32_t sum, values[GY_EXPRESSION_RANKS];
        for (int r = 0; r < run->size; r++) {
            size_t at = place_of(run, it, r, block);
            struct gy_cell *cell = r == it->rank                  ? cell_at(run, it, step->src, e, 0)
                                   : offers(run, it, r, GY_INPUT) ? far_cell(run, it, r, GY_INPUT, e)
                                                                  : slot_cell(run, it, r, false, at + i);
            if (!effect_load(run, it, cell, e, &values[r]))
                return false;
        }
        if (!effect_combine(run, it, values, &sum))
            return false;
        for (int r = 0; r < run->size && step->keep; r++) /* where others have it written for them */
            if (r != it->rank && offers(run, it, r, GY_OUTPUT) &&
                !effect_store(run, it, far_cell(run, it, r, GY_OUTPUT, e), e, sum))
                return false;
        struct gy_cell *dst = apart ? slot_cell(run, it, it->rank, true, i) : cell_at(run, it, step->dst, e, 0);
        if (!effect_store(run, it, dst, e, sum) ||
            (keep && !effect_store(run, it, slot_cell(run, it, it->rank, true, i), e, sum)))
            return false;
    }
    run->report->shm_read += count * (size_t)(run->size - 1);
    run->report->shm_written += (keep ? count : 0) + (apart ? count : 0);
    return true;
}

/* What the iteration takes of block `block`, which comes from rank `from`: its tile, or all of it with the first
 * one. */
static size_t taken(const struct run *run, const struct iteration *it, int from, int block, size_t *start_p)
{
    const struct gy_checker_call *call = &run->calls[run->rank[it->rank].call];
    if (!mapped_whole(run, it->rank, it->step, from))
        return piece_of(run, it, block, 1, start_p);
    *start_p = block_begin(call, it->schedule->blocks, block);
    return it->tile > 0 ? 0 : block_begin(call, it->schedule->blocks, block + 1) - *start_p;
}

static bool collect(struct run *run, const struct iteration *it)
{
    const struct gy_step *step = it->step;
    if (step->range.width == 0 || (step->src == GY_RESULT && offers(run, it, it->rank, GY_OUTPUT)))
        return true;
    for (int b = 0; b < it->schedule->blocks; b++) {
        int from = step->peer >= 0 ? step->peer : b;
        if (step->peer >= 0 ? b != gy_range_block(step->range, it->schedule->blocks, 0) : b == it->rank)
            continue;
        if (from >= run->size || from == it->rank)
            return run_fail(run, it->rank, "collects from rank %d", from);
        size_t start, count = taken(run, it, from, b, &start);
        enum gy_space space = step->src == GY_RESULT ? GY_OUTPUT : GY_INPUT;
        for (size_t i = 0; i < count; i++) {
            struct gy_cell *cell = offers(run, it, from, space) ? far_cell(run, it, from, space, start + i)
                                                                : slot_cell(run, it, from, step->src == GY_RESULT, i);
            int32_t value;
            if (!effect_load(run, it, cell, start + i, &value) ||
                !effect_store(run, it, cell_at(run, it, step->dst, start + i, 0), start + i, value))
                return false;
        }
        run->report->shm_read += count;
    }
    return true;
}

/* What is for me of what others have published slice by slice; input and output are different vectors. */
static bool exchange(struct run *run, const struct iteration *it)
{
    const struct gy_step *step = it->step;
    if (step->range.width == 0)
        return true;
    for (int from = 0; from < run->size; from++) {
        if (step->peer >= 0 ? from != step->peer : from == it->rank)
            continue;
        if (from == it->rank)
            return run_fail(run, it->rank, "exchanges with itself");
        int block = step->peer >= 0 ? gy_range_block(step->range, it->schedule->blocks, 0) : from;
        size_t source, start, count = taken(run, it, from, block, &start);
        if (taken(run, it, from, it->rank, &source) != count)
            return run_fail(run, it->rank, "exchanges blocks of different lengths with rank %d", from);
        for (size_t i = 0; i < count; i++) {
            size_t at = place_of(run, it, from, it->rank) + i;
            struct gy_cell *cell = offers(run, it, from, GY_INPUT)
                                       ? far_cell(run, it, from, GY_INPUT, source + i)
                                       : slot_cell(run, it, from, step->src == GY_RESULT, at);
            int32_t value;
            if (!effect_load(run, it, cell, source + i, &value) ||
                !effect_store(run, it, cell_at(run, it, step->dst, start + i, 0), start + i, value))
                return false;
        }
        run->report->shm_read += count;
    }
    return true;
}

/* Element i of block p of a PACK or UNPACK: its cell in the range, and its cell in the runs. */
static struct gy_cell *range_cell(struct run *run, const struct iteration *it, enum gy_space space, int p, size_t i)
{
    size_t e = block_begin(&run->calls[run->rank[it->rank].call], it->schedule->blocks, it->step->range.lo + p) + i;
    return cell_at(run, it, space, e, 0);
}

static struct gy_cell *runs_cell(struct run *run, const struct iteration *it, enum gy_space space, int p, size_t i)
{
    const struct gy_runs *runs = &it->step->runs;
    const struct gy_checker_call *call = &run->calls[run->rank[it->rank].call];
    int blocks = it->schedule->blocks, block = (runs->lo + runs->stride * (p / runs->run) + p % runs->run) % blocks;
    size_t e = block_begin(call, blocks, block < 0 ? block + blocks : block) + i;
    if (space != GY_SCRATCH)
        return cell_at(run, it, space, e, 0);
    return scratch_cell(run, it, runs->slot, block_begin(call, blocks, it->schedule->scratch_lo), e);
}

static bool move_blocks(struct run *run, const struct iteration *it)
{
    const struct gy_step *step = it->step;
    size_t length = run->calls[run->rank[it->rank].call].total / (size_t)it->schedule->blocks;
    if (step->dst == GY_INPUT)
        return run_fail(run, it->rank, "lane %d writes to the input", it->lane);
    for (int p = 0; p < step->range.width; p++)
        for (size_t i = 0; i < length; i++) {
            bool pack = step->kind == GY_PACK;
            struct gy_cell *src = (pack ? runs_cell : range_cell)(run, it, step->src, p, i);
            struct gy_cell *dst = (pack ? range_cell : runs_cell)(run, it, step->dst, p, i);
            int32_t value;
            if (!effect_load(run, it, src, i, &value) || !effect_store(run, it, dst, i, value))
                return false;
        }
    return true;
}

bool effect_local(struct run *run, const struct iteration *it)
{
    switch (it->step->kind) {
    case GY_PACK:
    case GY_UNPACK: return move_blocks(run, it);
    case GY_COPY:
    case GY_REDUCE: return copy_or_reduce(run, it);
    case GY_PUBLISH: return publish(run, it);
    case GY_REDUCE_PUBLISHED: return reduce_published(run, it);
    case GY_COLLECT: return collect(run, it);
    case GY_EXCHANGE: return exchange(run, it);
    default: return run_fail(run, it->rank, "lane %d mixes kinds of steps", it->lane);
    }
}

void memory_begin(struct run *run, int r)
{
    struct rank_state *rank = &run->rank[r];
    const struct gy_checker_call *call = &run->calls[rank->call];
    const struct gy_schedule *schedule = call->schedules[r];
    if (rank->input != rank->output)
        free(rank->input);
    free(rank->output);
    free(rank->scratch);
    int place = GY_RUN_SHARED * run->size + GY_RUN_PRIVATE * (rank->call * run->size + r);
    rank->output = gy_cells_new(call->total, place);
    /* All to all over links never is in place: what is asked for in place reads a copy. Nor are two requests. */
    bool in_place = call->in_place && (schedule->shape.collective != GY_ALL_TO_ALL || schedule->shm) &&
                    !form_to_self(schedule);
    rank->input = in_place ? rank->output : gy_cells_new(call->total, place + 1);
    int lo, width;
    form_view(schedule, GY_INPUT, &lo, &width);
    for (size_t e = block_begin(call, schedule->blocks, lo); e < block_begin(call, schedule->blocks, lo + width); e++) {
        rank->input[e].value = gy_expression_leaf(&run->expression, r, e);
        rank->input[e].contents = contents_of(run, rank->call, rank->input[e].value);
    }
    size_t blocks = (size_t)schedule->blocks;
    rank->scratch_length = (call->total * (size_t)schedule->scratch_width + blocks - 1) / blocks;
    if (call->starts && schedule->scratch_slots > 0 && schedule->scratch_lo >= 0)
        rank->scratch_length = call->starts[schedule->scratch_lo + schedule->scratch_width] -
                               call->starts[schedule->scratch_lo];
    for (size_t b = 0; call->starts && schedule->scratch_lo < 0 && b < blocks; b++)
        if (b == 0 || call->starts[b + 1] - call->starts[b] > rank->scratch_length) /* of one block, see form.c */
            rank->scratch_length = call->starts[b + 1] - call->starts[b];
    rank->scratch = gy_cells_new((size_t)schedule->scratch_slots * rank->scratch_length, place + 2);
}

/* True if `value` satisfies the definition for element e. */
static bool right_value(const struct run *run, const struct gy_schedule *schedule, const struct gy_checker_call *call,
                        size_t e, int32_t value)
{
    const struct gy_expression_node *node = &run->expression.node[value];
    size_t count = call->total / (size_t)run->size;
    switch (schedule->shape.collective) {
    case GY_SEND_TO: /* to oneself */
    case GY_BROADCAST:
    case GY_SCATTER_FROM:
    case GY_RECEIVE_FROM: return node->left < 0 && node->rank == schedule->shape.root;
    case GY_ALL_GATHER:
    case GY_GATHER_TO: return node->left < 0 && node->rank == block_of(call, run->size, e);
    case GY_ALL_TO_ALL:
        return node->left < 0 && (size_t)node->rank == e / count &&
               node->element == (size_t)schedule->shape.rank * count + e % count;
    default: return gy_expression_count(&run->expression, value) == run->size;
    }
}

/* The hash of element e's tree as the algorithm's definition has it; computed once for all ranks. */
static uint64_t expected_hash(struct run *run, int call_number, const struct gy_schedule *schedule, size_t total,
                              size_t e)
{
    uint64_t *expected = &run->expected[(size_t)call_number * run->stride + e];
    if (*expected == 0) {
        struct gy_schedule_shape shape = schedule->shape;
        if (run->calls[call_number].canonical)
            shape.algorithm = GY_CANONICAL;
        const struct gy_checker_call *call = &run->calls[call_number];
        int block = call->starts ? block_of(call, run->size, e) : gy_tree_block(&shape, total, e);
        int32_t tree = gy_tree_build(&shape, block, e, &run->expression);
        *expected = tree < 0 ? 0 : run->expression.node[tree].hash; /* 0: no tree, which no value has */
    }
    return *expected;
}

bool memory_end(struct run *run, int r, int event)
{
    struct rank_state *rank = &run->rank[r];
    const struct gy_checker_call *call = &run->calls[rank->call];
    const struct gy_schedule *schedule = call->schedules[r];
    int lo, width;
    form_view(schedule, GY_OUTPUT, &lo, &width);
    for (size_t e = block_begin(call, schedule->blocks, lo); e < block_begin(call, schedule->blocks, lo + width); e++) {
        struct iteration it = {.rank = r, .lane = -1, .event = event, .schedule = schedule};
        int32_t value;
        if (!effect_load(run, &it, &rank->output[e], e, &value))
            return false;
        uint64_t hash = run->expression.node[value].hash;
        if (!right_value(run, schedule, call, e, value))
            return run_fail(run, r, "element %zu of the output lacks a contribution", e);
        bool moves = schedule->shape.collective == GY_ALL_TO_ALL; /* a leaf, and the right one */
        if (!moves && hash != expected_hash(run, rank->call, schedule, call->total, e))
            return run_fail(run, r, "element %zu of the output is reduced in another order than the algorithm's", e);
        if (rank->call == 0)
            run->expression.root[e] = value;
    }
    return true;
}

bool memory_return(struct run *run, int r, enum gy_space space, int event)
{
    const struct gy_checker_call *call = &run->calls[run->rank[r].call];
    const struct gy_schedule *schedule = schedule_of(run, r);
    struct gy_cell *cells = space == GY_SCRATCH ? run->rank[r].scratch
                            : space == GY_INPUT ? run->rank[r].input
                                                : run->rank[r].output;
    size_t begin = 0, end = (size_t)schedule->scratch_slots * run->rank[r].scratch_length;
    if (space != GY_SCRATCH) {
        int lo, width;
        form_view(schedule, space, &lo, &width);
        begin = block_begin(call, schedule->blocks, lo);
        end = block_begin(call, schedule->blocks, lo + width);
    }
    for (size_t e = begin; e < end; e++)
        if (!gy_cell_write(&run->order, event, &cells[e], GY_EXPRESSION_NONE, (uint64_t)event))
            return run_fail(run, r, "returns while element %zu of its %s is in use", e,
                            space == GY_SCRATCH ? "scratch"
                            : space == GY_INPUT ? "input"
                                                : "output");
    return true;
}
