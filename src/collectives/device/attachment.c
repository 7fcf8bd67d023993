/* Attachment to a GPU: attachment.h. */
#include "collectives/device/attachment.h"

#include <stdio.h>

#include "collectives/call/blocking.h"
#include "collectives/device/arrangement.h"
#include "collectives/device/device_request.h"
#include "collectives/device/fused_call.h"
#include "collectives/device/mapper_attach.h"
#include "collectives/device/meeting.h"
#include "collectives/lifecycle/comm_close.h"
#include "collectives/lifecycle/split.h"
#include "core/log.h"
#include "core/mem.h"
#include "cuda/kernels/arguments.h"

static gyre_status open_stream(struct gy_attachment *attachment, char *why, size_t bytes)
{
    struct gy_device *device = &attachment->device;
    gy_cu_result result = gy_device_enter(device);
    if (result == GY_CU_SUCCESS) {
        result = device->driver->stream_create(&attachment->copies, GY_CU_STREAM_NON_BLOCKING);
        gy_device_leave(device);
    }
    if (result == GY_CU_SUCCESS)
        return GYRE_SUCCESS;
    gy_driver_sentence(device->driver, result, "cuStreamCreate", why, bytes);
    return GYRE_SYSTEM;
}

/* Finds the device of the current context, or the rank's number on its host modulo the number of devices. */
static gyre_status find_default(const struct gy_driver *driver, int local, int *number, char *why, size_t bytes)
{
    if (driver->context_device(number) == GY_CU_SUCCESS)
        return GYRE_SUCCESS;
    int devices = gy_device_count(why, bytes);
    if (devices == 0)
        return GYRE_UNSUPPORTED;
    *number = local % devices;
    return GYRE_SUCCESS;
}

static gyre_status find_current(const struct gy_driver *driver, int *number, char *why, size_t bytes)
{
    if (driver->context_device(number) == GY_CU_SUCCESS)
        return GYRE_SUCCESS;
    snprintf(why, bytes, "this thread has no current CUDA context: name the device");
    return GYRE_INVALID_ARGUMENT;
}

/* `local`: the rank's number among the ranks of its host. */
static gyre_status open_device(struct gy_attachment *attachment, int number, int local, char *why, size_t bytes)
{
    const struct gy_driver *driver = gy_driver_get(why, bytes);
    gyre_status status = GYRE_SUCCESS;
    if (!driver)
        return GYRE_UNSUPPORTED;
    if (number == GY_CURRENT_DEVICE)
        status = find_current(driver, &number, why, bytes);
    else if (number == GY_DEFAULT_DEVICE)
        status = find_default(driver, local, &number, why, bytes);
    if (status != GYRE_SUCCESS)
        return status;
    if (!gy_device_open(&attachment->device, driver, number, why, bytes))
        return GYRE_UNSUPPORTED;
    status = open_stream(attachment, why, bytes);
    if (status != GYRE_SUCCESS) {
        gy_device_close(&attachment->device);
        return status;
    }
    attachment->has_device = true;
    attachment->staging.device = &attachment->device;
    return GYRE_SUCCESS;
}

/* Gets the image of the kernels. Rank 0 also creates the meeting, which the other ranks may join. If there is no image,
 * calls are staged. */
static void open_kernels(const struct gyre_comm *comm, struct gy_attachment *attachment, struct gy_device_fact *fact)
{
    const char *setting = comm->ctx->config.cuda_kernels;
    const unsigned blocks = (unsigned)comm->ctx->config.cuda_blocks;
    fact->has_device = true;
    fact->uuid = attachment->device.uuid;
    attachment->image = gy_image_get(&attachment->device, setting, fact->why, sizeof(fact->why));
    fact->has_image = attachment->image != NULL;
    if (!attachment->image || comm->rank > 0 || comm->size > GY_GROUP_MOST)
        return;
    struct gy_image *image = gy_image_get(&attachment->device, setting, fact->why, sizeof(fact->why));
    if (image)
        attachment->meeting = gy_host_meeting_make(&attachment->device, image, comm->size, blocks, fact->why,
                                                   sizeof(fact->why));
    if (attachment->meeting)
        fact->meeting = gy_host_meeting_key(attachment->meeting);
}

static void leave_meeting(struct gy_attachment *attachment)
{
    if (attachment->meeting)
        gy_host_meeting_put(attachment->meeting);
    attachment->meeting = NULL;
}

