/* The one place that decides how a blocking call is carried out, and the table of the paths. */
#include "collectives/call/dispatch.h"

#include "collectives/call/call_cache_inline.h"
#include "collectives/call/eager_call.h"
#include "collectives/call/eager_fit.h"
#include "collectives/call/shm_blocking.h"
#include "collectives/link/eager_exchange.h"
#include "collectives/link/eager_message.h"

typedef bool (*path_func)(struct gyre_comm *comm, const struct gy_call *call, gyre_status *status_p);

static const path_func paths[GY_PATHS] = {
    [GY_PATH_MESSAGE] = gy_message_call,   [GY_PATH_LINK_EXCHANGE] = gy_eager_exchange_call,
    [GY_PATH_EAGER] = gy_eager_call,       [GY_PATH_MAPPED] = gy_shm_mapped_call,
    [GY_PATH_ROOTED] = gy_shm_rooted_call,
};

/* The path on a communicator whose ranks share memory, with nothing in flight. */
static enum gy_path shm_path(struct gyre_comm *comm, const struct gy_call *call)
{
    if (gy_eager_is_open(comm, call))
        return GY_PATH_EAGER;
    switch (call->collective) {
    case GY_ALL_REDUCE: return gy_shm_mapped_is_open(comm, call) ? GY_PATH_MAPPED : GY_PATH_REQUEST;
    case GY_BROADCAST:
    case GY_REDUCE_TO: return gy_shm_rooted_is_open(comm, call) ? GY_PATH_ROOTED : GY_PATH_REQUEST;
    default: return GY_PATH_REQUEST;
    }
}

enum gy_path gy_path_of(struct gyre_comm *comm, const struct gy_call *call)
{
    if (comm->ctx->active_first) /* a request is in flight: this call becomes another one */
        return GY_PATH_REQUEST;
    if (gy_is_point_to_point(call->collective))
        return GY_PATH_MESSAGE;
    if (comm->region < 0)
        return comm->size == 2 ? GY_PATH_LINK_EXCHANGE : GY_PATH_REQUEST;
    return gy_eager_is_plain(comm, call) ? shm_path(comm, call) : GY_PATH_REQUEST;
}

bool gy_path_run(enum gy_path path, struct gyre_comm *comm, const struct gy_call *call, gyre_status *status_p)
{
    if (!paths[path] || !paths[path](comm, call, status_p))
        return false;
    if (path == GY_PATH_MAPPED || path == GY_PATH_ROOTED)
        gy_call_cache_keep_path(comm, call, path);
    return true;
}

bool gy_call_cache_call(struct gyre_comm *comm, const struct gy_call *call, gyre_status *status_p)
{
    const struct gy_cached_call *cached = &comm->call_cache[call->collective];
    if (cached->path == GY_PATH_EAGER)
        return gy_call_cache_exchange(comm, call, status_p);
    return gy_call_is_cached(comm, cached, call) && !comm->ctx->active_first &&
           paths[cached->path](comm, call, status_p);
}
