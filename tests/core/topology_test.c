/* Affinity, the description, and the key by which ranks of one host find each other. */
#include <criterion/criterion.h>
#include <hwloc.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/topology.h"

Test(topology, cores_follow_the_affinity_mask)
{
    cpu_set_t all, one;

    cr_assert_eq(sched_getaffinity(0, sizeof(all), &all), 0);
    CPU_ZERO(&one);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &all)) {
            CPU_SET(cpu, &one);
            break;
        }
    }
    cr_assert_eq(sched_setaffinity(0, sizeof(one), &one), 0);
    cr_assert_eq(gy_topology_usable_cores(), 1);
    sched_setaffinity(0, sizeof(all), &all);
    cr_assert_eq(gy_topology_usable_cores(), 1, "the count is cached");
    cr_assert_eq(gy_topology_host_cores(), (int)sysconf(_SC_NPROCESSORS_ONLN), "other ranks may be bound elsewhere");
}

/* hwloc reads a machine that is described to it: two nodes of one core each, or two caches on one node. */
Test(topology, place_is_where_the_thread_is_bound)
{
    static const char *const machines[] = {"numa:2 l3:1 core:1 pu:1", "numa:1 l3:2 core:1 pu:1",
                                           "numa:1 l2:2 core:1 pu:1"};
    cpu_set_t all, one;

    setenv("HWLOC_THISSYSTEM", "1", 1);
    cr_assert_eq(sched_getaffinity(0, sizeof(all), &all), 0);
    for (int machine = 0; machine < 3; machine++) {
        setenv("HWLOC_SYNTHETIC", machines[machine], 1);
        for (size_t cpu = 0; cpu < 2; cpu++) {
            if (!CPU_ISSET(cpu, &all))
                continue;
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            cr_assert_eq(sched_setaffinity(0, sizeof(one), &one), 0);
            cr_expect_eq(gy_topology_binding(false), machine == 0 ? (int)cpu + 1 : 1, "%s", machines[machine]);
            cr_expect_eq(gy_topology_binding(true), (int)cpu + 1, "%s", machines[machine]);
        }
        sched_setaffinity(0, sizeof(all), &all);
        if (CPU_COUNT(&all) > 1 && CPU_ISSET(0, &all) && CPU_ISSET(1, &all))
            cr_expect_eq(gy_topology_binding(true), 0, "bound to no cache alone");
    }
}

/* The kernel's word and hwloc's are one. */
Test(topology, last_cache_is_the_largest_level)
{
    static const hwloc_obj_type_t levels[] = {HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L2CACHE};
    hwloc_topology_t machine;
    hwloc_obj_t cache = NULL;

    cr_assert_eq(hwloc_topology_init(&machine), 0);
    cr_assert_eq(hwloc_topology_load(machine), 0);
    for (size_t i = 0; i < 2 && !cache; i++)
        cache = hwloc_get_next_obj_by_type(machine, levels[i], NULL);
    if (cache && gy_topology_last_cache() > 0)
        cr_assert_eq(gy_topology_last_cache(), cache->attr->cache.size);
    cr_assert_eq(gy_topology_last_cache(), gy_topology_last_cache());
    hwloc_topology_destroy(machine);
}

Test(topology, host_key)
{
    uint64_t own = gy_topology_host_key(""), a = gy_topology_host_key("a"), b = gy_topology_host_key("b");

    cr_assert_eq(own, gy_topology_host_key(NULL));
    cr_assert_eq(own, gy_topology_host_key(""));
    cr_assert_eq(a, gy_topology_host_key("a"));
    cr_assert(a != b && a != own && b != own);
}

Test(topology, host_key_is_the_same_in_another_process)
{
    uint64_t own = gy_topology_host_key(NULL);
    pid_t child = fork();
    int status;

    if (child == 0)
        _exit(gy_topology_host_key(NULL) == own ? 0 : 1);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
}

static void collect(void *user, const char *line)
{
    strncat(user, line, 4095 - strlen(user));
    cr_assert_null(strchr(line, '\n'));
}

Test(topology, describes_cores_and_nodes)
{
    char text[4096] = "";

    gy_topology_describe(collect, text);
    cr_assert_not_null(strstr(text, "cores"));
    cr_assert_not_null(strstr(text, "packages"));
    cr_assert_not_null(strstr(text, "NUMA node"));
}