static void close_device(struct gy_attachment *attachment)
{
    if (!attachment->has_device)
        return;
    const struct gy_driver *driver = attachment->device.driver;
    leave_meeting(attachment);
    gy_image_put(attachment->image);
    if (gy_device_enter(&attachment->device) == GY_CU_SUCCESS) {
        gy_mapper_detach(attachment->mapper);
        gy_ready_events_free(attachment);
        gy_staging_close(&attachment->staging);
        (void)driver->stream_destroy(attachment->copies);
        gy_device_leave(&attachment->device);
    }
    gy_device_close(&attachment->device);
}

static gyre_status failure_of(const struct gy_device_fact *fact)
{
    return gy_status_is_failure((uint32_t)fact->status) ? (gyre_status)fact->status : GYRE_PROTOCOL;
}

/* Exchanges the facts of all ranks. If a rank cannot use its device, returns the status of the lowest such rank. */
static gyre_status compare(struct gyre_comm *comm, const struct gy_device_fact *mine, struct gy_device_fact *all)
{
    const struct gy_call call = {
        .collective = GY_ALL_GATHER, .input = mine, .output = all, .count = sizeof(*mine), .dtype = GYRE_UINT8};
    gyre_status status = gy_run_own(comm, &call);
    for (int r = 0; status == GYRE_SUCCESS && r < comm->size; r++)
        if (all[r].status != GYRE_SUCCESS)
            status = gy_error_set(&comm->error, failure_of(&all[r]), -1, "rank %d cannot use its GPU: %.*s", r,
                                  (int)sizeof(all[r].why) - 1, all[r].why);
    return status;
}

/* Rank 0 has created the meeting, and cannot end it before the other ranks have found it: the next step, the
 * duplication of the communicator, is collective. */
static void find_meeting(const struct gyre_comm *comm, struct gy_attachment *attachment, uint64_t key)
{
    if (!attachment->meeting)
        attachment->meeting = gy_host_meeting_find(key);
    gy_log(GY_LOG_INFO, "communicator %u: calls on streams of %d ranks are one kernel on GPU %d, of %s", comm->id,
           comm->size, attachment->device.number, gy_image_file(attachment->image));
}

/* Chooses how calls on streams are executed. Collective; the caller holds the progress lock. */
static gyre_status choose_way(struct gyre_comm *comm, struct gy_attachment *attachment,
                              const struct gy_device_fact *all)
{
    char why[300] = "";
    gyre_status status = GYRE_SUCCESS;
    enum gy_way way = gy_arrangement_way(comm, all, why, sizeof(why));
    if (way == GY_WAY_FUSED) {
        find_meeting(comm, attachment, all[0].meeting);
        return GYRE_SUCCESS;
    }
    leave_meeting(attachment);
    if (way == GY_WAY_MAPPED)
        status = gy_mapper_attach(comm, &attachment->device, all, &attachment->mapper, why, sizeof(why));
    if (attachment->mapper)
        gy_log(GY_LOG_INFO, "communicator %u: calls on streams of %d ranks are kernels over mapped memory on %d GPUs",
               comm->id, comm->size, attachment->mapper->parts);
    else
        gy_log(GY_LOG_INFO, "communicator %u: calls on streams are staged through host memory: %s", comm->id, why);
    return status;
}

/* The caller holds the progress lock. all: memory for the facts of all ranks; NULL: there is none. */
static gyre_status join_inside(struct gyre_comm *comm, struct gy_attachment *attachment,
                               const struct gy_device_fact *mine, struct gy_device_fact *all)
{
    comm->error.status = GYRE_SUCCESS;
    if (comm->ctx->closed)
        return comm->ctx->error.status;
    if (!all) {
        const gyre_status shortage = gy_error_set(&comm->error, GYRE_NO_MEMORY, -1,
                                                  "out of memory for the devices of %d ranks", comm->size);
        gy_report_shortage(comm, shortage);
        return shortage;
    }
    gyre_status status = compare(comm, mine, all);
    if (status == GYRE_SUCCESS)
        status = choose_way(comm, attachment, all);
    return status == GYRE_SUCCESS ? gy_comm_divide(comm, 0, 0, 0, &attachment->traffic) : status;
}

