/* size column and busbw are those of nccl-tests' PERFORMANCE.md: all_gather and reduce_scatter count the whole vector
 * of all ranks. */
#include "collective.h"

#include <string.h>

#include "exact.h"

static const char *const names[GY_KINDS + 1] = {"all_reduce", "reduce_scatter", "all_gather", "broadcast",
                                                "barrier",    "reduce",         "gather",     "scatter",
                                                "all_to_all", "sendrecv_ring"};

const char *gy_kind_name(enum gy_kind kind)
{
    return names[kind];
}

/* Without underscores, "osu_" before and "_perf" behind. */
static void strip(const char *name, char text_p[32])
{
    size_t used = 0;
    name += strncmp(name, "osu_", 4) == 0 ? 4 : 0;
    for (; *name && strcmp(name, "_perf") != 0 && used < 31; name++) {
        if (*name != '_')
            text_p[used++] = *name;
    }
    text_p[used] = '\0';
}

bool gy_kind_find(const char *name, enum gy_kind *kind_p)
{
    char wanted[32], known[32];
    if (strcmp(name, names[GY_KIND_SENDRECV_RING]) == 0 || strcmp(name, "sendrecv_perf") == 0) {
        *kind_p = GY_KIND_SENDRECV_RING;
        return true;
    }
    strip(name, wanted);
    if (strcmp(wanted, "bcast") == 0)
        strip("broadcast", wanted);
    for (int kind = 0; kind < GY_KINDS; kind++) {
        strip(names[kind], known);
        if (strcmp(wanted, known) == 0) {
            *kind_p = (enum gy_kind)kind;
            return true;
        }
    }
    return false;
}

bool gy_kind_reduces(enum gy_kind kind)
{
    return kind == GY_KIND_ALL_REDUCE || kind == GY_KIND_REDUCE_SCATTER || kind == GY_KIND_REDUCE;
}

bool gy_kind_is_in_place(enum gy_kind kind)
{
    return kind != GY_KIND_SENDRECV_RING;
}

bool gy_kind_has_root(enum gy_kind kind)
{
    return kind == GY_KIND_BROADCAST || kind == GY_KIND_REDUCE || kind == GY_KIND_GATHER || kind == GY_KIND_SCATTER;
}

double gy_kind_bus_factor(enum gy_kind kind, int size)
{
    double n = (double)size;
    switch (kind) {
    case GY_KIND_ALL_REDUCE: return 2 * (n - 1) / n;
    case GY_KIND_REDUCE_SCATTER:
    case GY_KIND_GATHER:
    case GY_KIND_SCATTER:
    case GY_KIND_ALL_TO_ALL:
    case GY_KIND_ALL_GATHER: return (n - 1) / n;
    case GY_KIND_REDUCE:
    case GY_KIND_SENDRECV_RING:
    case GY_KIND_BROADCAST: return 1;
    default: return 0;
    }
}

bool gy_kind_is_blocked(enum gy_kind kind)
{
    return kind == GY_KIND_REDUCE_SCATTER || kind == GY_KIND_ALL_GATHER || kind == GY_KIND_GATHER ||
           kind == GY_KIND_SCATTER || kind == GY_KIND_ALL_TO_ALL;
}

void gy_case_size(struct gy_case *it, size_t bytes)
{
    size_t share = gyre_dtype_size(it->dtype) * (gy_kind_is_blocked(it->kind) ? (size_t)it->size : 1);
    it->count = it->kind == GY_KIND_BARRIER ? 0 : bytes / share ? bytes / share : 1;
    it->bytes = it->count * share;
}

static size_t block_bytes(const struct gy_case *it)
{
    return it->count * gyre_dtype_size(it->dtype);
}

static bool gathers(enum gy_kind kind)
{
    return kind == GY_KIND_ALL_GATHER || kind == GY_KIND_GATHER;
}

static bool scatters(enum gy_kind kind)
{
    return kind == GY_KIND_REDUCE_SCATTER || kind == GY_KIND_SCATTER;
}

static bool has_input(const struct gy_case *it)
{
    return (it->kind != GY_KIND_BROADCAST && it->kind != GY_KIND_SCATTER) || it->rank == it->root;
}

static bool has_output(const struct gy_case *it)
{
    return (it->kind != GY_KIND_REDUCE && it->kind != GY_KIND_GATHER) || it->rank == it->root;
}

/* Where a rank's input begins: in place it is a part of the output buffer, as the header says. */
static unsigned char *input_of(const struct gy_case *it)
{
    if (!it->in_place)
        return it->input;
    return gathers(it->kind) ? it->output + (size_t)it->rank * block_bytes(it) : it->output;
}

static unsigned char *output_of(const struct gy_case *it)
{
    return it->in_place && scatters(it->kind) ? it->output + (size_t)it->rank * block_bytes(it) : it->output;
}

/* Two ranks' blocks are told apart by a number for each pair. */
static int pair_of(const struct gy_case *it, int from, int to)
{
    return from * it->size + to;
}

void gy_case_fill(const struct gy_case *it, uint64_t iteration)
{
    size_t blocks = scatters(it->kind) ? (size_t)it->size : 1;
    if (it->kind == GY_KIND_BARRIER)
        return;
    /* Whatever the last iteration left must not look right. */
    if (!it->in_place || !scatters(it->kind))
        memset(it->output, 0xa5, scatters(it->kind) ? block_bytes(it) : it->bytes);
    else if (!has_input(it))
        memset(it->output, 0xa5, it->bytes);
    if (it->kind == GY_KIND_ALL_TO_ALL)
        for (int to = 0; to < it->size; to++)
            gy_exact_fill(input_of(it) + (size_t)to * block_bytes(it), 0, it->count, it->dtype, it->op,
                          pair_of(it, it->rank, to), iteration);
    else if (has_input(it))
        gy_exact_fill(input_of(it), 0, it->count * blocks, it->dtype, it->op, it->rank, iteration);
}

