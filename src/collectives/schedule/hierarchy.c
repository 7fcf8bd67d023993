#include "collectives/schedule/hierarchy.h"

#include "core/mem.h"

bool gy_hierarchy_open(struct gy_hierarchy *hierarchy, const struct gy_schedule_shape *shape)
{
    int size = shape->size, groups = 1;
    for (int r = 0; shape->groups && r < size; r++)
        groups = shape->groups[r] >= groups ? shape->groups[r] + 1 : groups;
    int *memory = gy_alloc_zero(4 * (size_t)size + 1, sizeof(*memory)); /* groups <= size */
    if (!memory)
        return false;
    *hierarchy = (struct gy_hierarchy){.size = size, .groups = groups, .slices = size, .memory = memory};
    hierarchy->group = memory;
    hierarchy->index = memory + size;
    hierarchy->ranks = memory + 2 * (size_t)size;
    hierarchy->first = memory + 3 * (size_t)size;
    for (int r = 0; r < size; r++) {
        hierarchy->group[r] = shape->groups ? shape->groups[r] : 0;
        hierarchy->index[r] = hierarchy->first[hierarchy->group[r] + 1]++; /* counts until the prefix sums are formed */
    }
    for (int g = 0; g < groups; g++) {
        hierarchy->slices = hierarchy->first[g + 1] < hierarchy->slices ? hierarchy->first[g + 1] : hierarchy->slices;
        hierarchy->first[g + 1] += hierarchy->first[g];
    }
    for (int r = 0; r < size; r++)
        hierarchy->ranks[hierarchy->first[hierarchy->group[r]] + hierarchy->index[r]] = r;
    hierarchy->mine = hierarchy->group[shape->rank];
    hierarchy->place = hierarchy->index[shape->rank];
    hierarchy->members = gy_hierarchy_members(hierarchy, hierarchy->mine);
    hierarchy->peers = hierarchy->ranks + hierarchy->first[hierarchy->mine];
    return true;
}

void gy_hierarchy_close(struct gy_hierarchy *hierarchy)
{
    gy_free(hierarchy->memory);
    *hierarchy = (struct gy_hierarchy){0};
}
