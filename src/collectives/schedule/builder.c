/* The growing schedule behind the builders: lanes and steps are appended in order, so that steps lie grouped by lane.
 *
 * An allocation failure is recorded, not reported: builders continue into a spare step, and gy_schedule_build checks
 * once at the end. */
#include "collectives/schedule/builder_internal.h"

#include <assert.h>

#include "core/mem.h"

#define FIRST_STEPS 8

gyre_status gy_builder_open(struct gy_builder *builder, const struct gy_schedule_shape *shape)
{
    builder->failed = false;
    builder->capacity = FIRST_STEPS;
    builder->schedule = gy_alloc_zero(1, sizeof(struct gy_schedule) + FIRST_STEPS * sizeof(struct gy_step));
    if (builder->schedule == NULL)
        return GYRE_NO_MEMORY;
    builder->schedule->shape = *shape;
    builder->schedule->scratch_lo = -1;
    return GYRE_SUCCESS;
}

struct gy_schedule *gy_builder_close(struct gy_builder *builder)
{
    if (builder->failed) {
        gy_free(builder->schedule);
        return NULL;
    }
    for (int l = 0; l < builder->schedule->lanes; l++)
        assert(builder->schedule->lane[l].count > 0);
    return builder->schedule;
}

struct gy_schedule *gy_builder_schedule(struct gy_builder *builder)
{
    return builder->schedule;
}

int gy_builder_lane(struct gy_builder *builder, uint16_t tag, int region_lane)
{
    struct gy_schedule *schedule = builder->schedule;
    assert(schedule->lanes < GY_SCHEDULE_LANES);
    schedule->lane[schedule->lanes] = (struct gy_lane){tag, (int16_t)region_lane, schedule->steps, 0};
    return schedule->lanes++;
}

static bool grow(struct gy_builder *builder)
{
    size_t capacity = (size_t)builder->capacity * 2;
    struct gy_schedule *schedule = gy_realloc(builder->schedule,
                                              sizeof(*schedule) + capacity * sizeof(schedule->step[0]));
    if (schedule == NULL)
        return false;
    builder->schedule = schedule;
    builder->capacity = (int32_t)capacity;
    return true;
}

struct gy_step *gy_builder_step(struct gy_builder *builder, enum gy_step_kind kind)
{
    assert(builder->schedule->lanes > 0);
    if (builder->schedule->steps == builder->capacity && !grow(builder))
        builder->failed = true;
    struct gy_step *step = &builder->spare;
    if (!builder->failed) {
        struct gy_schedule *schedule = builder->schedule;
        schedule->lane[schedule->lanes - 1].count++;
        step = &schedule->step[schedule->steps++];
    }
    *step = (struct gy_step){.kind = kind, .peer = -1, .rounds = 1};
    for (int i = 0; i < GY_NEEDS; i++)
        step->needs[i].lane = -1;
    return step;
}

void gy_builder_fail(struct gy_builder *builder)
{
    builder->failed = true;
}

void gy_step_need(struct gy_step *step, int lane, int lag, enum gy_need_flag flag)
{
    int i = 0;
    while (i < GY_NEEDS && step->needs[i].lane >= 0)
        i++;
    assert(i < GY_NEEDS);
    step->needs[i] = (struct gy_need){
        .lane = (int8_t)lane, .everyone = flag == GY_NEED_EVERYONE, .whole = flag == GY_NEED_ROUND, .lag = lag};
}

struct gy_bit_groups gy_bit_groups(int size, int rank)
{
    struct gy_bit_groups all = {.count = 0};
    int first = 0;
    for (int bits = 30; bits >= 0; bits--) {
        if (!((unsigned)size >> bits & 1))
            continue;
        if (rank >= first && rank < first + (1 << bits)) {
            all.mine = all.count;
            all.index = rank - first;
        }
        all.groups[all.count++] = (struct gy_bit_group){first, (uint8_t)bits};
        first += 1 << bits;
    }
    return all;
}
