/* The bound for what two ranks of one host move to each other between private buffers, where nothing but the data
 * moves. No library, no errors. A rank sends at most one vector and receives at most one.
 *
 *   barrier       two lines, one way each at the same time
 *   up to 8 KiB   one tile, which is waited for as a whole; up to 56 bytes it lies in the line of its counter. There
 *                 are eight places, so that the sender seldom polls what has been read
 *   above         by tiles, through slots that stay in the caches:
 *                   give   what goes -> my slot; where it stays here as well (all_gather), there in the same pass
 *                   take   its slot, added to my own operand in a reduction -> my output
 *                   stay   what is only copied (all_to_all) -> my output, a tile whenever the other rank is waited for
 *   by the kernel each copies what it takes out of the other's memory, and both wait until that is done
 *
 * How slots are written and read is a variant (pass.h), and so is the tile. */
#include "private_moves.h"

#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "pair.h"

#define PLACES 8
#define SLOTS 4
#define TILE_MOST ((size_t)1 << 18) /* floats */
#define LINE_FLOATS 14
#define SMALL_FLOATS 2048

struct side {
    struct gy_counter entered, line[PLACES], used, given, taken;
    _Alignas(128) const float *offered; /* what the other may read through the kernel */
    pid_t process;
    _Alignas(4096) float small[PLACES][SMALL_FLOATS];
    _Alignas(4096) float slot[SLOTS][TILE_MOST];
};

/* What one call is to this rank. */
struct job {
    const float *give;
    float *give_too;
    const float *stay;
    float *stay_to;
    const float *addend;
    float *take_to;
    size_t count; /* of each place; where that is NULL there is none */
};

static struct side *mine, *other;
static const struct gy_arena *arena;
static size_t tile;
static enum gy_pass_variant way;
static bool kernel;
static uint64_t barriers, calls; /* short ones */
static uint64_t gone, come;      /* before this call: tiles through my slots, the other's; or vectors, by the kernel */

void gy_moves_join(int rank, size_t skip, size_t floats, enum gy_pass_variant how, bool by_kernel)
{
    arena = gy_launch_arena();
    struct side *sides = (struct side *)(void *)(arena->extra + (skip + 4095) / 4096 * 4096);
    if (arena->extra_bytes < skip + 4096 + 2 * sizeof *sides || floats > TILE_MOST)
        gy_die("is for tiles of at most %zu bytes", TILE_MOST * sizeof(float));
    mine = &sides[rank];
    other = &sides[!rank];
    mine->process = getpid();
    tile = floats;
    way = how;
    kernel = by_kernel;
}

void gy_moves_barrier(const struct gy_call *it)
{
    (void)it;
    gy_counter_raise(&mine->entered, ++barriers);
    gy_arena_wait(arena, &other->entered.value, barriers);
}

static void put(const struct job *job, const float *from, enum gy_pass_variant how)
{
    if (job->addend)
        gy_pass_add(job->take_to, job->addend, from, job->count, how);
    else
        gy_pass_take(job->take_to, from, job->count, how);
}

static float *place_of(struct side *side, uint64_t call, size_t count)
{
    return count <= LINE_FLOATS ? side->line[call % PLACES].payload : side->small[call % PLACES];
}

/* What does not leave this rank, if there is any. */
static void keep(float *to, const float *from, size_t count)
{
    if (to && from)
        memcpy(to, from, count * sizeof *to);
}

/* Each place has a counter of its own, so that no rank polls its line between two calls. A receiver in call k sees
 * the other rank in it, which has read all that went before, so each place is free. A rank that only sends must
 * check, or it would overwrite unread data. It waits at every fourth call until all but the last four have been
 * read; then the next four of the eight places are free. No test shows a missing check where both ranks are equally
 * quick. */
static void run_short(const struct job *job)
{
    calls++;
    if (job->give && !job->take_to && calls >= PLACES && calls % (PLACES / 2) == 0)
        gy_arena_wait(arena, &other->used.value, calls - PLACES / 2);
    if (job->give) {
        gy_pass_give(place_of(mine, calls, job->count), NULL, job->give, job->count, GY_PLAIN);
        gy_counter_raise(&mine->line[calls % PLACES], calls);
    }
    keep(job->give_too, job->give, job->count);
    keep(job->stay_to, job->stay, job->count);
    if (job->take_to) {
        gy_arena_wait(arena, &other->line[calls % PLACES].value, calls);
        put(job, place_of(other, calls, job->count), way);
    }
    gy_counter_raise(&mine->used, calls);
}

/* How many tiles of the vector have been given, taken and copied. */
struct done {
    size_t tiles, given, taken, stayed;
};

