/* The cache of registrations: see registration_cache.h. */
#include "transport/rdma/registration_cache.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/capability.h>

#include "core/log.h"
#include "core/mem.h"

#define FIRST_USER_SPACE 0xEFFFFFFDu /* PROC_USER_INIT_INO of the kernel */

/* ---- the limit ---- */

/* True if the process has the capability in the initial user name space; one in a user name space of its own does
 * not count. */
static bool may_exceed_limit(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
    struct stat space;

    return syscall(SYS_capget, &head, data) == 0 && (data[0].effective >> CAP_IPC_LOCK & 1) != 0 &&
           stat("/proc/self/ns/user", &space) == 0 && space.st_ino == FIRST_USER_SPACE;
}

size_t gy_rdma_lockable(void)
{
    struct rlimit limit = {0};

    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || may_exceed_limit())
        return SIZE_MAX;
    return (size_t)limit.rlim_cur;
}

/* ---- devices ---- */

static gyre_status refusal(const struct gy_rdma_memory *memory, const struct gy_rdma_rail *rail, size_t bytes,
                           int errnum, struct gy_error *error)
{
    size_t needed = memory->locked + bytes * (size_t)memory->rail_count; /* every device counts separately */
    size_t limit = gy_rdma_lockable();

    if ((errnum == ENOMEM || errnum == EAGAIN) && limit < needed)
        return gy_error_set(
            error, GYRE_NO_MEMORY, -1,
            "RDMA device %s cannot lock %zu bytes: the limit of locked memory is %zu KiB, and at least %zu KiB "
            "are needed now; raise it (ulimit -l, LimitMEMLOCK= of systemd)",
            rail->name, bytes, limit / 1024, (needed + 1023) / 1024);
    return gy_error_system(error, errnum, "RDMA device %s cannot register %zu bytes", rail->name, bytes);
}

/* Relaxed write order for memory that is read only after a completion or a checksum: some buses are faster then. Not
 * for windows and a link's words, where a read behind the write proves its arrival. */
static struct ibv_mr *register_with(const struct gy_rdma_rail *rail, void *start, size_t bytes, int access)
{
    if ((access & IBV_ACCESS_REMOTE_READ) || !rail->verbs->reg_mr_iova2)
        return rail->verbs->reg_mr(rail->pd, start, bytes, access);
    return rail->verbs->reg_mr_iova2(rail->pd, start, bytes, (uintptr_t)start,
                                     (unsigned)access | IBV_ACCESS_RELAXED_ORDERING);
}

gyre_status gy_rdma_register(struct gy_rdma_memory *memory, void *start, size_t bytes, int access,
                             struct ibv_mr *mr_p[GY_RDMA_RAILS], struct gy_error *error)
{
    struct ibv_mr *mr[GY_RDMA_RAILS] = {0};

    for (int i = 0; i < memory->rail_count; i++) {
        struct gy_rdma_rail *rail = &memory->rails[i];

        mr[i] = register_with(rail, start, bytes, access);
        if (!mr[i]) {
            gyre_status status = refusal(memory, rail, bytes, errno, error);

            while (i-- > 0)
                memory->rails[i].verbs->dereg_mr(mr[i]);
            return status;
        }
    }
    memory->locked += bytes * (size_t)memory->rail_count;
    memcpy(mr_p, mr, sizeof(mr));
    return GYRE_SUCCESS;
}

static void drop_keys(const struct gy_rdma_memory *memory, struct ibv_mr *mr[GY_RDMA_RAILS], int rails)
{
    for (int i = 0; i < rails; i++)
        memory->rails[i].verbs->dereg_mr(mr[i]);
}

void gy_rdma_deregister(struct gy_rdma_memory *memory, struct ibv_mr *mr[GY_RDMA_RAILS], size_t bytes)
{
    drop_keys(memory, mr, memory->rail_count);
    memory->locked -= bytes * (size_t)memory->rail_count;
}

/* ---- the cache ---- */

