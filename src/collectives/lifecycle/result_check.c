/* Batches of hashes: see result_check.h.
 *
 *   batch 0 (K hashes) ─ batch 1 ─ batch 2 ...    in order of their first operation
 *   └ being compared     └ full    └ filling
 *
 * Invariants. The place of an operation is assigned at its launch, so it is the same on every rank, in whatever
 * order operations end. Only the oldest batch is compared, so the exchanges of the hidden communicator have the same
 * order on all ranks, too. All ranks compare the same hashes, and reach the same result without further messages. */
#include "collectives/lifecycle/result_check.h"

#include <stdio.h>
#include <string.h>

#include "collectives/call/launch.h"
#include "collectives/call/prepare.h"
#include "collectives/engine/progress.h"
#include "collectives/lifecycle/comm_open.h"
#include "core/hash.h"
#include "core/mem.h"

#define HIDDEN 0x80000000u /* in the number of a hidden communicator; the program's numbers are small */

struct batch {
    struct batch *next;
    uint64_t first;                   /* number of its first operation */
    size_t ended;                     /* hashes that are there */
    struct gyre_request *request;     /* the exchange, once begun */
    struct gy_call_signature *shapes; /* [every] */
    uint64_t *mine, *all;             /* [every], [size * every] */
};

struct gy_verify {
    struct gyre_comm *comm, *hidden;
    size_t every;
    uint64_t started; /* operations launched so far */
    struct batch *oldest, *newest, *spare;
};

static struct batch *batch_make(const struct gy_verify *verify)
{
    size_t every = verify->every, size = (size_t)verify->comm->size;
    size_t bytes = sizeof(struct batch) + every * (sizeof(struct gy_call_signature) + (1 + size) * sizeof(uint64_t));
    struct batch *batch = gy_alloc_zero(1, bytes);
    if (!batch)
        return NULL;
    batch->mine = (uint64_t *)(batch + 1);
    batch->all = batch->mine + every;
    batch->shapes = (struct gy_call_signature *)(void *)(batch->all + size * every);
    return batch;
}

gyre_status gy_verify_make(struct gyre_comm *comm, struct gy_verify **verify_p, struct gy_error *error)
{
    struct gy_verify *verify;
    struct gy_group group = {0};
    gyre_status status = GYRE_SUCCESS;
    int *world;
    *verify_p = NULL;
    if (comm->ctx->config.verify == 0 || comm->size < 2 || comm->id & HIDDEN)
        return status;
    verify = gy_alloc_zero(1, sizeof(*verify));
    world = gy_alloc((size_t)comm->size * sizeof(*world));
    if (!verify || !world)
        goto no_memory;
    verify->comm = comm;
    verify->every = comm->ctx->config.verify;
    verify->spare = batch_make(verify);
    for (int r = 0; r < comm->size; r++)
        world[r] = gy_group_world(&comm->group, r);
    if (!verify->spare || !gy_group_make(&group, world, comm->size, comm->ctx->world->size))
        goto no_memory;
    status = gy_comm_create(comm->ctx, comm->id | HIDDEN, &group, -1, &verify->hidden, error);
    gy_group_free(&group);
    gy_free(world);
    if (status == GYRE_SUCCESS) {
        /* The user's attributes are for the user's collectives; and a forced shared-memory algorithm is impossible
         * without a region. */
        verify->hidden->attributes.uniform = false;
        verify->hidden->attributes.algorithm[0] = '\0';
        *verify_p = verify;
    } else
        gy_verify_free(verify);
    return status;

no_memory:
    gy_free(world);
    gy_verify_free(verify);
    return gy_error_set(error, GYRE_NO_MEMORY, -1, "out of memory for the verification of results");
}

void gy_verify_free(struct gy_verify *verify)
{
    struct batch *batch;
    if (!verify)
        return;
    while ((batch = verify->oldest)) {
        verify->oldest = batch->next;
        if (batch->request)
            gy_request_recycle(batch->request);
        gy_free(batch);
    }
    gy_free(verify->spare);
    if (verify->hidden)
        gy_comm_free(verify->hidden);
    gy_free(verify);
}

static bool is_equal_everywhere(const struct gyre_request *r)
{
    enum gy_collective collective = r->schedule->shape.collective;
    return collective == GY_ALL_REDUCE || collective == GY_ALL_GATHER || collective == GY_BROADCAST;
}

/* Fails the world: the others would wait for this rank's hashes. */
static void give_up(struct gy_context *ctx)
{
    char text[120];
    snprintf(text, sizeof(text), "rank %d has no memory for the verification of results (GYRE_VERIFY)",
             ctx->world->rank);
    gy_error_set(&ctx->error, GYRE_NO_MEMORY, ctx->world->rank, "%s", text);
    gy_overlay_report(ctx->overlay, GYRE_NO_MEMORY, ctx->world->rank, text);
}

void gy_verify_launch(struct gyre_request *r)
{
    struct gy_verify *verify = r->comm->verify;
    struct batch *batch;
    if (!is_equal_everywhere(r))
        return;
    if (verify->started % verify->every == 0) {
        batch = verify->spare ? verify->spare : batch_make(verify);
        if (!batch) {
            give_up(r->comm->ctx);
            return;
        }
        verify->spare = NULL;
        batch->next = NULL;
        batch->first = verify->started;
        batch->ended = 0;
        batch->request = NULL;
        *(verify->oldest ? &verify->newest->next : &verify->oldest) = batch;
        verify->newest = batch;
    }
    verify->newest->shapes[verify->started % verify->every] = r->shape;
    r->verified_as = ++verify->started;
}

