/* Requests: test, the waits, persistent ones, progress. */
#include <sched.h>
#include <time.h>

#include "api/check.h"
#include "collectives/call/call_cache_inline.h"
#include "collectives/call/launch.h"
#include "collectives/call/prepare.h"
#include "collectives/device/device_request.h"
#include "collectives/engine/progress.h"
#include "collectives/lifecycle/comm_teardown.h"
#include "collectives/lifecycle/uniform_completion.h"
#include "core/clock.h"
#include "core/handle.h"

#define PATIENCE 200 /* fruitless rounds over several worlds before the caller sleeps between two */
#define PAUSE_NS 50000

/* True if the handle is no request, or a copy of the handle of one that has been collected. It is found until the
 * memory serves another request. */
static bool is_stale(const gyre_request *r, const char *function)
{
    if (!r || (gy_handle_lives(r, GY_HANDLE_REQUEST) && !r->collected))
        return false;
    gy_check_none("%s: %p is no request, or one that has been completed or freed", function, (const void *)r);
    return true;
}

/* The caller is inside, or the communicator is gone. */
static gyre_status take(gyre_request **request)
{
    gyre_request *r = *request;
    gyre_status status = r->status;
    if (r->comm && r->comm->attachment && (!r->persistent || r->launched))
        status = gy_device_request_end(r->comm, r, status);
    if (r->persistent && r->comm) {
        r->status = GYRE_SUCCESS; /* reported once */
        r->launched = false;
        return status;
    }
    *request = NULL;
    gy_request_recycle(r);
    return status;
}

/* Progresses the context once; the caller is inside. */
static gyre_status progress(gyre_comm *comm, bool *moved_p)
{
    gyre_status status = gy_check_comm(comm);
    if (status != GYRE_SUCCESS)
        return status;
    *moved_p |= gy_progress(comm->ctx);
    int64_t now = gy_now();
    if (now - comm->ctx->progressed_at > GY_MILLISECOND / 5)
        *moved_p |= gy_progress_slow(comm->ctx, now);
    return comm->ctx->closed ? comm->ctx->error.status : GYRE_SUCCESS;
}

gyre_status gyre_test(gyre_request **request)
{
    if (!request)
        return gy_check_none("%s: request is NULL", __func__);
    if (!*request)
        return GYRE_SUCCESS;
    if (is_stale(*request, __func__))
        return GYRE_INVALID_ARGUMENT;
    struct gyre_comm *comm = (*request)->comm;
    bool moved = false;
    if (!comm) /* it ended with its communicator */
        return take(request);
    gy_progress_enter(comm->ctx);
    gyre_status status = (*request)->complete ? GYRE_SUCCESS : progress(comm, &moved);
    if (status != GYRE_FORKED)
        status = (*request)->complete ? take(request) : GYRE_IN_PROGRESS;
    gy_progress_leave(comm->ctx);
    return status;
}

static bool is_complete(const void *request)
{
    return ((const struct gyre_request *)request)->complete;
}

/* Waits for a request that exists and is not stale. */
static gyre_status wait_for(gyre_request **request)
{
    struct gyre_comm *comm = (*request)->comm;
    if (!comm)
        return take(request);
    gy_progress_enter(comm->ctx);
    gyre_status status = GYRE_SUCCESS;
    if (!(*request)->complete && (status = gy_check_comm(comm)) != GYRE_FORKED)
        gy_wait_until(comm->ctx, is_complete, *request);
    if (status != GYRE_FORKED)
        status = take(request);
    gy_progress_leave(comm->ctx);
    return status;
}

gyre_status gyre_wait(gyre_request **request)
{
    if (!request)
        return gy_check_none("%s: request is NULL", __func__);
    if (!*request)
        return GYRE_SUCCESS;
    return is_stale(*request, __func__) ? GYRE_INVALID_ARGUMENT : wait_for(request);
}

/* ---- several at once ---- */

struct set {
    gyre_request **requests;
    size_t count;
};

static bool is_idle(const gyre_request *r)
{
    return !r || (r->persistent && !r->launched);
}

/* A stale request is not in flight: the wait for it says so. */
static bool is_under_way(const gyre_request *r)
{
    return r && gy_handle_lives(r, GY_HANDLE_REQUEST) && !r->collected && !is_idle(r) && r->comm && !r->complete;
}

/* Returns a communicator of the requests in flight; NULL: none is. *several_p: they belong to several worlds. */
static gyre_comm *comm_of(const struct set *set, bool *several_p)
{
    gyre_comm *comm = NULL;
    *several_p = false;
    for (size_t i = 0; i < set->count; i++) {
        const gyre_request *r = set->requests[i];
        if (!is_under_way(r))
            continue;
        *several_p = *several_p || (comm && comm->ctx != r->comm->ctx);
        comm = r->comm;
    }
    return comm;
}

