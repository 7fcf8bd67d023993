/* Sizes are grouped in classes, two to an octave. A class has the costs of its smallest size: near a crossover two
 * algorithms' costs differ little. */
#include "collectives/select/cost_cache.h"

#include <string.h>

#include "collectives/comm/context.h"
#include "collectives/schedule/tile.h"
#include "collectives/select/cost_model.h"
#include "core/mem.h"

#define ELEMENT 4u /* costs are of bytes; blocks and tiles are cut at elements */

bool gy_tuned_make(const struct gy_context *ctx, int ranks, int hosts, struct gy_tuned **tuned_p)
{
    const struct gy_config *config = &ctx->config;
    *tuned_p = NULL;
    if (!config->tuning.path[0])
        return true;
    struct gy_tuned *tuned = gy_alloc_zero(1, sizeof(*tuned));
    if (!tuned)
        return false;
    tuned->cluster = &config->tuning.cluster;
    tuned->ranks = ranks;
    tuned->ranks_per_host = (ranks + hosts - 1) / hosts;
    tuned->by_host = strcmp(config->hierarchy, "host") == 0;
    tuned->between = hosts > 1;
    tuned->sockets = ctx->sockets;
    tuned->tile = tuned->between ? config->tcp_tile : gy_min_size(config->shm_slot, GY_HOST_TILE);
    *tuned_p = tuned;
    return true;
}

/* Returns the class of the greatest 2^k or 1.5 · 2^k that is not above `bytes`. */
static unsigned class_of(size_t bytes)
{
    unsigned k = 0;
    for (size_t rest = bytes; rest > 1; rest >>= 1)
        k++;
    unsigned class = 2 * k + (k > 0 && ((bytes >> (k - 1)) & 1));
    return class < GY_TUNED_CLASSES ? class : GY_TUNED_CLASSES - 1;
}

static size_t least_of(unsigned class)
{
    size_t power = (size_t)1 << (class / 2);
    return class % 2 ? power + power / 2 : power;
}

/* Returns the tile in elements. */
static size_t tile_of(const struct gy_tuned *tuned, const struct gy_cost_case *it)
{
    int members = gy_is_hierarchical(it->algorithm) ? tuned->ranks_per_host : 1;
    size_t bytes = it->total * ELEMENT;
    bytes = tuned->between ? gy_tile_bytes(it->collective, tuned->ranks, members, bytes, tuned->tile)
                           : gy_tile_in_host(it->collective, tuned->ranks, bytes, tuned->tile, tuned->sockets);
    return gy_max_size(bytes / ELEMENT, 1);
}

/* Computes the costs of all usable algorithms, negative where there is none, and their minimum. */
static struct gy_tuned_class compare(const struct gy_tuned *tuned, struct gy_cost_case *it, unsigned usable)
{
    struct gy_tuned_class class = {.known = true, .cheapest = GY_ALGORITHMS};
    double cost[GY_ALGORITHMS], least = 0;
    for (int a = 0; a < GY_ALGORITHMS; a++) {
        cost[a] = -1;
        it->algorithm = (enum gy_algorithm)a;
        if (!(usable & (1u << a)) || !gy_schedule_exists(it->collective, it->algorithm, tuned->ranks))
            continue;
        it->tile = tile_of(tuned, it);
        cost[a] = gy_cost(it);
        if (!(cost[a] >= 0) || (class.cheapest != GY_ALGORITHMS && cost[a] >= least))
            continue;
        class.cheapest = (uint8_t)a;
        least = cost[a];
    }
    for (int a = 0; a < GY_ALGORITHMS; a++)
        class.dearer |= cost[a] > GY_TUNED_DOUBT * least ? 1u << a : 0;
    return class;
}

enum gy_algorithm gy_tuned_choose(struct gy_tuned *tuned, enum gy_collective collective, size_t bytes, unsigned usable,
                                  enum gy_algorithm otherwise)
{
    unsigned number = class_of(bytes);
    struct gy_tuned_class *class = &tuned->classes[collective][number];
    if (!class->known) {
        size_t total = least_of(number) / ELEMENT;
        struct gy_cost_case it = {.cluster = tuned->cluster,
                                  .collective = collective,
                                  .ranks = tuned->ranks,
                                  .ranks_per_host = tuned->ranks_per_host,
                                  .total = total > 0 ? total : 1,
                                  .element = ELEMENT};
        *class = compare(tuned, &it, usable);
    }
    return class->dearer & (1u << otherwise) ? (enum gy_algorithm) class->cheapest : otherwise;
}
