/* The bound for an all_reduce of two ranks of one host whose buffers are shared memory: each rank adds one half of
 * the two inputs in one pass and writes it to both outputs, so that nothing is copied. Between two counters: "I have
 * entered" and "my half is written". COMPARE_VARIANT=stream writes past the caches. */
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "pair.h"

struct control {
    struct gy_counter entered[2], written[2];
};

static const struct gy_arena *arena;
static struct control *control;
static int my_rank, buffers;
static size_t span; /* bytes from one buffer to the next */
static bool streams;
static uint64_t calls;

static void add_twice(float *restrict to, float *restrict too, const float *a, const float *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = too[i] = a[i] + b[i];
}

/* Outputs are aligned to 64 bytes by the border and the allocation; a rest is stored plainly. */
static void add_twice_streaming(float *restrict to, float *restrict too, const float *a, const float *b, size_t count)
{
    size_t i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= count; i += 16) {
        __m512 sum = _mm512_add_ps(_mm512_loadu_ps(a + i), _mm512_loadu_ps(b + i));
        _mm512_stream_ps(to + i, sum);
        _mm512_stream_ps(too + i, sum);
    }
    _mm_sfence();
#elif defined(__x86_64__)
    for (; i + 4 <= count; i += 4) {
        __m128 sum = _mm_add_ps(_mm_loadu_ps(a + i), _mm_loadu_ps(b + i));
        _mm_stream_ps(to + i, sum);
        _mm_stream_ps(too + i, sum);
    }
    _mm_sfence();
#endif
    add_twice(to + i, too + i, a + i, b + i, count - i);
}

/* Where the other rank has the same buffer: allocations are made in the same order on both. */
static float *twin(const float *memory)
{
    ptrdiff_t away = (ptrdiff_t)span * (my_rank ? -1 : 1);
    return (float *)(void *)((unsigned char *)memory + away);
}

static void all_reduce(const struct gy_call *it)
{
    size_t border = gy_pair_border(it->count), first = my_rank ? border : 0,
           count = my_rank ? it->count - border : border;
    calls++;
    gy_counter_raise(&control->entered[my_rank], calls);
    gy_arena_wait(arena, &control->entered[!my_rank].value, calls);
    (streams ? add_twice_streaming : add_twice)(it->output + first, twin(it->output) + first, it->input + first,
                                                twin(it->input) + first, count);
    gy_counter_raise(&control->written[my_rank], calls);
    gy_arena_wait(arena, &control->written[!my_rank].value, calls);
}

static struct gy_world join(struct gy_world world)
{
    const char *variant = getenv("COMPARE_VARIANT");
    if (world.size != 2)
        gy_die("is for two ranks");
    arena = gy_launch_arena();
    control = (struct control *)(void *)arena->extra;
    span = (arena->extra_bytes - 4096) / 4 / 4096 * 4096;
    my_rank = world.rank;
    streams = variant && strcmp(variant, "stream") == 0;
    return world;
}

static void *allocate(size_t bytes)
{
    if (bytes > span || buffers == 2)
        gy_die("no room for %zu bytes in the arena", bytes);
    return arena->extra + 4096 + (size_t)(2 * buffers++ + my_rank) * span;
}

static const char *version(void)
{
    return "limit";
}

static void leave(void) {}

const struct gy_driver gy_driver = {
    .name = "limit_shared",
    .rank_variable = "RANK",
    .init = join,
    .version = version,
    .call = {[GY_ALL_REDUCE] = all_reduce},
    .alloc = allocate,
    .finish = leave,
};
