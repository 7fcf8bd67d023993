/* Makes, duplicates, ends and queries communicators; memory. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "api/announce.h"
#include "api/call_group.h"
#include "api/check.h"
#include "collectives/device/attachment.h"
#include "collectives/events/upcalls.h"
#include "collectives/lifecycle/comm_close.h"
#include "collectives/lifecycle/comm_open.h"
#include "collectives/lifecycle/comm_teardown.h"
#include "collectives/lifecycle/context_open.h"
#include "collectives/lifecycle/result_check.h"
#include "collectives/lifecycle/split.h"
#include "collectives/lifecycle/uniform_completion.h"
#include "collectives/rma/window.h"
#include "collectives/select/selector.h"
#include "core/clock.h"
#include "core/handle.h"
#include "core/mem.h"

#define ADDRESSES ((size_t)1 << 57) /* more than any process has: not passed on to an allocator */
#define LIST 2u                     /* the lowest two bits of the word of a list: see attributes.c */

/* Copies as much of the configuration as the caller's header has. Fields unknown to that header are zero; fields
 * unknown to this library must be zero, too. */
static gyre_status read_config(const gyre_config *user, gyre_config *config_p, struct gy_error *error)
{
    const size_t least = offsetof(gyre_config, join), most = 4096;
    size_t size = user->size;
    bool known = size >= least && size <= most;
    for (size_t i = sizeof(*config_p); known && i < size; i++)
        known = ((const unsigned char *)user)[i] == 0;
    if (!known)
        return gy_error_set(error, GYRE_INVALID_ARGUMENT, -1,
                            "gyre_comm_create: config->size is %zu, expected sizeof(gyre_config), which is %zu in this "
                            "version; what a later one has is 0 here",
                            size, sizeof(*config_p));
    memset(config_p, 0, sizeof(*config_p));
    memcpy(config_p, user, size < sizeof(*config_p) ? size : sizeof(*config_p));
    return GYRE_SUCCESS;
}

gyre_status gyre_comm_create(const gyre_config *user, gyre_comm **comm_p)
{
    gyre_config copy, *config = user ? &copy : NULL;
    struct gy_error *error = gy_check_own_error();
    gy_error_clear(error);
    if (!comm_p)
        return gy_error_set(error, GYRE_INVALID_ARGUMENT, -1, "gyre_comm_create: comm_p is NULL");
    if (gy_call_group_open())
        return gy_error_set(
            error, GYRE_INVALID_ARGUMENT, -1,
            "gyre_comm_create inside a group: it waits for the other ranks at once; end the group first");
    if (config && read_config(user, config, error) != GYRE_SUCCESS)
        return error->status;
    struct gy_context *ctx;
    gyre_status status = gy_context_create(config, &gy_upcalls, &ctx, error);
    if (status != GYRE_SUCCESS)
        return status;
    gyre_comm *comm;
    status = gy_comm_create_world(ctx, &comm, error);
    if (status != GYRE_SUCCESS) {
        gy_overlay_give_up(ctx->overlay, error);
        gy_context_free(ctx);
        return status;
    }
    if (ctx->error.status != GYRE_SUCCESS) /* a joiner's world may have failed already */
        comm->error = ctx->error;
    ctx->config.join |= config && config->join;
    gy_announce_world(comm);
    *comm_p = comm;
    return GYRE_SUCCESS;
}

static gyre_status divide(const char *function, gyre_comm *comm, int colour, int key, uint32_t word, gyre_comm **comm_p)
{
    if (!gy_check_lives(comm, function) || !gy_check_ungrouped(comm, function))
        return GYRE_INVALID_ARGUMENT;
    if (!comm_p)
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "%s: comm_p is NULL", function);
    gy_progress_enter(comm->ctx);
    gyre_status status = gy_check_comm(comm);
    if (status == GYRE_SUCCESS)
        status = gy_comm_divide(comm, colour, key, word, comm_p);
    gy_progress_leave(comm->ctx);
    return status;
}

gyre_status gyre_comm_duplicate(gyre_comm *comm, gyre_comm **comm_p)
{
    return divide(__func__, comm, 0, 0, 0, comm_p);
}

gyre_status gyre_comm_split(gyre_comm *comm, int color, int key, gyre_comm **comm_p)
{
    return divide(__func__, comm, color < 0 ? -1 : color, key, 1, comm_p);
}

