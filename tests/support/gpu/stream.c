/* Streams and events of the stand-in: FIFOs of operations, run by the callers of the driver and by one thread. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "internal.h"

enum kind { COPY, SET8, SET32, RECORD, WAIT_EVENT, WAIT_VALUE, WRITE_VALUE, HOST, LAUNCH };
struct operation {
    struct operation *next;
    enum kind kind;
    unsigned long long order; /* of the call, over all streams */
    gy_cu_address to, from;
    size_t bytes;
    unsigned value, flags;
    struct CUevent_st *event;
    unsigned long long ticket; /* of the event */
    void (*host)(void *);
    void *user;
    const struct gy_gpu_kernel *kernel;
    unsigned grid[3], block[3];
    void *parameters[16];
};
struct CUstream_st {
    struct CUstream_st *next;
    struct CUctx_st *context;
    struct operation *head, **tail;
    bool blocking; /* ordered with the legacy stream of its context */
    bool running, dead;
    uint64_t launch; /* under way on fibres; 0: none */
};
struct CUevent_st {
    struct CUevent_st *next;
    unsigned long long recorded, done;
    bool dead;
};
static struct CUstream_st *streams; /* freed by the end of the process: operations may name them */
static struct CUevent_st *events;
static unsigned long long orders;
static unsigned seed_state;
static bool held;

static unsigned draw(unsigned below)
{
    seed_state = seed_state * 1664525 + 1013904223;
    return (seed_state >> 8) % below;
}

void gy_gpu_hold(bool hold)
{
    gy_gpu_lock();
    held = hold;
    gy_gpu_unlock();
}

static struct CUstream_st *make_stream(struct CUctx_st *context, bool blocking)
{
    struct CUstream_st *stream = calloc(1, sizeof(*stream));

    if (!stream)
        abort();
    *stream = (struct CUstream_st){.next = streams, .context = context, .blocking = blocking};
    stream->tail = &stream->head;
    streams = stream;
    return stream;
}

/* The legacy stream runs after what blocking streams were given before, and they after it. */
static bool legacy_allows(const struct CUstream_st *stream)
{
    const struct CUstream_st *null = stream->context->null;

    if (!stream->blocking)
        return true;
    if (stream != null)
        return !null->head || null->head->order > stream->head->order;
    for (const struct CUstream_st *other = streams; other; other = other->next)
        if (other != stream && other->blocking && other->context == stream->context && other->head &&
            other->head->order < stream->head->order)
            return false;
    return true;
}

static bool is_ready(const struct CUstream_st *stream)
{
    const struct operation *head = stream->head;

    if (!head || stream->running || !legacy_allows(stream))
        return false;
    if (head->kind == WAIT_EVENT)
        return head->event->done >= head->ticket;
    if (head->kind != WAIT_VALUE)
        return true;
    const uint32_t *word = gy_gpu_bytes(head->to, sizeof(*word));
    uint32_t now = word ? __atomic_load_n(word, __ATOMIC_ACQUIRE) : head->value;
    return head->flags == GY_CU_WAIT_EQ ? now == head->value : (int32_t)(now - head->value) >= 0;
}

static gy_cu_result set(const struct operation *operation, unsigned width)
{
    unsigned char *to = gy_gpu_bytes(operation->to, operation->bytes * width);

    if (!to)
        return GY_CU_ILLEGAL_ADDRESS;
    for (size_t i = 0; i < operation->bytes; i++)
        memcpy(to + i * width, &operation->value, width);
    return GY_CU_SUCCESS;
}

static gy_cu_result copy(const struct operation *operation)
{
    void *to = gy_gpu_bytes(operation->to, operation->bytes);
    const void *from = gy_gpu_bytes(operation->from, operation->bytes);

    if (!to || !from)
        return GY_CU_ILLEGAL_ADDRESS;
    memmove(to, from, operation->bytes);
    return GY_CU_SUCCESS;
}

static gy_cu_result write_value(const struct operation *operation)
{
    uint32_t *to = gy_gpu_bytes(operation->to, sizeof(*to));

    if (!to)
        return GY_CU_ILLEGAL_ADDRESS;
    __atomic_store_n(to, operation->value, __ATOMIC_RELEASE);
    return GY_CU_SUCCESS;
}

