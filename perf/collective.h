/* The collectives as gyre-perf sees them: sizes as nccl-tests counts them, buffers, one call, the check of its
 * result. */
#ifndef GYRE_PERF_COLLECTIVE_H
#define GYRE_PERF_COLLECTIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gyre/cuda.h>

enum gy_kind {
    GY_KIND_ALL_REDUCE,
    GY_KIND_REDUCE_SCATTER,
    GY_KIND_ALL_GATHER,
    GY_KIND_BROADCAST,
    GY_KIND_BARRIER,
    GY_KIND_REDUCE,
    GY_KIND_GATHER,
    GY_KIND_SCATTER,
    GY_KIND_ALL_TO_ALL,
    GY_KINDS,
    GY_KIND_SENDRECV_RING = GY_KINDS /* no collective: to the next rank and from the one before; one blocking call */
};

/* One row of the table, of one placement. `count` is the collective's argument; `bytes` the size column: the larger of
 * a rank's input and output. */
struct gy_case {
    enum gy_kind kind;
    gyre_comm *comm;
    int rank, size, root;
    gyre_dtype dtype;
    gyre_op op;
    size_t count, bytes;
    bool in_place;
    unsigned char *input, *output; /* `bytes` each; in place only `output` is used */
    gyre_stream stream;            /* of calls that a stream orders */
};

const char *gy_kind_name(enum gy_kind kind);
/* True if it has a form in place. */
bool gy_kind_is_in_place(enum gy_kind kind);
/* Finds a collective by gyre's name, or by that of a program of nccl-tests or of the OSU benchmarks:
 * all_reduce_perf, allreduce, osu_bcast. */
bool gy_kind_find(const char *name, enum gy_kind *kind_p);
bool gy_kind_reduces(enum gy_kind kind);
bool gy_kind_has_root(enum gy_kind kind);
/* True if count is that of one rank's block, and the size column that of all blocks. */
bool gy_kind_is_blocked(enum gy_kind kind);
/* Bandwidth on the wire per rank over algbw: 2(n−1)/n, (n−1)/n, 1; 0 for a barrier. */
double gy_kind_bus_factor(enum gy_kind kind, int size);
/* Sets count and bytes for a wish of `bytes`, rounded down to what the ranks can share, at least one element each. */
void gy_case_size(struct gy_case *it, size_t bytes);

void gy_case_fill(const struct gy_case *it, uint64_t iteration);
gyre_status gy_case_call(const struct gy_case *it);
/* The same call as a request, or as a persistent one; a ring has neither: GYRE_UNSUPPORTED. */
gyre_status gy_case_start(const struct gy_case *it, gyre_request **request_p);
gyre_status gy_case_init(const struct gy_case *it, gyre_request **request_p);
/* The same call ordered on the case's stream. */
gyre_status gy_case_call_on(const struct gy_case *it);
size_t gy_case_wrong(const struct gy_case *it, uint64_t iteration);

#endif
