/* The host's shared memory: layout by arithmetic, creation, mapping, reservation. See segment.h for the picture.
 *
 * Invariant: no byte of the mapping is touched before its pages were reserved with fallocate, by the area's owner or
 * by the first reader of a region's counters. So a host without room gives GYRE_NO_MEMORY and a message, never a
 * SIGBUS. The memfd is sealed against shrinking and growing, so no local rank can remove pages from another.
 *
 * Ranks that are threads of one process share one mapping (found by the inode): less address space, and race
 * detectors see the real accesses. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "core/clock.h"
#include "core/mem.h"
#include "core/memfd.h"
#include "transport/shm/internal.h"

#define RING_PAYLOAD (UINT64_C(64) << 10)
#define HEAP_ALIGN (UINT64_C(2) << 20)

/* ---- layout ---- */

static uint64_t round_up(uint64_t value, uint64_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

/* The sizes of the structs that ranks share, and of their parts. */
static uint64_t hash_inside(void)
{
    static const size_t sizes[] = {sizeof(struct gy_rank_control),
                                   sizeof(struct gy_region_line),
                                   sizeof(struct gy_call_signature),
                                   sizeof(struct gy_offer),
                                   sizeof(struct gy_entry),
                                   sizeof(struct gy_region_control),
                                   sizeof(struct gy_region),
                                   offsetof(struct gy_region_control, lane),
                                   offsetof(struct gy_region_control, entry),
                                   offsetof(struct gy_region_control, entered),
                                   offsetof(struct gy_region_control, completion),
                                   offsetof(struct gy_region, shorter),
                                   offsetof(struct gy_region, vector),
                                   GY_REGION_LINES,
                                   GY_REGION_LANES,
                                   GY_REGION_SLOTS,
                                   GY_CALL_SIGNATURES,
                                   GY_TUNER_KINDS,
                                   GY_TUNER_OCTAVES,
                                   GY_TUNER_DECISIONS};
    return XXH3_64bits(sizes, sizeof(sizes));
}

static struct gy_segment_layout layout_of(const struct gy_world *world)
{
    struct gy_segment_layout layout = {
        .page = (uint64_t)sysconf(_SC_PAGESIZE),
        .locals = (uint64_t)world->nlocals,
        .slot = world->config->shm_slot,
        .inside = hash_inside(),
    };
    uint64_t page = layout.page, n = layout.locals;
    layout.heap_bytes = round_up(world->config->shm_reserve, HEAP_ALIGN);
    /* Equal places in two heaps are written together. Some processors (AMD's Zen) index the first-level cache by a
     * few address bits that are equal for lines a multiple of 256 MiB apart. Each store then evicted the other line,
     * and took four times as long. Of the odd multiples of 2 MiB only the 128th is one of 256. */
    layout.heap_stride = layout.heap_bytes | HEAP_ALIGN;
    layout.ring_bytes = round_up(page + RING_PAYLOAD, page);
    layout.region_control = round_up(sizeof(struct gy_region_control), page);
    layout.region_data = round_up(sizeof(struct gy_region), page);
    layout.region_bytes = layout.region_data + round_up(2 * GY_REGION_SLOTS * layout.slot, page);
    layout.rings = page * (1 + n);
    layout.regions = layout.rings + n * n * layout.ring_bytes;
    layout.heaps = round_up(layout.regions + n * GY_REGION_COMMS * layout.region_bytes, HEAP_ALIGN);
    layout.total = layout.heaps + n * layout.heap_stride;
    return layout;
}

/* ---- mappings of this process ---- */

struct mapping {
    dev_t device;
    ino_t inode;
    int users;
    unsigned char *base;
    uint64_t bytes;
    struct mapping *next;
};

static pthread_mutex_t mappings_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list and everything in it */
static struct mapping *mappings;

/* Returns NULL on failure; error says why. */
static struct mapping *mapping_make(int fd, const struct stat *stat, uint64_t bytes, struct gy_error *error)
{
    struct mapping *mapping = gy_alloc_zero(1, sizeof(*mapping));
    if (!mapping) {
        gy_error_set(error, GYRE_NO_MEMORY, -1, "no memory for the record of a shared mapping");
        return NULL;
    }
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (base == MAP_FAILED) {
        gy_error_system(error, errno,
                        "cannot map %llu MiB of address space for the shared memory of this host; lower "
                        "GYRE_SHM_RESERVE or raise ulimit -v",
                        (unsigned long long)(bytes >> 20));
        gy_free(mapping);
        return NULL;
    }
    (void)madvise(base, bytes, MADV_DONTDUMP); /* without it a core file is larger, nothing worse */
    *mapping = (struct mapping){stat->st_dev, stat->st_ino, 0, base, bytes, mappings};
    mappings = mapping;
    return mapping;
}

static gyre_status segment_map(struct gy_segment *segment, struct gy_error *error)
{
    struct stat stat;
    if (fstat(segment->fds.memory, &stat))
        return gy_error_system(error, errno, "fstat on the shared memory of this host");
    if ((uint64_t)stat.st_size != segment->layout.total)
        return gy_error_set(error, GYRE_PROTOCOL, -1, "the shared memory of this host has %lld bytes instead of %llu",
                            (long long)stat.st_size, (unsigned long long)segment->layout.total);
    gyre_status status = GYRE_SUCCESS;
    pthread_mutex_lock(&mappings_lock);
    struct mapping *mapping = mappings;
    while (mapping && !(mapping->device == stat.st_dev && mapping->inode == stat.st_ino))
        mapping = mapping->next;
    if (!mapping)
        mapping = mapping_make(segment->fds.memory, &stat, segment->layout.total, error);
    if (mapping) {
        mapping->users++;
        segment->base = mapping->base;
    } else {
        status = error->status;
    }
    pthread_mutex_unlock(&mappings_lock);
    return status;
}

static void segment_unmap(struct gy_segment *segment)
{
    pthread_mutex_lock(&mappings_lock);
    struct mapping **link = &mappings;
    while (*link && (*link)->base != segment->base)
        link = &(*link)->next;
    struct mapping *mapping = *link;
    if (mapping && --mapping->users == 0) {
        *link = mapping->next;
        munmap(mapping->base, mapping->bytes);
        gy_free(mapping);
    }
    pthread_mutex_unlock(&mappings_lock);
}

/* ---- creation ---- */

/* On the first local rank: makes the memfd, its size, the pages that all ranks touch at once, and the wakeup
 * sockets. */
static gyre_status segment_make(struct gy_segment *segment, struct gy_error *error)
{
    int fd = gy_memfd_make("gyre", segment->layout.total);
    if (fd < 0)
        return gy_error_system(
            error, errno,
            "rank %d cannot make a sparse file of %llu MiB for the shared memory of this host; lower "
            "GYRE_SHM_RESERVE or raise ulimit -f",
            segment->world->rank, (unsigned long long)(segment->layout.total >> 20));
    segment->fds.memory = fd;
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
        return gy_error_system(error, errno, "cannot seal the size of the shared memory of this host");
    gyre_status status = gy_segment_reserve(segment, 0, segment->layout.rings, "the control pages of its ranks", error);
    return status == GYRE_SUCCESS ? gy_segment_senders_make(segment, error) : status;
}

static gyre_status segment_receive(struct gy_segment *segment, int64_t deadline, struct gy_error *error)
{
    struct gy_segment_offer offer;
    gyre_status status = gy_segment_ask(segment->world, deadline, &offer, &segment->fds, error);
    if (status != GYRE_SUCCESS)
        return status;
    int parent = segment->world->locals[offer.local];
    if (offer.layout.slot != segment->layout.slot || offer.layout.heap_bytes != segment->layout.heap_bytes)
        return gy_error_set(error, GYRE_BAD_CONFIGURATION, parent,
                            "rank %d and rank %d share a host but not their settings: GYRE_SHM_SLOT is %llu and %llu, "
                            "GYRE_SHM_RESERVE %llu and %llu; set the same on all ranks",
                            segment->world->rank, parent, (unsigned long long)segment->layout.slot,
                            (unsigned long long)offer.layout.slot, (unsigned long long)segment->layout.heap_bytes,
                            (unsigned long long)offer.layout.heap_bytes);
    if (memcmp(&offer.layout, &segment->layout, sizeof(offer.layout)) != 0)
        return gy_error_set(
            error, GYRE_PROTOCOL, parent,
            "rank %d and rank %d lay out shared memory differently: install the same gyre for every rank",
            segment->world->rank, parent);
    return GYRE_SUCCESS;
}

/* Obtains the descriptors from the parent and passes them to the children. Children are served even if there is
 * nothing to pass on. */
static gyre_status segment_obtain(struct gy_segment *segment, int64_t deadline, struct gy_error *error)
{
    struct gy_world *world = segment->world;
    int listener = -1;
    gyre_status status = gy_segment_listen(world, &listener, error);
    if (status != GYRE_SUCCESS)
        return status;
    status = world->local == 0 ? segment_make(segment, error) : segment_receive(segment, deadline, error);
    if (listener >= 0) {
        struct gy_segment_offer offer = {.magic = GY_OFFER_MAGIC,
                                         .job = world->job,
                                         .status = (int32_t)status,
                                         .local = world->local,
                                         .culprit = world->rank,
                                         .layout = segment->layout};
        if (status != GYRE_SUCCESS && error->rank >= 0)
            offer.culprit = error->rank;
        int64_t until = deadline;
        if (status != GYRE_SUCCESS && gy_now() + 2 * GY_SECOND < until)
            until = gy_now() + 2 * GY_SECOND;
        gyre_status served = gy_segment_serve(world, listener, status == GYRE_SUCCESS ? &segment->fds : NULL, &offer,
                                              until, error);
        if (status == GYRE_SUCCESS)
            status = served;
        close(listener);
    }
    return status;
}

gyre_status gy_segment_create(struct gy_world *world, int64_t deadline, struct gy_segment **segment_p,
                              struct gy_error *error)
{
    if (world->nlocals <= 1) {
        *segment_p = NULL;
        return GYRE_SUCCESS;
    }
    struct gy_segment *segment = gy_alloc_zero(1, sizeof(*segment));
    if (!segment)
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "no memory for the record of the shared segment");
    segment->world = world;
    gy_segment_fds_none(&segment->fds);
    segment->nsenders = gy_segment_senders(world->nlocals);
    segment->owner_pid = (int)getpid();
    segment->layout = layout_of(world);
    gyre_status status = segment_obtain(segment, deadline, error);
    if (status == GYRE_SUCCESS)
        status = segment_map(segment, error);
    if (status != GYRE_SUCCESS)
        goto close_fds;
    status = gy_segment_doorbell_open(segment, error);
    if (status != GYRE_SUCCESS)
        goto unmap;
    atomic_store_explicit(&gy_segment_rank(segment, world->local)->waiting_for, -1, memory_order_relaxed);
    gy_segment_doorbell_register(segment);
    gy_segment_proof_register(segment);
    *segment_p = segment;
    return GYRE_SUCCESS;

unmap:
    segment_unmap(segment);
close_fds:
    gy_segment_fds_close(&segment->fds);
    gy_free(segment);
    return status;
}

void gy_segment_free(struct gy_segment *segment)
{
    if (!segment)
        return;
    gy_segment_doorbell_close(segment, (int)getpid() != segment->owner_pid);
    segment_unmap(segment);
    gy_segment_fds_close(&segment->fds);
    gy_free(segment->heap.blocks);
    gy_free(segment);
}
