#include "collectives/comm/group.h"

#include <stdlib.h>
#include <string.h>

#include "core/mem.h"

static int by_world(const void *a, const void *b)
{
    const struct gy_group_member *x = a, *y = b;
    return (x->world > y->world) - (x->world < y->world);
}

bool gy_group_make(struct gy_group *group_p, const int *world, int size, int world_size)
{
    *group_p = (struct gy_group){.size = size};
    bool identity = size == world_size;
    for (int r = 0; world && r < size; r++)
        identity = identity && world[r] == r;
    if (!world || identity)
        return true;
    group_p->world = gy_alloc((size_t)size * sizeof(*group_p->world));
    group_p->by_world = gy_alloc((size_t)size * sizeof(*group_p->by_world));
    if (!group_p->world || !group_p->by_world) {
        gy_group_free(group_p);
        return false;
    }
    memcpy(group_p->world, world, (size_t)size * sizeof(*world));
    for (int r = 0; r < size; r++)
        group_p->by_world[r] = (struct gy_group_member){world[r], r};
    qsort(group_p->by_world, (size_t)size, sizeof(*group_p->by_world), by_world);
    return true;
}

void gy_group_free(struct gy_group *group)
{
    gy_free(group->world);
    gy_free(group->by_world);
    *group = (struct gy_group){0};
}

int gy_group_rank(const struct gy_group *group, int world)
{
    if (!group->by_world)
        return world < group->size ? world : -1;
    const struct gy_group_member key = {.world = world};
    const struct gy_group_member *found = bsearch(&key, group->by_world, (size_t)group->size, sizeof(key), by_world);
    return found ? found->rank : -1;
}