/* True if any of the requests in flight has completed. */
static bool any_complete(const void *what)
{
    const struct set *set = what;
    for (size_t i = 0; i < set->count; i++)
        if (!is_idle(set->requests[i]) && set->requests[i]->complete)
            return true;
    return false;
}

/* One thread progresses several worlds: one round over them, and a pause after fruitless rounds. */
static gyre_status progress_all(const struct set *set, unsigned *rounds)
{
    struct gy_context *last = NULL;
    gyre_status status = GYRE_SUCCESS;
    bool moved = false;
    for (size_t i = 0; i < set->count; i++) {
        gyre_request *r = set->requests[i];
        if (!is_under_way(r) || r->comm->ctx == last)
            continue;
        last = r->comm->ctx;
        gy_progress_enter(last);
        if (progress(r->comm, &moved) == GYRE_FORKED)
            status = GYRE_FORKED;
        gy_progress_leave(last);
    }
    *rounds = moved ? 0 : *rounds + 1;
    if (*rounds > PATIENCE)
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    else if (!moved)
        sched_yield();
    return status;
}

/* Waits until one of the set has completed. Returns false if none is in flight, or this process may not progress
 * them (*status_p). */
static bool wait_for_one(const struct set *set, gyre_status *status_p)
{
    unsigned rounds = 0;
    *status_p = GYRE_SUCCESS;
    while (!any_complete(set)) {
        bool several;
        gyre_comm *comm = comm_of(set, &several);
        if (!comm) /* a progress thread may have completed the last one since */
            return any_complete(set);
        if (several) {
            *status_p = progress_all(set, &rounds);
        } else {
            struct gy_context *ctx = comm->ctx;
            gy_progress_enter(ctx);
            if (gy_check_comm(comm) == GYRE_FORKED)
                *status_p = GYRE_FORKED;
            else
                gy_wait_until(ctx, any_complete, set);
            gy_progress_leave(ctx);
        }
        if (*status_p != GYRE_SUCCESS)
            return false;
    }
    return true;
}

static bool any_stale(gyre_request *const *requests, size_t count, const char *function)
{
    for (size_t i = 0; i < count; i++)
        if (is_stale(requests[i], function))
            return true;
    return false;
}

static void note_first(gyre_status *first, gyre_status status)
{
    if (*first == GYRE_SUCCESS)
        *first = status;
}

static inline bool has_ended(const gyre_request *r)
{
    return r && gy_handle_lives(r, GY_HANDLE_REQUEST) && !r->collected && r->complete && r->comm;
}

/* Collects a request. The caller is inside; most requests hold nothing. Another thread may have destroyed the
 * communicator before that. */
static inline gyre_status take_of(struct gy_context *ctx, gyre_request **request)
{
    gyre_request *r = *request;
    if (!r->comm || r->comm->attachment || r->persistent || !r->light || r->orphaned)
        return take(request);
    *request = NULL;
    gy_request_rest(ctx, r);
    return r->status;
}

/* Collects the complete requests of one world from here on: one lock serves them all. Returns the place of the first
 * that is not complete. */
static size_t take_ended(const struct set *set, size_t i, gyre_status *first)
{
    struct gyre_comm *comm = i < set->count && has_ended(set->requests[i]) ? set->requests[i]->comm : NULL;
    if (!comm)
        return i;
    struct gy_context *ctx = comm->ctx; /* outlives the requests: a world does not end with a caller inside */
    gy_progress_enter(ctx);
    do
        note_first(first, take_of(ctx, &set->requests[i++]));
    while (i < set->count && has_ended(set->requests[i]) && set->requests[i]->comm->ctx == ctx);
    gy_progress_leave(ctx);
    return i;
}

gyre_status gyre_wait_all(gyre_request **requests, size_t count)
{
    if (count > 0 && !requests)
        return gy_check_none("gyre_wait_all: requests is NULL");
    gyre_status first = GYRE_SUCCESS;
    struct set set = {requests, count};
    bool several = true; /* the rest may belong to several worlds; not checked while all are complete */
    unsigned rounds = 0;
    for (size_t i = 0; (i = take_ended(&set, i, &first)) < count; i++) {
        if (!requests[i])
            continue;
        if (is_stale(requests[i], __func__)) {
            note_first(&first, GYRE_INVALID_ARGUMENT);
            continue;
        }
        while (several && !requests[i]->complete && comm_of(&set, &several) && several)
            if (progress_all(&set, &rounds) != GYRE_SUCCESS)
                return GYRE_FORKED;
        note_first(&first, wait_for(&requests[i]));
    }
    return first;
}

