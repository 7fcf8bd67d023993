/* Frames that links still hold of a request that is over because its communicator has ended (comm_teardown.h). A
 * link's queue runs through the frames themselves, which lie in the request. So the request is not reused before
 * they are sent, however long their peer does not read. Their payloads are copied, and the caller gets its buffers
 * back.
 *
 *   has frames queued ──▶ orphaned ──▶ collected by its owner: given_up ──▶ the last frame is sent: freed
 *                                  └─▶ the last frame is sent: as any other ──▶ collected by its owner */
#include <string.h>

#include "collectives/engine/request.h"
#include "collectives/link/orphan_sends.h"
#include "core/handle.h"
#include "core/mem.h"

static bool is_queued(const struct gyre_request *r)
{
    bool queued = false;
    for (int l = 0; l < r->orphaned_lanes && !queued; l++) {
        const struct gy_lane_state *lane = &r->lane[l];
        queued = lane->control.queued;
        for (unsigned i = 0; i < lane->flights; i++)
            queued |= lane->flight[(lane->first_flight + i) % GY_SENDS_IN_FLIGHT].out.queued;
    }
    return queued;
}

/* Copies a payload. Returns false if a device reads it, or if there is no memory for now. */
static bool set_aside(struct gyre_request *r, struct gy_in_flight *flight)
{
    const struct gy_context *ctx = r->comm->ctx;
    const struct gy_peer *peer = &ctx->peers[gy_group_world(&r->comm->group, flight->peer)];
    struct gy_frame_out *out = &flight->out;
    if (!out->queued || out->header.bytes == 0 || flight->aside)
        return true;
    if (ctx->ops[peer->transport]->reads_in_place(peer->link, out) && !peer->broken)
        return false;
    flight->aside = gy_alloc(out->header.bytes);
    if (!flight->aside)
        return false;
    memcpy(flight->aside, out->payload, out->header.bytes);
    out->payload = flight->aside;
    return true;
}

static void free_asides(struct gyre_request *r)
{
    for (int l = 0; l < r->orphaned_lanes; l++)
        for (unsigned i = 0; i < r->lane[l].flights; i++) {
            struct gy_in_flight *flight = &r->lane[l].flight[(r->lane[l].first_flight + i) % GY_SENDS_IN_FLIGHT];
            gy_free(flight->aside);
            flight->aside = NULL;
        }
}

bool gy_request_detach_sends(struct gyre_request *r)
{
    struct gy_context *ctx = r->comm->ctx;
    if (r->orphaned_lanes == 0) {
        r->orphaned_lanes = r->schedule->lanes;
        for (int l = 0; l < r->orphaned_lanes; l++)
            for (unsigned i = 0; i < r->lane[l].flights; i++)
                r->lane[l].flight[(r->lane[l].first_flight + i) % GY_SENDS_IN_FLIGHT].aside = NULL;
    }
    for (int l = 0; l < r->orphaned_lanes; l++)
        for (unsigned i = 0; i < r->lane[l].flights; i++)
            if (!set_aside(r, &r->lane[l].flight[(r->lane[l].first_flight + i) % GY_SENDS_IN_FLIGHT]))
                return false;
    r->orphaned = true;
    r->next_orphaned = ctx->orphaned;
    ctx->orphaned = r;
    gy_requests_take_back(ctx, false);
    return true;
}

static void forget(struct gy_context *ctx, struct gyre_request *r)
{
    struct gyre_request **at = &ctx->made;
    while (*at && *at != r)
        at = &(*at)->next_made;
    if (*at) /* else its communicator was freed before */
        *at = r->next_made;
    gy_handle_remove(r, GY_HANDLE_REQUEST);
    gy_free(r);
}

void gy_requests_take_back(struct gy_context *ctx, bool all)
{
    for (struct gyre_request **at = &ctx->orphaned, *r; (r = *at);) {
        if (!all && is_queued(r)) {
            at = &r->next_orphaned;
            continue;
        }
        *at = r->next_orphaned;
        free_asides(r);
        r->orphaned = false;
        r->orphaned_lanes = 0;
        if (r->given_up)
            forget(ctx, r);
    }
}
