/* Calls without a stream on device memory: device_request.h. */
#include "collectives/device/device_request.h"

#include "collectives/engine/operands.h"
#include "core/mem.h"
#include "cuda/pointer.h"

struct gy_device_request {
    struct gy_device_request *next;
    const struct gyre_request *request;
    struct gy_staged_call call;
};

static bool is_on_device(const struct gyre_comm *comm, const struct gy_call *call, bool input)
{
    const void *operand = input ? call->input : call->output;
    return operand && gy_part_here(comm, call, input) != GY_PART_NONE &&
           gy_pointer_look(operand).kind == GY_POINTER_DEVICE;
}

bool gy_device_call_is(const struct gyre_comm *comm, const struct gy_call *call)
{
    return comm->attachment->has_device && (is_on_device(comm, call, true) || is_on_device(comm, call, false));
}

static gyre_status refuse(struct gyre_comm *comm, gy_cu_result result, const char *what)
{
    char text[300];
    comm->error.status = GYRE_SUCCESS; /* the communicator stays usable: only its message is set */
    gy_driver_sentence(comm->attachment->device.driver, result, what, text, sizeof(text));
    (void)gy_stream_worker_check(&comm->attachment->worker); /* reports a failed device: others must not wait */
    gy_error_set(&comm->error, result == GY_CU_OUT_OF_MEMORY ? GYRE_NO_MEMORY : GYRE_SYSTEM, -1, "rank %d, GPU %d: %s",
                 comm->rank, comm->attachment->device.number, text);
    gyre_status status = comm->error.status;
    comm->error.status = GYRE_SUCCESS;
    return status;
}

/* Copies an operand in one direction, and waits for the end of the copy. */
static gy_cu_result copy(const struct gyre_comm *comm, const struct gy_staged_call *call, bool in)
{
    struct gy_attachment *attachment = comm->attachment;
    gy_cu_result result = in ? gy_staged_copy_in(call, &attachment->staging, comm, attachment->copies)
                             : gy_staged_copy_out(call, &attachment->staging, comm, attachment->copies);
    return result == GY_CU_SUCCESS ? attachment->device.driver->stream_synchronize(attachment->copies) : result;
}

static void drop(struct gy_staged_call *call)
{
    gy_staging_give(call->block);
    gy_staged_close(call);
}

gyre_status gy_device_call_begin(struct gyre_comm *comm, const struct gy_call *user, struct gy_staged_call *call)
{
    struct gy_attachment *attachment = comm->attachment;
    gy_cu_result result = gy_device_enter(&attachment->device);
    if (result != GY_CU_SUCCESS)
        return refuse(comm, result, "cuCtxPushCurrent");
    result = gy_staged_open(call, &attachment->staging, comm, user);
    if (result == GY_CU_SUCCESS) {
        result = copy(comm, call, true);
        if (result != GY_CU_SUCCESS)
            drop(call);
    }
    gy_device_leave(&attachment->device);
    return result == GY_CU_SUCCESS ? GYRE_SUCCESS : refuse(comm, result, "copying the input");
}

static gyre_status copy_output(struct gyre_comm *comm, const struct gy_staged_call *call)
{
    gy_cu_result result = gy_device_enter(&comm->attachment->device);
    if (result == GY_CU_SUCCESS) {
        result = copy(comm, call, false);
        gy_device_leave(&comm->attachment->device);
    }
    return result == GY_CU_SUCCESS ? GYRE_SUCCESS : refuse(comm, result, "copying the output");
}

gyre_status gy_device_call_end(struct gyre_comm *comm, struct gy_staged_call *call, gyre_status status)
{
    if (status == GYRE_SUCCESS)
        status = copy_output(comm, call);
    drop(call);
    return status;
}

/* ---- Requests ---- */

static struct gy_device_request **find(struct gyre_comm *comm, const struct gyre_request *request)
{
    struct gy_device_request **at = &comm->attachment->requests;
    while (*at && (*at)->request != request)
        at = &(*at)->next;
    return at;
}

static void free_at(struct gy_device_request **at)
{
    struct gy_device_request *gone = *at;
    *at = gone->next;
    drop(&gone->call);
    gy_free(gone);
}

bool gy_device_request_add(struct gyre_comm *comm, const struct gyre_request *request,
                           const struct gy_staged_call *call)
{
    struct gy_device_request *bound = gy_alloc(sizeof(*bound));
    if (!bound)
        return false;
    *bound = (struct gy_device_request){comm->attachment->requests, request, *call};
    comm->attachment->requests = bound;
    return true;
}

gyre_status gy_device_request_start(struct gyre_comm *comm, const struct gyre_request *request)
{
    struct gy_device_request *bound = *find(comm, request);
    if (!bound)
        return GYRE_SUCCESS;
    gy_cu_result result = gy_device_enter(&comm->attachment->device);
    if (result == GY_CU_SUCCESS) {
        result = copy(comm, &bound->call, true);
        gy_device_leave(&comm->attachment->device);
    }
    return result == GY_CU_SUCCESS ? GYRE_SUCCESS : refuse(comm, result, "copying the input");
}

gyre_status gy_device_request_end(struct gyre_comm *comm, const struct gyre_request *request, gyre_status status)
{
    struct gy_device_request **at = find(comm, request);
    if (!*at)
        return status;
    if (status == GYRE_SUCCESS)
        status = copy_output(comm, &(*at)->call);
    if (!request->persistent)
        free_at(at);
    return status;
}

void gy_device_request_free(struct gyre_comm *comm, const struct gyre_request *request)
{
    struct gy_device_request **at = find(comm, request);
    if (*at)
        free_at(at);
}

void gy_device_requests_free(struct gy_attachment *attachment)
{
    while (attachment->requests)
        free_at(&attachment->requests);
}