static gy_cu_result run(struct CUctx_st *context, struct operation *operation)
{
    switch (operation->kind) {
    case COPY: return copy(operation);
    case SET8: return set(operation, 1);
    case SET32: return set(operation, 4);
    case WRITE_VALUE: return write_value(operation);
    case RECORD:
        if (operation->event->done < operation->ticket)
            operation->event->done = operation->ticket;
        return GY_CU_SUCCESS;
    case LAUNCH:
        return operation->kernel->run(context->device, operation->grid, operation->block, (unsigned)operation->bytes,
                                      operation->parameters);
    case HOST: operation->host(operation->user); return GY_CU_SUCCESS;
    default: return GY_CU_SUCCESS;
    }
}

static void drop(struct operation *operation)
{
    for (int i = 0; i < 16; i++)
        free(operation->parameters[i]);
    free(operation);
}

static void end_operation(struct CUstream_st *stream, gy_cu_result result)
{
    struct operation *operation = stream->head;

    if (result && !stream->context->sticky) {
        stream->context->sticky = result;
        gy_gpu_kernels_drop(stream->context->device);
    }
    stream->running = false;
    stream->head = operation->next;
    if (!stream->head)
        stream->tail = &stream->head;
    drop(operation);
}

/* Launches that are under way go on. Returns whether anything has changed. */
static bool run_launches(void)
{
    bool any = false;

    for (const struct CUstream_st *stream = streams; stream; stream = stream->next)
        any |= stream->launch != 0;
    if (!any)
        return false;
    bool changed = gy_gpu_kernels_run(draw(UINT16_MAX));
    for (struct CUstream_st *stream = streams; stream; stream = stream->next)
        if (stream->launch && gy_gpu_kernel_over(stream->launch)) {
            stream->launch = 0;
            end_operation(stream, GY_CU_SUCCESS);
            changed = true;
        }
    return changed;
}

static uint64_t begin_launch(const struct CUctx_st *context, const struct operation *operation)
{
    return gy_gpu_kernel_begin(context->device, operation->kernel, operation->grid[0], operation->block[0],
                               operation->parameters[0]);
}

bool gy_gpu_step(void)
{
    if (draw(2) && run_launches())
        return true;
    struct CUstream_st *chosen = NULL;
    unsigned ready = 0;

    for (struct CUstream_st *stream = streams; stream; stream = stream->next)
        if (is_ready(stream) && draw(++ready) == 0)
            chosen = stream;
    if (!chosen)
        return run_launches();
    struct operation *operation = chosen->head;
    const bool skipped = chosen->context->sticky && operation->kind != RECORD;
    chosen->running = true;
    if (operation->kind == LAUNCH && operation->kernel->body && !skipped)
        chosen->launch = begin_launch(chosen->context, operation);
    else
        end_operation(chosen, skipped ? GY_CU_SUCCESS : run(chosen->context, operation));
    return true;
}

/* GYRE_TEST_GPU_SLOW: operations run only in calls that wait, and by the thread, so that the host runs ahead. */
static bool slow;

void gy_gpu_run_after_call(void)
{
    if (!slow)
        gy_gpu_run_some();
}

void gy_gpu_run_some(void)
{
    for (unsigned steps = draw(4); steps && !held; steps--)
        gy_gpu_step();
}

static void *run_always(void *unused)
{
    const struct timespec pause = {.tv_nsec = 200000};

    for (;; nanosleep(&pause, NULL)) {
        gy_gpu_lock();
        gy_gpu_run_some();
        gy_gpu_unlock();
    }
    return unused;
}

void gy_gpu_streams_open(unsigned seed)
{
    pthread_t thread;

    seed_state = seed;
    slow = getenv("GYRE_TEST_GPU_SLOW") != NULL;
    for (int i = 0; i < gy_gpu_count; i++)
        gy_gpu_devices[i].null = make_stream(&gy_gpu_devices[i], true);
    if (pthread_create(&thread, NULL, run_always, NULL) == 0)
        pthread_detach(thread);
}

static struct CUstream_st *per_thread(struct CUctx_st *context)
{
    static _Thread_local struct CUstream_st *own[GY_GPU_MOST];

    if (!own[context->device])
        own[context->device] = make_stream(context, true);
    return own[context->device];
}