static size_t floats_of(const struct job *job, size_t index)
{
    size_t left = job->count - index * tile;
    return left < tile ? left : tile;
}

static bool give(const struct job *job, struct done *done)
{
    uint64_t number = gone + done->given;
    size_t first = done->given * tile;
    if (!job->give || done->given == done->tiles || gy_counter_read(&other->taken) + SLOTS <= number)
        return false;
    gy_pass_give(mine->slot[number % SLOTS], job->give_too ? job->give_too + first : NULL, job->give + first,
                 floats_of(job, done->given), way);
    gy_pass_fence(way);
    gy_counter_raise(&mine->given, number + 1);
    done->given++;
    return true;
}

static bool take(const struct job *job, struct done *done)
{
    uint64_t number = come + done->taken;
    size_t first = done->taken * tile;
    if (!job->take_to || done->taken == done->tiles || gy_counter_read(&other->given) <= number)
        return false;
    const struct job part = {.addend = job->addend ? job->addend + first : NULL,
                             .take_to = job->take_to + first,
                             .count = floats_of(job, done->taken)};
    put(&part, other->slot[number % SLOTS], way);
    gy_counter_raise(&mine->taken, number + 1);
    done->taken++;
    return true;
}

static void stay(const struct job *job, struct done *done)
{
    size_t first = done->stayed * tile;
    if (!job->stay || done->stayed == done->tiles)
        return;
    memcpy(job->stay_to + first, job->stay + first, floats_of(job, done->stayed) * sizeof(float));
    done->stayed++;
}

/* A rank that only sends ends when everything has been read, as it would without slots. `run` ends a launch that
 * takes too long. */
static void run_long(const struct job *job)
{
    struct done done = {.tiles = (job->count + tile - 1) / tile};
    while ((job->give && done.given < done.tiles) || (job->take_to && done.taken < done.tiles) ||
           (job->stay && done.stayed < done.tiles)) {
        bool gave = give(job, &done), took = take(job, &done);
        if (!gave && !took)
            stay(job, &done);
    }
    gone += job->give ? done.tiles : 0;
    come += job->take_to ? done.tiles : 0;
}

static void run_by_kernel(const struct job *job)
{
    size_t bytes = job->count * sizeof(float);
    mine->offered = job->give;
    gy_counter_raise(&mine->given, gone += job->give != NULL);
    keep(job->stay_to, job->stay, job->count);
    keep(job->give_too, job->give, job->count);
    if (job->take_to) {
        gy_arena_wait(arena, &other->given.value, ++come);
        struct iovec local = {job->take_to, bytes}, remote = {(void *)(uintptr_t)other->offered, bytes};
        if (process_vm_readv(other->process, &local, 1, &remote, 1, 0) != (ssize_t)bytes)
            gy_die("the kernel does not read the other rank's memory");
        for (size_t i = 0; job->addend && i < job->count; i++)
            job->take_to[i] += job->addend[i];
        gy_counter_raise(&mine->taken, come);
    }
    if (job->give)
        gy_arena_wait(arena, &other->taken.value, gone);
}

static void run(const struct job *job)
{
    (job->count <= SMALL_FLOATS ? run_short : kernel ? run_by_kernel : run_long)(job);
}

/* In place, and root 0: the other rank takes, and gives nothing. */
void gy_moves_broadcast(const struct gy_call *it)
{
    run(mine < other ? &(struct job){.give = it->output, .count = it->count}
                     : &(struct job){.take_to = it->output, .count = it->count});
}

void gy_moves_reduce(const struct gy_call *it)
{
    run(mine < other ? &(struct job){.addend = it->input, .take_to = it->output, .count = it->count}
                     : &(struct job){.give = it->input, .count = it->count});
}

/* Blocks of this rank, and of the other one. */
static size_t my_block(const struct gy_call *it)
{
    return mine < other ? 0 : it->count;
}

static size_t its_block(const struct gy_call *it)
{
    return it->count - my_block(it);
}

void gy_moves_reduce_scatter(const struct gy_call *it)
{
    run(&(struct job){.give = it->input + its_block(it),
                      .addend = it->input + my_block(it),
                      .take_to = it->output,
                      .count = it->count});
}

void gy_moves_all_gather(const struct gy_call *it)
{
    run(&(struct job){.give = it->input,
                      .give_too = it->output + my_block(it),
                      .take_to = it->output + its_block(it),
                      .count = it->count});
}

void gy_moves_all_to_all(const struct gy_call *it)
{
    run(&(struct job){.give = it->input + its_block(it),
                      .stay = it->input + my_block(it),
                      .stay_to = it->output + my_block(it),
                      .take_to = it->output + its_block(it),
                      .count = it->count});
}
