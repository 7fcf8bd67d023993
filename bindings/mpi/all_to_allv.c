/* Each rank knows its own counts only. Ranks that are near agree first on what the counts have in common, which takes
 * less than the longer way that it saves: blocks of one length, or short ones, go as MPI_Alltoall's do. Longer ones of
 * several lengths are left to the MPI library, which is quicker than gyre there. Ranks that are not near leave it to
 * gyre. */
#include <stdint.h>
#include <string.h>

#include "failure.h"
#include "short.h"
#include "take.h"

/* The data of one call, of which `in` is unused in place; and bytes of a block on any rank: the longest, of those that
 * leave their rank, too, and the shortest. */
struct exchange {
    struct gm_twin *twin;
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
    for (int rank = 0; rank < it->twin->size; rank++) {
        it->longest = counts[rank] > it->longest ? counts[rank] : it->longest;
        it->shortest = counts[rank] < it->shortest ? counts[rank] : it->shortest;
        if (rank != it->twin->rank)
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
    return gm_is_short(it->twin, it->longest_sent, it->twin->size);
}

/* What passes between two ranks is known to both. Among more ranks the numbers become those of all ranks. */
static int agree(struct exchange *it)
{
    compare_own(it);
    if (it->twin->size == 2 && are_short(it))
        return MPI_SUCCESS;
    const uint64_t mine[] = {it->longest, it->longest_sent, ~(uint64_t)it->shortest};
    uint64_t all[3];
    gm_take_begin(it->twin);
    gyre_status status = gyre_all_reduce(it->twin->comm, mine, all, 3, GYRE_UINT64, GYRE_MAX);
    gm_progress_leave();
    it->longest = all[0], it->longest_sent = all[1], it->shortest = ~all[2];
    return status == GYRE_SUCCESS ? MPI_SUCCESS : gm_failure_end(it->twin, status, GM_ALLTOALLV);
}

static void copy_block(char *to, const char *from, size_t bytes)
{
    if (bytes > 0)
        memcpy(to, from, bytes);
}

/* Each block in the place of one of the longest; a rank's own one is copied by itself. */
static gyre_status exchange_short(struct exchange *it)
{
    _Alignas(64) char sent[GM_SHORT] = {0}, received[GM_SHORT];
    const struct gm_blocks_view *from = source_of(it), *to = &it->out;
    const struct gm_twin *twin = it->twin;
    if (!it->in_place)
        copy_block(to->bytes + to->places[twin->rank], from->bytes + from->places[twin->rank], to->counts[twin->rank]);
    if (it->longest_sent == 0)
        return GYRE_SUCCESS;
    for (int rank = 0; rank < twin->size; rank++)
        if (rank != twin->rank)
            copy_block(sent + (size_t)rank * it->longest_sent, from->bytes + from->places[rank], from->counts[rank]);
    gyre_status status = gyre_all_to_all(twin->comm, sent, received, it->longest_sent, GYRE_UINT8);
    for (int rank = 0; rank < twin->size && status == GYRE_SUCCESS; rank++)
        if (rank != twin->rank)
            copy_block(to->bytes + to->places[rank], received + (size_t)rank * it->longest_sent, to->counts[rank]);
    return status;
}

static gyre_status exchange(struct exchange *it, bool equal)
{
    const struct gm_blocks_view *from = source_of(it), *to = &it->out;
    if (equal)
        return gyre_all_to_all(it->twin->comm, from->bytes, to->bytes, to->counts[0], GYRE_UINT8);
    if (it->twin->near)
        return exchange_short(it);
    return gyre_all_to_allv(it->twin->comm, from->bytes, from->counts, from->places, to->bytes, to->counts, to->places,
                            GYRE_UINT8);
}

static int all_to_all_blocks(struct exchange *it)
{
    struct gm_twin *twin = it->twin;
    bool equal = twin->near && !are_short(it);
    int code = MPI_SUCCESS;
    if (!gm_blocks_open(&it->out, it->in_place, equal) || (!it->in_place && !gm_blocks_open(&it->in, true, equal)))
        code = gm_failure_memory(twin, GM_ALLTOALLV);
    if (code == MPI_SUCCESS) {
        gm_take_begin(twin);
        code = gm_take_end(twin, exchange(it, equal), GM_ALLTOALLV);
    }
    gm_blocks_close(&it->in, false);
    gm_blocks_close(&it->out, code == MPI_SUCCESS);
    return code;
}

/* A rank without data cannot know whether the others have any: it takes part. */
int gm_alltoallv(struct gm_blocks input, struct gm_blocks output, MPI_Comm comm)
{
    struct exchange it = {.twin = gm_twin_find(comm, GM_ALLTOALLV), .in_place = input.buffer == MPI_IN_PLACE};
    if (!it.twin || !gm_blocks_measure(&it.out, &output, it.twin, 0) ||
        (!it.in_place && !gm_blocks_measure(&it.in, &input, it.twin, 2)))
        return GM_PASS;
    int code = it.twin->near ? agree(&it) : MPI_SUCCESS;
    if (code != MPI_SUCCESS)
        return code;
    if (it.twin->near && !are_short(&it) && it.longest != it.shortest)
        return GM_PASS;
    return all_to_all_blocks(&it);
}
