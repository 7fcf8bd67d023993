/* The segment's layout: by arithmetic from (local index, kind). */
#include <errno.h>
#include <string.h>

#include "core/memfd.h"
#include "transport/shm/internal.h"

gyre_status gy_segment_reserve(struct gy_segment *segment, uint64_t offset, uint64_t bytes, const char *what,
                               struct gy_error *error)
{
    int errnum = gy_memfd_reserve(segment->fds.memory, offset, bytes);
    if (errnum == 0)
        return GYRE_SUCCESS;
    if (errnum == ENOSPC || errnum == ENOMEM)
        return gy_error_set(
            error, GYRE_NO_MEMORY, -1,
            "rank %d: this host has no room for %llu KiB of shared memory for %s; free memory, raise the memory "
            "limit of the container, or run fewer ranks here",
            segment->world->rank, (unsigned long long)(bytes >> 10), what);
    return gy_error_system(error, errnum, "rank %d: fallocate of %llu KiB of shared memory for %s",
                           segment->world->rank, (unsigned long long)(bytes >> 10), what);
}

struct gy_notice *gy_segment_notice(struct gy_segment *segment)
{
    return (struct gy_notice *)(void *)segment->base;
}

struct gy_rank_control *gy_segment_rank(struct gy_segment *segment, int local)
{
    return (struct gy_rank_control *)(void *)(segment->base + segment->layout.page * (1 + (uint64_t)local));
}

static uint64_t region_offset(const struct gy_segment *segment, int local, int index)
{
    const struct gy_segment_layout *layout = &segment->layout;
    return layout->regions + ((uint64_t)local * GY_REGION_COMMS + (uint64_t)index) * layout->region_bytes;
}

gyre_status gy_segment_region_reserve(struct gy_segment *segment, int index, struct gy_error *error)
{
    if (segment->region_reserved[index])
        return GYRE_SUCCESS;
    gyre_status status = gy_segment_reserve(segment, region_offset(segment, segment->world->local, index),
                                            segment->layout.region_bytes, "a region (GYRE_SHM_SLOT makes it smaller)",
                                            error);
    /* The first rank here reads the counters of ranks that have not arrived yet. An unreserved page would be
     * allocated by that read, or raise SIGBUS. */
    for (int local = 0; local < segment->world->nlocals && status == GYRE_SUCCESS; local++)
        status = gy_segment_reserve(segment, region_offset(segment, local, index), segment->layout.region_control,
                                    "the counters of a region", error);
    segment->region_reserved[index] = status == GYRE_SUCCESS;
    return status;
}

struct gy_region_control *gy_segment_region(struct gy_segment *segment, int local, int index)
{
    return (struct gy_region_control *)(void *)(segment->base + region_offset(segment, local, index));
}

void gy_segment_region_reset(struct gy_segment *segment, int index)
{
    if (segment->region_reserved[index]) /* else never touched */
        memset(gy_segment_region(segment, segment->world->local, index), 0, sizeof(struct gy_region_control));
}

unsigned char *gy_segment_region_data(struct gy_segment *segment, int local, int index)
{
    return segment->base + region_offset(segment, local, index) + segment->layout.region_data;
}

size_t gy_segment_region_bytes(const struct gy_segment *segment)
{
    return 2 * GY_REGION_SLOTS * segment->layout.slot;
}

gyre_status gy_segment_ring(struct gy_segment *segment, int from, int to, void **ring_p, struct gy_error *error)
{
    const struct gy_segment_layout *layout = &segment->layout;
    uint64_t offset = layout->rings + ((uint64_t)from * layout->locals + (uint64_t)to) * layout->ring_bytes;
    /* Either end may be first; reserving again keeps the contents. */
    gyre_status status = gy_segment_reserve(segment, offset, layout->ring_bytes, "the ring of a link", error);
    if (status == GYRE_SUCCESS)
        *ring_p = segment->base + offset;
    return status;
}

size_t gy_segment_ring_bytes(const struct gy_segment *segment)
{
    return segment->layout.ring_bytes;
}