/* The stream behind a handle: 0 and 1 are the legacy stream of the current context, 2 that of the thread. */
static gy_cu_result enter_stream(struct CUstream_st **stream_p)
{
    struct CUctx_st *context;
    gy_cu_result result = gy_gpu_enter_context(&context);

    if (result == GY_CU_SUCCESS && (uintptr_t)*stream_p <= 1)
        *stream_p = context->null;
    else if (result == GY_CU_SUCCESS && (uintptr_t)*stream_p == 2)
        *stream_p = per_thread(context);
    if (result == GY_CU_SUCCESS && (*stream_p)->dead)
        return GY_CU_INVALID_HANDLE;
    return result ? result : (*stream_p)->context->sticky;
}

/* A word that a stream waits for or writes is one that the driver knows. */
static bool is_bad_word(const struct operation *operation)
{
    return (operation->kind == WAIT_VALUE || operation->kind == WRITE_VALUE) &&
           (operation->to % sizeof(uint32_t) || !gy_gpu_find(operation->to));
}

static gy_cu_result queue(struct CUstream_st *stream, struct operation wanted)
{
    gy_cu_result result = enter_stream(&stream);

    if (!result && is_bad_word(&wanted))
        result = GY_CU_INVALID_VALUE;
    struct operation *operation = result ? NULL : malloc(sizeof(*operation));

    if (!operation) {
        for (int i = 0; i < 16; i++)
            free(wanted.parameters[i]);
        return gy_gpu_leave(result ? result : GY_CU_OUT_OF_MEMORY);
    }
    *operation = wanted;
    operation->order = ++orders;
    if (wanted.kind == RECORD)
        operation->ticket = ++wanted.event->recorded;
    if (wanted.kind == WAIT_EVENT) /* what has been recorded by now; an event never recorded is no wait */
        operation->ticket = wanted.event->recorded;
    *stream->tail = operation;
    stream->tail = &operation->next;
    return gy_gpu_leave(GY_CU_SUCCESS);
}

gy_cu_result cuMemcpyAsync(gy_cu_address to, gy_cu_address from, size_t bytes, gy_cu_stream stream)
{
    return queue(stream, (struct operation){.kind = COPY, .to = to, .from = from, .bytes = bytes});
}

gy_cu_result cuMemsetD8Async(gy_cu_address to, unsigned char value, size_t count, gy_cu_stream stream)
{
    return queue(stream, (struct operation){.kind = SET8, .to = to, .value = value, .bytes = count});
}

gy_cu_result cuMemsetD32Async(gy_cu_address to, unsigned value, size_t count, gy_cu_stream stream)
{
    return queue(stream, (struct operation){.kind = SET32, .to = to, .value = value, .bytes = count});
}

gy_cu_result cuStreamWaitEvent(gy_cu_stream stream, gy_cu_event event, unsigned flags)
{
    return queue(stream, (struct operation){.kind = WAIT_EVENT, .event = event, .flags = flags});
}

gy_cu_result cuStreamWaitValue32(gy_cu_stream stream, gy_cu_address at, uint32_t value, unsigned flags)
{
    return queue(stream, (struct operation){.kind = WAIT_VALUE, .to = at, .value = value, .flags = flags});
}

gy_cu_result cuStreamWriteValue32(gy_cu_stream stream, gy_cu_address to, uint32_t value, unsigned flags)
{
    return queue(stream, (struct operation){.kind = WRITE_VALUE, .to = to, .value = value, .flags = flags});
}

gy_cu_result cuEventRecord(gy_cu_event event, gy_cu_stream stream)
{
    return queue(stream, (struct operation){.kind = RECORD, .event = event});
}

gy_cu_result cuLaunchHostFunc(gy_cu_stream stream, void (*host)(void *), void *user)
{
    return queue(stream, (struct operation){.kind = HOST, .host = host, .user = user});
}

