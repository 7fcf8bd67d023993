/* Launches for ranks that share a GPU: launcher.h. */
#include "collectives/device/launcher.h"

#include <time.h>

#include "core/clock.h"
#include "core/dtype.h"
#include "core/mem.h"

enum { MEMORY_BYTES = 16384, LEAST_THREADS = 32, VECTOR_BYTES = 16, NO_KERNEL = -1 };
#define CLOSE_NS (200 * GY_MILLISECOND)
#define PAUSE_NS 50000

struct gy_launch_memory {
    struct gy_launch_memory *next;
    unsigned char *bytes;
};

static gy_cu_result failed(struct gy_launcher *launcher, gy_cu_result result, const char *what)
{
    if (result != GY_CU_SUCCESS)
        launcher->what = what;
    return result;
}

gy_cu_result gy_launcher_open(struct gy_launcher *launcher, const struct gy_device *device, struct gy_image *image,
                              unsigned blocks_most)
{
    const struct gy_driver *driver = device->driver;
    void *stop = NULL;
    *launcher = (struct gy_launcher){
        .device = *device, .image = image, .blocks_most = blocks_most, .kernel = NO_KERNEL, .what = "cuStreamCreate"};
    gy_cu_result result = driver->stream_create(&launcher->stream, GY_CU_STREAM_NON_BLOCKING);
    if (result != GY_CU_SUCCESS)
        return result;
    result = failed(launcher, driver->host_alloc(&stop, sizeof(*launcher->stop), GY_CU_HOST_PORTABLE),
                    "cuMemHostAlloc");
    if (result != GY_CU_SUCCESS)
        return result;
    launcher->stop = stop;
    atomic_store(launcher->stop, 0);
    launcher->fused.abort = launcher->moves.abort = (const uint32_t *)stop;
    return GY_CU_SUCCESS;
}