/* The forms of a call differ in their names and in what they give. */
#define CALL_ALL(form, ...)                                                                                           \
    const void *input = input_of(it);                                                                                 \
    void *output = output_of(it);                                                                                     \
    switch (it->kind) {                                                                                               \
    case GY_KIND_ALL_REDUCE:                                                                                          \
        return gyre_all_reduce##form(it->comm, input, output, it->count, it->dtype, it->op __VA_ARGS__);              \
    case GY_KIND_REDUCE_SCATTER:                                                                                      \
        return gyre_reduce_scatter##form(it->comm, input, output, it->count, it->dtype, it->op __VA_ARGS__);          \
    case GY_KIND_ALL_GATHER: return gyre_all_gather##form(it->comm, input, output, it->count, it->dtype __VA_ARGS__); \
    case GY_KIND_BROADCAST:                                                                                           \
        return gyre_broadcast##form(it->comm, input, output, it->count, it->dtype, it->root __VA_ARGS__);             \
    case GY_KIND_REDUCE:                                                                                              \
        return gyre_reduce##form(it->comm, input, output, it->count, it->dtype, it->op, it->root __VA_ARGS__);        \
    case GY_KIND_GATHER:                                                                                              \
        return gyre_gather##form(it->comm, input, output, it->count, it->dtype, it->root __VA_ARGS__);                \
    case GY_KIND_SCATTER:                                                                                             \
        return gyre_scatter##form(it->comm, input, output, it->count, it->dtype, it->root __VA_ARGS__);               \
    case GY_KIND_ALL_TO_ALL: return gyre_all_to_all##form(it->comm, input, output, it->count, it->dtype __VA_ARGS__); \
    default: return gyre_barrier##form(it->comm __VA_ARGS__);                                                         \
    }

static int rank_before(const struct gy_case *it)
{
    return (it->rank + it->size - 1) % it->size;
}

gyre_status gy_case_call(const struct gy_case *it)
{
    if (it->kind == GY_KIND_SENDRECV_RING)
        return gyre_sendrecv(it->comm, it->input, it->count, (it->rank + 1) % it->size, it->output, it->count,
                             rank_before(it), it->dtype);
    CALL_ALL()
}

gyre_status gy_case_start(const struct gy_case *it, gyre_request **request_p)
{
    if (it->kind == GY_KIND_SENDRECV_RING)
        return GYRE_UNSUPPORTED;
    CALL_ALL(_start, , request_p)
}

gyre_status gy_case_init(const struct gy_case *it, gyre_request **request_p)
{
    if (it->kind == GY_KIND_SENDRECV_RING)
        return GYRE_UNSUPPORTED;
    CALL_ALL(_init, , request_p)
}

gyre_status gy_case_call_on(const struct gy_case *it)
{
    if (it->kind == GY_KIND_SENDRECV_RING) {
        gyre_group_begin();
        gyre_status sent = gyre_send_on(it->comm, it->input, it->count, it->dtype, (it->rank + 1) % it->size,
                                        it->stream);
        gyre_status received = gyre_recv_on(it->comm, it->output, it->count, it->dtype, rank_before(it), it->stream);
        gyre_status ended = gyre_group_end();
        return sent != GYRE_SUCCESS ? sent : received != GYRE_SUCCESS ? received : ended;
    }
    CALL_ALL(_on, , it->stream)
}

size_t gy_case_wrong(const struct gy_case *it, uint64_t iteration)
{
    size_t wrong = 0;
    if (!has_output(it))
        return 0;
    switch (it->kind) {
    case GY_KIND_REDUCE:
    case GY_KIND_ALL_REDUCE:
        return gy_exact_wrong_reduced(it->output, 0, it->count, it->dtype, it->op, it->size, iteration);
    case GY_KIND_REDUCE_SCATTER:
        return gy_exact_wrong_reduced(output_of(it), (size_t)it->rank * it->count, it->count, it->dtype, it->op,
                                      it->size, iteration);
    case GY_KIND_GATHER:
    case GY_KIND_ALL_GATHER:
        for (int rank = 0; rank < it->size; rank++)
            wrong += gy_exact_wrong(it->output + (size_t)rank * block_bytes(it), 0, it->count, it->dtype, it->op, rank,
                                    iteration);
        return wrong;
    case GY_KIND_ALL_TO_ALL:
        for (int from = 0; from < it->size; from++)
            wrong += gy_exact_wrong(it->output + (size_t)from * block_bytes(it), 0, it->count, it->dtype, it->op,
                                    pair_of(it, from, it->rank), iteration);
        return wrong;
    case GY_KIND_SCATTER:
        return gy_exact_wrong(output_of(it), (size_t)it->rank * it->count, it->count, it->dtype, it->op, it->root,
                              iteration);
    case GY_KIND_SENDRECV_RING:
        return gy_exact_wrong(it->output, 0, it->count, it->dtype, it->op, rank_before(it), iteration);
    case GY_KIND_BROADCAST: return gy_exact_wrong(it->output, 0, it->count, it->dtype, it->op, it->root, iteration);
    default: return 0;
    }
}
