/* The collective and point-to-point calls. Each is one row, of its parameters and the call that they make. The three
 * forms, blocking, `_start` and `_init`, follow from it. */
#include "api/call_group.h"
#include "api/check.h"
#include "collectives/call/blocking.h"
#include "collectives/call/call_cache_inline.h"
#include "collectives/call/launch.h"
#include "collectives/device/device_request.h"

typedef gyre_status (*make_func)(struct gyre_comm *comm, const struct gy_call *call, struct gyre_request **request_p);

static bool may_make(const char *function, gyre_comm *comm, gyre_request **request_p)
{
    if (!gy_check_lives(comm, function))
        return false;
    if (!request_p)
        gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "%s: request_p is NULL", function);
    return request_p != NULL;
}

static gyre_status make_inside(gyre_comm *comm, const struct gy_call *call, make_func how, gyre_request **request_p)
{
    gy_exchange_own(comm, call);
    gy_exchange_expect(comm, call);
    gyre_status status = gy_check_entry(comm, call, false);
    return status == GYRE_SUCCESS ? how(comm, call, request_p) : status;
}

/* The arguments are those of the caller until they have been checked. */
static gyre_status check_alone(gyre_comm *comm, const struct gy_call *call, bool blocks)
{
    gy_progress_enter(comm->ctx);
    gyre_status status = gy_check_entry(comm, call, blocks);
    gy_progress_leave(comm->ctx);
    return status;
}

/* A request on memory of a device is one on the staged operands. */
static __attribute__((noinline)) gyre_status make_on_device(gyre_comm *comm, const struct gy_call *call, make_func how,
                                                            gyre_request **request_p)
{
    struct gy_staged_call staged;
    gyre_status status = check_alone(comm, call, false);
    if (status == GYRE_SUCCESS)
        status = gy_device_call_begin(comm, call, &staged);
    if (status != GYRE_SUCCESS)
        return status;
    gy_progress_enter(comm->ctx);
    status = make_inside(comm, &staged.staged, how, request_p);
    gy_progress_leave(comm->ctx);
    if (status == GYRE_SUCCESS && gy_device_request_add(comm, *request_p, &staged))
        return GYRE_SUCCESS;
    return gy_device_call_end(comm, &staged, status);
}

static gyre_status keep(const char *function, gyre_comm *comm, const struct gy_call *call, gyre_request **request_p)
{
    if (!may_make(function, comm, request_p))
        return GYRE_INVALID_ARGUMENT;
    if (comm->attachment && gy_device_call_is(comm, call))
        return make_on_device(comm, call, gy_request_keep, request_p);
    gy_progress_enter(comm->ctx);
    gyre_status status = make_inside(comm, call, gy_request_keep, request_p);
    gy_progress_leave(comm->ctx);
    return status;
}

/* Inlined into each function; rare parts are out of line, as in run(): see call_cache_inline.h. */
static inline __attribute__((always_inline)) gyre_status start(const char *function, gyre_comm *comm,
                                                               const struct gy_call *call, gyre_request **request_p)
{
    if (!may_make(function, comm, request_p))
        return GYRE_INVALID_ARGUMENT;
    if (__builtin_expect(comm->attachment != NULL, false)) {
        const struct gy_call written = *call; /* a call whose address is taken would be written to memory always */
        if (gy_device_call_is(comm, &written))
            return make_on_device(comm, &written, gy_request_start, request_p);
    }
    gyre_status status = GYRE_SUCCESS;
    gy_progress_enter(comm->ctx);
    if (!gy_call_cache_start(comm, call, request_p)) {
        const struct gy_call written = *call;
        status = make_inside(comm, &written, gy_request_start, request_p);
    }
    gy_progress_leave(comm->ctx);
    return status;
}

static gyre_status run_in_group(const char *function, gyre_comm *comm, const struct gy_call *call)
{
    gyre_request *request = NULL;
    gyre_status started = gy_call_group_reserve() ? start(function, comm, call, &request) : GYRE_NO_MEMORY;
    if (started == GYRE_SUCCESS)
        gy_call_group_add(request);
    return started;
}

static gyre_status run_inside(gyre_comm *comm, const struct gy_call *call)
{
    gyre_status status;
    if (gy_call_cache_call(comm, call, &status))
        return status;
    gy_exchange_own(comm, call);
    gy_exchange_expect(comm, call);
    status = gy_check_entry(comm, call, true);
    return status == GYRE_SUCCESS ? gy_run(comm, call) : status;
}

