/* The bound for an all_reduce of two ranks of one host whose buffers are private: what the caches and the memory
 * allow once nothing but the data moves. A yardstick, no library: two ranks, one kind of call, no error ever.
 *
 *   up to 56 bytes    the vector travels in the line of the counter that announces it: one exchange of a cache line
 *   up to 8 KiB       each publishes its vector and adds the other's
 *   above             each rank owns a half; by tiles, through slots that stay in the cache, all at the same time:
 *                       give      the other's half into my slot `in`
 *                       reduce    its slot `in` + my half -> my output and my slot `out`
 *                       take      its slot `out` -> my output
 *
 * Slots of a small call alternate: a rank in call k+2 has seen the other in k+1, which has read everything of k.
 * COMPARE_TILE is the tile in bytes, COMPARE_WAY how slots are written and read (pass.h); several launches find the
 * best. The other collectives' bounds are in private_moves.c. */
#include <stdlib.h>
#include <string.h>

#include "pair.h"
#include "pass.h"
#include "private_moves.h"

#define SLOTS 4
#define TILE_MOST ((size_t)1 << 20)
#define LINE_FLOATS 14
#define SMALL_FLOATS 2048

struct side {
    struct gy_counter line[2], small[2], given, reduced, taken, used;
    _Alignas(4096) float vector[2][SMALL_FLOATS];
    _Alignas(4096) float in[SLOTS][TILE_MOST / 4], out[SLOTS][TILE_MOST / 4];
};

static struct side *mine, *other;
static const struct gy_arena *arena;
static int my_rank;
static size_t tile; /* floats */
static enum gy_pass_variant way;
static uint64_t calls; /* small ones */
static uint64_t
    in_base; /* tiles that have gone through my slots `in` before this call: each counter counts through all calls */
static uint64_t out_base; /* the same for `out` */

/* The sum to my output, and to a slot as well. */
static void add_twice(float *restrict to, float *restrict slot, const float *a, const float *from, size_t count)
{
    size_t i = 0;
    for (; way != GY_PLAIN && i + GY_PASS_LINE <= count; i += GY_PASS_LINE) {
        gy_pass_add(to + i, a + i, from + i, GY_PASS_LINE, way);
        gy_pass_give(slot + i, NULL, to + i, GY_PASS_LINE, way);
    }
    for (; i < count; i++)
        to[i] = slot[i] = a[i] + from[i];
}

static void exchange(const struct gy_call *it)
{
    unsigned set = ++calls & 1;
    struct gy_counter *to = &mine->line[set], *from = &other->line[set];
    memcpy(to->payload, it->input, it->count * sizeof(float));
    gy_counter_raise(to, calls);
    gy_arena_wait(arena, &from->value, calls);
    gy_pass_add(it->output, it->input, from->payload, it->count, GY_PLAIN);
}

static void publish(const struct gy_call *it)
{
    unsigned set = ++calls & 1;
    memcpy(mine->vector[set], it->input, it->count * sizeof(float));
    gy_counter_raise(&mine->small[set], calls);
    gy_arena_wait(arena, &other->small[set].value, calls);
    gy_pass_add(it->output, it->input, other->vector[set], it->count, way);
}

struct part {
    size_t first, count, tiles;
};

static struct part part_of(const struct gy_call *it, int rank)
{
    size_t border = gy_pair_border(it->count);
    struct part part = {.first = rank ? border : 0, .count = rank ? it->count - border : border};
    part.tiles = (part.count + tile - 1) / tile;
    return part;
}

static size_t tile_floats(const struct part *part, uint64_t index)
{
    size_t done = (size_t)index * tile;
    return part->count - done < tile ? part->count - done : tile;
}

/* One tile each, where its turn has come. Numbers are of tiles since the launch began. */
static uint64_t give(const struct gy_call *it, const struct part *part, uint64_t done)
{
    uint64_t number = in_base + done;
    if (done == part->tiles || gy_counter_read(&other->used) + SLOTS <= number)
        return done;
    gy_pass_give(mine->in[number % SLOTS], NULL, it->input + part->first + done * tile, tile_floats(part, done), way);
    gy_pass_fence(way);
    gy_counter_raise(&mine->given, number + 1);
    return done + 1;
}

