/* deterministic: sync with the same bits on any number of ranks. A batch is cut into a fixed number of virtual shards
 * (a power of two), whatever the ranks. The gradient of each shard is computed separately. So every matrix product has
 * the same shape and, with one BLAS thread, the same bits. The gradients are added in one balanced binary tree over the
 * shards:
 *
 *     shard        0   1   2   3   4   5   6   7
 *                  └─┬─┘   └─┬─┘   └─┬─┘   └─┬─┘
 *                    └───┬───┘       └───┬───┘        on 2 ranks: the left half on rank 0, the right one on rank 1,
 *                        └───────┬───────┘            which then exchange and add, left + right
 *
 * If the number of ranks is a power of two, and at most the shards, the ranks divide the tree. Each rank adds up its
 * subtree as its shards come (one partial sum per level), and the ranks exchange sums level by level. Any other
 * number of ranks gathers the gradients of all shards, and every rank adds up the whole tree. */
#include "strategies/strategies.h"
#include "strategies/vector.h"

#include <stdlib.h>
#include <string.h>

#define MOST_LEVELS 11 /* 1024 shards */

struct tree {
    struct gyre_nn_run run;
    size_t count, shards;
    size_t first, mine; /* shards of this rank */
    bool split;         /* ranks divide the tree */
    struct gy_vector grads;
    struct gy_vector levels[MOST_LEVELS]; /* split: the sum of the last complete subtree of 2^level shards */
    struct gy_vector other;               /* split: a peer's sum */
    struct gy_vector all;                 /* not split: the gradients of all shards, one after the other */
    size_t *counts;
};

static const struct gyre_nn_setting settings[] = {
    {.name = "shards",
     .value = 8,
     .least = 1,
     .most = 1024,
     .choices = gy_nn_whole,
     .help = "virtual shards of a batch, a power of two"},
    {0},
};

static void close(void *self)
{
    struct tree *tree = self;
    for (size_t i = 0; i < MOST_LEVELS; i++)
        free(tree->levels[i].data);
    free(tree->other.data);
    free(tree->all.data);
    free(tree->counts);
    free(tree);
}

static bool make(const struct tree *tree, size_t vectors, struct gy_vector *vector_p)
{
    vector_p->dtype = tree->grads.dtype;
    vector_p->data = calloc(vectors * tree->count, gyre_dtype_size(tree->grads.dtype));
    return vector_p->data != NULL;
}

static bool make_memory(struct tree *tree)
{
    size_t ranks = (size_t)tree->run.ranks, first;
    bool ok = true;
    for (size_t level = 0; tree->split && ok && (size_t)1 << level <= tree->mine; level++)
        ok = make(tree, 1, &tree->levels[level]);
    if (tree->split)
        return ok && make(tree, 1, &tree->other);
    tree->counts = calloc(ranks, sizeof(*tree->counts));
    for (size_t r = 0; r < ranks && tree->counts; r++) {
        gyre_nn_shard(tree->shards, (int)r, (int)ranks, &first, &tree->counts[r]);
        tree->counts[r] *= tree->count;
    }
    return tree->counts && make(tree, tree->shards, &tree->all);
}

static gyre_status open(const struct gyre_nn_run *run, void **self_p)
{
    size_t shards = (size_t)run->settings[0], ranks = (size_t)run->ranks;
    if ((double)shards != run->settings[0] || (shards & (shards - 1)) != 0)
        return gyre_nn_fail(GYRE_INVALID_ARGUMENT, NULL, "strategy deterministic: shards is no power of two");
    struct tree *tree = calloc(1, sizeof(*tree));
    if (!tree)
        return gyre_nn_fail(GYRE_NO_MEMORY, NULL, "no memory for the strategy deterministic");
    tree->run = *run;
    tree->count = gyre_nn_param_count(run->model);
    tree->shards = shards;
    tree->split = (ranks & (ranks - 1)) == 0 && ranks <= shards;
    tree->grads = (struct gy_vector){gyre_nn_dtype(run->model), gyre_nn_grads(run->model)};
    gyre_nn_shard(shards, run->rank, run->ranks, &tree->first, &tree->mine);
    gyre_nn_set_blas_threads(1);
    if (!make_memory(tree)) {
        close(tree);
        return gyre_nn_fail(GYRE_NO_MEMORY, NULL, "no memory for the gradients of virtual shards");
    }
    *self_p = tree;
    return GYRE_SUCCESS;
}