/* Returns true when all work on the launcher's stream has ended, false after CLOSE_NS. */
static bool is_idle(const struct gy_launcher *launcher)
{
    const int64_t deadline = gy_now() + CLOSE_NS;
    while (launcher->device.driver->stream_query(launcher->stream) == GY_CU_NOT_READY) {
        if (gy_now() > deadline)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
    return true;
}

static void free_launch(const struct gy_driver *driver, struct gy_launch *launch, bool idle)
{
    while (launch->memory) {
        struct gy_launch_memory *gone = launch->memory;
        launch->memory = gone->next;
        if (idle)
            (void)driver->host_free(gone->bytes);
        gy_free(gone);
    }
    (void)driver->event_destroy(launch->done);
    gy_free(launch);
}

void gy_launcher_close(struct gy_launcher *launcher)
{
    const struct gy_driver *driver = launcher->device.driver;
    bool idle = true;
    if (launcher->stream) {
        idle = is_idle(launcher);
        (void)driver->stream_destroy(launcher->stream);
    }
    while (launcher->launches) {
        struct gy_launch *gone = launcher->launches;
        launcher->launches = gone->next;
        free_launch(driver, gone, idle);
    }
    if (!idle)
        return; /* a running kernel reads the abort word and executes code of the image */
    if (launcher->stop)
        (void)driver->host_free((void *)launcher->stop);
    gy_image_put(launcher->image);
}

void gy_launcher_stop(struct gy_launcher *launcher)
{
    atomic_store_explicit(launcher->stop, 1, memory_order_release);
}

bool gy_launcher_has(struct gy_launcher *launcher, int kernel)
{
    return gy_image_function(launcher->image, kernel, launcher->why, sizeof(launcher->why)) != NULL;
}

/* ---- Launches ---- */

gy_cu_result gy_launcher_begin(struct gy_launcher *launcher)
{
    const struct gy_driver *driver = launcher->device.driver;
    struct gy_launch *launch = launcher->launches;
    while (launch && (atomic_load_explicit(&launch->users, memory_order_acquire) > 0 ||
                      (launch->memory && driver->event_query(launch->done) != GY_CU_SUCCESS)))
        launch = launch->next;
    if (!launch) {
        launch = gy_alloc_zero(1, sizeof(*launch));
        if (!launch)
            return failed(launcher, GY_CU_OUT_OF_MEMORY, "a launch");
        gy_cu_result result = driver->event_create(&launch->done, GY_CU_EVENT_DISABLE_TIMING);
        if (result != GY_CU_SUCCESS) {
            gy_free(launch);
            return failed(launcher, result, "cuEventCreate");
        }
        launch->next = launcher->launches;
        launcher->launches = launch;
    }
    while (launch->memory && launch->memory->next) { /* frees memory that a large call has added; one block is kept */
        struct gy_launch_memory *gone = launch->memory;
        launch->memory = gone->next;
        (void)driver->host_free(gone->bytes);
        gy_free(gone);
    }
    launch->memory_used = 0;
    launcher->current = launch;
    return GY_CU_SUCCESS;
}

gy_cu_result gy_launcher_wait(struct gy_launcher *launcher, gy_cu_event ready)
{
    return failed(launcher, launcher->device.driver->stream_wait_event(launcher->stream, ready, 0),
                  "cuStreamWaitEvent");
}

/* Returns pinned memory that the kernels of the current launch may read; NULL: there is none. */
static void *take_memory(struct gy_launcher *launcher, size_t bytes)
{
    struct gy_launch *launch = launcher->current;
    if (!launch->memory || launch->memory_used + bytes > MEMORY_BYTES) {
        struct gy_launch_memory *added = gy_alloc_zero(1, sizeof(*added));
        void *memory = NULL;
        if (!added || launcher->device.driver->host_alloc(&memory, MEMORY_BYTES, GY_CU_HOST_PORTABLE)) {
            gy_free(added);
            return NULL;
        }
        *added = (struct gy_launch_memory){launch->memory, memory};
        launch->memory = added;
        launch->memory_used = 0;
    }
    void *taken = launch->memory->bytes + launch->memory_used;
    launch->memory_used += (bytes + 15) / 16 * 16;
    return taken;
}

/* Finds the number of blocks that can be resident on a multiprocessor, once per kernel. */
static gy_cu_result find_occupancy(struct gy_launcher *launcher, gy_cu_function function)
{
    int blocks = 0;
    if (launcher->occupancy[launcher->kernel])
        return GY_CU_SUCCESS;
    gy_cu_result result = launcher->device.driver->blocks_per_multiprocessor(&blocks, function, GY_BLOCK_THREADS, 0);
    launcher->occupancy[launcher->kernel] = (uint8_t)(blocks < 1 ? 1 : blocks > UINT8_MAX ? UINT8_MAX : blocks);
    return failed(launcher, result, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
}

struct shape {
    unsigned blocks, threads;
};

static struct shape shape_of(const struct gy_launcher *launcher)
{
    const uint64_t vectors = launcher->work / VECTOR_BYTES + 1;
    const unsigned multiprocessors = (unsigned)launcher->device.multiprocessors;
    unsigned most = launcher->blocks_most ? launcher->blocks_most : multiprocessors;
    if (most > multiprocessors * launcher->occupancy[launcher->kernel])
        most = multiprocessors * launcher->occupancy[launcher->kernel];
    struct shape shape = {1, GY_BLOCK_THREADS};
    if (vectors < GY_BLOCK_THREADS)
        shape.threads = (unsigned)(vectors + LEAST_THREADS - 1) / LEAST_THREADS * LEAST_THREADS;
    const uint64_t wanted = (vectors + GY_BLOCK_THREADS - 1) / GY_BLOCK_THREADS;
    shape.blocks = wanted < most ? (unsigned)wanted : most;
    return shape;
}

/* Launches the kernel with the pieces or moves that have been added. */
static gy_cu_result flush(struct gy_launcher *launcher)
{
    if (launcher->kernel == NO_KERNEL)
        return GY_CU_SUCCESS;
    void *arguments[] = {launcher->kernel == GY_NUMBER_gy_move ? (void *)&launcher->moves : (void *)&launcher->fused};
    gy_cu_function function = gy_image_function(launcher->image, launcher->kernel, launcher->why,
                                                sizeof(launcher->why));
    gy_cu_result result = function ? find_occupancy(launcher, function)
                                   : failed(launcher, GY_CU_NOT_FOUND, "cuLibraryGetKernel");
    if (result == GY_CU_SUCCESS) {
        const struct shape shape = shape_of(launcher);
        result = failed(launcher,
                        launcher->device.driver->launch(function, shape.blocks, 1, 1, shape.threads, 1, 1, 0,
                                                        launcher->stream, arguments, NULL),
                        "cuLaunchKernel");
    }
    launcher->kernel = NO_KERNEL;
    launcher->fused.pieces = launcher->moves.moves = 0;
    launcher->work = 0;
    return result;
}

/* Makes room for one more piece or move of a kernel; this may launch those before it. */
static gy_cu_result make_room(struct gy_launcher *launcher, int kernel)
{
    const bool full = launcher->fused.pieces == GY_PIECES_MOST || launcher->moves.moves == GY_MOVES_MOST;
    gy_cu_result result = full || launcher->kernel != kernel ? flush(launcher) : GY_CU_SUCCESS;
    launcher->kernel = kernel;
    return result;
}

/* Stores the addresses of a piece in pinned arrays, since the argument has too few places. */
static gy_cu_result set_indirect(struct gy_launcher *launcher, struct gy_kernel_piece *to,
                                 const struct gy_plan_piece *from, const uint64_t *scalars)
{
    const void **src = take_memory(launcher, sizeof(void *) * GY_GROUP_MOST);
    void **dst = take_memory(launcher, sizeof(void *) * GY_GROUP_MOST);
    const void **scalar = take_memory(launcher, sizeof(void *) * GY_GROUP_MOST);
    if (!src || !dst || !scalar)
        return failed(launcher, GY_CU_OUT_OF_MEMORY, "cuMemHostAlloc");
    for (int s = 0; s < from->nsrc; s++) {
        src[s] = from->src[s];
        scalar[s] = scalars ? &scalars[s] : NULL;
    }
    for (int d = 0; d < from->ndst; d++)
        dst[d] = from->dst[d];
    to->indirect_src = src;
    to->indirect_dst = dst;
    to->indirect_scalar = scalar;
    return GY_CU_SUCCESS;
}

static gy_cu_result add_piece(struct gy_launcher *launcher, const struct gy_plan_piece *from,
                              const struct gy_arrival *first, uint64_t *scalars)
{
    gy_cu_result result = make_room(launcher, first->kernel);
    if (result != GY_CU_SUCCESS)
        return result;
    struct gy_kernel_piece *to = &launcher->fused.piece[launcher->fused.pieces++];
    *to = (struct gy_kernel_piece){.count = from->count, .nsrc = (uint16_t)from->nsrc, .ndst = (uint16_t)from->ndst};
    to->divisor = first->call->op == GYRE_AVERAGE ? first->comm->size : 0;
    launcher->work += from->count * gyre_dtype_size(first->call->dtype);
    if (from->nsrc > GY_INLINE_OPERANDS || from->ndst > GY_INLINE_OPERANDS)
        return set_indirect(launcher, to, from, scalars);
    for (int s = 0; s < from->nsrc; s++) {
        to->src[s] = from->src[s];
        to->scalar[s] = scalars ? &scalars[s] : NULL;
    }
    for (int d = 0; d < from->ndst; d++)
        to->dst[d] = from->dst[d];
    return GY_CU_SUCCESS;
}

/* Stores the scalars of a pre-multiplied sum in pinned memory, which kernels can read. *scalars_p is NULL for other
 * operations. */
static gy_cu_result put_scalars(struct gy_launcher *launcher, struct gy_arrival *const *of, int size,
                                uint64_t **scalars_p)
{
    *scalars_p = NULL;
    if ((int)of[0]->call->op < GY_OP_MADE)
        return GY_CU_SUCCESS;
    uint64_t *scalars = take_memory(launcher, sizeof(uint64_t) * (size_t)size);
    if (!scalars)
        return failed(launcher, GY_CU_OUT_OF_MEMORY, "cuMemHostAlloc");
    for (int r = 0; r < size; r++)
        scalars[r] = of[r]->scalar;
    *scalars_p = scalars;
    return GY_CU_SUCCESS;
}

gy_cu_result gy_launcher_add(struct gy_launcher *launcher, const struct gy_fused_plan *plan,
                             struct gy_arrival *const *of, int size)
{
    uint64_t *scalars = NULL;
    gy_cu_result result = plan->pieces > 0 ? put_scalars(launcher, of, size, &scalars) : GY_CU_SUCCESS;
    for (size_t p = 0; p < plan->pieces && result == GY_CU_SUCCESS; p++)
        result = add_piece(launcher, &plan->piece[p], of[0], scalars);
    for (size_t m = 0; m < plan->moves && result == GY_CU_SUCCESS; m++) {
        result = make_room(launcher, GY_NUMBER_gy_move);
        launcher->moves.move[launcher->moves.moves++] = plan->move[m];
        launcher->work += plan->move[m].bytes & ~GY_EXCHANGE;
    }
    return result;
}

gy_cu_result gy_launcher_end(struct gy_launcher *launcher, unsigned users, struct gy_launch **launch_p)
{
    struct gy_launch *launch = launcher->current;
    gy_cu_result result = flush(launcher);
    if (result == GY_CU_SUCCESS)
        result = failed(launcher, launcher->device.driver->event_record(launch->done, launcher->stream),
                        "cuEventRecord");
    if (result != GY_CU_SUCCESS)
        return result;
    atomic_store_explicit(&launch->users, users, memory_order_release);
    *launch_p = launch;
    return GY_CU_SUCCESS;
}

void gy_launch_release(struct gy_launch *launch)
{
    atomic_fetch_sub_explicit(&launch->users, 1, memory_order_acq_rel);
}
