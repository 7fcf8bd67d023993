#include "short.h"

#include <string.h>

#define ALIGNED _Alignas(64)

gyre_status gm_short_broadcast(struct gm_shadow *shadow, void *buffer, size_t bytes, int root)
{
    ALIGNED char all[GM_SHORT];
    if (!gm_is_short(shadow, bytes, shadow->size))
        return gyre_broadcast(shadow->comm, buffer, buffer, bytes, GYRE_UINT8, root);
    gyre_status status = gyre_all_gather(shadow->comm, buffer, all, bytes, GYRE_UINT8);
    if (status == GYRE_SUCCESS && shadow->rank != root)
        memcpy(buffer, all + (size_t)root * bytes, bytes);
    return status;
}

gyre_status gm_short_gather(struct gm_shadow *shadow, const void *input, void *output, size_t bytes, int root)
{
    ALIGNED char all[GM_SHORT];
    if (!gm_is_short(shadow, bytes, shadow->size))
        return gyre_gather(shadow->comm, input, output, bytes, GYRE_UINT8, root);
    return gyre_all_gather(shadow->comm, input, shadow->rank == root ? output : all, bytes, GYRE_UINT8);
}

gyre_status gm_short_scatter(struct gm_shadow *shadow, const void *input, void *output, size_t bytes, int root)
{
    static const char nothing[GM_SHORT];
    ALIGNED char all[GM_SHORT];
    const size_t size = (size_t)shadow->size;
    if (!gm_is_short(shadow, bytes, shadow->size * shadow->size))
        return gyre_scatter(shadow->comm, input, output, bytes, GYRE_UINT8, root);
    gyre_status status = gyre_all_gather(shadow->comm, shadow->rank == root ? input : nothing, all, size * bytes,
                                         GYRE_UINT8);
    if (status == GYRE_SUCCESS)
        memcpy(output, all + ((size_t)root * size + (size_t)shadow->rank) * bytes, bytes);
    return status;
}

gyre_status gm_short_reduce(struct gm_shadow *shadow, const void *input, void *output, size_t count,
                            const struct gm_reduction *how, int root)
{
    ALIGNED char result[GM_SHORT];
    const bool is_root = shadow->rank == root;
    if (!gm_is_short(shadow, count * how->bytes, 1))
        return gyre_reduce(shadow->comm, input, is_root ? output : NULL, count * how->factor, how->dtype, how->op,
                           root);
    return gyre_all_reduce(shadow->comm, input, is_root ? output : result, count * how->factor, how->dtype, how->op);
}
