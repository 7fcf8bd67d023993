#include "api/call_group.h"

#include "api/check.h"
#include "collectives/device/stream_call.h"
#include "core/mem.h"

static _Thread_local struct {
    int depth;
    gyre_request **requests;
    size_t count, room;
    struct gy_stream_job *first, **last; /* calls that streams order */
} group;

_Atomic unsigned gy_call_groups;

bool gy_call_group_begun(void)
{
    return group.depth > 0;
}

bool gy_call_group_reserve(void)
{
    if (group.count < group.room)
        return true;
    size_t room = group.room ? 2 * group.room : 16;
    gyre_request **requests = gy_realloc(group.requests, room * sizeof(gyre_request *));
    if (!requests)
        return false;
    group.requests = requests;
    group.room = room;
    return true;
}

void gy_call_group_add(gyre_request *request)
{
    group.requests[group.count++] = request;
}

void gy_call_group_defer(struct gy_stream_job *job)
{
    if (!group.first)
        group.last = &group.first;
    *group.last = job;
    group.last = &job->next;
}

void gy_call_group_end_deferred(const struct gyre_comm *comm)
{
    struct gy_stream_job *ended = gy_stream_jobs_take(&group.first, comm);
    for (group.last = &group.first; *group.last;)
        group.last = &(*group.last)->next;
    gy_stream_calls_drop(ended);
}

static gyre_status end_stream_calls(void)
{
    struct gy_stream_job *jobs = group.first;
    group.first = NULL;
    return gy_stream_calls_end(jobs);
}

gyre_status gyre_group_begin(void)
{
    if (group.depth++ == 0)
        atomic_fetch_add_explicit(&gy_call_groups, 1, memory_order_relaxed);
    return GYRE_SUCCESS;
}

gyre_status gyre_group_end(void)
{
    if (group.depth == 0)
        return gy_check_none("gyre_group_end: no group was begun by this thread");
    if (--group.depth > 0)
        return GYRE_SUCCESS;
    atomic_fetch_sub_explicit(&gy_call_groups, 1, memory_order_relaxed);
    gyre_status ordered = end_stream_calls();
    gyre_status status = gyre_wait_all(group.requests, group.count);
    gy_free(group.requests);
    group.requests = NULL;
    group.count = group.room = 0;
    return status == GYRE_SUCCESS ? ordered : status;
}
