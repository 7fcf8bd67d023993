/* Each rank knows only its own counts. Ranks that are near (shadow.h) therefore reduce the extremes of all counts
 * first, which costs less than it saves. Blocks of one length are exchanged as in MPI_Alltoall, and short blocks are
 * padded to one length. Longer blocks of several lengths are left to the MPI library, which is faster than gyre there.
 * Ranks that are not near always use gyre. */
#include <stdint.h>
#include <string.h>

#include "failure.h"
#include "short.h"
#include "take.h"

/* The data of one call; `in` is unused in place. The lengths are bytes of a block on any rank: the longest, the longest
 * one that is sent to another rank, and the shortest. */
struct exchange {
    struct gm_shadow *shadow;
    struct gm_blocks_view in, out;
    bool in_place;
    size_t longest, longest_sent, shortest;
};

static struct gm_blocks_view *source_of(struct exchange *it)
{
    return it->in_place ? &it->out : &it->in;
}

static void compare(struct exchange *it, const size_t *counts)
{
    for (int rank = 0; rank < it->shadow->size; rank++) {
        it->longest = counts[rank] > it->longest ? counts[rank] : it->longest;
        it->shortest = counts[rank] < it->shortest ? counts[rank] : it->shortest;
        if (rank != it->shadow->rank)
            it->longest_sent = counts[rank] > it->longest_sent ? counts[rank] : it->longest_sent;
    }
}

static void compare_own(struct exchange *it)
{
    it->longest = it->longest_sent = 0;
    it->shortest = SIZE_MAX;
    compare(it, source_of(it)->counts);
    compare(it, it->out.counts);
}

static bool are_short(const struct exchange *it)
{
    return gm_is_short(it->shadow, it->longest_sent, it->shadow->size);
}

/* Sets the lengths to those of all ranks. Short data between two ranks need no reduction: both ranks know the
 * lengths. */
static int agree(struct exchange *it)
{
    compare_own(it);
    if (it->shadow->size == 2 && are_short(it))
        return MPI_SUCCESS;
    const uint64_t mine[] = {it->longest, it->longest_sent, ~(uint64_t)it->shortest};
    uint64_t all[3];
    gm_take_begin(it->shadow);
    gyre_status status = gyre_all_reduce(it->shadow->comm, mine, all, 3, GYRE_UINT64, GYRE_MAX);
    gm_progress_leave();
    it->longest = all[0], it->longest_sent = all[1], it->shortest = ~all[2];
    return status == GYRE_SUCCESS ? MPI_SUCCESS : gm_failure_end(it->shadow, status, GM_ALLTOALLV);
}

static void copy_block(char *to, const char *from, size_t bytes)
{
    if (bytes > 0)
        memcpy(to, from, bytes);
}

/* Pads each block to the longest one that is sent. A rank's own block is copied locally. */
static gyre_status exchange_short(struct exchange *it)
{
    _Alignas(64) char sent[GM_SHORT] = {0}, received[GM_SHORT];
    const struct gm_blocks_view *from = source_of(it), *to = &it->out;
    const struct gm_shadow *shadow = it->shadow;
    if (!it->in_place)
        copy_block(to->bytes + to->displs[shadow->rank], from->bytes + from->displs[shadow->rank],
                   to->counts[shadow->rank]);
    if (it->longest_sent == 0)
        return GYRE_SUCCESS;
    for (int rank = 0; rank < shadow->size; rank++)
        if (rank != shadow->rank)
            copy_block(sent + (size_t)rank * it->longest_sent, from->bytes + from->displs[rank], from->counts[rank]);
    gyre_status status = gyre_all_to_all(shadow->comm, sent, received, it->longest_sent, GYRE_UINT8);
    for (int rank = 0; rank < shadow->size && status == GYRE_SUCCESS; rank++)
        if (rank != shadow->rank)
            copy_block(to->bytes + to->displs[rank], received + (size_t)rank * it->longest_sent, to->counts[rank]);
    return status;
}

static gyre_status exchange(struct exchange *it, bool equal)
{
    const struct gm_blocks_view *from = source_of(it), *to = &it->out;
    if (equal)
        return gyre_all_to_all(it->shadow->comm, from->bytes, to->bytes, to->counts[0], GYRE_UINT8);
    if (it->shadow->near)
        return exchange_short(it);
    return gyre_all_to_allv(it->shadow->comm, from->bytes, from->counts, from->displs, to->bytes, to->counts,
                            to->displs, GYRE_UINT8);
}

static int all_to_all_blocks(struct exchange *it)
{
    struct gm_shadow *shadow = it->shadow;
    bool equal = shadow->near && !are_short(it);
    int code = MPI_SUCCESS;
    if (!gm_blocks_open(&it->out, it->in_place, equal) || (!it->in_place && !gm_blocks_open(&it->in, true, equal)))
        code = gm_failure_no_memory(shadow, GM_ALLTOALLV);
    if (code == MPI_SUCCESS) {
        gm_take_begin(shadow);
        code = gm_take_end(shadow, exchange(it, equal), GM_ALLTOALLV);
    }
    gm_blocks_close(&it->in, false);
    gm_blocks_close(&it->out, code == MPI_SUCCESS);
    return code;
}

/* A rank without data takes part, since it does not know whether other ranks have data. */
int gm_alltoallv(struct gm_blocks input, struct gm_blocks output, MPI_Comm comm)
{
    struct exchange it = {.shadow = gm_shadow_find(comm, GM_ALLTOALLV), .in_place = input.buffer == MPI_IN_PLACE};
    if (!it.shadow || !gm_blocks_measure(&it.out, &output, it.shadow, 0) ||
        (!it.in_place && !gm_blocks_measure(&it.in, &input, it.shadow, 2)))
        return GM_PASS;
    int code = it.shadow->near ? agree(&it) : MPI_SUCCESS;
    if (code != MPI_SUCCESS)
        return code;
    if (it.shadow->near && !are_short(&it) && it.longest != it.shortest)
        return GM_PASS;
    return all_to_all_blocks(&it);
}
