#include "collectives/comm/shm_slot_alloc.h"

#include <string.h>

#include "collectives/comm/context.h"

/* A member's word for a slot: 0 at first; 1 + the communicator while in use; with GONE once it has destroyed it. */
#define GONE (UINT32_C(1) << 31)

static _Atomic uint32_t *user_of(struct gy_context *ctx, int slot, int world)
{
    return &gy_segment_rank(ctx->segment, ctx->world->members[world].local)->region_user[slot];
}

static _Atomic uint32_t *ended_of(struct gy_context *ctx, int slot, int world)
{
    return &gy_segment_rank(ctx->segment, ctx->world->members[world].local)->region_ended[slot];
}

static bool is_without(struct gy_context *ctx, int slot, uint32_t comm, int world)
{
    return atomic_load_explicit(user_of(ctx, slot, world), memory_order_acquire) != comm + 1;
}

bool gy_region_destroyed(struct gy_context *ctx, int slot, uint32_t comm, int world)
{
    return atomic_load_explicit(user_of(ctx, slot, world), memory_order_acquire) == (GONE | (comm + 1));
}

void gy_region_end(struct gy_context *ctx, int slot, int cause)
{
    atomic_store_explicit(ended_of(ctx, slot, ctx->world->rank), (uint32_t)cause + 1, memory_order_release);
}

int gy_region_cause(struct gy_context *ctx, int slot, uint32_t comm, int world)
{
    bool destroyed = gy_region_destroyed(ctx, slot, comm, world);
    if (!destroyed && is_without(ctx, slot, comm, world)) /* the slot holds another communicator's data */
        return -1;
    uint32_t ended = atomic_load_explicit(ended_of(ctx, slot, world), memory_order_acquire);
    if (ended > 0 && ended <= (uint32_t)ctx->world->size)
        return (int)ended - 1;
    return destroyed ? world : -1;
}

static bool all_left(struct gy_context *ctx, int slot)
{
    const struct gy_group *group = &ctx->slots.retired[slot].group;
    for (int r = 0; r < group->size; r++)
        if (!is_without(ctx, slot, ctx->slots.retired[slot].comm, gy_group_world(group, r)))
            return false;
    return true;
}

uint64_t gy_region_free(struct gy_context *ctx)
{
    if (!ctx->segment)
        return 0;
    for (int s = 0; s < GY_REGION_COMMS; s++)
        if (ctx->slots.retired[s].group.size > 0 && all_left(ctx, s)) {
            gy_group_free(&ctx->slots.retired[s].group);
            ctx->slots.taken &= ~(UINT64_C(1) << s);
        }
    return ~ctx->slots.taken;
}

void gy_region_take(struct gy_context *ctx, int slot, uint32_t comm)
{
    ctx->slots.taken |= UINT64_C(1) << slot;
    gy_segment_region_reset(ctx->segment, slot);
    atomic_store_explicit(ended_of(ctx, slot, ctx->world->rank), 0,
                          memory_order_relaxed); /* written before the word that it belongs to */
    atomic_store_explicit(user_of(ctx, slot, ctx->world->rank), comm + 1, memory_order_release);
}

/* Wakes sleeping members, which may wait for this rank. */
static void wake(struct gy_context *ctx, const struct gy_group *group)
{
    gy_segment_fence(ctx->segment);
    for (int r = 0; r < group->size; r++) {
        int world = gy_group_world(group, r);
        if (world != ctx->world->rank)
            gy_segment_ring_doorbell(ctx->segment, ctx->world->members[world].local);
    }
}

void gy_region_retire(struct gy_context *ctx, int slot, uint32_t comm, struct gy_group *group)
{
    atomic_store_explicit(user_of(ctx, slot, ctx->world->rank), GONE | (comm + 1), memory_order_release);
    wake(ctx, group);
    ctx->slots.retired[slot].group = *group;
    ctx->slots.retired[slot].comm = comm;
    *group = (struct gy_group){0};
}

void gy_region_clear(struct gy_context *ctx)
{
    for (int s = 0; s < GY_REGION_COMMS; s++)
        gy_group_free(&ctx->slots.retired[s].group);
}