static __attribute__((noinline)) gyre_status run_on_device(gyre_comm *comm, const struct gy_call *call)
{
    struct gy_staged_call staged;
    gyre_status status = check_alone(comm, call, true);
    if (status == GYRE_SUCCESS)
        status = gy_device_call_begin(comm, call, &staged);
    if (status != GYRE_SUCCESS)
        return status;
    gy_progress_enter(comm->ctx);
    status = run_inside(comm, &staged.staged);
    gy_progress_leave(comm->ctx);
    return gy_device_call_end(comm, &staged, status);
}

/* Inlined, too. */
static inline __attribute__((always_inline)) gyre_status run(const char *function, gyre_comm *comm,
                                                             const struct gy_call *call)
{
    if (!gy_check_lives(comm, function))
        return GYRE_INVALID_ARGUMENT;
    if (gy_call_group_open()) {
        const struct gy_call written = *call;
        return run_in_group(function, comm, &written);
    }
    if (__builtin_expect(comm->attachment != NULL, false)) {
        const struct gy_call written = *call;
        if (gy_device_call_is(comm, &written))
            return run_on_device(comm, &written);
    }
    gyre_status status;
    gy_progress_enter(comm->ctx);
    if (!gy_call_cache_exchange(comm, call, &status)) {
        const struct gy_call written = *call;
        status = run_inside(comm, &written);
    }
    gy_progress_leave(comm->ctx);
    return status;
}

#define GY_CALL_FORMS(name, parameters, call)                                              \
    gyre_status gyre_##name(gyre_comm *comm, parameters)                                   \
    {                                                                                      \
        struct gy_call it = call;                                                          \
        return run(__func__, comm, &it);                                                   \
    }                                                                                      \
    gyre_status gyre_##name##_start(gyre_comm *comm, parameters, gyre_request **request_p) \
    {                                                                                      \
        struct gy_call it = call;                                                          \
        return start(__func__, comm, &it, request_p);                                      \
    }                                                                                      \
    gyre_status gyre_##name##_init(gyre_comm *comm, parameters, gyre_request **request_p)  \
    {                                                                                      \
        struct gy_call it = call;                                                          \
        return keep(__func__, comm, &it, request_p);                                       \
    }

#include "api/collective_calls.inc"

static const struct gy_call barrier_call = {.collective = GY_BARRIER, .dtype = GYRE_INT32};

gyre_status gyre_barrier(gyre_comm *comm)
{
    return run(__func__, comm, &barrier_call);
}

gyre_status gyre_barrier_start(gyre_comm *comm, gyre_request **request_p)
{
    return start(__func__, comm, &barrier_call, request_p);
}

gyre_status gyre_barrier_init(gyre_comm *comm, gyre_request **request_p)
{
    return keep(__func__, comm, &barrier_call, request_p);
}

/* Checks both before either is started: otherwise the started one would wait for the other. */
static gyre_status check_both(gyre_comm *comm, const struct gy_call *sends, const struct gy_call *receives)
{
    gy_progress_enter(comm->ctx);
    gyre_status status = gy_check_entry(comm, sends, true);
    if (status == GYRE_SUCCESS)
        status = gy_check_entry(comm, receives, true);
    if (status == GYRE_SUCCESS)
        status = gy_check_apart(comm, sends, receives);
    gy_progress_leave(comm->ctx);
    return status;
}

gyre_status gyre_sendrecv(gyre_comm *comm, const void *input, size_t input_count, int to, void *output,
                          size_t output_count, int from, gyre_dtype dtype)
{
    const struct gy_call sends = CALL(.collective = GY_SEND_TO, .input = input, .count = input_count, .dtype = dtype,
                                      .root = to),
                         receives = CALL(.collective = GY_RECEIVE_FROM, .output = output, .count = output_count,
                                         .dtype = dtype, .root = from);
    if (!gy_check_lives(comm, __func__))
        return GYRE_INVALID_ARGUMENT;
    gyre_status status = check_both(comm, &sends, &receives);
    if (status != GYRE_SUCCESS)
        return status;
    gyre_group_begin();
    gyre_status sent = gyre_send(comm, input, input_count, dtype, to);
    gyre_status received = sent == GYRE_SUCCESS ? gyre_recv(comm, output, output_count, dtype, from) : sent;
    gyre_status ended = gyre_group_end();
    return received != GYRE_SUCCESS ? received : ended;
}
