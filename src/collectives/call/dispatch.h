/* The path of a blocking call: chosen in one place, kept per collective by the call cache, and run.
 *
 *   path            where             call                                                  run by
 *   message         a link            send, receive, up to 8 KiB                            link/eager_message.c
 *   link exchange   two ranks, link   collectives of short frames                           link/eager_exchange.c
 *   eager           one host          collectives up to gy_eager_limit                      eager_call.c
 *   mapped          one host          all_reduce to 1 MiB in memory of gyre_mem_alloc       shm_blocking.c
 *   rooted          one host          broadcast, reduce above the eager limit, to 1 MiB     shm_rooted_mapped.c
 *   request         any               all others, and any call beside one in flight         blocking.c
 *
 * The choice is local to this rank: on every path the peers see the same protocol. A path other than the last may
 * decline, with no effect, if a peer's frame is missing, memory is short or operands lie elsewhere. The request path
 * then takes the call. */
#ifndef GY_COLLECTIVES_CALL_DISPATCH_H
#define GY_COLLECTIVES_CALL_DISPATCH_H

#include "collectives/call/path.h"
#include "collectives/engine/request.h"

/* Returns the path of a call whose arguments are right, on a communicator that accepts calls. */
enum gy_path gy_path_of(struct gyre_comm *comm, const struct gy_call *call);
/* Runs a call by its path, start to end. Returns false, with no effect, if the path declines or is the request path. */
bool gy_path_run(enum gy_path path, struct gyre_comm *comm, const struct gy_call *call, gyre_status *status_p);

#endif