/* Returns this rank's place in the list; -1: not there; -2: the list is wrong and the message says how. */
static int find_in_list(gyre_comm *comm, const int *ranks, int count)
{
    int place = -1;
    if (count < 0 || count > comm->size || (count > 0 && !ranks)) {
        gy_check_fail(comm, GYRE_INVALID_ARGUMENT,
                      ranks ? "gyre_comm_sub: a list of %d ranks, but there are %d"
                            : "gyre_comm_sub: the list of %d ranks of %d is NULL",
                      count, comm->size);
        return -2;
    }
    for (int i = 0; i < count; i++) {
        if (ranks[i] < 0 || ranks[i] >= comm->size) {
            gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "gyre_comm_sub: %d is not a rank: there are %d", ranks[i],
                          comm->size);
            return -2;
        }
        for (int j = 0; j < i; j++)
            if (ranks[j] == ranks[i]) {
                gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "gyre_comm_sub: rank %d is in the list twice", ranks[i]);
                return -2;
            }
        if (ranks[i] == comm->rank)
            place = i;
    }
    return place;
}

/* The others wait for this rank, whose list differs from theirs if theirs are right. */
static gyre_status refuse_list(gyre_comm *comm)
{
    gyre_comm *none = NULL;
    struct gy_error mine = comm->error;
    gyre_status status = divide("gyre_comm_sub", comm, -1, 0, LIST, &none);
    if (status == GYRE_SUCCESS || status == GYRE_INVALID_ARGUMENT) {
        comm->error = mine;
        return GYRE_INVALID_ARGUMENT;
    }
    return status;
}

gyre_status gyre_comm_sub(gyre_comm *comm, const int *ranks, int count, gyre_comm **comm_p)
{
    if (!gy_check_lives(comm, __func__))
        return GYRE_INVALID_ARGUMENT;
    int place = find_in_list(comm, ranks, count);
    if (place == -2)
        return refuse_list(comm);
    uint32_t word = ((uint32_t)XXH3_64bits(ranks, (size_t)count * sizeof(*ranks)) & ~3u) | LIST;
    return divide(__func__, comm, place >= 0 ? 0 : -1, place, word, comm_p);
}

gyre_status gyre_comm_destroy(gyre_comm *comm)
{
    if (!comm)
        return GYRE_SUCCESS;
    if (!gy_check_lives(comm, __func__))
        return GYRE_INVALID_ARGUMENT;
    struct gy_context *ctx = comm->ctx;
    if (ctx->generation != atomic_load(&gy_fork_generation))
        return gy_check_fail(comm, GYRE_FORKED, "this communicator belongs to the parent of this process");
    if (comm->attachment)
        gy_call_group_end_deferred(comm);
    gy_detach(comm);
    gy_comm_close(comm);
    return GYRE_SUCCESS;
}

gyre_status gyre_comm_abort(gyre_comm *comm)
{
    if (!gy_check_lives(comm, __func__))
        return GYRE_INVALID_ARGUMENT;
    if (comm->ctx->generation != atomic_load(&gy_fork_generation))
        return GYRE_FORKED; /* the world is the parent's, and so is its message */
    char text[80];
    int world = comm->ctx->world->rank;
    snprintf(text, sizeof(text), "rank %d aborted the communicator", world);
    gy_overlay_abort(comm->ctx->overlay, text);
    return GYRE_SUCCESS;
}

int gyre_comm_rank(const gyre_comm *comm)
{
    return gy_handle_lives(comm, GY_HANDLE_COMM) ? comm->rank : -1;
}

int gyre_comm_size(const gyre_comm *comm)
{
    return gy_handle_lives(comm, GY_HANDLE_COMM) ? comm->size : -1;
}

const char *gyre_last_error(const gyre_comm *comm)
{
    if (!gy_handle_lives(comm, GY_HANDLE_COMM))
        return gy_check_own_error()->text;
    bool world = comm->ctx->error.status != GYRE_SUCCESS && comm->error.status == GYRE_SUCCESS;
    const char *attached = world ? gy_attachment_error(comm) : NULL;
    if (attached)
        return attached;
    return comm->error.text[0] && !world ? comm->error.text : comm->ctx->error.text;
}