static bool piece(void *self, size_t rows, size_t index, size_t *first_p, size_t *count_p)
{
    const struct tree *tree = self;
    if (index >= tree->mine)
        return false;
    gyre_nn_shard(rows, (int)(tree->first + index), (int)tree->shards, first_p, count_p);
    return true;
}

/* A shard's gradient joins the sums on its left, as in a binary counter: what is complete moves up a level. */
static gyre_status after_backward(void *self, size_t index)
{
    struct tree *tree = self;
    size_t level = 0;
    if (tree->split) {
        for (; index >> level & 1; level++)
            gy_vector_add(0, tree->count, 1, tree->levels[level], tree->grads);
        gy_vector_copy(0, tree->count, tree->grads, tree->levels[level]);
    } else {
        memcpy(gy_vector_at(tree->all, (tree->first + index) * tree->count), tree->grads.data,
               tree->count * gyre_dtype_size(tree->grads.dtype));
    }
    gyre_nn_zero_grads(tree->run.model);
    return GYRE_SUCCESS;
}

/* Level by level with the rank across. Addition commutes, so both have left + right. */
static gyre_status exchange(struct tree *tree)
{
    size_t level = 0;
    gyre_status status = GYRE_SUCCESS;
    while ((size_t)1 << level < tree->mine)
        level++;
    gy_vector_copy(0, tree->count, tree->levels[level], tree->grads);
    for (int distance = 1; distance < tree->run.ranks && status == GYRE_SUCCESS; distance *= 2) {
        int peer = tree->run.rank ^ distance;
        status = gyre_sendrecv(tree->run.comm, tree->grads.data, tree->count, peer, tree->other.data, tree->count, peer,
                               tree->grads.dtype);
        if (status == GYRE_SUCCESS)
            gy_vector_add(0, tree->count, 1, tree->other, tree->grads);
    }
    return status;
}

static gyre_status gather(struct tree *tree)
{
    size_t count = tree->count;
    gyre_status status = gyre_all_gatherv(tree->run.comm, gy_vector_at(tree->all, tree->first * count), tree->all.data,
                                          tree->counts, NULL, tree->all.dtype);
    if (status != GYRE_SUCCESS)
        return status;
    for (size_t width = 1; width < tree->shards; width *= 2)
        for (size_t i = 0; i < tree->shards; i += 2 * width) {
            struct gy_vector left = {tree->all.dtype, gy_vector_at(tree->all, i * count)};
            struct gy_vector right = {tree->all.dtype, gy_vector_at(tree->all, (i + width) * count)};
            gy_vector_add(0, count, 1, right, left);
        }
    gy_vector_copy(0, count, tree->all, tree->grads);
    return GYRE_SUCCESS;
}

static gyre_status update(void *self, const struct gyre_nn_step *step)
{
    struct tree *tree = self;
    gyre_status status = tree->split ? exchange(tree) : gather(tree);
    if (status != GYRE_SUCCESS)
        return gyre_nn_fail(status, tree->run.comm, "adding up the gradients of virtual shards");
    double scale = gy_vector_clip(tree->run.model, tree->grads, 1 / (double)step->global_rows, tree->run.clip_norm);
    gyre_nn_optimizer_begin(tree->run.optimizer);
    gyre_nn_optimizer_update(tree->run.optimizer, 0, tree->count, step->rate, scale);
    return GYRE_SUCCESS;
}

const gyre_nn_strategy gy_nn_deterministic = {
    .size = sizeof(gyre_nn_strategy),
    .name = "deterministic",
    .help = "sync with the same bits on any number of ranks",
    .settings = settings,
    .open = open,
    .close = close,
    .piece = piece,
    .after_backward = after_backward,
    .update = update,
};