gyre_status gyre_wait_any(gyre_request **requests, size_t count, ptrdiff_t *index_p)
{
    if ((count > 0 && !requests) || !index_p)
        return gy_check_none("gyre_wait_any: %s is NULL", index_p ? "requests" : "index_p");
    if (any_stale(requests, count, __func__))
        return GYRE_INVALID_ARGUMENT;
    struct set set = {requests, count};
    gyre_status status;
    *index_p = -1;
    if (!wait_for_one(&set, &status))
        return status;
    size_t i = 0;
    while (is_idle(requests[i]) || !requests[i]->complete)
        i++;
    *index_p = (ptrdiff_t)i;
    return gyre_wait(&requests[i]);
}

gyre_status gyre_wait_some(gyre_request **requests, size_t count, size_t *indices, size_t *completed_p)
{
    if ((count > 0 && (!requests || !indices)) || !completed_p)
        return gy_check_none("gyre_wait_some: requests, indices or completed_p is NULL");
    if (any_stale(requests, count, __func__))
        return GYRE_INVALID_ARGUMENT;
    struct set set = {requests, count};
    gyre_status first = GYRE_SUCCESS;
    *completed_p = 0;
    if (!wait_for_one(&set, &first))
        return first;
    for (size_t i = 0; i < count; i++) {
        if (is_idle(requests[i]) || !requests[i]->complete)
            continue;
        indices[(*completed_p)++] = i;
        gyre_status status = gyre_wait(&requests[i]);
        if (first == GYRE_SUCCESS)
            first = status;
    }
    return first;
}

/* ---- persistent ones ---- */

/* Most often nothing has failed. */
static gyre_status check_start(struct gyre_comm *comm)
{
    if (gy_call_cache_is_usual(comm->ctx) && comm->ended.status == GYRE_SUCCESS)
        return GYRE_SUCCESS;
    gyre_status status = gy_check_comm(comm);
    if (status != GYRE_SUCCESS && status != GYRE_FORKED)
        gy_uniform_refuse(comm, false);
    if (status == GYRE_SUCCESS && comm->ended.status != GYRE_SUCCESS)
        status = gy_comm_end_refuse(comm);
    return status;
}

gyre_status gyre_start(gyre_request *request)
{
    if (!request)
        return gy_check_none("gyre_start: the request is NULL");
    if (is_stale(request, __func__))
        return GYRE_INVALID_ARGUMENT;
    if (!request->persistent || !request->comm)
        return gy_check_none(request->comm ? "gyre_start: the request is not persistent"
                                           : "gyre_start: the request's communicator was destroyed");
    struct gyre_comm *comm = request->comm;
    gy_progress_enter(comm->ctx);
    gyre_status status = check_start(comm);
    if (status == GYRE_SUCCESS && request->launched)
        status = gy_check_fail(comm, GYRE_INVALID_ARGUMENT,
                               "the request is under way: wait for it before it is started again");
    if (status == GYRE_SUCCESS && comm->attachment)
        status = gy_device_request_start(comm, request);
    if (status == GYRE_SUCCESS)
        gy_request_restart(request);
    gy_progress_leave(comm->ctx);
    return status;
}

gyre_status gyre_request_free(gyre_request **request)
{
    if (!request)
        return gy_check_none("gyre_request_free: request is NULL");
    gyre_request *r = *request;
    if (!r)
        return GYRE_SUCCESS;
    if (is_stale(r, __func__))
        return GYRE_INVALID_ARGUMENT;
    if (!r->persistent)
        return gy_check_none("gyre_request_free: the request is not persistent: wait for it, which frees it");
    struct gyre_comm *comm = r->comm;
    gyre_status status = GYRE_SUCCESS;
    if (comm)
        gy_progress_enter(comm->ctx);
    if (!r->launched || r->complete) {
        *request = NULL;
        if (comm && comm->attachment)
            gy_device_request_free(comm, r);
        gy_request_recycle(r);
    } else {
        status = gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "the request is under way: wait for it before it is freed");
    }
    if (comm)
        gy_progress_leave(comm->ctx);
    return status;
}

gyre_status gyre_progress(gyre_comm *comm)
{
    if (!gy_check_lives(comm, __func__))
        return GYRE_INVALID_ARGUMENT;
    gy_progress_enter(comm->ctx);
    bool moved = false;
    gyre_status status = progress(comm, &moved);
    gy_progress_leave(comm->ctx);
    return status;
}
