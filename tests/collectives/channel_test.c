/* The stash of a channel: frames of any length find a place as long as their credit lasts, keep their bytes where they
 * are moved for each other's sake, and beyond it there is none. */
#include <criterion/criterion.h>
#include <string.h>

#include "collectives/comm/channel.h"

#define ROUNDS 5000

static uint64_t state = 7;

static unsigned below(unsigned bound)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (unsigned)(state >> 33) % bound;
}

static unsigned units_used(const struct gy_channel *channel)
{
    unsigned units = 0;
    for (unsigned i = 0; i < GY_STASHED_MOST; i++)
        units += channel->stashed[i].used ? gy_eager_units(channel->stashed[i].frame.bytes) : 0;
    return units;
}

/* Byte i of the frame with that number. */
static unsigned char content(uint64_t number, uint32_t i)
{
    return (unsigned char)(number * 31 + i * 7 + (i >> 8));
}

static struct gy_stashed *stash(struct gy_channel *channel, uint64_t number, uint32_t bytes)
{
    struct gy_frame frame = {.sequence = number, .bytes = bytes, .flags = GY_FRAME_EAGER};
    unsigned char *memory;
    struct gy_stashed *stashed = gy_channel_stash(channel, &frame, &memory);
    for (uint32_t i = 0; stashed && i < bytes; i++)
        memory[i] = content(number, i);
    return stashed;
}

static void take(struct gy_channel *channel, uint64_t number, uint32_t bytes)
{
    struct gy_stashed *stashed = gy_channel_find(channel, number, 0, 0);
    cr_assert_not_null(stashed);
    cr_assert_eq(stashed->frame.bytes, bytes);
    const unsigned char *memory = gy_channel_stash_memory(channel, stashed);
    cr_assert(gy_channel_holds(channel, memory) && gy_channel_holds(channel, memory + bytes - 1));
    uint32_t right = 0;
    while (right < bytes && memory[right] == content(number, right))
        right++;
    cr_assert_eq(right, bytes, "frame %llu of %u bytes", (unsigned long long)number, bytes);
    gy_channel_unstash(channel, stashed);
}

Test(channel, early_frames_of_any_length_find_a_place, .timeout = 20)
{
    struct gy_channel *channel = gy_channel_create();
    uint64_t number[GY_STASHED_MOST];
    uint32_t bytes[GY_STASHED_MOST];
    unsigned count = 0;
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        uint32_t length = 1 + below(below(2) ? GY_EAGER_BYTES : gy_eager_most(GY_FOR_COLLECTIVES) * GY_EAGER_BYTES);
        if (below(3) > 0 && units_used(channel) + gy_eager_units(length) <= GY_STASHED_MOST) {
            struct gy_stashed *stashed = stash(channel, round, length);
            cr_assert_not_null(stashed, "%u units of %u are used, %u bytes more have no place", units_used(channel),
                               GY_STASHED_MOST, length);
            stashed->whole = true;
            number[count] = round;
            bytes[count++] = length;
        } else if (count > 0) {
            unsigned i = below(count);
            take(channel, number[i], bytes[i]);
            number[i] = number[--count];
            bytes[i] = bytes[count];
        }
    }
    gy_channel_free(channel);
}

Test(channel, a_peer_beyond_its_credit_gets_no_place)
{
    struct gy_channel *channel = gy_channel_create();
    cr_assert_null(stash(channel, 1, GY_FRAME_MAX));
    for (uint64_t i = 1; i <= GY_STASHED_MOST; i++)
        stash(channel, i, (uint32_t)i)->whole = true;
    cr_assert_null(stash(channel, 99, 1));
    take(channel, 5, 5);
    take(channel, 12, 12);
    cr_assert_null(stash(channel, 99, 2 * GY_EAGER_BYTES + 1));
    cr_assert_not_null(stash(channel, 99, 2 * GY_EAGER_BYTES));
    gy_channel_free(channel);
}

/* The link writes into it meanwhile. */
Test(channel, a_frame_that_is_being_received_stays)
{
    struct gy_channel *channel = gy_channel_create();
    struct gy_stashed *first = stash(channel, 1, GY_EAGER_BYTES), *coming = stash(channel, 2, 100);
    first->whole = true;
    unsigned char *memory = gy_channel_stash_memory(channel, coming);
    take(channel, 1, GY_EAGER_BYTES);
    for (uint64_t i = 3; i < GY_STASHED_MOST + 1; i++)
        stash(channel, i, GY_EAGER_BYTES)->whole = true;
    take(channel, 9, GY_EAGER_BYTES);
    cr_assert_not_null(stash(channel, 99, GY_EAGER_BYTES));
    cr_assert_eq(gy_channel_stash_memory(channel, coming), memory);
    gy_channel_free(channel);
}