static uint64_t reduce(const struct gy_call *it, const struct part *part, uint64_t done, uint64_t given_base)
{
    uint64_t from = given_base + done, number = out_base + done;
    if (done == part->tiles || gy_counter_read(&other->given) <= from ||
        gy_counter_read(&other->taken) + SLOTS <= number)
        return done;
    size_t first = part->first + done * tile;
    size_t count = tile_floats(part, done);
    add_twice(it->output + first, mine->out[number % SLOTS], it->input + first, other->in[from % SLOTS], count);
    gy_pass_fence(way);
    gy_counter_raise(&mine->used, from + 1);
    gy_counter_raise(&mine->reduced, number + 1);
    return done + 1;
}

static uint64_t take(const struct gy_call *it, const struct part *part, uint64_t done, uint64_t reduced_base)
{
    uint64_t from = reduced_base + done;
    if (done == part->tiles || gy_counter_read(&other->reduced) <= from)
        return done;
    size_t count = tile_floats(part, done);
    gy_pass_take(it->output + part->first + done * tile, other->out[from % SLOTS], count, way);
    gy_counter_raise(&mine->taken, from + 1);
    return done + 1;
}

/* Without a deadline of its own: `run` ends a launch that takes too long. */
static void bounce(const struct gy_call *it)
{
    static uint64_t other_in_base, other_out_base;
    struct part my_part = part_of(it, my_rank), its_part = part_of(it, !my_rank);
    uint64_t given = 0, reduced = 0, taken = 0;
    while (given < its_part.tiles || reduced < my_part.tiles || taken < its_part.tiles) {
        given = give(it, &its_part, given);
        reduced = reduce(it, &my_part, reduced, other_in_base);
        taken = take(it, &its_part, taken, other_out_base);
    }
    in_base += its_part.tiles;
    out_base += my_part.tiles;
    other_in_base += my_part.tiles;
    other_out_base += its_part.tiles;
}

static void all_reduce(const struct gy_call *it)
{
    if (it->count <= LINE_FLOATS)
        exchange(it);
    else if (it->count <= SMALL_FLOATS)
        publish(it);
    else
        bounce(it);
}

static struct gy_world join(struct gy_world world)
{
    const char *text = getenv("COMPARE_TILE"), *how = getenv("COMPARE_WAY");
    size_t bytes = text ? strtoul(text, NULL, 10) : 131072;
    bool by_kernel = how && strcmp(how, "kernel") == 0;
    arena = gy_launch_arena();
    if (world.size != 2 || bytes < 64 || bytes > TILE_MOST || arena->extra_bytes < 2 * sizeof(struct side))
        gy_die("is for two ranks and tiles of 64 to %zu bytes", TILE_MOST);
    struct side *sides = (struct side *)(void *)arena->extra;
    my_rank = world.rank;
    mine = &sides[my_rank];
    other = &sides[!my_rank];
    tile = bytes / 64 * 16;
    way = how && strcmp(how, "claim") == 0 ? GY_CLAIMED : how && strcmp(how, "past") == 0 ? GY_PAST : GY_PLAIN;
    gy_moves_join(my_rank, 2 * sizeof(struct side), tile, way, by_kernel);
    return world;
}

static const char *version(void)
{
    return "limit";
}

static void leave(void) {}

const struct gy_driver gy_driver = {
    .name = "limit_private",
    .rank_variable = "RANK",
    .init = join,
    .version = version,
    .call = {[GY_ALL_REDUCE] = all_reduce,
             [GY_REDUCE_SCATTER] = gy_moves_reduce_scatter,
             [GY_ALL_GATHER] = gy_moves_all_gather,
             [GY_BROADCAST] = gy_moves_broadcast,
             [GY_REDUCE] = gy_moves_reduce,
             [GY_ALL_TO_ALL] = gy_moves_all_to_all,
             [GY_BARRIER] = gy_moves_barrier},
    .finish = leave,
};
