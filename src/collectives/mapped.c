#include "collectives/mapped.h"

#define GY_OFFER_LEAST 32768u /* bytes of a vector: below, a copy costs less than waiting for everyone */

static uint64_t place_of(const struct gyre_request *r, const void *memory, size_t elements)
{
    uint64_t offset;
    return gy_segment_heap_offset(r->comm->ctx->segment, memory, elements * r->element, &offset) ? offset + 1 : 0;
}

void gy_mapped_offer(struct gyre_request *r)
{
    const struct gy_plan *plan = r->plan;
    r->offer = (struct gy_offer){0};
    if (!plan->window || plan->side_by_side == 0 || r->in.total * r->element < GY_OFFER_LEAST || r->in.places)
        return;
    /* in place, what comes from another rank would overwrite what is still to be read */
    bool exposed = plan->shape.collective == GY_ALL_TO_ALL && r->input == r->output;
    size_t in = gy_layout_start(&r->in, plan->input_lo + plan->input_blocks) - gy_layout_start(&r->in, plan->input_lo);
    if (plan->input_blocks > 0 && !exposed && !r->staged.memory)
        r->offer.input = place_of(r, r->input, in);
    if (plan->shape.collective == GY_ALL_REDUCE)
        r->offer.output = place_of(r, r->output, r->out.total);
}

/* The offer that belongs to this very operation: who offered anything cannot have gone on, so one that is being replaced
 * was empty. */
static struct gy_offer offer_of(const struct gyre_request *r, int rank)
{
    const struct gy_window_control *control = r->comm->control[rank];
    unsigned place = (unsigned)(r->shape.sequence % GY_ARRIVALS);
    if (atomic_load_explicit(&control->offered[place], memory_order_acquire) != r->shape.sequence)
        return (struct gy_offer){0};
    struct gy_offer offer = control->offer[place];
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load_explicit(&control->offered[place], memory_order_relaxed) != r->shape.sequence)
        return (struct gy_offer){0};
    return offer;
}

static const unsigned char *at(const struct gyre_request *r, int rank, uint64_t place)
{
    const struct gy_world *world = r->comm->ctx->world;
    int local = world->members[gy_group_world(&r->comm->group, rank)].local;
    return place ? gy_segment_heap_at(r->comm->ctx->segment, local, place - 1) : NULL;
}

const unsigned char *gy_mapped_input(const struct gyre_request *r, int rank)
{
    return r->plan->side_by_side == 0 ? NULL : at(r, rank, offer_of(r, rank).input);
}

const unsigned char *gy_mapped_output(const struct gyre_request *r, int rank)
{
    return at(r, rank, offer_of(r, rank).output);
}

bool gy_mapped_quiet(struct gyre_request *r, uint64_t after)
{
    if (!r->offer.input && !r->offer.output)
        return true;
    for (int p = 0; p < r->comm->size; p++)
        for (int w = 0; w < GY_WINDOW_LANES; w++)
            if (atomic_load_explicit(&r->comm->control[p]->lane[w].progress, memory_order_acquire) < after) {
                r->waiting_for = r->lane[0].waiting_for = p;
                return false;
            }
    return true;
}
