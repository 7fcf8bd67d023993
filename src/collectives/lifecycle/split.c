/* Making communicators of communicators. Every rank of the parent shows its ticket to all others, and each computes
 * alone what all of them compute:
 *
 *   tickets   rank 0 (colour 1, key 5)   rank 1 (1, 2)   rank 2 (0, 0) ...
 *   groups    colour 1: 1, 0             colour 0: 2
 *   number    the highest that any of them would take next: no two communicators that share a rank have the same
 *   region    the lowest slot that is free on all members, if they are on one host
 *
 * The barrier at the end keeps first messages from arriving before the communicator exists, and region slots from
 * being used before their last owners have cleaned them. No connection is opened. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/call/blocking.h"
#include "collectives/comm/communicator.h"
#include "collectives/engine/request.h"
#include "collectives/lifecycle/comm_open.h"
#include "core/mem.h"

struct ticket {
    int32_t colour, key;
    uint32_t next, word;
    uint64_t free_slots;
};

struct candidate {
    int32_t key;
    int rank;
};

static int by_key(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    return x->key != y->key ? (x->key > y->key) - (x->key < y->key) : x->rank - y->rank;
}

static gyre_status show_tickets(struct gyre_comm *parent, const struct ticket *mine, struct ticket *all)
{
    struct gy_call call = {.collective = GY_ALL_GATHER,
                           .input = mine,
                           .output = all,
                           .count = sizeof(*mine) / sizeof(int32_t),
                           .dtype = GYRE_INT32};
    return gy_run_own(parent, &call);
}

/* Collects the members of my colour, in order. Returns false if out of memory. */
static bool form_group(const struct gyre_comm *parent, const struct ticket *tickets, int colour,
                       struct gy_group *group_p)
{
    size_t size = (size_t)parent->size;
    struct candidate *candidates = gy_alloc(size * sizeof(*candidates));
    int *world = gy_alloc(size * sizeof(*world));
    bool made = false;
    int count = 0;
    if (candidates && world) {
        for (int r = 0; r < parent->size; r++)
            if (tickets[r].colour == colour)
                candidates[count++] = (struct candidate){tickets[r].key, r};
        qsort(candidates, (size_t)count, sizeof(*candidates), by_key);
        for (int r = 0; r < count; r++)
            world[r] = gy_group_world(&parent->group, candidates[r].rank);
        made = gy_group_make(group_p, world, count, parent->ctx->world->size);
    }
    gy_free(candidates);
    gy_free(world);
    return made;
}

static gyre_status make(struct gyre_comm *parent, const struct ticket *tickets, int colour, uint32_t id,
                        struct gyre_comm **comm_p)
{
    struct gy_group group;
    uint64_t slots = UINT64_MAX;
    if (!form_group(parent, tickets, colour, &group))
        return gy_error_set(&parent->error, GYRE_NO_MEMORY, -1, "out of memory for a group of %d ranks", parent->size);
    for (int r = 0; r < parent->size; r++)
        if (tickets[r].colour == colour)
            slots &= tickets[r].free_slots;
    int region = slots != 0 && gy_comm_together(parent->ctx, &group) ? __builtin_ctzll(slots) : -1;
    gyre_status status = gy_comm_create(parent->ctx, id, &group, region, comm_p, &parent->error);
    if (status == GYRE_SUCCESS) {
        (*comm_p)->attributes = parent->attributes;
        (*comm_p)->attributes.name[0] = '\0';
    }
    gy_group_free(&group);
    return status;
}

static gyre_status barrier(struct gyre_comm *parent)
{
    struct gy_call call = {.collective = GY_BARRIER, .dtype = GYRE_INT32};
    return gy_run_own(parent, &call);
}

static bool words_agree(const struct gyre_comm *parent, const struct ticket *tickets)
{
    for (int r = 1; r < parent->size; r++)
        if (tickets[r].word != tickets[0].word)
            return false;
    return true;
}

gyre_status gy_comm_divide(struct gyre_comm *parent, int colour, int key, uint32_t word, struct gyre_comm **comm_p)
{
    struct gy_context *ctx = parent->ctx;
    struct gyre_comm *made = NULL;
    struct ticket mine = {colour, key, ctx->next_comm, word, gy_region_free(ctx)};
    struct ticket *tickets = gy_alloc((size_t)parent->size * sizeof(*tickets));
    parent->error.status = GYRE_SUCCESS; /* failures of an earlier call do not count for this one */
    if (!tickets) {
        gyre_status shortage = gy_error_set(&parent->error, GYRE_NO_MEMORY, -1,
                                            "out of memory for the tickets of %d ranks", parent->size);
        gy_report_shortage(parent, shortage);
        return shortage;
    }
    gyre_status status = show_tickets(parent, &mine, tickets);
    if (status != GYRE_SUCCESS)
        goto free_tickets;
    if (!words_agree(parent, tickets)) {
        status = gy_error_set(
            &parent->error, GYRE_INVALID_ARGUMENT, -1,
            "the ranks gave different lists of ranks for a communicator, or different values of an attribute, or made "
            "different calls");
        goto free_tickets;
    }
    uint32_t id = 0;
    for (int r = 0; r < parent->size; r++)
        id = tickets[r].next > id ? tickets[r].next : id;
    ctx->next_comm = id + 1;
    if (colour >= 0)
        status = make(parent, tickets, colour, id, &made);
    if (status != GYRE_SUCCESS) { /* the others wait in the barrier below, for a rank that will not come */
        char text[800];
        snprintf(text, sizeof(text), "rank %d cannot make the communicator: %.700s", ctx->world->rank,
                 parent->error.text);
        gy_overlay_report(ctx->overlay, status, ctx->world->rank, text);
        goto free_tickets;
    }
    status = barrier(parent);
    if (status != GYRE_SUCCESS) {
        if (made)
            gy_comm_free(made);
        goto free_tickets;
    }
    *comm_p = made;

free_tickets:
    gy_free(tickets);
    return status;
}
