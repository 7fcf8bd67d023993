/* What this process can see of the machine, by hwloc. */
#ifndef GY_CORE_TOPOLOGY_H
#define GY_CORE_TOPOLOGY_H

#include "base.h"

int gy_topology_usable_cores(void); /* cores in this process's affinity mask; cached, no hwloc load */
/* Number of cores of the ranks of this host, as far as this process can tell: its usable ones. A process bound to one
 * core knows nothing about the others' cores, and counts all cores of the host. */
int gy_topology_host_cores(void);
/* Bytes of the last-level cache of the core of the first call; 0: the kernel does not say. Cached, no hwloc load. */
size_t gy_topology_last_cache(void);
void gy_topology_describe(gyre_print_func print,
                          void *user); /* packages, NUMA nodes, caches, cores; loads hwloc lazily */
/* How far devices, such as network adapters, are from where this thread runs: 0 on the same NUMA node (or there is only
 * one), 1 not known, 2 on another. Loads hwloc where there are several nodes: for set-up, where there is a choice. */
void gy_topology_device_distances(const char *const *names, int count, int *distances_p);
/* The NUMA node, or (caches) the last-level cache, within which this thread is bound: 1, 2, …; 0: it may run in
 * several, or it is not known. Loads hwloc. */
int gy_topology_binding(bool caches);
/* A 64-bit key that is equal for processes that can share memory: GYRE_HOST_ID if `host_id` is not empty, else boot id,
 * network namespace and user. */
uint64_t gy_topology_host_key(const char *host_id);

#endif
