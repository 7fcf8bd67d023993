#include <criterion/criterion.h>

#include "collectives/comm/memory_registry.h"

Test(registry, counts_and_finds)
{
    struct gy_registry registry = {0};
    static char memory[100];
    size_t other;
    for (int i = 99; i >= 0; i--)
        cr_assert(gy_registry_add(&registry, memory + i, (size_t)i + 1, &other));
    cr_assert(gy_registry_add(&registry, memory + 50, 51, &other));
    cr_assert_not(gy_registry_add(&registry, memory + 50, 52, &other));
    cr_assert_eq(other, 51);
    cr_assert_eq(registry.count, 100);
    for (size_t i = 1; i < registry.count; i++)
        cr_assert_lt(registry.ranges[i - 1].memory, registry.ranges[i].memory);
    cr_assert(gy_registry_remove(&registry, memory + 50));
    cr_assert_eq(registry.count, 100, "announced twice");
    cr_assert(gy_registry_remove(&registry, memory + 50));
    cr_assert_not(gy_registry_remove(&registry, memory + 50));
    for (int i = 0; i < 100; i++)
        cr_assert(i == 50 || gy_registry_remove(&registry, memory + i));
    cr_assert_eq(registry.count, 0);
    gy_registry_free(&registry);
}
