/* A call with copies of its lists: kept_call.h. */
#include "collectives/device/kept_call.h"

#include "core/mem.h"

enum { LISTS = 4 };

bool gy_kept_call_open(struct gy_kept_call *kept, const struct gy_call *call, int size)
{
    *kept = (struct gy_kept_call){*call, NULL};
    const size_t **fields[LISTS] = {&kept->call.in_counts, &kept->call.out_counts, &kept->call.in_places,
                                    &kept->call.out_places};
    const size_t *given[LISTS];
    if (!call->varying)
        return true;
    kept->lists = gy_alloc(LISTS * (size_t)size * sizeof(*kept->lists));
    if (!kept->lists)
        return false;
    for (int i = 0; i < LISTS; i++) {
        given[i] = *fields[i];
        if (!given[i])
            continue;
        size_t *own = kept->lists + (size_t)i * (size_t)size;
        memcpy(own, given[i], (size_t)size * sizeof(*own));
        *fields[i] = own;
        for (int j = 0; j < i; j++)
            if (given[j] == given[i])
                *fields[i] = *fields[j];
    }
    return true;
}

void gy_kept_call_close(struct gy_kept_call *kept)
{
    gy_free(kept->lists);
    kept->lists = NULL;
}
