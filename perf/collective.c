/* size column and busbw are those of nccl-tests' PERFORMANCE.md: all_gather and reduce_scatter count the whole vector
 * of all ranks. */
#include "collective.h"

#include <string.h>

#include "exact.h"

static const char *const names[GY_KINDS] = {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "barrier"};

const char *gy_kind_name(enum gy_kind kind)
{
    return names[kind];
}

bool gy_kind_find(const char *name, enum gy_kind *kind_p)
{
    for (int kind = 0; kind < GY_KINDS; kind++) {
        if (strcmp(name, names[kind]) == 0) {
            *kind_p = (enum gy_kind)kind;
            return true;
        }
    }
    return false;
}

bool gy_kind_reduces(enum gy_kind kind)
{
    return kind == GY_KIND_ALL_REDUCE || kind == GY_KIND_REDUCE_SCATTER;
}

double gy_kind_bus_factor(enum gy_kind kind, int size)
{
    double n = (double)size;
    switch (kind) {
    case GY_KIND_ALL_REDUCE: return 2 * (n - 1) / n;
    case GY_KIND_REDUCE_SCATTER:
    case GY_KIND_ALL_GATHER: return (n - 1) / n;
    case GY_KIND_BROADCAST: return 1;
    default: return 0;
    }
}

static bool is_blocked(enum gy_kind kind)
{
    return kind == GY_KIND_REDUCE_SCATTER || kind == GY_KIND_ALL_GATHER;
}

void gy_case_size(struct gy_case *it, size_t bytes)
{
    size_t share = gyre_dtype_size(it->dtype) * (is_blocked(it->kind) ? (size_t)it->size : 1);
    it->count = it->kind == GY_KIND_BARRIER ? 0 : bytes / share ? bytes / share : 1;
    it->bytes = it->count * share;
}

static size_t block_bytes(const struct gy_case *it)
{
    return it->count * gyre_dtype_size(it->dtype);
}

/* Where a rank's input begins: in place it is a part of the output buffer, as the header says. */
static unsigned char *input_of(const struct gy_case *it)
{
    if (!it->in_place)
        return it->input;
    return it->kind == GY_KIND_ALL_GATHER ? it->output + (size_t)it->rank * block_bytes(it) : it->output;
}

static unsigned char *output_of(const struct gy_case *it)
{
    return it->in_place && it->kind == GY_KIND_REDUCE_SCATTER ? it->output + (size_t)it->rank * block_bytes(it)
                                                              : it->output;
}

void gy_case_fill(const struct gy_case *it, uint64_t iteration)
{
    size_t elements = it->kind == GY_KIND_REDUCE_SCATTER ? it->count * (size_t)it->size : it->count;
    if (it->kind == GY_KIND_BARRIER)
        return;
    if (!it->in_place || it->kind != GY_KIND_REDUCE_SCATTER) /* whatever the last iteration left must not look right */
        memset(it->output, 0xa5, it->kind == GY_KIND_REDUCE_SCATTER ? block_bytes(it) : it->bytes);
    if (it->kind != GY_KIND_BROADCAST || it->rank == it->root)
        gy_exact_fill(input_of(it), 0, elements, it->dtype, it->op, it->rank, iteration);
}

gyre_status gy_case_call(const struct gy_case *it)
{
    const void *input = input_of(it);
    void *output = output_of(it);
    switch (it->kind) {
    case GY_KIND_ALL_REDUCE: return gyre_all_reduce(it->comm, input, output, it->count, it->dtype, it->op);
    case GY_KIND_REDUCE_SCATTER: return gyre_reduce_scatter(it->comm, input, output, it->count, it->dtype, it->op);
    case GY_KIND_ALL_GATHER: return gyre_all_gather(it->comm, input, output, it->count, it->dtype);
    case GY_KIND_BROADCAST: return gyre_broadcast(it->comm, input, output, it->count, it->dtype, it->root);
    default: return gyre_barrier(it->comm);
    }
}

size_t gy_case_wrong(const struct gy_case *it, uint64_t iteration)
{
    size_t wrong = 0;
    switch (it->kind) {
    case GY_KIND_ALL_REDUCE:
        return gy_exact_wrong_reduced(it->output, 0, it->count, it->dtype, it->op, it->size, iteration);
    case GY_KIND_REDUCE_SCATTER:
        return gy_exact_wrong_reduced(output_of(it), (size_t)it->rank * it->count, it->count, it->dtype, it->op,
                                      it->size, iteration);
    case GY_KIND_ALL_GATHER:
        for (int rank = 0; rank < it->size; rank++)
            wrong += gy_exact_wrong(it->output + (size_t)rank * block_bytes(it), 0, it->count, it->dtype, it->op, rank,
                                    iteration);
        return wrong;
    case GY_KIND_BROADCAST: return gy_exact_wrong(it->output, 0, it->count, it->dtype, it->op, it->root, iteration);
    default: return 0;
    }
}