gy_cu_result cuLaunchKernel(gy_cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned x,
                            unsigned y, unsigned z, unsigned shared, gy_cu_stream stream, void **parameters,
                            void **extra)
{
    struct operation launch = {.kind = LAUNCH,
                               .kernel = (const struct gy_gpu_kernel *)function,
                               .bytes = shared,
                               .grid = {grid_x, grid_y, grid_z},
                               .block = {x, y, z}};

    const bool on_fibres = launch.kernel && launch.kernel->body;
    const bool bad = !launch.kernel || !grid_x || !grid_y || !grid_z || !x || !y || !z || x * y * z > 1024 ||
                     (on_fibres && (grid_y * grid_z * y * z != 1 || x > GY_GPU_THREADS_MOST || shared || !parameters));

    (void)extra;
    if (bad) {
        gy_cu_result result = gy_gpu_enter();
        return gy_gpu_leave(result ? result : GY_CU_INVALID_VALUE);
    }
    for (unsigned i = 0; i < launch.kernel->parameters; i++) {
        launch.parameters[i] = malloc(launch.kernel->sizes[i]);
        if (!launch.parameters[i])
            abort();
        memcpy(launch.parameters[i], parameters[i], launch.kernel->sizes[i]);
    }
    return queue(stream, launch);
}

gy_cu_result cuStreamCreate(gy_cu_stream *stream_p, unsigned flags)
{
    struct CUctx_st *context;
    gy_cu_result result = gy_gpu_enter_context(&context);

    if (result == GY_CU_SUCCESS)
        *stream_p = make_stream(context, !(flags & GY_CU_STREAM_NON_BLOCKING));
    return gy_gpu_leave(result);
}

gy_cu_result cuStreamIsCapturing(gy_cu_stream stream, unsigned *status_p)
{
    gy_cu_result result = enter_stream(&stream);

    *status_p = GY_CU_CAPTURE_NONE; /* the stand-in has no capture */
    return gy_gpu_leave(result);
}

gy_cu_result cuStreamDestroy(gy_cu_stream stream)
{
    gy_cu_result result = gy_gpu_enter();

    if (result == GY_CU_SUCCESS && (!stream || stream->dead))
        result = GY_CU_INVALID_HANDLE;
    if (result == GY_CU_SUCCESS)
        stream->dead = true; /* what it holds is still done */
    return gy_gpu_leave(result);
}

gy_cu_result cuStreamQuery(gy_cu_stream stream)
{
    gy_cu_result result = enter_stream(&stream);

    return gy_gpu_leave(result == GY_CU_SUCCESS && stream->head ? GY_CU_NOT_READY : result);
}

/* One step while the lock is held, then others may enter: a value may be written by another thread. */
static void step_and_yield(void)
{
    bool stepped = gy_gpu_step();

    gy_gpu_unlock();
    if (!stepped)
        sched_yield();
    gy_gpu_lock();
}

gy_cu_result cuStreamSynchronize(gy_cu_stream stream)
{
    gy_cu_result result = enter_stream(&stream);

    while (result == GY_CU_SUCCESS && stream->head)
        step_and_yield();
    return gy_gpu_leave(result ? result : stream->context->sticky);
}

gy_cu_result cuEventCreate(gy_cu_event *event_p, unsigned flags)
{
    struct CUctx_st *context;
    gy_cu_result result = gy_gpu_enter_context(&context);
    struct CUevent_st *event = result ? NULL : calloc(1, sizeof(*event));

    (void)flags;
    if (!event)
        return gy_gpu_leave(result ? result : GY_CU_OUT_OF_MEMORY);
    event->next = events;
    events = event;
    *event_p = event;
    return gy_gpu_leave(GY_CU_SUCCESS);
}

gy_cu_result cuEventDestroy(gy_cu_event event)
{
    gy_cu_result result = gy_gpu_enter();

    if (result == GY_CU_SUCCESS && (!event || event->dead))
        result = GY_CU_INVALID_HANDLE;
    if (result == GY_CU_SUCCESS)
        event->dead = true;
    return gy_gpu_leave(result);
}

gy_cu_result cuEventQuery(gy_cu_event event)
{
    gy_cu_result result = gy_gpu_enter();

    return gy_gpu_leave(result == GY_CU_SUCCESS && event->done < event->recorded ? GY_CU_NOT_READY : result);
}

gy_cu_result cuEventSynchronize(gy_cu_event event)
{
    gy_cu_result result = gy_gpu_enter();
    unsigned long long wanted = result ? 0 : event->recorded;

    while (result == GY_CU_SUCCESS && event->done < wanted)
        step_and_yield();
    return gy_gpu_leave(result);
}
