/* Selects the transport to each rank: the first of the list that both ranks have.
 *
 * Whether a transport joins two ranks follows from data that all ranks share (host, devices, GYRE_TRANSPORT), so
 * both ends decide alike without messages. If two ranks have none in common, neither is at fault, but one has to
 * leave, and all ranks must name the same one: the higher rank. In a world that has grown it is the joiner. */
#include "collectives/comm/transport_select.h"
#include "transport/registry/registry.h"

#include "core/log.h"

/* True if GYRE_TRANSPORT allows sockets only: the same on all ranks, whatever is available here. */
static bool allows_sockets_only(const struct gy_config *config)
{
    for (int t = 0; gy_transports[t]; t++)
        if (!gy_transports[t]->socket && !gy_transports[t]->to_self &&
            gy_transport_wanted(config->transports, gy_transports[t]->name))
            return false;
    return true;
}

/* True if the transport joins this rank and the peer, and frames between hosts are protected as GYRE_INTEGRITY asks. */
static bool joins(const struct gy_context *ctx, int t, int peer)
{
    const struct gy_member *members = ctx->world->members;
    bool unprotected = ctx->config.integrity >= GY_INTEGRITY_MAC && !ctx->ops[t]->seals &&
                       members[peer].host != members[ctx->world->rank].host;
    return !unprotected && ctx->ops[t]->reaches(ctx->instance[t], peer);
}

gyre_status gy_transports_open(struct gy_context *ctx, struct gy_error *error)
{
    struct gy_transport_env env = {.world = ctx->world,
                                   .segment = ctx->segment,
                                   .config = &ctx->config,
                                   .poller = ctx->poller,
                                   .handler = *ctx->up->handler};
    env.handler.user = ctx;
    ctx->sockets = allows_sockets_only(&ctx->config);
    for (int t = 0; gy_transports[t] && ctx->transports < GY_TRANSPORTS_MOST; t++) {
        const struct gy_transport_ops *ops = gy_transports[t];
        char why[160] = "";
        if (!gy_transport_wanted(ctx->config.transports, ops->name))
            continue;
        if (!ops->available(why, sizeof(why))) {
            gy_log(GY_LOG_INFO, "transport %s is not used: %s", ops->name, why);
            continue;
        }
        gyre_status status = ops->open(&env, &ctx->instance[ctx->transports], error);
        if (status != GYRE_SUCCESS)
            return status;
        ctx->ops[ctx->transports++] = ops;
    }
    return GYRE_SUCCESS;
}

gyre_status gy_transports_choose(struct gy_context *ctx, struct gy_error *error)
{
    int own = ctx->world->rank;
    for (int p = 0; p < ctx->world->size; p++) {
        int t = 0, lower = p < own ? p : own, higher = p < own ? own : p;
        while (t < ctx->transports && !joins(ctx, t, p))
            t++;
        if (t == ctx->transports)
            return gy_error_set(error, GYRE_PEER_UNREACHABLE, higher,
                                "ranks %d and %d have no transport in common: GYRE_TRANSPORT=%s; gyre-info on both of "
                                "their hosts says which there are",
                                lower, higher, ctx->config.transports);
        ctx->peers[p].transport = t;
    }
    return GYRE_SUCCESS;
}