gyre_status gyre_comm_dump(const gyre_comm *comm, int fd)
{
    if (!gy_check_lives(comm, __func__))
        return GYRE_INVALID_ARGUMENT;
    struct gy_context *ctx = comm->ctx;
    if (fcntl(fd, F_GETFD) < 0)
        return gy_check_fail((gyre_comm *)comm, GYRE_INVALID_ARGUMENT, "gyre_comm_dump: %d is no open descriptor", fd);
    gy_progress_enter(ctx);
    /* A child reads its parent's page, and does not change it. */
    bool own = ctx->generation == atomic_load(&gy_fork_generation);
    for (const struct gyre_request *r = own ? ctx->active_first : NULL; r; r = r->next) {
        struct gyre_page_record *record = r->comm == comm ? gy_recorder_at(&r->comm->recorder, r->record) : NULL;
        if (record)
            record->waited_for = r->waiting_for < 0 ? -1 : gy_group_world(&comm->group, r->waiting_for);
    }
    bool good = (!comm->attributes.name[0] || dprintf(fd, "communicator %s: ", comm->attributes.name) >= 0) &&
                gy_recorder_dump(&comm->recorder, comm->rank, fd);
    int why = errno;
    gy_progress_leave(ctx);
    return good ? GYRE_SUCCESS
                : gy_check_fail((gyre_comm *)comm, GYRE_SYSTEM, "gyre_comm_dump: descriptor %d cannot be written: %s",
                                fd, strerror(why));
}

const char *gyre_comm_algorithm(const gyre_comm *comm, const char *collective, size_t count, gyre_dtype dtype)
{
    enum gy_collective which;
    enum gy_algorithm algorithm;
    struct gy_error error = {.quiet = true};
    if (!gy_handle_lives(comm, GY_HANDLE_COMM) || !collective || !gy_collective_find(collective, &which))
        return NULL;
    gy_progress_enter(comm->ctx); /* the choice may be remembered */
    gyre_status status = gy_select(comm, which, false, count * gyre_dtype_size(dtype), &algorithm, &error);
    gy_progress_leave(comm->ctx);
    return status == GYRE_SUCCESS ? gy_algorithm_name(algorithm) : NULL;
}

static gyre_status mem_alloc(gyre_comm *comm, size_t bytes, void **memory_p)
{
    gyre_status status = gy_check_comm(comm);
    if (status != GYRE_SUCCESS)
        return status;
    comm->error.status = GYRE_SUCCESS; /* failures of an earlier call do not count for this one */
    gy_windows_free_left(comm->ctx);   /* peers may have left windows by now, which frees their memory */
    if (comm->ctx->segment)
        return gy_segment_heap_alloc(comm->ctx->segment, bytes ? bytes : 1, memory_p, &comm->error);
    void *memory = bytes > ADDRESSES ? NULL : gy_alloc_aligned(4096, bytes ? bytes : 1);
    if (!memory)
        return gy_check_fail(comm, GYRE_NO_MEMORY, "out of memory for %zu bytes", bytes);
    memset(memory, 0, bytes);
    gy_handle_add(memory, GY_HANDLE_MEMORY);
    *memory_p = memory;
    return GYRE_SUCCESS;
}

gyre_status gyre_mem_alloc(gyre_comm *comm, size_t bytes, void **memory_p)
{
    if (!gy_check_lives(comm, __func__))
        return GYRE_INVALID_ARGUMENT;
    if (!memory_p)
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "gyre_mem_alloc: memory_p is NULL");
    gy_progress_enter(comm->ctx);
    gyre_status status = mem_alloc(comm, bytes, memory_p);
    if (status == GYRE_SUCCESS)
        gy_context_register(comm->ctx, *memory_p, bytes ? bytes : 1);
    gy_progress_leave(comm->ctx);
    return status;
}

static bool was_given(const struct gyre_comm *comm, const void *memory)
{
    return comm->ctx->segment ? gy_segment_heap_holds(comm->ctx->segment, memory)
                              : gy_handle_lives(memory, GY_HANDLE_MEMORY);
}

static void free_given(struct gyre_comm *comm, void *memory)
{
    gy_context_unregister(comm->ctx, memory); /* transports release it while it exists */
    if (comm->ctx->segment) {
        gy_segment_heap_free(comm->ctx->segment, memory);
        return;
    }
    gy_handle_remove(memory, GY_HANDLE_MEMORY);
    gy_free(memory);
}

gyre_status gyre_mem_free(gyre_comm *comm, void *memory)
{
    if (!gy_check_lives(comm, __func__))
        return GYRE_INVALID_ARGUMENT;
    if (!memory)
        return GYRE_SUCCESS;
    if (comm->ctx->generation != atomic_load(&gy_fork_generation)) /* the pages belong to the parent and its peers */
        return gy_check_fail(comm, GYRE_FORKED, "this memory belongs to the parent of this process");
    gyre_status status = GYRE_SUCCESS;
    gy_progress_enter(comm->ctx);
    if (was_given(comm, memory))
        free_given(comm, memory);
    else
        status = gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "%p was not given by gyre_mem_alloc of this world", memory);
    gy_progress_leave(comm->ctx);
    return status;
}