/* Returns the index of the first range that does not start below `start`. */
static size_t place_of(const struct gy_rdma_memory *memory, uintptr_t start)
{
    size_t low = 0, high = memory->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (memory->ranges[middle]->start < start)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void discard(struct gy_rdma_memory *memory, size_t place)
{
    struct gy_rdma_range *range = memory->ranges[place];

    memory->device_ranges -= range->device;
    if (range->registered && range->device) /* no host memory was locked */
        drop_keys(memory, range->mr, memory->rail_count);
    else if (range->registered)
        gy_rdma_deregister(memory, range->mr, range->end - range->start);
    gy_free(range);
    memory->count--;
    memmove(memory->ranges + place, memory->ranges + place + 1,
            (memory->count - place) * sizeof(struct gy_rdma_range *));
}

/* Announces an existing range once more; false: there is none. */
static bool announce_again(struct gy_rdma_memory *memory, uintptr_t from, size_t bytes)
{
    for (size_t i = place_of(memory, from); i < memory->count && memory->ranges[i]->start == from; i++) {
        struct gy_rdma_range *range = memory->ranges[i];
        if (!range->withdrawn && range->end == from + bytes) {
            range->times++;
            return true;
        }
    }
    return false;
}

/* Inserts a new range, announced once; NULL: out of memory. */
static struct gy_rdma_range *insert(struct gy_rdma_memory *memory, uintptr_t from, size_t bytes)
{
    size_t place = place_of(memory, from);

    if (memory->count == memory->room) {
        size_t room = memory->room ? 2 * memory->room : 16;
        struct gy_rdma_range **ranges = gy_realloc(memory->ranges, room * sizeof(struct gy_rdma_range *));
        if (!ranges)
            return NULL;
        memory->ranges = ranges;
        memory->room = room;
    }
    struct gy_rdma_range *range = gy_alloc_zero(1, sizeof(*range));
    if (!range)
        return NULL;
    range->start = from;
    range->end = from + bytes;
    range->times = 1;
    memmove(memory->ranges + place + 1, memory->ranges + place,
            (memory->count - place) * sizeof(struct gy_rdma_range *));
    memory->ranges[place] = range;
    memory->count++;
    return range;
}

bool gy_rdma_memory_add(struct gy_rdma_memory *memory, const void *start, size_t bytes)
{
    return announce_again(memory, (uintptr_t)start, bytes) || insert(memory, (uintptr_t)start, bytes) != NULL;
}

bool gy_rdma_memory_add_device(struct gy_rdma_memory *memory, const void *start, size_t bytes, int dmabuf,
                               uint64_t offset)
{
    struct ibv_mr *mr[GY_RDMA_RAILS] = {0};
    uintptr_t from = (uintptr_t)start;

    if (announce_again(memory, from, bytes))
        return true;
    for (int i = 0; i < memory->rail_count; i++) {
        const struct gy_rdma_rail *rail = &memory->rails[i];

        if (rail->verbs->reg_dmabuf_mr)
            mr[i] = rail->verbs->reg_dmabuf_mr(rail->pd, offset, bytes, from, dmabuf, IBV_ACCESS_LOCAL_WRITE);
        if (!mr[i]) {
            gy_log(GY_LOG_INFO, "RDMA device %s does not take memory of a GPU: %s", rail->name,
                   rail->verbs->reg_dmabuf_mr ? strerror(errno) : "libibverbs is too old");
            drop_keys(memory, mr, i);
            return false;
        }
    }
    struct gy_rdma_range *range = memory->rail_count > 0 ? insert(memory, from, bytes) : NULL;
    if (!range) {
        drop_keys(memory, mr, memory->rail_count);
        return false;
    }
    range->device = range->registered = range->writable = true;
    memcpy(range->mr, mr, sizeof(mr));
    memory->device_ranges++;
    return true;
}

bool gy_rdma_memory_is_device(const struct gy_rdma_memory *memory, const void *start)
{
    uintptr_t at = (uintptr_t)start;

    for (size_t i = 0; memory->device_ranges > 0 && i < memory->count; i++)
        if (memory->ranges[i]->device && at >= memory->ranges[i]->start && at < memory->ranges[i]->end)
            return true;
    return false;
}

void gy_rdma_memory_remove(struct gy_rdma_memory *memory, const void *start)
{
    size_t place = place_of(memory, (uintptr_t)start);

    while (place < memory->count && memory->ranges[place]->withdrawn)
        place++;
    if (place == memory->count || memory->ranges[place]->start != (uintptr_t)start ||
        --memory->ranges[place]->times > 0)
        return;
    memory->ranges[place]->withdrawn = true;
    if (memory->ranges[place]->sends == 0)
        discard(memory, place);
}

/* For access by the own device only. Memory that the program may not write is registered for reading. */
static bool register_range(struct gy_rdma_memory *memory, struct gy_rdma_range *range, struct gy_error *error)
{
    void *start = (void *)range->start;
    size_t bytes = range->end - range->start;

    range->writable = gy_rdma_register(memory, start, bytes, IBV_ACCESS_LOCAL_WRITE, range->mr, error) == GYRE_SUCCESS;
    if (range->writable || error->status == GYRE_NO_MEMORY)
        return range->writable;
    *error = (struct gy_error){.quiet = true};
    return gy_rdma_register(memory, start, bytes, 0, range->mr, error) == GYRE_SUCCESS;
}

/* Ranges may overlap or be nested: a few of those that start nearest below are tried first. */
struct gy_rdma_range *gy_rdma_memory_find(struct gy_rdma_memory *memory, const void *start, size_t bytes)
{
    uintptr_t from = (uintptr_t)start;
    size_t place = place_of(memory, from + 1);

    for (int tries = 0; tries < 8 && place-- > 0; tries++) {
        struct gy_rdma_range *range = memory->ranges[place];
        if (range->withdrawn || range->refused || from + bytes > range->end)
            continue;
        if (!range->registered) {
            struct gy_error error = {.quiet = true};
            if (!register_range(memory, range, &error)) {
                range->refused = true;
                gy_log(GY_LOG_WARN, "announced memory is copied when it is sent: %s", error.text);
                continue;
            }
            range->registered = true;
        }
        return range;
    }
    return NULL;
}

void gy_rdma_range_hold(struct gy_rdma_range *range)
{
    range->sends++;
}

void gy_rdma_range_drop(struct gy_rdma_memory *memory, struct gy_rdma_range *range)
{
    if (--range->sends > 0 || !range->withdrawn)
        return;
    size_t place = place_of(memory, range->start);
    while (memory->ranges[place] != range)
        place++;
    discard(memory, place);
}

void gy_rdma_memory_free(struct gy_rdma_memory *memory, bool forked)
{
    while (memory->count > 0) {
        if (forked)
            memory->ranges[memory->count - 1]->registered = false;
        discard(memory, memory->count - 1);
    }
    gy_free(memory->ranges);
}
