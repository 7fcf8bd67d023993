/* The call signatures that each rank publishes to its peers on the host.
 *
 *   rank i:  entry[sequence] = shape, exposed buffers ──▶ offered ──▶ entered  ──▶ each peer compares it
 *
 * An entry is overwritten GY_CALL_SIGNATURES operations later: a reader checks before and after its copy that the
 * entry is still the one it wants. */
#include "collectives/engine/call_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <xxhash.h>

#include "core/fence.h"

/* a link that it never made will not break */

bool gy_shape_equal(const struct gy_call_signature *a, const struct gy_call_signature *b)
{
    return a->sequence == b->sequence && a->count == b->count && a->root == b->root && a->collective == b->collective &&
           a->dtype == b->dtype && a->op == b->op && a->algorithm == b->algorithm;
}

void gy_mismatch(struct gyre_comm *comm, int peer, const struct gy_call_signature *theirs,
                 const struct gy_call_signature *mine)
{
    char a[160], b[160], text[480];
    gy_shape_print(mine, a, sizeof(a));
    gy_shape_print(theirs, b, sizeof(b));
    int world = gy_group_world(&comm->group, peer);
    snprintf(text, sizeof(text),
             "ranks called different collectives on communicator %" PRIu32 ": rank %d called %s, rank %d called %s",
             comm->id, comm->ctx->world->rank, a, world, b);
    gy_error_set(&comm->ctx->error, GYRE_MISMATCH, world, "%s", text);
    gy_overlay_report(comm->ctx->overlay, GYRE_MISMATCH, world, text);
}

void gy_signature_publish(struct gyre_comm *comm, const struct gy_call_signature *shape, const struct gy_offer *offer)
{
    struct gy_region_control *mine = comm->control[comm->rank];
    struct gy_entry *entry = &mine->entry[shape->sequence % GY_CALL_SIGNATURES];
    comm->arrived = shape->sequence;
    if (offer || atomic_load_explicit(&entry->offered, memory_order_relaxed) != 0)
        atomic_store_explicit(&entry->offered, 0, memory_order_relaxed);
    /* Pairs with the fences of signature_of. A reader that has copied a part of the new entry then sees that it is
     * replaced: by `offered`, or by `entered`, which has reached the operation before this one. A release store
     * alone lets later stores pass it. */
    gy_fence(memory_order_release);
    gy_signature_copy(&entry->signature, shape);
    if (offer) {
        entry->offer = *offer;
        atomic_store_explicit(&entry->offered, shape->sequence, memory_order_release);
    }
    atomic_store_explicit(&mine->entered, shape->sequence, memory_order_release);
}

/* Reads what the peer has entered as operation `sequence`. Returns false if the peer has not come so far, or has
 * overwritten it. */
static bool signature_of(const struct gy_region_control *theirs, uint64_t sequence, struct gy_call_signature *shape_p)
{
    const struct gy_entry *entry = &theirs->entry[sequence % GY_CALL_SIGNATURES];
    if (atomic_load_explicit(&entry->offered, memory_order_acquire) == sequence) { /* no other line is needed */
        *shape_p = entry->signature;
        gy_fence(memory_order_acquire);
        if (atomic_load_explicit(&entry->offered, memory_order_relaxed) == sequence)
            return true;
    }
    uint64_t entered = atomic_load_explicit(&theirs->entered, memory_order_acquire);
    if (entered < sequence || entered >= sequence + GY_CALL_SIGNATURES - 1)
        return false;
    *shape_p = entry->signature;
    gy_fence(memory_order_seq_cst); /* the copy is consistent if the peer is still not far ahead after it */
    return atomic_load_explicit(&theirs->entered, memory_order_relaxed) < sequence + GY_CALL_SIGNATURES - 1;
}

/* Compares operation `sequence` of both ranks. An operation that the peer has not reached, or has overwritten, is no
 * mismatch. */
static bool verify_operation(struct gyre_comm *comm, int peer, uint64_t sequence)
{
    struct gy_call_signature own = comm->control[comm->rank]->entry[sequence % GY_CALL_SIGNATURES].signature, shape;
    if (own.sequence != sequence || !signature_of(comm->control[peer], sequence, &shape) ||
        shape.sequence != sequence || gy_shape_equal(&shape, &own))
        return true;
    gy_mismatch(comm, peer, &shape, &own);
    return false;
}

/* In an operation with a root some ranks wait for no peer. So the operations just before this one are compared with
 * it: of two ranks, back to one that has been compared; of more, further, since that comparison may have been with
 * another peer. */
bool gy_signature_compare(struct gyre_comm *comm, uint64_t sequence, int peer)
{
    if (!verify_operation(comm, peer, sequence))
        return false;
    uint64_t known = comm->size == 2 ? comm->compared : 0;
    for (uint64_t back = 1; back < GY_REGION_SLOTS && sequence > known + back; back++) {
        uint64_t earlier = sequence - back;
        const struct gy_call_signature *own = &comm->control[comm->rank]->entry[earlier % GY_CALL_SIGNATURES].signature;
        if (own->sequence != earlier || !gy_has_root(own->collective))
            return true;
        if (!verify_operation(comm, peer, earlier))
            return false;
    }
    return true;
}

struct gy_call_signature gy_shape_of(const struct gy_call *call, enum gy_algorithm algorithm, int size)
{
    struct gy_call_signature shape = {.count = call->count,
                                      .root = (uint32_t)call->root,
                                      .collective = (uint8_t)call->collective,
                                      .dtype = (uint8_t)call->dtype,
                                      .op = (uint8_t)call->op,
                                      .algorithm = (uint8_t)algorithm};
    if (call->varying) {
        shape.collective |= GY_VARYING;
        /* All ranks pass the same list, except for all_to_all, whose counts are compared pair by pair. */
        shape.count = call->collective == GY_ALL_TO_ALL
                          ? 0
                          : (uint32_t)XXH3_64bits(call->in_counts, (size_t)size * sizeof(*call->in_counts));
    }
    return shape;
}
