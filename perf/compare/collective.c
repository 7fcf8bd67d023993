/* busbw is that of nccl-tests' PERFORMANCE.md. Values repeat with a prime period, so that a block in the wrong place
 * shows. */
#include "collective.h"

#include <string.h>

#define PERIOD 61

float gy_collective_value(int rank, size_t i)
{
    return (float)((i + 7 * (size_t)rank) % PERIOD);
}

static double factor_two_passes(int ranks)
{
    return 2 * (ranks - 1) / (double)ranks;
}

static double factor_one_pass(int ranks)
{
    return (ranks - 1) / (double)ranks;
}

static double factor_whole(int ranks)
{
    return ranks > 1 ? 1 : 0;
}

static double factor_none(int ranks)
{
    (void)ranks;
    return 0;
}

static double sent_twice(int ranks)
{
    return 2 * (ranks - 1);
}

static double sent_once(int ranks)
{
    return ranks - 1;
}

static float expect_sum(size_t i, size_t count, struct gy_world world)
{
    float sum = 0;
    (void)count;
    for (int rank = 0; rank < world.size; rank++)
        sum += gy_collective_value(rank, i);
    return sum;
}

static float expect_my_block_of_sum(size_t i, size_t count, struct gy_world world)
{
    return expect_sum((size_t)world.rank * count + i, count, world);
}

static float expect_blocks(size_t i, size_t count, struct gy_world world)
{
    (void)world;
    return gy_collective_value((int)(i / count), i % count);
}

static float expect_my_blocks(size_t i, size_t count, struct gy_world world)
{
    return gy_collective_value((int)(i / count), (size_t)world.rank * count + i % count);
}

static float expect_root(size_t i, size_t count, struct gy_world world)
{
    (void)count;
    (void)world;
    return gy_collective_value(0, i);
}

const struct gy_collective gy_collectives[GY_KINDS] = {
    [GY_ALL_REDUCE] = {"all_reduce", false, false, false, factor_two_passes, sent_twice, expect_sum},
    [GY_REDUCE_SCATTER] = {"reduce_scatter", true, false, false, factor_one_pass, sent_once, expect_my_block_of_sum},
    [GY_ALL_GATHER] = {"all_gather", false, true, false, factor_one_pass, sent_once, expect_blocks},
    [GY_BROADCAST] = {"broadcast", false, false, false, factor_whole, sent_once, expect_root},
    [GY_REDUCE] = {"reduce", false, false, true, factor_whole, sent_once, expect_sum},
    [GY_ALL_TO_ALL] = {"all_to_all", true, true, false, factor_one_pass, sent_once, expect_my_blocks},
    [GY_BARRIER] = {"barrier", false, false, false, factor_none, sent_once, NULL},
};

bool gy_collective_find(const char *name, enum gy_kind *kind_p)
{
    for (int kind = 0; kind < GY_KINDS; kind++) {
        if (strcmp(name, gy_collectives[kind].name) == 0) {
            *kind_p = (enum gy_kind)kind;
            return true;
        }
    }
    return false;
}

static bool is_blocked(enum gy_kind kind)
{
    return gy_collectives[kind].input_is_all || gy_collectives[kind].output_is_all;
}

size_t gy_collective_count(enum gy_kind kind, size_t bytes, int ranks)
{
    size_t share = sizeof(float) * (is_blocked(kind) ? (size_t)ranks : 1);
    if (kind == GY_BARRIER)
        return 0;
    return bytes < share ? 1 : bytes / share;
}

size_t gy_collective_bytes(enum gy_kind kind, size_t count, int ranks)
{
    return count * sizeof(float) * (is_blocked(kind) ? (size_t)ranks : 1);
}

size_t gy_collective_input(enum gy_kind kind, size_t count, int ranks)
{
    return count * (gy_collectives[kind].input_is_all ? (size_t)ranks : 1);
}

size_t gy_collective_output(enum gy_kind kind, size_t count, int ranks)
{
    return count * (gy_collectives[kind].output_is_all ? (size_t)ranks : 1);
}

/* Inside a block, what is expected repeats with the period: with one table per block, 64 MiB are checked in
 * milliseconds. */
static size_t wrong_in_block(enum gy_kind kind, const struct gy_call *call, size_t block, struct gy_world world)
{
    const float *output = call->output + block * call->count;
    float table[PERIOD];
    size_t wrong = 0;
    for (size_t i = 0; i < PERIOD && i < call->count; i++)
        table[i] = gy_collectives[kind].expect(block * call->count + i, call->count, world);
    for (size_t i = 0; i < call->count; i += PERIOD) {
        for (size_t j = 0; j < PERIOD && i + j < call->count; j++)
            wrong += output[i + j] != table[j];
    }
    return wrong;
}

size_t gy_collective_wrong(enum gy_kind kind, const struct gy_call *call, struct gy_world world)
{
    size_t wrong = 0, blocks = gy_collective_output(kind, 1, world.size);
    if (gy_collectives[kind].output_at_root && world.rank != 0)
        return 0;
    for (size_t block = 0; block < blocks; block++)
        wrong += wrong_in_block(kind, call, block, world);
    return wrong;
}