/* With counts, block by block: their places may differ from rank to rank. */
static uint64_t hash_output(const struct gyre_request *r)
{
    size_t element = gyre_dtype_size(r->dtype);
    const struct gy_layout *out = &r->out;
    uint64_t hash = 0;
    if (!out->starts)
        return out->total ? XXH3_64bits(r->user_output, out->total * element) : 0;
    for (int32_t b = 0; b < out->blocks; b++) {
        size_t count = out->starts[b + 1] - out->starts[b], place = out->places ? out->places[b] : out->starts[b];
        if (count > 0)
            hash = XXH3_64bits_withSeed(r->user_output + place * element, count * element, hash);
    }
    return hash;
}

void gy_verify_finish(struct gyre_request *r)
{
    struct gy_verify *verify = r->comm->verify;
    struct batch *batch = verify->oldest;
    uint64_t number = r->verified_as - 1;
    if (r->verified_as == 0)
        return;
    while (batch && number - batch->first >= verify->every)
        batch = batch->next;
    r->verified_as = 0;
    if (!batch)
        return;
    batch->mine[number % verify->every] = hash_output(r);
    batch->ended++;
}

/* Returns the hash that most ranks have; *votes_p: their number. */
static uint64_t most_common(const struct gy_verify *verify, const struct batch *batch, size_t slot, int *votes_p)
{
    uint64_t best = 0;
    *votes_p = 0;
    for (int r = 0; r < verify->comm->size; r++) {
        uint64_t hash = batch->all[(size_t)r * verify->every + slot];
        int votes = 0;
        for (int q = 0; q < verify->comm->size; q++)
            votes += batch->all[(size_t)q * verify->every + slot] == hash;
        if (votes > *votes_p) {
            best = hash;
            *votes_p = votes;
        }
    }
    return best;
}

static void blame(const struct gy_verify *verify, const struct batch *batch, size_t slot, uint64_t right, int votes)
{
    struct gy_context *ctx = verify->comm->ctx;
    char what[160], text[480];
    int rank = 0;
    gy_shape_print(&batch->shapes[slot], what, sizeof(what));
    while (batch->all[(size_t)rank * verify->every + slot] == right)
        rank++;
    int world = gy_group_world(&verify->comm->group, rank);
    if (2 * votes > verify->comm->size)
        snprintf(text, sizeof(text),
                 "rank %d got another result than %d of %d ranks in %s: its processor or memory is at fault, or the "
                 "operation that it was given (GYRE_VERIFY)",
                 world, votes, verify->comm->size, what);
    else
        snprintf(text, sizeof(text),
                 "rank %d got another result than rank %d in %s, and no majority says which of them is right "
                 "(GYRE_VERIFY)",
                 world, gy_group_world(&verify->comm->group, 0), what);
    gy_error_set(&ctx->error, GYRE_WRONG_RESULT, world, "%s", text);
    gy_overlay_report(ctx->overlay, GYRE_WRONG_RESULT, world, text);
}

/* Compares a batch; all hashes are here. */
static void compare(const struct gy_verify *verify, const struct batch *batch)
{
    size_t bytes = verify->every * sizeof(uint64_t);
    bool same = true;
    for (int r = 1; r < verify->comm->size && same; r++)
        same = memcmp(batch->all, batch->all + (size_t)r * verify->every, bytes) == 0;
    for (size_t slot = 0; slot < verify->every && !same; slot++) {
        int votes;
        uint64_t right = most_common(verify, batch, slot, &votes);
        if (votes == verify->comm->size)
            continue;
        if (2 * votes <= verify->comm->size)
            right = batch->all[slot]; /* rank 0's, so that a differing rank can be named */
        blame(verify, batch, slot, right, votes);
        return;
    }
}

static bool begin(struct gy_verify *verify, struct batch *batch)
{
    struct gy_call call = {.collective = GY_ALL_GATHER,
                           .input = batch->mine,
                           .output = batch->all,
                           .count = verify->every,
                           .dtype = GYRE_UINT64};
    if (gy_request_start(verify->hidden, &call, &batch->request) == GYRE_SUCCESS)
        return true;
    batch->request = NULL;
    give_up(verify->comm->ctx);
    return false;
}

/* Progresses the oldest batch. */
static bool progress(struct gy_verify *verify)
{
    struct batch *batch = verify->oldest;
    struct gy_context *ctx = verify->comm->ctx;
    if (!batch || (!batch->request && (batch->ended < verify->every || ctx->closed)))
        return false;
    if (!batch->request)
        return begin(verify, batch);
    if (!batch->request->complete)
        return false;
    if (batch->request->status == GYRE_SUCCESS)
        compare(verify, batch);
    gy_request_recycle(batch->request);
    verify->oldest = batch->next;
    if (verify->spare)
        gy_free(batch);
    else
        verify->spare = batch;
    return true;
}

bool gy_verify_progress(struct gy_context *ctx)
{
    bool moved = false;
    for (struct gyre_comm *comm = ctx->comms; comm; comm = comm->next)
        while (comm->verify && ctx->error.status == GYRE_SUCCESS && progress(comm->verify))
            moved = true;
    if (moved && ctx->error.status != GYRE_SUCCESS)
        gy_context_fail(ctx);
    return moved;
}

static bool is_settled(const void *what)
{
    const struct gyre_comm *comm = what;
    const struct batch *oldest = comm->verify->oldest;
    return comm->ctx->closed || !oldest || oldest->ended < comm->verify->every;
}

gyre_status gy_verify_settle(struct gyre_comm *comm)
{
    if (!comm->verify)
        return comm->ctx->error.status;
    gy_verify_progress(comm->ctx);
    gy_wait_until(comm->ctx, is_settled, comm);
    return comm->ctx->error.status;
}
