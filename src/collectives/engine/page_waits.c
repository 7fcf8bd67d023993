/* The ranks for which operations in flight wait, on the status page. */
#include "collectives/engine/page_waits.h"

#include "collectives/comm/status_page.h"
#include "collectives/engine/request.h"

static void add_wait(struct gyre_page *page, const struct gyre_request *r, int slot, int rank)
{
    if (rank < 0 || page->waits == GYRE_PAGE_WAITS)
        return;
    struct gyre_page_wait wait = {.serial = r->record,
                                  .since = r->idle_since,
                                  .comm = (uint32_t)slot,
                                  .rank = gy_group_world(&r->comm->group, rank)};
    for (uint32_t i = 0; i < page->waits; i++)
        if (page->wait[i].serial == wait.serial && page->wait[i].comm == wait.comm && page->wait[i].rank == wait.rank)
            return;
    page->wait[page->waits] = wait;
    page->waits++;
}

/* Blocked one-sided calls: for one rank, or for a signal of any (rank -1). */
static void add_one_sided(const struct gy_context *ctx, struct gyre_page *page)
{
    for (const struct gy_one_sided_wait *it = ctx->one_sided_waits; it && page->waits < GYRE_PAGE_WAITS;
         it = it->next) {
        int slot = gy_page_slot(it->comm);
        if (slot >= 0)
            page->wait[page->waits++] = (struct gyre_page_wait){
                .since = it->since, .comm = (uint32_t)slot, .rank = it->world, .window = it->window};
    }
}

void gy_page_update(struct gy_context *ctx, int64_t now)
{
    struct gyre_page *page = ctx->page;
    if (!page)
        return;
    page->waits = 0;
    for (const struct gyre_request *r = ctx->active_first; r && page->waits < GYRE_PAGE_WAITS; r = r->next) {
        int slot = gy_page_slot(r->comm);
        if (slot < 0 || r->waiting_for < 0)
            continue;
        add_wait(page, r, slot, r->waiting_for);
        for (int l = 0; !r->eager && l < r->schedule->lanes; l++)
            if (!r->lane[l].finished)
                add_wait(page, r, slot, r->lane[l].waiting_for);
    }
    add_one_sided(ctx, page);
    page->turned = now;
    page->beat++;
}
