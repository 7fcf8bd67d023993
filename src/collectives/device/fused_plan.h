/* The work of the kernels for a call of ranks that share a GPU: pieces of a reduction, or moves.
 *
 *   all_reduce                       one piece           every input           -> every output
 *   reduce                           one piece           every input           -> the root's output
 *   reduce_scatter                   one piece per rank  block r of all inputs -> the output of rank r
 *   broadcast, gather, scatter, ...  one move per pair of blocks; in place, an exchange per pair
 *   barrier                          nothing */
#ifndef GY_COLLECTIVES_DEVICE_FUSED_PLAN_H
#define GY_COLLECTIVES_DEVICE_FUSED_PLAN_H

#include "collectives/device/arrival.h"
#include "cuda/kernels/arguments.h"

enum { GY_TAKER_ANY = -1 };

struct gy_plan_piece {
    uint64_t count; /* elements */
    int nsrc, ndst;
    int taker; /* the rank whose output is written; GY_TAKER_ANY: outputs of several ranks, or of one vector */
    const void *src[GY_GROUP_MOST];
    void *dst[GY_GROUP_MOST];
};

struct gy_plan_span {
    uintptr_t first, end;
    bool written;
};

struct gy_fused_plan {
    size_t pieces, moves, spans, room; /* `room`: number of elements of each array */
    struct gy_plan_piece *piece;
    struct gy_one_move *move;
    int *taker; /* of each move */
    struct gy_plan_span *span;
};

/* Allocates the arrays for any call of `size` ranks. Returns false if out of memory. */
bool gy_fused_plan_open(struct gy_fused_plan *plan, int size);
void gy_fused_plan_close(struct gy_fused_plan *plan);
/* Plans a collective, with the arrivals of all ranks in rank order, or a message, with the arrivals of sender and
 * receiver. Returns false if no kernel can execute it: operands overlap, or counts differ. */
bool gy_fused_plan_make(struct gy_fused_plan *plan, struct gy_arrival *const *of, int size);
/* Keeps one of `parts` parts of the plan, for elements of `element` bytes: a slice of what several ranks take, and the
 * rest where part_of[taker] is the part. The parts of a plan write different bytes, and no part reads what another one
 * writes, except at the same place of a slice. */
void gy_fused_plan_keep_part(struct gy_fused_plan *plan, size_t element, const int *part_of, int part, int parts);

#endif
