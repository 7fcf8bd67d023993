#include "collectives/comm/channel.h"

#include <string.h>

#include "core/mem.h"

struct gy_channel *gy_channel_create(void)
{
    struct gy_channel *channel = gy_alloc_zero(1, sizeof(*channel));
    if (!channel)
        return NULL;
    /* Allocated now, so that the first early frame of a later call allocates nothing. Untouched pages cost nothing. */
    channel->stash = gy_alloc((size_t)GY_STASHED_MOST * GY_EAGER_BYTES);
    if (!channel->stash) {
        gy_free(channel);
        return NULL;
    }
    for (int use = 0; use < GY_CREDIT_USES; use++)
        channel->credit[use].left = gy_credit_most((enum gy_credit_use)use);
    return channel;
}

void gy_channel_free(struct gy_channel *channel)
{
    if (!channel)
        return;
    gy_free(channel->stash);
    gy_free(channel);
}

bool gy_channel_queued(const struct gy_channel *channel)
{
    bool queued = channel->completion.out.queued || channel->announce_end.queued;
    for (int use = 0; use < GY_CREDIT_USES; use++)
        queued |= channel->credit[use].out.queued;
    return queued;
}

bool gy_eager_leaves(const struct gy_schedule *schedule, int lane, int peer, size_t bytes, size_t most)
{
    bool message = gy_is_point_to_point(schedule->shape.collective);
    if (bytes <= GY_EAGER_BYTES)
        return true;
    if (bytes > most || bytes > gy_eager_most(message ? GY_FOR_MESSAGES : GY_FOR_COLLECTIVES) * GY_EAGER_BYTES)
        return false;
    for (int other = 0; other < schedule->lanes; other++)
        if (other != lane && gy_schedule_meets(schedule, other, peer) &&
            ((gy_schedule_sends(schedule, lane) && gy_schedule_sends(schedule, other)) ||
             (gy_schedule_receives(schedule, lane) && gy_schedule_receives(schedule, other))))
            return false;
    return true;
}

static bool is_free(const struct gy_channel *channel, unsigned unit, unsigned units)
{
    for (unsigned i = 0; i < GY_STASHED_MOST; i++) {
        const struct gy_stashed *s = &channel->stashed[i];
        if (s->used && s->unit < unit + units && unit < s->unit + gy_eager_units(s->frame.bytes))
            return false;
    }
    return true;
}

/* Returns the first of `units` adjacent free units; GY_STASHED_MOST: there are none. */
static unsigned find_units(const struct gy_channel *channel, unsigned units)
{
    for (unsigned unit = 0; unit + units <= GY_STASHED_MOST; unit++)
        if (is_free(channel, unit, units))
            return unit;
    return GY_STASHED_MOST;
}

/* Compacts the stash so that free space lies at the end; the frame being received stays in place. */
static void move_up(struct gy_channel *channel)
{
    for (unsigned unit = 0, end = 0; unit < GY_STASHED_MOST; unit++)
        for (unsigned i = 0; i < GY_STASHED_MOST; i++) {
            struct gy_stashed *s = &channel->stashed[i];
            if (!s->used || s->unit != unit || unit < end)
                continue;
            if (s->whole && unit > end) {
                const unsigned char *from = gy_channel_stash_memory(channel, s);
                s->unit = (uint8_t)end;
                memmove(gy_channel_stash_memory(channel, s), from, s->frame.bytes);
            }
            end = s->unit + gy_eager_units(s->frame.bytes);
        }
}

struct gy_stashed *gy_channel_stash(struct gy_channel *channel, const struct gy_frame *frame, unsigned char **memory_p)
{
    unsigned units = gy_eager_units(frame->bytes);
    unsigned unit = find_units(channel, units);
    if (unit == GY_STASHED_MOST) {
        move_up(channel);
        unit = find_units(channel, units);
    }
    for (unsigned i = 0; i < GY_STASHED_MOST && unit < GY_STASHED_MOST; i++) {
        struct gy_stashed *stashed = &channel->stashed[i];
        if (stashed->used)
            continue;
        stashed->used = true;
        channel->early++;
        stashed->whole = false;
        stashed->unit = (uint8_t)unit;
        stashed->frame = *frame;
        *memory_p = gy_channel_stash_memory(channel, stashed);
        return stashed;
    }
    return NULL;
}

void gy_channel_unstash(struct gy_channel *channel, struct gy_stashed *stashed)
{
    stashed->used = false;
    channel->early--;
}

unsigned char *gy_channel_stash_memory(const struct gy_channel *channel, const struct gy_stashed *stashed)
{
    return channel->stash + (size_t)stashed->unit * GY_EAGER_BYTES;
}

struct gy_stashed *gy_channel_find(struct gy_channel *channel, uint64_t sequence, uint16_t lane, uint64_t value)
{
    for (unsigned i = 0; channel->early > 0 && i < GY_STASHED_MOST; i++) {
        struct gy_stashed *s = &channel->stashed[i];
        if (s->used && s->frame.sequence == sequence && s->frame.lane == lane && s->frame.value == value)
            return s;
    }
    return NULL;
}

struct gy_stashed *gy_channel_any(struct gy_channel *channel, uint64_t sequence)
{
    for (unsigned i = 0; channel->early > 0 && i < GY_STASHED_MOST; i++)
        if (channel->stashed[i].used && channel->stashed[i].frame.sequence == sequence)
            return &channel->stashed[i];
    return NULL;
}

void gy_channel_keep_grant(struct gy_channel *channel, uint64_t sequence, uint16_t lane, uint64_t value)
{
    struct gy_kept_grant *free_place = NULL;
    for (int i = 0; i < GY_GRANTS_KEPT; i++) {
        struct gy_kept_grant *kept = &channel->grants[i];
        if (kept->sequence == sequence && kept->lane == lane) {
            if (value > kept->value)
                kept->value = value;
            return;
        }
        if (kept->sequence == 0)
            free_place = kept;
    }
    channel->grants_lost |= !free_place;
    if (free_place)
        *free_place = (struct gy_kept_grant){.sequence = sequence, .lane = lane, .value = value};
}

uint64_t gy_channel_take_grant(struct gy_channel *channel, uint64_t sequence, uint16_t lane)
{
    for (int i = 0; i < GY_GRANTS_KEPT; i++) {
        struct gy_kept_grant *kept = &channel->grants[i];
        if (kept->sequence == sequence && kept->lane == lane) {
            kept->sequence = 0;
            return kept->value;
        }
    }
    return 0;
}
