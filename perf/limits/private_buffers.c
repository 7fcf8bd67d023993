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
 * Slots of a small call alternate: who is in call k+2 has seen the other in k+1, which has read everything of k.
 * COMPARE_TILE is the tile in bytes; the best one is looked for by launching several. COMPARE_CLAIM=1: who reads a slot writes a byte of
 * each line of it as it was, since on some processors what another core has only read takes several times as long to be written again. */
#include <stdlib.h>
#include <string.h>

#include "pair.h"

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
static bool claims;
static uint64_t calls; /* small ones */
static uint64_t
    in_base; /* tiles that have gone through my slots `in` before this call: each counter counts through all calls */
static uint64_t out_base; /* the same for `out` */

static void add(float *restrict to, const float *a, const float *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = a[i] + b[i];
}

static void add_twice(float *restrict to, float *restrict too, const float *a, const float *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = too[i] = a[i] + b[i];
}

/* What the other rank has shown, before it is read. */
static const float *shown(const float *slot, size_t count)
{
    volatile unsigned char *at = (volatile unsigned char *)(uintptr_t)slot;
    for (size_t i = 0; claims && i < count * sizeof *slot; i += 64)
        at[i] = at[i];
    return slot;
}

static void exchange(const struct gy_call *it)
{
    unsigned set = ++calls & 1;
    struct gy_counter *to = &mine->line[set], *from = &other->line[set];
    memcpy(to->payload, it->input, it->count * sizeof(float));
    gy_counter_raise(to, calls);
    gy_arena_wait(arena, &from->value, calls);
    add(it->output, it->input, from->payload, it->count);
}

static void publish(const struct gy_call *it)
{
    unsigned set = ++calls & 1;
    memcpy(mine->vector[set], it->input, it->count * sizeof(float));
    gy_counter_raise(&mine->small[set], calls);
    gy_arena_wait(arena, &other->small[set].value, calls);
    add(it->output, it->input, shown(other->vector[set], it->count), it->count);
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
    memcpy(mine->in[number % SLOTS], it->input + part->first + done * tile, tile_floats(part, done) * sizeof(float));
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
    add_twice(it->output + first, mine->out[number % SLOTS], it->input + first, shown(other->in[from % SLOTS], count),
              count);
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
    memcpy(it->output + part->first + done * tile, shown(other->out[from % SLOTS], count), count * sizeof(float));
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
    const char *text = getenv("COMPARE_TILE"), *claim = getenv("COMPARE_CLAIM");
    size_t bytes = text ? strtoul(text, NULL, 10) : 131072;
    arena = gy_launch_arena();
    if (world.size != 2 || bytes < 64 || bytes > TILE_MOST || arena->extra_bytes < 2 * sizeof(struct side))
        gy_die("is for two ranks and tiles of 64 to %zu bytes", TILE_MOST);
    struct side *sides = (struct side *)(void *)arena->extra;
    my_rank = world.rank;
    mine = &sides[my_rank];
    other = &sides[!my_rank];
    tile = bytes / 64 * 16;
    claims = claim && strcmp(claim, "1") == 0;
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
    .call = {[GY_ALL_REDUCE] = all_reduce},
    .finish = leave,
};
