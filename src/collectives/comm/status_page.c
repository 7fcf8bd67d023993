/* See status_page.h. Like the host's shared memory, the page is a memfd whose pages are reserved before they are
 * touched. */
#include "collectives/comm/status_page.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collectives/comm/communicator.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "core/memfd.h"

_Static_assert(GYRE_PAGE_VARYING == GY_VARYING, "what readers know");
_Static_assert(GY_COLLECTIVES <= GYRE_PAGE_NAMES && GY_ALGORITHMS <= GYRE_PAGE_NAMES, "names have room");

/* Whole pages around [offset, offset + bytes). */
static bool reserve(int fd, size_t offset, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), from = offset / page * page;
    return gy_memfd_reserve(fd, from, (offset + bytes + page - 1) / page * page - from) == 0;
}

static void write_names(struct gyre_page *page)
{
    for (int i = 0; i < GY_COLLECTIVES; i++)
        snprintf(page->collective[i], sizeof(page->collective[i]), "%s", gy_collective_name((enum gy_collective)i));
    for (int i = 0; i < GY_ALGORITHMS; i++)
        snprintf(page->algorithm[i], sizeof(page->algorithm[i]), "%s", gy_algorithm_name((enum gy_algorithm)i));
}

static void write_head(const struct gy_context *ctx, struct gyre_page *page)
{
    const struct gy_world *world = ctx->world;
    struct gyre_page_member *members = (struct gyre_page_member *)(page + 1);
    for (int p = 0; p < world->size; p++)
        members[p] = (struct gyre_page_member){world->members[p].host, world->members[p].pid};
    page->job = world->job;
    page->rank = world->rank;
    page->size = world->size;
    page->host = world->members[world->rank].host;
    page->process = (int32_t)getpid();
    page->made = page->turned = gy_now();
    page->culprit = -1;
    page->bytes = sizeof(*page);
    page->version = GYRE_PAGE_VERSION;
    write_names(page);
    page->magic = GYRE_PAGE_MAGIC; /* last: marks the page valid */
}

static size_t bytes_of(const struct gy_context *ctx)
{
    return sizeof(struct gyre_page) + (size_t)ctx->world->size * sizeof(struct gyre_page_member);
}

void gy_page_create(struct gy_context *ctx)
{
    size_t head = offsetof(struct gyre_page, comm), bytes = bytes_of(ctx);
    int fd = gy_memfd_make(GYRE_PAGE_NAME, bytes);
    if (fd < 0)
        return;
    if (!reserve(fd, 0, head) || !reserve(fd, sizeof(struct gyre_page), bytes - sizeof(struct gyre_page)) ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) /* last: reserving grows it to whole pages */
        goto close_fd;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        goto close_fd;
    ctx->page = memory;
    ctx->page_fd = fd;
    write_head(ctx, ctx->page);
    return;

close_fd:
    close(fd);
    gy_log(GY_LOG_INFO, "no room for the page that gyre-top reads");
}

void gy_page_free(struct gy_context *ctx)
{
    if (!ctx->page)
        return;
    munmap(ctx->page, bytes_of(ctx));
    close(ctx->page_fd);
    ctx->page = NULL;
}

void gy_page_abandon(struct gy_context *ctx)
{
    if (ctx->page)
        close(ctx->page_fd); /* the memory stays: the child may still read a communicator */
}

static bool take_memory(struct gyre_comm *comm)
{
    struct gyre_page_comm *place = gy_recorder_alloc(GY_RECORDS_FIRST);
    if (place)
        gy_recorder_init(&comm->recorder, place, GY_RECORDS_FIRST);
    return place;
}

bool gy_page_comm_take(struct gyre_comm *comm)
{
    struct gyre_page *page = comm->ctx->page;
    struct gyre_page_comm *place = NULL;
    unsigned free_slots = page ? ~page->comms & ((1u << GYRE_PAGE_COMMS) - 1) : 0;
    int slot = free_slots ? __builtin_ctz(free_slots) : -1;
    if (slot >= 0 &&
        reserve(comm->ctx->page_fd, offsetof(struct gyre_page, comm) + (size_t)slot * sizeof(*place), sizeof(*place)))
        place = &page->comm[slot];
    if (!place)
        return take_memory(comm);
    memset(place, 0, sizeof(*place));
    place->number = comm->id;
    place->rank = comm->rank;
    place->size = comm->size;
    page->comms |= 1u << slot;
    gy_recorder_init(&comm->recorder, place, GY_RECORDS);
    return true;
}

/* Returns the communicator's index in the page, −1: it has none. */
int gy_page_slot(const struct gyre_comm *comm)
{
    const struct gyre_page *page = comm->ctx->page;
    const struct gyre_page_comm *place = comm->recorder.page;
    if (!page || place < page->comm || place >= page->comm + GYRE_PAGE_COMMS)
        return -1;
    return (int)(place - page->comm);
}

void gy_page_comm_give(struct gyre_comm *comm)
{
    int slot = gy_page_slot(comm);
    if (slot < 0)
        gy_free(comm->recorder.page);
    else if (comm->ctx->page->process == getpid()) /* a forked child must not change it */
        comm->ctx->page->comms &= ~(1u << slot);
}

void gy_page_fail(struct gy_context *ctx)
{
    if (!ctx->page)
        return;
    ctx->page->culprit = ctx->error.rank;
    ctx->page->status = (int32_t)ctx->error.status;
}
