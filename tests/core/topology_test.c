/* Affinity, the description, and the key by which ranks of one host find each other. */
#include <criterion/criterion.h>
#include <sched.h>
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