/* The ranks exchange their facts. If each can use its device, they duplicate the communicator. */
static gyre_status join(struct gyre_comm *comm, struct gy_attachment *attachment, const struct gy_device_fact *mine)
{
    struct gy_device_fact *all = gy_alloc((size_t)comm->size * sizeof(*all));
    gy_progress_enter(comm->ctx);
    const gyre_status status = join_inside(comm, attachment, mine, all);
    gy_progress_leave(comm->ctx);
    gy_free(all);
    return status;
}

/* Starts the workers of all ranks, or of none. After a failure the duplicate is closed. */
static gyre_status start_worker(struct gyre_comm *comm, struct gy_attachment *attachment)
{
    struct gy_stream_worker *worker = &attachment->worker;
    const bool started = attachment->has_device &&
                         gy_stream_worker_open(worker, &attachment->device, attachment->copies, attachment->traffic);
    gy_progress_enter(comm->ctx);
    int lowest;
    gyre_status status = gy_arrangement_agree(comm, started || !attachment->has_device, &lowest);
    if (status == GYRE_SUCCESS && lowest < comm->size)
        status = gy_error_set(&comm->error, GYRE_SYSTEM, -1, "rank %d cannot start the thread for calls on streams",
                              lowest);
    gy_progress_leave(comm->ctx);
    if (status == GYRE_SUCCESS)
        return status;
    if (started)
        gy_stream_worker_stop(worker);
    gy_comm_close(attachment->traffic);
    if (started)
        gy_stream_worker_close(worker);
    return status;
}

static int number_on_host(const struct gyre_comm *comm)
{
    const struct gy_world *world = comm->ctx->world;
    return world->members[world->rank].local;
}

static void log_device(const struct gyre_comm *comm, const struct gy_attachment *attachment)
{
    const struct gy_device *device = &attachment->device;
    if (attachment->has_device)
        gy_log(GY_LOG_INFO, "rank %d, number %d on its host, is attached to GPU %d: %s, PCI %s", comm->rank,
               number_on_host(comm), device->number, device->name, device->pci);
    else
        gy_log(GY_LOG_INFO, "rank %d is attached to no GPU", comm->rank);
}

gyre_status gy_attach(struct gyre_comm *comm, int number)
{
    struct gy_device_fact fact;
    gy_device_fact_begin(&fact);
    struct gy_attachment *attachment = gy_alloc_zero(1, sizeof(*attachment));
    if (!attachment) {
        fact.status = GYRE_NO_MEMORY;
        snprintf(fact.why, sizeof(fact.why), "out of memory for the attachment");
    } else if (number != GY_NO_DEVICE) {
        fact.status = (int32_t)open_device(attachment, number, number_on_host(comm), fact.why, sizeof(fact.why));
        if (fact.status == GYRE_SUCCESS)
            open_kernels(comm, attachment, &fact);
    }
    struct gy_attachment none = {0};
    gyre_status status = join(comm, attachment ? attachment : &none, &fact);
    if (attachment && status == GYRE_SUCCESS)
        status = start_worker(comm, attachment);
    if (attachment && status == GYRE_SUCCESS) {
        comm->attachment = attachment;
        log_device(comm, attachment);
        return GYRE_SUCCESS;
    }
    if (attachment && attachment->meeting)
        gy_host_meeting_depart(attachment->meeting, comm->rank);
    if (attachment)
        close_device(attachment);
    gy_free(attachment);
    return status;
}

void gy_detach(struct gyre_comm *comm)
{
    struct gy_attachment *attachment = comm->attachment;
    if (!attachment)
        return;
    if (attachment->meeting)
        gy_host_meeting_depart(attachment->meeting, comm->rank);
    if (attachment->has_device)
        gy_stream_worker_stop(&attachment->worker);
    gy_comm_close(attachment->traffic);
    if (attachment->has_device)
        gy_stream_worker_close(&attachment->worker);
    gy_device_requests_free(attachment);
    close_device(attachment);
    comm->attachment = NULL;
    gy_free(attachment);
}

const char *gy_attachment_error(const struct gyre_comm *comm)
{
    const struct gy_attachment *attachment = comm->attachment;
    const bool failed = attachment && attachment->has_device &&
                        atomic_load_explicit(&attachment->worker.failed, memory_order_acquire);
    return failed ? attachment->worker.error.text : NULL; /* it does not change any more */
}
